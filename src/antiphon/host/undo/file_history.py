"""What a run made of files, call by call, with what undos of it have taken back and redone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import UnknownName, UserError, visible
from antiphon.journal.port import Journal
from antiphon.kernel.run.rows import RecordReader
from antiphon.kernel.run.stopping import at_work
from antiphon.tools.folder.restoring import RestoredFile, WantedFile
from antiphon.values.message import FileChange
from antiphon.view import RunTree
from antiphon.view.changes import EffectEnd, EffectStart, FilesChange, TurnStart

DATA = "antiphon_undo"
"""The key in the data of an undo's run under which its `UndoData` are."""
UNKNOWN_ENDS = frozenset({"unknown", "cancelled"})
"""How a call ends of which nobody knows what it had changed by then."""
COMMANDS = frozenset({"shell", "run_program"})
"""Tools that may change files whatever is on record."""

Place = tuple[str, str]
"""A folder, and a file in it."""


class UndoData(Struct, frozen=True):
    """What a run is that undoes."""

    what: Literal["undo", "redo"]
    run: str
    """The run whose files it restores."""
    to: str = ""
    """The turn before which they were so; empty: before all."""
    redoes: str = ""
    """Of a redo: the undo that it takes back."""
    seq: int = 0
    """The last record of the run by then; what it did later is not undone."""
    at: str = ""
    """The folder in which it is done, where that is not the one on record."""


class FileStep(Struct, frozen=True):
    """One change of a file."""

    seq: int
    """The record in the run itself; of what an undo changed, the last one by then."""
    change: FileChange


class FileHistory(Struct):
    """What is on record of a run's files."""

    run_id: str
    steps: list[FileStep] = []
    """In order."""
    turns: dict[str, int] = {}
    """By its name, such as `1/3`, the record with which each turn began."""
    forked_at: int = 0
    """Of a fork: the last record that is another run's."""
    data: Any = None
    """The run's own."""
    doubtful: list[str] = []
    """Calls of which it is not on record what they changed."""
    at_work: tuple[str, ...] = ()
    """What somebody performs now, or did when he died."""
    told: list[list[RestoredFile]] = []
    """Of an undo: what became of the files, call by call."""
    closed: bool = False

    def wanted(self, seq: int) -> list[WantedFile]:
        """What files are to be again to be as they were before record `seq`."""
        first: dict[Place, FileChange] = {}
        last: dict[Place, FileChange] = {}
        for each in self.steps:
            place = each.change.folder, each.change.path
            if each.seq >= seq:
                first.setdefault(place, each.change)
            last[place] = each.change
        found = [
            WantedFile(*place, last[place].after, change.before)
            for place, change in first.items()
            if last[place].after != change.before
        ]
        return sorted(found, key=_in_order)

    def start_of(self, turn: str) -> int:
        """The record with which a turn began; without one the run's first. Raises UserError for a turn that
        it has not."""
        if not turn:
            return self.forked_at + 1
        name = turn if "/" in turn else f"1/{turn}"
        if name not in self.turns:
            known = ", ".join(list(self.turns)[-8:]) or "none"
            raise UserError(
                f"Run {visible(self.run_id)} has no turn {visible(turn)}; its last turns: {known}"
            )
        return self.turns[name]


async def history_of(journal: Journal, run_id: str) -> FileHistory:
    """What a run made of files. Raises UnknownName, JournalCorrupt."""
    found, tree, reader = FileHistory(run_id), RunTree(recent=True), RecordReader(journal, run_id)
    began: dict[str, int] = {}
    known: dict[Place, tuple[int, FileChange]] = {}
    names: set[str] = set(COMMANDS)
    cut_off: list[tuple[str, str, str]] = []
    async with aclosing(reader.records()) as records:
        async for record in records:
            for change in tree.add(record):
                if isinstance(change, TurnStart):
                    name = f"{change.activation.id}/{change.turn.number}"
                    found.turns[name] = record.seq
                elif isinstance(change, EffectStart):
                    began[change.effect.id] = record.seq
                elif isinstance(change, FilesChange):
                    names.add(change.effect.name)
                    for each in change.changes:
                        if (step := _follows(each, began.get(change.effect.id, 0), known)) is not None:
                            found.steps.append(FileStep(record.seq, step))
                            known[each.folder, each.path] = record.seq, step
                elif isinstance(change, EffectEnd):
                    effect = change.effect
                    began.pop(effect.id, None)
                    if effect.what == "step" and effect.name == "told":
                        found.told.append(_told(effect.content))
                    elif effect.is_tool and effect.started_at is not None and effect.outcome in UNKNOWN_ENDS:
                        cut_off.append((effect.id, effect.name, effect.outcome))
    found.doubtful = [f"{where} {name} ended {how}" for where, name, how in cut_off if name in names]
    found.data, found.closed = tree.data, tree.closed
    found.forked_at = tree.fork.seq if tree.fork is not None else 0
    found.at_work = at_work(reader.state)
    return found


def _follows(
    change: FileChange, began: int, known: Mapping[Place, tuple[int, FileChange]]
) -> FileChange | None:
    """A change behind those that came before it: what another call made of the file while this one ran is
    that one's. None where nothing is left."""
    before = known.get((change.folder, change.path))
    if before is None or before[0] < began:
        return change
    change = replace(change, before=before[1].after)
    return change if change.before != change.after else None


def _told(content: str) -> list[RestoredFile]:
    try:
        return msgspec.json.decode(content, type=list[RestoredFile])
    except msgspec.MsgspecError:
        # The step of another tool that is called so.
        return []


def undo_id(run_id: str, number: int) -> str:
    """The id of the run that is the undo, or redo, of that number of a run; so none is made twice."""
    return blake2b(f"undo {number} {run_id}".encode(), digest_size=16).hexdigest()


class Undo(Struct, frozen=True):
    """An undo or redo of a run, which is a run of its own."""

    run_id: str
    history: FileHistory
    data: UndoData


async def undos_of(journal: Journal, run_id: str) -> list[Undo]:
    """The undos of a run, oldest first. Raises UserError where one is another run's."""
    found: list[Undo] = []
    while True:
        try:
            info = await journal.info(undo_id(run_id, len(found)))
        except UnknownName:
            return found
        history = await history_of(journal, info.run_id)
        data = data_of(history)
        if data is None and not info.seq:
            # It died between its claim and its first record.
            return found
        if data is None or data.run != run_id:
            raise UserError(f"Run {info.run_id} is not the undo of {visible(run_id)} that it should be")
        found.append(Undo(info.run_id, history, data))


def data_of(history: FileHistory) -> UndoData | None:
    """What an undo undoes; None for any other run."""
    held = history.data.get(DATA) if isinstance(history.data, dict) else None
    try:
        return None if held is None else msgspec.convert(held, UndoData)
    except msgspec.ValidationError:
        return None


def wanted_by(data: UndoData, history: FileHistory, undos: Sequence[Undo]) -> list[WantedFile]:
    """What an undo or redo wants files to be again. undos: those before it. Raises UserError."""
    if data.redoes:
        (steps,) = (each.history.steps for each in undos if each.run_id == data.redoes)
        found = [
            WantedFile(each.change.folder, each.change.path, each.change.after, each.change.before)
            for each in steps
        ]
        return sorted(found, key=_in_order)
    own = [each for each in history.steps if each.seq <= data.seq]
    # No clock says which came first: an undo knows how far the run was by then.
    steps = own + [FileStep(each.data.seq, step.change) for each in undos for step in each.history.steps]
    merged = replace(history, steps=sorted(steps, key=lambda each: each.seq))
    return merged.wanted(history.start_of(data.to))


def _in_order(each: WantedFile) -> tuple[bool, str, str]:
    """Those that are to go come first: something else may have been in their place."""
    return each.wanted is not None, each.folder, each.path


def last_undone(undos: Sequence[Undo]) -> str:
    """The id of the last undo that nothing has redone; empty when there is none."""
    redone = {each.data.redoes for each in undos}
    found = [each for each in undos if each.data.what == "undo" and each.run_id not in redone]
    return next((each.run_id for each in reversed(found) if each.history.steps), "")
