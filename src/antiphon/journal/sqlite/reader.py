"""The one thread of a process that reads an SQLite journal: verified rows, and what changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import apsw
import msgspec

from antiphon.errors import JournalCorrupt, JournalError, UnknownName
from antiphon.journal.files.seal import Seal
from antiphon.journal.port import (
    Refs,
    Row,
    RunSnapshot,
    StoredCommand,
    blob_digest,
    chain,
    follows,
    genesis,
    snapshot_digest,
)
from antiphon.journal.sqlite.file import meaning, value
from antiphon.journal.sqlite.writer import stored

POLL_S = 0.1
"""How often other processes' commits are looked for while somebody waits."""

NEAR = 8
"""Rows of a run that lie closer than this in the file are read many at once."""
WINDOW = 256

_HEAD = "select key, epoch, seq, last, digest, commands, origin, imported, seal from runs where run_id = ?"
_KNOWN = "select run_id from runs order by key desc limit 20"
ROW = "select n, step, seq, count, epoch, at, digest, blobs, body, given from rows where n = ? and run = ?"
ROWS = (
    "select n, step, seq, count, epoch, at, digest, blobs, body, given from rows"
    " where n between ? and ? and run = ?"
)
_BLOB = "select data from blobs join run_blobs on blob = blobs.key where run = ? and digest = ?"
_COMMANDS = (
    "select number, key, digest, body, seal from commands where run = ? and number > ? order by number"
)
_ELSEWHERE = "select value from meta where name = 'commands before ' || ?"
_SNAPSHOT = "select seq, row_digest, version, data, digest, seal from snapshots where run = ?"
_VERSION = "pragma data_version"


class RunHead(msgspec.Struct, frozen=True):
    """A run's line in `runs`."""

    key: int
    epoch: int
    seq: int
    last: int
    digest: bytes
    commands: int
    origin: str
    imported: int
    seal: bytes


def head(connection: apsw.Connection, run_id: str) -> RunHead:
    """The run's head. Raises UnknownName."""
    found = connection.execute(_HEAD, (run_id,)).fetchone()
    if found is None:
        raise UnknownName("run", run_id, [str(known) for (known,) in connection.execute(_KNOWN)])
    return RunHead(*found)


def rows(connection: apsw.Connection, run_id: str, after: int) -> list[Row]:
    """The run's rows after `after`, followed back from its head and verified. Raises JournalCorrupt."""
    with connection:
        top = head(connection, run_id)
        found: list[tuple[Any, ...]] = []
        window: dict[int, tuple[Any, ...]] = {}
        n, seq, step = top.last, top.seq, 1
        while n and seq > after:
            row = window.get(n)
            if row is None and step < NEAR:
                near = connection.execute(ROWS, (n - WINDOW, n, top.key))
                window = {each[0]: each for each in near}
                row = window.get(n)
            row = row or connection.execute(ROW, (n, top.key)).fetchone()
            if row is None:
                raise JournalCorrupt(run_id, seq, "the row is missing")
            found.append(row)
            step, seq = row[1], row[2] - row[3]
            if step < 0 or row[3] < 1 or (step == 0) != (seq == 0):
                raise JournalCorrupt(run_id, row[2], "the row before it cannot be found")
            n = n - step if step else 0
        anchor = connection.execute(ROW, (n, top.key)).fetchone() if n else None
    return verified(run_id, top, anchor, found)


def verified(
    run_id: str,
    top: RunHead,
    anchor: tuple[Any, ...] | None,
    found: list[tuple[Any, ...]],
    *,
    to_head: bool = True,
) -> list[Row]:
    """The rows, verified, as `ROW` reads them. anchor: the one before them. to_head: they end where the run
    does. found: newest first, and emptied on the way: freed at once, that of a long run would hold up every
    thread."""
    is_empty = not found and anchor is None
    if anchor is None:
        seq, epoch, digest = 0, 1, genesis(run_id, top.origin)
    else:
        seq, epoch, digest = anchor[2], anchor[4], anchor[6]
    result = []
    while found:
        _, _, number, count, at_epoch, at, stored_digest, named, body, given = found.pop()
        try:
            refs, blobs = unpack(named) if named is not None else ((), ())
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise JournalCorrupt(run_id, number, "its blob names cannot be read") from error
        row = Row(number, count, at_epoch, at, body, refs, stored_digest, blobs, given)
        if number - count != seq:
            raise JournalCorrupt(run_id, number, f"it follows {number - count}, not {seq}")
        if not epoch <= at_epoch <= top.epoch:
            raise JournalCorrupt(run_id, number, f"its epoch {at_epoch} is outside {epoch}..{top.epoch}")
        if not follows(row, digest):
            raise JournalCorrupt(run_id, number, "the digest does not match")
        seq, epoch, digest = number, at_epoch, stored_digest
        result.append(row)
    if to_head and (top.seq, top.digest) != (seq, digest) and not (is_empty and top.last):
        raise JournalCorrupt(run_id, top.seq, f"the run's head names record {top.seq}, its rows end at {seq}")
    return result


def unpack(named: bytes) -> tuple[Refs, tuple[str, ...]]:
    """What `sqlite_writer.pack` stored."""
    refs, blobs = msgspec.msgpack.decode(named, type=tuple[tuple[tuple[str, bytes], ...], tuple[bytes, ...]])
    return tuple((at, digest.hex()) for at, digest in refs), tuple(digest.hex() for digest in blobs)


def blob(connection: apsw.Connection, run_id: str, digest: str) -> bytes:
    """A blob that the run keeps. Raises JournalCorrupt when it is lost or changed."""
    key = head(connection, run_id).key
    try:
        found = connection.execute(_BLOB, (key, stored(digest))).fetchone()
    except ValueError as error:
        raise JournalCorrupt(run_id, 0, str(error)) from error
    if found is None:
        raise JournalCorrupt(run_id, 0, f"blob {digest} is lost")
    data: bytes = found[0]
    if blob_digest(data) != digest:
        raise JournalCorrupt(run_id, 0, f"blob {digest} is changed")
    return data


def snapshot(run_id: str, seal: Seal, connection: apsw.Connection) -> RunSnapshot | None:
    """The snapshot of a run; None without, or where it is not as it was written. Raises UnknownName."""
    key = head(connection, run_id).key
    try:
        *fields, digest, sealed = connection.execute(_SNAPSHOT, (key,)).fetchone() or (None,) * 6
        kept = RunSnapshot(*fields)
        is_whole = digest == snapshot_digest(run_id, kept) and sealed == seal.snapshot(digest)
    except (apsw.Error, TypeError):
        # None, or cells of other types than were written; what else is damaged there is told by the rows.
        return None
    return kept if is_whole else None


def command_digest(run_id: str, number: int, key: str, body: bytes) -> bytes:
    """What is stored beside a command so that damage shows."""
    return chain(genesis(run_id), number, 1, 0, 0.0, body, ((key, ""),))


def commands(connection: apsw.Connection, run_id: str, after: int, seal: Seal) -> list[StoredCommand]:
    """The run's commands after `after`. Raises JournalCorrupt with the number of the one that is damaged or
    lost."""
    result: list[StoredCommand] = []
    with connection:
        top = head(connection, run_id)
        found: list[tuple[Any, ...]] = connection.execute(_COMMANDS, (top.key, after)).fetchall()
        first = max(after, 0)
        if top.commands > first and (not found or found[0][0] != first + 1):
            first = max(first, commands_elsewhere(connection, run_id))
    for number, key, digest, body, sealed in found:
        if number != first + len(result) + 1:
            raise JournalCorrupt(run_id, number, "the command before it is lost")
        if command_digest(run_id, number, key, body) != digest:
            raise JournalCorrupt(run_id, number, "this command does not match its digest")
        if sealed != seal.command(digest):
            raise JournalCorrupt(
                run_id, number, "this command was posted by somebody without the journal's key"
            )
        result.append(StoredCommand(number, key, body))
    if len(result) != max(0, top.commands - first):
        raise JournalCorrupt(run_id, top.commands, "the newest command is lost")
    return result


def commands_elsewhere(connection: apsw.Connection, run_id: str) -> int:
    """The newest command that the run took in before it came into this journal; 0 for one that began here."""
    found = connection.execute(_ELSEWHERE, (run_id,)).fetchone()
    return int(found[0]) if found is not None else 0


def position(connection: apsw.Connection, run_id: str) -> tuple[int, int]:
    """(last event, last command) of a run. Raises UnknownName."""
    top = head(connection, run_id)
    return top.seq, top.commands


GONE = (-1, -1)
"""The position of a run that was deleted while somebody waited for it."""


def positions(connection: apsw.Connection, run_ids: list[str]) -> dict[str, tuple[int, int]]:
    """Where several runs are."""
    found = {}
    for run_id in run_ids:
        try:
            found[run_id] = position(connection, run_id)
        except UnknownName:
            found[run_id] = GONE
    return found


class ReadQuery:
    """A question for the reader; `done` gets its end on the reader's thread."""

    __slots__ = ("done", "value", "work")

    def __init__(
        self, work: Callable[[apsw.Connection], Any], done: Callable[[ReadQuery, BaseException | None], None]
    ) -> None:
        self.work, self.done = work, done
        self.value: Any = None


class SqliteReader:
    """Answers questions in order, and while runs are watched looks every POLL_S for commits.

    watched: run ids that somebody waits for; the loop's thread adds and removes them.
    moved: called on the reader's thread with where the watched runs are after a commit of anyone.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        moved: Callable[[dict[str, tuple[int, int]] | JournalError], None],
    ) -> None:
        self._connection, self._path, self._moved = connection, path, moved
        self.watched: dict[str, int] = {}
        self._version = -1
        self._due = 0.0
        self._queue: SimpleQueue[ReadQuery | None] = SimpleQueue()
        self.put = self._queue.put
        self.thread = threading.Thread(target=self._run, name="antiphon journal reader", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while True:
            try:
                ask = self._queue.get(timeout=POLL_S if self.watched else None)
            except Empty:
                self._look()
                continue
            if ask is None:
                break
            self._answer(ask)
            if self.watched and time.monotonic() >= self._due:
                self._look()
        self._connection.close(force=True)

    def _answer(self, ask: ReadQuery) -> None:
        try:
            ask.value = ask.work(self._connection)
        except (JournalError, UnknownName) as error:
            ask.done(ask, error)
        except Exception as error:  # noqa: BLE001 - the asker's answer
            ask.done(ask, meaning(error, self._path, "reading"))
        else:
            ask.done(ask, None)

    def _look(self) -> None:
        self._due = time.monotonic() + POLL_S
        try:
            version = value(self._connection, _VERSION)
            if version == self._version:
                return
            self._version = version
            self._moved(positions(self._connection, list(self.watched)))
        except Exception as error:  # noqa: BLE001 - the answer of whoever waits
            self._moved(meaning(error, self._path, "watching"))
