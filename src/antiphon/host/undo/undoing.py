"""undo and redo: a run's files are made again what they were before a turn, by a run of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import RunFailed, UserError, visible
from antiphon.host.undo.file_history import (
    DATA,
    FileHistory,
    Undo,
    UndoData,
    data_of,
    history_of,
    last_undone,
    undo_id,
    undos_of,
    wanted_by,
)
from antiphon.journal import open_journal
from antiphon.journal.listing import RunInfo
from antiphon.journal.port import Journal
from antiphon.kernel.run.open import open_run
from antiphon.tools.folder.restoring import DONE, MAX_FILES, RestoredFile, WantedFile, looked_at, restore_tool
from antiphon.values.agent import Agent
from antiphon.values.hooks import Hooks, Return, TurnContext
from antiphon.values.message import ToolCall

AGENT = "undo"
"""The agent of an undo: code, without a model."""


class UndoneRun(Struct, frozen=True):
    """What an undo or a redo did, or would do."""

    run_id: str
    """Its own run; empty where nothing was done."""
    undoes: str
    """The run whose files it restored."""
    to: str
    """The turn before which they were so; empty: before all."""
    files: tuple[RestoredFile, ...] = ()
    """What became of each file that was to be another one."""
    doubtful: tuple[str, ...] = ()
    """Calls of that run of which it is not on record what they changed."""

    @property
    def left(self) -> tuple[RestoredFile, ...]:
        """The files that were left as they are."""
        return tuple(each for each in self.files if each.done == "left")


async def undo(
    journal: Journal | str, run_id: str, to: str = "", *, folder: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
) -> UndoneRun:  # fmt: skip
    """Make the files that a run changed again what they were before it, or before one of its turns.

    journal: a Journal, which stays open, or the URL of one. to: a turn, such as `1/3` (the third of
    activation 1, which `3` means too) or `0/2` (the second request); empty: all that the run changed, of a
    fork what it changed itself. Turns that an earlier undo took back count as they were; so `to` may lead
    forward too. folder: where the files lie, if not where the run's tools recorded it; a run that was taken
    in from elsewhere needs it said. dry_run: only say what would be done.

    A file is touched only if it is as the run, or an undo of it, left it; any other is left, and told with
    its difference. `.git` is never touched. What is done is a run of its own, with one call of a tool: it
    goes on where a crash cut it off when it is asked for again.

    Raises UnknownName; UserError for a run that is at work or itself an undo, a turn that it has not, and a
    folder that is missing; RunInUse while another process does the same; JournalError and its kinds.
    """
    return await _asked(journal, run_id, UndoData("undo", run_id, to), folder, dry_run)


async def redo(
    journal: Journal | str,
    run_id: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
) -> UndoneRun:
    """Take back the last undo of a run that nothing has redone; see `undo`.

    Raises UserError when there is none.
    """
    return await _asked(journal, run_id, UndoData("redo", run_id), folder, dry_run)


async def _asked(
    journal: Journal | str, run_id: str, data: UndoData, folder: str | os.PathLike[str] | None, dry_run: bool
) -> UndoneRun:
    store = open_journal(journal)
    try:
        return await _done(store, run_id, data, folder, dry_run)
    finally:
        if store is not journal:
            await store.close()


async def _done(
    journal: Journal, run_id: str, data: UndoData, folder: str | os.PathLike[str] | None, dry_run: bool
) -> UndoneRun:
    info, history = await journal.info(run_id), await history_of(journal, run_id)
    if (known := data_of(history)) is not None:
        other = visible(known.run)
        raise UserError(f"Run {visible(run_id)} was itself made to {known.what} run {other}; say that one")
    if history.at_work:
        busy = visible(", ".join(history.at_work[:3]))
        raise UserError(
            f"Run {visible(run_id)} is at work ({busy}); wait until it rests, resume it or cancel it first"
        )
    undos = await undos_of(journal, run_id)
    if undos and not undos[-1].history.closed:
        # A crash cut it off: it is finished first, as it was begun.
        *before, begun = undos
        found = await _carried_out(journal, info, history, before, begun.data, begun, dry_run)
        if dry_run or (begun.data.what, begun.data.to) == (data.what, data.to):
            return found
        undos = await undos_of(journal, run_id)
    if data.what == "redo":
        data = replace(data, redoes=last_undone(undos))
        if not data.redoes:
            raise UserError(f"Nothing of run {visible(run_id)} is undone that could be redone")
    data = replace(data, seq=info.seq, at=_given(folder, info))
    return await _carried_out(journal, info, history, undos, data, None, dry_run)


def _given(folder: str | os.PathLike[str] | None, info: RunInfo) -> str:
    """The folder that was said. Raises UserError where it is none, and where one must be."""
    if folder is None:
        if info.imported:
            raise UserError(
                f"Run {visible(info.run_id)} was taken in from elsewhere, and the folders on its record too; "
                "say the folder that is meant"
            )
        return ""
    found = os.path.realpath(folder)
    if not os.path.isdir(found):
        raise UserError(f"{visible(os.fspath(folder))} is not a folder")
    return found


async def _carried_out(
    journal: Journal, info: RunInfo, history: FileHistory, undos: Sequence[Undo], data: UndoData,
    begun: Undo | None, dry_run: bool,
) -> UndoneRun:  # fmt: skip
    wanted = wanted_by(data, history, undos)
    found = UndoneRun("", data.run, data.to, doubtful=tuple(history.doubtful))
    folders = sorted({each.folder for each in wanted})
    if data.at and len(folders) > 1:
        several = visible(", ".join(folders))
        raise UserError(f"Run {visible(data.run)} changed files in several folders: {several}; one was said")

    def folder_of(recorded: str) -> str:
        return data.at or recorded

    if begun is None or dry_run:
        seen = looked_at(wanted, folder_of)
        if dry_run or not any(each.done in DONE for each in seen):
            return replace(found, files=_worth_telling(seen))
    made = undo_id(data.run, len(undos))
    await _perform(
        journal,
        info,
        made,
        data,
        wanted,
        folder_of,
        is_posted=begun is not None and bool(begun.history.turns),
    )
    told = (await history_of(journal, made)).told
    return replace(found, run_id=made, files=_worth_telling([each for part in told for each in part]))


def _worth_telling(files: Sequence[RestoredFile]) -> tuple[RestoredFile, ...]:
    return tuple(each for each in files if each.done != "same")


async def _perform(
    journal: Journal, info: RunInfo, made: str, data: UndoData, wanted: Sequence[WantedFile],
    folder_of: Callable[[str], str], *, is_posted: bool,
) -> None:  # fmt: skip
    """Play the run of an undo, from its beginning or from where it was cut off."""
    agent: Agent = Agent(
        AGENT, f"Restores the files of run {data.run}.", tools=[restore_tool(wanted, folder_of)],
        hooks=Hooks(plan_turn=lambda turn: None, end_turn=_given_back),
    )  # fmt: skip
    parts = range(1, max(-(-len(wanted) // MAX_FILES), 1) + 1)
    calls = [
        ToolCall(
            f"restore {part}", "restore_files",
            msgspec.json.encode({"run": data.run, "to": data.to, "part": part}).decode(),
        )
        for part in parts
    ]  # fmt: skip
    title = f"{data.what} run {data.run}" + (f" to turn {data.to}" if data.to else "")
    async with open_run(
        [agent], journal=journal, run_id=made, create=True, interactive=False,
        data={DATA: msgspec.to_builtins(data)}, labels=replace(info.labels, team=""),
    ) as run:  # fmt: skip
        request = "0/1.c1" if is_posted else await run.post(AGENT, title, calls=calls)
        try:
            await run.result(request)
        except RunFailed as error:
            await run.close(str(error))
            raise
        await run.close()


def _given_back(turn: TurnContext) -> Return:
    """What the calls gave is what the run gives."""
    text = "\n".join(each.content for each in turn.results)
    failed = [each for each in turn.results if each.outcome != "completed"]
    return Return(failed[0].outcome, text, failed[0].reason) if failed else Return("completed", text)
