"""The one thread of a process that writes an SQLite journal, with group commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

import apsw
import msgspec

from antiphon.errors import JournalError, LeaseLost
from antiphon.journal.port import Done, Row
from antiphon.journal.sqlite.file import (
    BUSY_MS,
    CHECKPOINT_PAGES,
    OpenedFile,
    is_fatal,
    is_refusal_of_store,
    meaning,
    value,
)

BATCH = 1_000

NEWEST = (
    "select max(value, coalesce((select max(n) from rows), 0)) from meta where name = 'newest_removed_row'"
)
_MOVE_HEAD = (
    "update runs set seq = ?, last = ?, digest = ?, updated = ?, seal = ?"
    " where key = ? and epoch = ? and seq = ?"
)
_HAS_MOVED = "select count(*) from runs where key = ? and epoch = ? and last = ?"
ADD_ROW = (
    "insert into rows(n, step, run, seq, count, given, epoch, at, digest, blobs, body)"
    " values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ADD_BLOB = "insert into blobs(digest, data) values(?, ?) on conflict do nothing"
KEEP_BLOB = "insert into run_blobs select ?, key from blobs where digest = ? on conflict do nothing"


class Tail(msgspec.Struct, gc=False):
    """Where a claimed run ends: what the next row of its lease must follow.

    kept: (seq, last) as last committed. head: what its seals begin with. refusal: why every later row of the
    lease fails.
    """

    run_id: str
    key: int
    epoch: int
    seq: int
    last: int
    kept: tuple[int, int]
    head: bytes
    refusal: JournalError | None = None


class Append(msgspec.Struct, frozen=True, gc=False):
    """A row on its way to the file."""

    run_id: str
    row: Row
    blobs: Mapping[str, bytes]
    done: Done
    epoch: int


class WriteJob:
    """Anything else to write: `work` runs inside the batch's transaction, `done` gets its end.

    of: the one run that it reads and changes, among whose rows it has its place; empty: it may be any.
    claimed: the run's end when the work was a claim. moved: (run_id, command number) when it posted.
    """

    __slots__ = ("claimed", "done", "moved", "of", "value", "work")

    def __init__(
        self, work: Callable[[WriteJob], Any], done: Callable[[WriteJob, BaseException | None], None],
        of: str = "",
    ) -> None:  # fmt: skip
        self.work, self.done, self.of = work, done, of
        self.value: Any = None
        self.claimed: Tail | None = None
        self.moved: tuple[str, int] | None = None


Ended = list[tuple["Append | WriteJob", BaseException | None]]
"""What a batch did: every item in the order it was queued, with its error if it has one."""
Moved = dict[str, tuple[int, int]]
"""Where runs are after it: their last events and commands, each where it moved."""


class SqliteWriter:
    """Commits what is queued, in order, up to BATCH items per transaction; rows also on the thread of whoever
    gives them to `commit_now`.

    settle: called on the writer's thread after each commit with what ended and where runs are now. What was
    committed is acknowledged once the anchor knows it and the files are still the ones at their paths. After
    an I/O error, or when they are not, the connection is closed and everything queued, now and later, gets
    that error: only a new journal instance can tell what reached the disk.
    """

    def __init__(
        self,
        file: OpenedFile,
        path: Path,
        settle: Callable[[Ended, Moved], None],
    ) -> None:
        connection = file.connection
        self.connection, self._path, self._settle = connection, path, settle
        self.anchor, self.seal, self._files = file.anchor, file.seal, file.files
        self.tails: dict[str, Tail] = {}
        self.failure: JournalError | None = None
        self._queue: SimpleQueue[Append | WriteJob | Literal["look"] | None] = SimpleQueue()
        self.put = self._queue.put
        self._pages, self._took = 0, 0.0
        # Whoever writes, moves the log or syncs the anchor.
        self._writing = threading.Lock()
        self._is_timed = False
        self._after: threading.Thread | None = None
        self._gone: Callable[[JournalError | None], None] | None = None
        self._touched: dict[str, Tail] = {}
        self._staged: dict[str, list[tuple[int, Append]]] = {}
        connection.set_wal_hook(self._count)
        if file.lost is not None:
            self._fail(file.lost)
        self.thread = threading.Thread(target=self._run, name="antiphon journal writer", daemon=True)
        self.thread.start()

    def commit_now(self, rows: list[Append]) -> tuple[Ended, Moved, float] | None:
        """Commit rows on the calling thread, when everything that was queued has ended: what became of them,
        and seconds that the disk took. None, with nothing done, when another thread or process writes now."""
        if self.failure is not None or not self._writing.acquire(blocking=False):
            return None
        try:
            self.connection.set_busy_timeout(0)
            try:
                self.connection.execute("begin immediate")
            except apsw.Error:
                # Whatever it is, the other thread finds it too, and may wait.
                return None
            finally:
                self.connection.set_busy_timeout(BUSY_MS)
            ended, moved = self._commit(list(rows))
        finally:
            self._writing.release()
        if self._pages >= CHECKPOINT_PAGES or (not self._is_timed and self.anchor.due_in() is not None):
            self._queue.put("look")
        return ended, moved, self._took

    def stop(self, after: threading.Thread, gone: Callable[[JournalError | None], None]) -> None:
        """Commit what is queued, close once the thread `after` has ended, then call `gone`,
        with the error if closing was the first thing that failed."""
        self._after, self._gone = after, gone
        self._queue.put(None)

    def _count(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def _run(self) -> None:
        queue = self._queue
        open_for_more = True
        while open_for_more:
            items: list[Append | WriteJob] = []
            item = self._next()
            while True:
                if item is None:
                    open_for_more = False
                    break
                if item != "look":
                    items.append(item)
                if len(items) >= BATCH or queue.empty():
                    break
                item = queue.get_nowait()
            with self._writing:
                ended, moved = self._commit(items) if items else ([], {})
            if items:
                self._settle(ended, moved)
            with self._writing:
                if self._pages >= CHECKPOINT_PAGES and self.failure is None:
                    self._checkpoint()
        self._finish()

    def _next(self) -> Append | WriteJob | Literal["look"] | None:
        """What comes next; while nothing does, the anchor is synced when that is due."""
        while True:
            # Whoever commits something to be synced after this looks again what it is.
            self._is_timed = False
            wait = self.anchor.due_in()
            if wait is None or self.failure is not None:
                return self._queue.get()
            self._is_timed = True
            try:
                return self._queue.get(timeout=wait)
            except Empty:
                self._sync_anchor()

    def _sync_anchor(self) -> None:
        with self._writing:
            try:
                self.anchor.sync()
            except apsw.Error as error:
                self._fail(meaning(error, self._path, "syncing the anchor"))

    def _commit(self, items: list[Append | WriteJob]) -> tuple[Ended, Moved]:
        if self.failure is not None:
            return [(item, self.failure) for item in items], {}
        ended: Ended = [(item, None) for item in items]
        self._touched.clear()
        self._staged.clear()
        try:
            if not self.connection.in_transaction:
                self.connection.execute("begin immediate")
            self._write(items, ended)
            began = time.monotonic()
            self.connection.execute("commit")
            self._took = time.monotonic() - began
        except Exception as error:  # noqa: BLE001 - whatever it is, it is every waiting append's answer
            return self._undo(items, error)
        try:
            self.anchor.write()
            self._files.check()
        except (apsw.Error, JournalError) as error:
            # Committed, but not so that it may be acknowledged; only a new opening can tell what holds.
            self._fail(meaning(error, self._path, "writing the anchor"))
            return self._undo(items, error)
        moved = {}
        for run_id, tail in self._touched.items():
            tail.kept = tail.seq, tail.last
            moved[run_id] = tail.seq, 0
        for item in items:
            if isinstance(item, Append):
                continue
            if item.claimed is not None:
                self.tails[item.claimed.run_id] = item.claimed
            if item.moved is not None:
                run_id, number = item.moved
                moved[run_id] = moved.get(run_id, (0, 0))[0], number
        return ended, moved

    def _write(self, items: list[Append | WriteJob], ended: Ended) -> None:
        """Do all of a batch: of each run in order, of several runs the rows together.

        Runs that begin and end beside others would else cut the rows of these into small pieces.
        """
        later: list[tuple[int, Append | WriteJob]] = []
        jobs: set[str] = set()
        for place, item in enumerate(items):
            if isinstance(item, Append) and not (jobs and (item.run_id in jobs or "" in jobs)):
                error = self._stage(item, place)
                if error is not None:
                    ended[place] = item, error
                continue
            later.append((place, item))
            if isinstance(item, WriteJob):
                jobs.add(item.of)
        for place, item in later:
            if isinstance(item, Append):
                error = self._stage(item, place)
                if error is not None:
                    ended[place] = item, error
                continue
            if not item.of or item.of in self._staged:
                self._flush(ended)
            try:
                item.value = item.work(item)
            except apsw.Error:
                raise
            except Exception as error:  # noqa: BLE001 - the job's own answer
                ended[place] = item, error
        self._flush(ended)

    def _stage(self, item: Append, place: int) -> JournalError | None:
        """Have a row written by the next `_flush`; why it cannot be, if it cannot."""
        row, tail = item.row, self.tails.get(item.run_id)
        if tail is None or tail.epoch != item.epoch:
            return LeaseLost(f"Run {item.run_id}: epoch {item.epoch} is over here; claim the run again")
        if tail.refusal is not None:
            return tail.refusal
        if row.seq - row.count != tail.seq or row.count < 1 or row.epoch != tail.epoch:
            first = row.seq - row.count + 1
            what = f"a row {first}..{row.seq} of epoch {row.epoch} cannot follow {tail.seq}"
            tail.refusal = LeaseLost(f"Run {item.run_id}: {what}")
            self._touched[item.run_id] = tail
            return tail.refusal
        tail.seq = row.seq
        staged = self._staged.get(item.run_id)
        if staged is None:
            self._staged[item.run_id] = [(place, item)]
            self._touched[item.run_id] = tail
        else:
            staged.append((place, item))
        return None

    def _flush(self, ended: Ended) -> None:
        """Write the staged rows: one compare-and-set per run, then the rows of those that matched."""
        if not self._staged:
            return
        n: int = value(self.connection, NEWEST)
        heads: list[tuple[apsw.SQLiteValue, ...]] = []
        rows: dict[int, list[tuple[apsw.SQLiteValue, ...]]] = {}
        keep: list[tuple[int, Append]] = []
        for run_id, staged in self._staged.items():
            tail = self.tails[run_id]
            mine = rows[tail.key] = []
            for _, item in staged:
                row = item.row
                n += 1
                step, tail.last = n - tail.last if tail.last else 0, n
                named = None
                if item.blobs or row.refs or row.blobs:
                    named = pack(row) if row.refs or row.blobs else None
                    keep.append((tail.key, item))
                where = (n, step, tail.key, row.seq, row.count, row.given)
                mine.append((*where, row.epoch, row.at, row.digest, named, row.body))
            first, newest = staged[0][1].row, staged[-1][1].row
            follows = first.seq - first.count
            sealed = self.seal.end(tail.head, newest.seq, newest.digest)
            heads.append((newest.seq, n, newest.digest, newest.at, sealed, tail.key, tail.epoch, follows))
            self.anchor.row(tail.key, run_id, tail.epoch, newest.seq, newest.digest)
        self.anchor.tide(rows=n)
        before = self.connection.total_changes()
        self.connection.executemany(_MOVE_HEAD, heads)
        if self.connection.total_changes() - before != len(heads):
            for run_id, staged in self._staged.items():
                tail = self.tails[run_id]
                if not value(self.connection, _HAS_MOVED, (tail.key, tail.epoch, tail.last)):
                    del rows[tail.key]
                    self._fence(tail, staged, ended)
        self.connection.executemany(ADD_ROW, chain.from_iterable(rows.values()))
        for key, item in keep:
            if key in rows:
                self._keep(key, item)
        self._staged.clear()

    def _fence(self, tail: Tail, staged: list[tuple[int, Append]], ended: Ended) -> None:
        tail.refusal = LeaseLost(f"Run {tail.run_id}: another owner took it over after epoch {tail.epoch}")
        tail.seq, tail.last = tail.kept
        self.anchor.unnote(tail.key)
        for place, item in staged:
            ended[place] = item, tail.refusal

    def _keep(self, key: int, item: Append) -> None:
        for digest, data in item.blobs.items():
            self.connection.execute(ADD_BLOB, (stored(digest), data))
        named = {*item.blobs, *item.row.blobs, *(digest for _, digest in item.row.refs)}
        for digest in sorted(named):
            self.connection.execute(KEEP_BLOB, (key, stored(digest)))

    def _undo(self, items: list[Append | WriteJob], error: Exception) -> tuple[Ended, Moved]:
        self.anchor.drop()
        try:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
        except apsw.Error as second:
            self._fail(meaning(second, self._path, "rolling back"))
        if is_fatal(error) and self.failure is None:
            self._fail(meaning(error, self._path, "writing"))
        for tail in self._touched.values():
            tail.seq, tail.last = tail.kept
            tail.refusal = None
        if self.failure is None and len(items) > 1 and not is_refusal_of_store(error):
            # One item is to blame (a body of 2 GB, a number SQLite has no room for): not its neighbours.
            ended: Ended = []
            moved = {}
            for item in items:
                one, at = self._commit([item])
                ended += one
                moved.update(at)
            return ended, moved
        meant = self.failure or meaning(error, self._path, "writing")
        for item in items:
            if isinstance(item, Append):
                broken = self.tails.get(item.run_id)
                if broken is not None and broken.epoch == item.epoch:
                    broken.refusal = broken.refusal or meant
        return [(item, meant) for item in items], {}

    def _checkpoint(self) -> None:
        self._pages = 0
        try:
            self.connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_PASSIVE)
        except (apsw.BusyError, apsw.FullError):
            # Another process moves it, or there is no room yet; nothing is lost, the next batch looks again.
            self._pages = CHECKPOINT_PAGES
        except apsw.Error as error:
            self._fail(meaning(error, self._path, "moving the log into the file"))

    def _fail(self, failure: JournalError) -> None:
        """Never write with this connection again, not even by closing it."""
        self.failure = failure
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        for tail in self.tails.values():
            tail.refusal = tail.refusal or failure

    def _finish(self) -> None:
        if self._after is not None:
            # Its connection must be gone: the last one to close removes the log file.
            self._after.join()
        had_failed = self.failure is not None
        if not had_failed:
            self._checkpoint()
        if self.failure is None and self._pages == 0:
            self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        self.connection.set_wal_hook(None)
        try:
            self.anchor.close()
            self.connection.close(force=True)
        except apsw.Error as error:
            self.failure = self.failure or meaning(error, self._path, "closing")
        if self._gone is not None:
            self._gone(None if had_failed else self.failure)


def pack(row: Row) -> bytes:
    """The blob names of a row, in half the room of their text."""
    refs = [(at, stored(digest)) for at, digest in row.refs]
    return msgspec.msgpack.encode((refs, [stored(digest) for digest in row.blobs]))


def stored(digest: str) -> bytes:
    """A blob's name as bytes. Raises ValueError for anything but lower-case hex."""
    raw = bytes.fromhex(digest)
    if raw.hex() != digest:
        raise ValueError(f"{digest!r} is not the digest of a blob")
    return raw
