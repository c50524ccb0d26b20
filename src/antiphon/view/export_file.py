"""A run as a file: what `runs export` writes, and the one door through which such a file comes back in.

A file may come from anybody. `checked` lets only a run pass that a journal of ours could have written, in its
ids and numbers, its chain of digests, and the events that its rows hold; `transfer.check_run` says what that
means below the events. Nothing is written before all of it is known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import JournalCorrupt, JournalError, UserError
from antiphon.journal import Journal
from antiphon.journal.listing import Labels, RunInfo
from antiphon.journal.port import Row, StoredRun
from antiphon.journal.transfer import MAX_BYTES, MAX_COMMAND, check_run, named_blobs
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import Event
from antiphon.kernel.facts.events import decode as decode_events
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.facts.summary import encode as encode_summary
from antiphon.kernel.facts.summary import summary_of
from antiphon.kernel.run.rows import UNREADABLE, fold_next, unpack

FORMAT = 2
"""Of an exported file; those of format 1, whose rows do not say what was given, are read too."""
MAX_FILE = 2 * MAX_BYTES
"""Bytes of a file: what it holds is at most MAX_BYTES, and JSON writes that longer."""
MAX_EFFECT_ID = 300


class ExportedRow(Struct, frozen=True):
    """A row as JSON; `body` is the stored text, character by character."""

    seq: int
    count: int
    epoch: int
    at: float
    body: str
    digest: str
    refs: tuple[tuple[str, str], ...] = ()
    blobs: tuple[str, ...] = ()
    given: int = 0


class Export(Struct, frozen=True):
    """One run as a file: its rows with their chain of digests, every blob they name; name, origin, labels."""

    antiphon_export: int
    run_id: str
    created_at: float
    rows: list[ExportedRow]
    blobs: dict[str, str]
    name: str = ""
    origin: str = ""
    labels: Labels = Labels()


async def export_of(journal: Journal, entry: RunInfo) -> tuple[Export, RunState]:
    """A stored run as a file, and what its records add up to.

    Raises JournalCorrupt, also for records that no journal would take in again.
    """
    rows = await journal.read(entry.run_id)
    stored = {name: await journal.blob(entry.run_id, name) for name in sorted(named_blobs(rows))}
    state = fold_rows(entry.run_id, rows, stored)
    blobs = {name: data.decode() for name, data in stored.items()}
    listed = [
        ExportedRow(
            row.seq,
            row.count,
            row.epoch,
            row.at,
            row.body.decode(),
            row.digest.hex(),
            row.refs,
            row.blobs,
            row.given,
        )
        for row in rows
    ]
    beside = entry.name, entry.origin, entry.labels
    found = Export(FORMAT, entry.run_id, entry.created_at, listed, blobs, *beside)
    return found, state


def load(path: str) -> StoredRun:
    """What the file at `path` says, not yet checked. Raises OSError, JournalError when it is no export."""
    try:
        found = msgspec.json.decode(_bytes(path), type=Export)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalError(f"{path} is no exported run, or is damaged: {error}") from error
    return stored(found, path)


def stored(found: Export, path: str) -> StoredRun:
    """An exported run as a journal would keep it, not yet checked. path: how errors call it.

    Raises JournalError for another format.
    """
    try:
        if not 1 <= found.antiphon_export <= FORMAT:
            raise JournalError(
                f"{path} has export format {found.antiphon_export},"
                f" this Antiphon reads up to {FORMAT}; upgrade it"
            )
        blobs = {name: text.encode() for name, text in found.blobs.items()}
        rows = [
            Row(
                each.seq,
                each.count,
                each.epoch,
                each.at,
                each.body.encode(),
                each.refs,
                _digest(each.digest),
                each.blobs,
                each.given,
            )
            for each in found.rows
        ]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalError(f"{path} is no exported run, or is damaged: {error}") from error
    return StoredRun(found.run_id, rows, blobs, found.origin, found.name, labels=found.labels)


def checked(run: StoredRun) -> StoredRun:
    """The run with its summary and the newest command that it names, when all of it is right.

    Raises JournalError that says what is not.
    """
    try:
        check_run(run)
    except UserError as error:
        raise JournalError(str(error)) from error
    state = fold_rows(run.run_id, run.rows, run.blobs)
    end = run.rows[-1].seq if run.rows else 0
    if not 0 <= state.command <= MAX_COMMAND:
        raise JournalError(f"Its records name command {state.command:,}; no run took in so many")
    return replace(run, summary=encode_summary(summary_of(state, end)), commands=state.command)


def fold_rows(
    run_id: str, rows: Sequence[Row], blobs: Mapping[str, bytes], state: RunState | None = None
) -> RunState:
    """Fold rows whose digests are right, from `state` on; raises JournalCorrupt when they are no run."""
    state = state or RunState()
    for row in rows:
        try:
            events = decode_events(unpack(row.body, row.refs, dict(blobs)) if row.refs else row.body)
            for event in events:
                _check_id(event)
            fold_next(run_id, state, row, events)
        except (JournalError, *UNREADABLE) as error:
            raise JournalCorrupt(run_id, row.seq, str(error)) from error
    return state


def _check_id(event: Event) -> None:
    """Raise ValueError for an effect id that is none; it is shown in terminals and typed into them."""
    effect_id = getattr(event, "id", None)
    if effect_id is not None:
        if len(effect_id) > MAX_EFFECT_ID or not effect_id.isprintable():
            raise ValueError(f"{effect_id[:40]!a} is no effect id")
        ids.parse(effect_id)


def _digest(text: str) -> bytes:
    """A digest as bytes; none at all for what is no hexadecimal number, so that no row can have it."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise JournalError(f"{path} is larger than {MAX_FILE:,} bytes; no run is")
    return data


def write(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, all or nothing: a reader never meets half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
