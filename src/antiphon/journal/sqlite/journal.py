"""A journal in one SQLite file, for one host: durable, shared by its processes, with group commit."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from antiphon.errors import ConfigError, JournalError
from antiphon.journal.files.anchor import Anchor
from antiphon.journal.files.seal import Seal
from antiphon.journal.listing import (
    EVERY_RUN,
    NO_LABELS,
    Labels,
    RunFilter,
    RunInfo,
    check_labels,
    check_name,
)
from antiphon.journal.owner import HeldLeases
from antiphon.journal.port import (
    PAGE_BYTES,
    Done,
    Lease,
    Row,
    RunSnapshot,
    StoredCommand,
    StoredRule,
    StoredRun,
    check_id,
    check_limit,
    check_rule,
    wrong_given,
)
from antiphon.journal.sqlite import anchored
from antiphon.journal.sqlite import reader as reading
from antiphon.journal.sqlite import runs as storing
from antiphon.journal.sqlite.file import SYNCHRONOUS, meaning, open_file, open_reading
from antiphon.journal.sqlite.jobs import SqliteJobs
from antiphon.journal.sqlite.listing import count, entries, entry
from antiphon.journal.sqlite.owners import Clocks, SqliteOwners
from antiphon.journal.sqlite.pages import RowMarks, page
from antiphon.journal.sqlite.reader import ReadQuery, SqliteReader
from antiphon.journal.sqlite.rounds import HeldRows
from antiphon.journal.sqlite.waiters import Waiters
from antiphon.journal.sqlite.writer import Append, Ended, SqliteWriter, WriteJob
from antiphon.journal.transfer import check_fork, check_run

T = TypeVar("T")


class SqliteJournal:
    """Runs kept in the SQLite file at `path`, which is created (0600, its folder 0700) when missing.

    durability: "power" acknowledges after the commit reached the disk (synchronous=FULL);
    "process" survives the death of every process but may lose the last moments at a power cut
    (synchronous=NORMAL). ttl: seconds without a `beat` after which an owner that cannot be seen
    to be dead is replaced; clocks of other hosts are compared by Unix time, of this one by its
    steady clock. vfs: the name of an SQLite file layer, for tests of disks that fail. key: seals what is
    written, so that nobody without it can forge runs, commands or names (see `journal.files.seal`); all who
    open the journal need it.

    Raises at construction: JournalFull, JournalTooNew, ConfigError, JournalError. After an I/O error the
    instance refuses all writing: open a new one.
    """

    def __init__(
        self,
        path: str | Path,
        durability: str = "power",
        *,
        ttl: float = 15.0,
        vfs: str | None = None,
        key: str = "",
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        if durability not in SYNCHRONOUS:
            raise ConfigError(f"durability is {durability!r}; it is one of: {', '.join(sorted(SYNCHRONOUS))}")
        self.path, self.durability, self._vfs = Path(path), durability, vfs
        self.place = os.path.abspath(path)
        self._clocks = Clocks(ttl, wall, steady)
        self._owners = SqliteOwners(self.path, self._clocks)
        self._leases = HeldLeases(ttl, steady)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Future[None] | None = None
        file = open_file(self.path, durability, vfs, Seal(key))
        try:
            beside = open_reading(self.path, vfs)
            # Of its own: the reader's thread and the writer's must not move one place in one open file.
            self._anchor = Anchor(self.path, vfs, self._owners.me.boot)
        except apsw.Error as error:
            file.anchor.close()
            file.connection.close(force=True)
            raise meaning(error, self.path, "opening") from error
        self._writer = SqliteWriter(file, self.path, self._ended)
        self._rounds = HeldRows(self._writer, self._settle)
        self._jobs = SqliteJobs(self._writer, self._owners, self._clocks, self.path)
        self._marks = RowMarks()
        self._reader = SqliteReader(beside, self.path, self._seen)
        self._waiters = Waiters(self._reader.watched)

    async def claim(
        self, run_id: str, *, create: bool = False, origin: str = "", labels: Labels = NO_LABELS
    ) -> Lease:
        """See `port.Journal.claim`."""
        work = partial(self._jobs.claim, run_id, create, origin, labels)
        return self._leases.hold(await self._heard(work, run_id))

    def append(self, lease: Lease, row: Row, blobs: Mapping[str, bytes], done: Done) -> None:
        """See `port.Journal.append`; `done` is called on the loop, in the order of the calls."""
        if row.given and not 0 < row.given <= row.count:
            raise wrong_given(row)
        if self._closing is not None:
            done(_closed(self.path))
            return
        self._rounds.add(Append(lease.run_id, row, blobs, done, lease.epoch))

    def hurry(self) -> None:
        """See `port.Journal.hurry`."""
        self._rounds.hurry()

    async def read(
        self, run_id: str, after: int = 0, limit: int | None = None, size: int = PAGE_BYTES
    ) -> Sequence[Row]:
        """See `port.Journal.read`."""
        check_limit(limit)
        if limit is None:
            rows = partial(reading.rows, run_id=run_id, after=after)
        else:
            rows = partial(page, marks=self._marks, run_id=run_id, after=after, limit=limit, size=size)
        return await self._read(partial(anchored.rows, self._anchor, self._writer.seal, run_id, rows))

    async def blob(self, run_id: str, digest: str) -> bytes:
        """See `port.Journal.blob`."""
        return await self._read(lambda connection: reading.blob(connection, run_id, digest))

    async def release(self, lease: Lease, summary: bytes = b"") -> None:
        """See `port.Journal.release`; nothing happens when another owner has the run by now."""
        self._leases.drop(lease)
        await self._write(partial(self._jobs.release, lease, summary), lease.run_id)

    def describe(self, lease: Lease, summary: bytes) -> None:
        """See `port.Journal.describe`."""
        if self._closing is None:
            work = partial(self._jobs.describe, lease, summary)
            self._rounds.put(WriteJob(work, _nobody, lease.run_id))

    def keep_snapshot(self, lease: Lease, snapshot: RunSnapshot | None) -> None:
        """See `port.Journal.keep_snapshot`."""
        if self._closing is None:
            work = partial(self._jobs.keep_snapshot, lease, snapshot)
            self._rounds.put(WriteJob(work, _nobody, lease.run_id))

    async def snapshot(self, run_id: str) -> RunSnapshot | None:
        """See `port.Journal.snapshot`."""
        return await self._read(partial(reading.snapshot, run_id, self._writer.seal))

    async def post(self, run_id: str, key: str, body: bytes) -> bool:
        """See `port.Journal.post`; needs no lease."""
        check_id("key", key)
        return await self._write(partial(self._jobs.post, run_id, key, body), run_id)

    async def commands(self, run_id: str, after: int = 0) -> Sequence[StoredCommand]:
        """See `port.Journal.commands`. Raises JournalCorrupt, with the number of a damaged one."""
        return await self._read(partial(anchored.commands, self._anchor, self._writer.seal, run_id, after))

    async def wait(self, run_id: str, seq: int, command: int) -> None:
        """See `port.Journal.wait`: at once for this instance's writes, within 0.25 s for others'."""
        with self._waiters.one(run_id, seq, command) as moved:
            now = await self._read(lambda connection: reading.position(connection, run_id))
            self._waiters.wake({run_id: now})
            await moved

    async def rename(self, run_id: str, name: str) -> None:
        """See `port.Journal.rename`; needs no lease."""
        check_name(name)
        await self._write(partial(self._jobs.keep_beside, run_id, partial(storing.rename, name=name)))

    async def relabel(self, run_id: str, labels: Labels) -> None:
        """See `port.Journal.relabel`; needs no lease."""
        check_labels(labels)
        await self._write(partial(self._jobs.keep_beside, run_id, partial(storing.relabel, labels=labels)))

    async def restore(self, run: StoredRun) -> None:
        """See `port.Journal.restore`."""
        await asyncio.to_thread(check_run, run)
        await self._write(partial(self._jobs.store, run, storing.restore))

    async def fork(self, of: str, run: StoredRun, rules: Sequence[StoredRule] = ()) -> None:
        """See `port.Journal.fork`."""
        await asyncio.to_thread(check_fork, run, rules)
        await self._write(partial(self._jobs.store, run, partial(storing.fork, of=of, rules=rules)))

    async def delete(self, run_id: str) -> None:
        """See `port.Journal.delete`."""
        more = await self._write(partial(self._jobs.delete, run_id))
        self._waiters.wake({run_id: reading.GONE})
        if more:
            await self._clear()

    async def compact(self) -> int:
        """See `port.Journal.compact`: SQLite's VACUUM, over a connection and on a thread of its own.

        Whoever wants to write meanwhile waits up to 10 s. Readers are not disturbed, but as long as one of
        them has not ended its reading, the file stays as large as it was: JournalError then, try again.
        """
        await self._clear()
        await self._write(lambda job: self._owners.check_held(self._writer.connection, None))
        return await asyncio.to_thread(
            storing.compact, self.path, self.durability, self._vfs, self._writer.seal
        )

    @property
    def sealed(self) -> bool:
        """Whether the journal has a key."""
        return bool(self._writer.seal)

    async def seal_all(self, key: str) -> int:
        """Seal everything that is in the journal with `key`, empty for no seal any more; how many runs.

        Whatever stands there is taken for genuine. The instance keeps the key it has: close it, and open
        another. Raises RunInUse while a living owner holds any run, ConfigError for a key that is too short,
        JournalError.
        """
        return await self._write(partial(self._jobs.seal_all, Seal(key)))

    async def _clear(self) -> None:
        """Clear away what deleted runs held, of whomever, a piece in each transaction.

        Who waits for SQLite's lock only looks for it now and then: without a pause as long as the piece, it
        would find it taken each time.
        """
        loop, more = asyncio.get_running_loop(), True
        while more:
            began = loop.time()
            more = await self._write(partial(storing.clear, self._writer.connection))
            await asyncio.sleep(min(loop.time() - began, 0.1) if more else 0)

    async def info(self, run_id: str) -> RunInfo:
        """See `port.Journal.info`."""
        return await self._read(lambda connection: entry(connection, self._owners.names(connection), run_id))

    async def runs(
        self, where: RunFilter = EVERY_RUN, before: int = 0, limit: int | None = None
    ) -> Sequence[RunInfo]:
        """See `port.Journal.runs`."""
        check_limit(limit)
        return await self._read(partial(self._entries, where, before, limit))

    async def count(self, where: RunFilter = EVERY_RUN) -> int:
        """See `port.Journal.count`."""
        return await self._read(lambda connection: count(connection, self._owners.names(connection), where))

    async def rules(self) -> Sequence[StoredRule]:
        """See `port.Journal.rules`."""
        return await self._read(partial(storing.rules, self._writer.seal, self.path))

    async def add_rule(self, rule: StoredRule) -> bool:
        """See `port.Journal.add_rule`."""
        check_rule(rule)
        held = self._writer.connection
        return await self._write(lambda job: storing.add_rule(held, self._jobs.checked_seal(), rule))

    async def drop_rule(self, rule_id: str) -> None:
        """See `port.Journal.drop_rule`."""
        await self._write(lambda job: storing.drop_rule(self._writer.connection, rule_id))

    async def audit(self, run_id: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Check what lies beside the rows: names and labels, and, unless one run is meant, that no run is
        gone and every index fits what it points to. What is damaged, and what cannot be known."""
        return await self._read(partial(anchored.audit, self._anchor, self._writer.seal, run_id))

    async def beat(self) -> None:
        """See `port.Journal.beat`; nothing to do while this instance holds no run."""
        if self._owners.key:
            await self._heard(lambda job: self._owners.say_alive(self._writer.connection))

    def is_fresh(self, lease: Lease) -> bool:
        """See `port.Journal.is_fresh`."""
        return self._leases.is_fresh(lease)

    async def confirm(self, lease: Lease) -> None:
        """See `port.Journal.confirm`."""
        await self._heard(partial(self._jobs.confirm, lease), lease.run_id)
        self._leases.hold(lease)

    async def _heard(self, work: Callable[[WriteJob], T], of: str = "") -> T:
        """Do what says that this instance lives; from its beginning on nobody takes its runs for a while."""
        began = self._clocks.steady()
        done = await self._write(work, of)
        self._leases.heard(began)
        return done

    async def close(self) -> None:
        """See `port.Journal.close`. Raises what went wrong in it; what was acknowledged is safe."""
        if self._closing is None:
            farewell = self._write(self._jobs.give_up)
            self._closing = asyncio.get_running_loop().create_future()
            self._waiters.fail(_closed(self.path))
            self._reader.put(ReadQuery(lambda _: self._anchor.close(), lambda ask, error: None))
            self._reader.put(None)
            self._writer.stop(after=self._reader.thread, gone=partial(self._call, self._gone, farewell))
        await asyncio.shield(self._closing)

    def _gone(self, farewell: asyncio.Future[None], error: JournalError | None) -> None:
        closing, refused = self._closing, farewell.exception()
        self._writer.thread.join()
        if closing is None or closing.done():
            return
        if error is None and (refused is None or self._writer.failure is not None):
            closing.set_result(None)
        else:
            closing.set_exception(error or refused or JournalError("unknown"))

    # What the reader's thread runs.

    def _entries(
        self, where: RunFilter, before: int, limit: int | None, connection: apsw.Connection
    ) -> list[RunInfo]:
        with connection:
            found = entries(connection, self._owners.names(connection), where, before, limit)
        return found

    # Between the threads and the loop.

    def _write(self, work: Callable[[WriteJob], T], of: str = "") -> asyncio.Future[T]:
        loop = self._on_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._closing is not None:
            future.set_exception(_closed(self.path))
        else:
            self._rounds.put(WriteJob(work, partial(_resolve, future), of))
        return future

    def _read(self, work: Callable[[apsw.Connection], T]) -> asyncio.Future[T]:
        loop = self._on_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._closing is not None:
            future.set_exception(_closed(self.path))
        else:
            self._reader.put(ReadQuery(work, lambda ask, error: self._call(_resolve, future, ask, error)))
        return future

    def _on_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            # The program ended without closing the journal: nobody is left to be told.
            return
        loop.call_soon_threadsafe(function, *arguments)

    def _ended(self, ended: Ended, moved: dict[str, tuple[int, int]]) -> None:
        self._call(self._rounds.ended, ended, moved)

    def _settle(self, ended: Ended, moved: dict[str, tuple[int, int]]) -> None:
        for item, error in ended:
            try:
                if isinstance(item, Append):
                    item.done(error)
                else:
                    item.done(item, error)
            except Exception as raised:  # noqa: BLE001 - reported; the callbacks after it are still owed their end
                text = "a callback of Journal.append raised"
                self._on_loop().call_exception_handler({"message": text, "exception": raised})
        if self._waiters:
            self._waiters.wake(moved)

    def _seen(self, moved: dict[str, tuple[int, int]] | JournalError) -> None:
        told = self._waiters.fail if isinstance(moved, JournalError) else self._waiters.wake
        self._call(told, moved)


def _resolve(future: asyncio.Future[Any], ended: WriteJob | ReadQuery, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(ended.value)
    else:
        future.set_exception(error)


def _nobody(job: WriteJob, error: BaseException | None) -> None:
    """Whoever described a run does not wait; the rows around it carry the same error."""


def _closed(path: Path) -> JournalError:
    return JournalError(f"Journal {path} was closed; open another")
