"""A journal in this process's memory: the library's default, and the measure of the others."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import inf
from operator import attrgetter

from antiphon.errors import JournalCorrupt, JournalError, LeaseLost, RunInUse, UnknownName
from antiphon.journal.listing import (
    EVERY_RUN,
    NO_LABELS,
    Labels,
    RunFilter,
    RunInfo,
    check_labels,
    check_name,
    is_listed,
    listed,
)
from antiphon.journal.port import (
    PAGE_BYTES,
    Done,
    Lease,
    Row,
    RunSnapshot,
    StoredCommand,
    StoredRule,
    StoredRun,
    begin,
    blob_digest,
    check_id,
    check_limit,
    check_origin,
    check_rule,
    follows,
    wrong_given,
)
from antiphon.journal.transfer import check_alike, check_fork, check_run, named_blobs, present

ROWS_PER_YIELD = 256
"""Rows that are verified before other work gets the event loop."""


_seq = attrgetter("seq")


def _page(rows: list[Row], size: int) -> list[Row]:
    """The rows up to the one that brings their bodies to so many bytes."""
    for number, row in enumerate(rows, 1):
        size -= len(row.body)
        if size <= 0:
            return rows[:number]
    return rows


class _MemoryRun:
    """writes: the epoch whose rows are taken, 0 when none are; refusal: why the last one's are not;
    start: what the first row follows; elsewhere: the newest command that it took in before it came here."""

    def __init__(self, run_id: str, origin: str, created: float, number: int, labels: Labels) -> None:
        if labels is not NO_LABELS:
            check_labels(labels)
        self.number, self.labels = number, labels
        self.run_id, self.created, self.summary, self.refusal = run_id, created, b"", ""
        self.start = begin(run_id, origin)
        self.origin = origin if origin != run_id else ""
        self.name = ""
        self.seq = self.epoch = self.writes = 0
        self.held = self.imported = False
        self.heard = 0
        self.rows: list[Row] = []
        self.snapshot: RunSnapshot | None = None
        self.commands: list[StoredCommand] = []
        self.elsewhere = 0
        self.keys: set[str] = set()
        self.blobs: set[str] = set()
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    def wake(self) -> None:
        for seq, command, waiter in self.waiting:
            if (self.seq > seq or self.newest_command > command) and not waiter.done():
                waiter.set_result(None)

    @property
    def newest_command(self) -> int:
        return self.elsewhere + len(self.commands)

    def describe(self, summary: bytes) -> None:
        self.summary, told = summary, listed(summary)
        self.heard = self.newest_command if told.command is None else told.command

    def entry(self) -> RunInfo:
        updated = self.rows[-1].at if self.rows else self.created
        owner = "this process" if self.held else ""
        return RunInfo(
            self.run_id,
            self.created,
            updated,
            self.seq,
            self.epoch,
            owner,
            self.summary,
            self.name,
            self.origin,
            self.imported,
            self.labels,
            self.number,
            posted=self.newest_command > self.heard,
        )


class MemoryJournal:
    """Keeps runs until the instance is dropped; `close` only refuses further use.

    clock: Unix time in seconds, for the list of runs. keeps_rows: False for runs that nobody reads, or opens
    again; `read` raises JournalError then.
    """

    durability = "none"

    def __init__(self, *, clock: Callable[[], float] = time.time, keeps_rows: bool = True) -> None:
        self._clock, self.place, self._keeps_rows = clock, f"memory:{id(self)}", keeps_rows
        self._runs: dict[str, _MemoryRun] = {}
        self._blobs: dict[str, bytes] = {}
        self._rules: dict[str, StoredRule] = {}
        self._closed = False
        self._number = 0

    async def claim(
        self, run_id: str, *, create: bool = False, origin: str = "", labels: Labels = NO_LABELS
    ) -> Lease:
        """See `port.Journal.claim`; every owner is in this process."""
        if create and run_id not in self._runs and not self._closed:
            run = self._made(run_id, origin, labels)
        else:
            run = self._known(run_id)
        if origin:
            check_origin(run_id, run.origin, origin)
        if run.writes:
            raise RunInUse(run_id, "this process")
        run.epoch += 1
        run.held, run.writes, run.refusal = True, run.epoch, ""
        end = run.rows[-1].digest if run.rows else run.start
        return Lease(run_id, run.epoch, run.seq, end, run.imported)

    def append(self, lease: Lease, row: Row, blobs: Mapping[str, bytes], done: Done) -> None:
        """See `port.Journal.append`; `done` is called before this returns."""
        if row.given and not 0 < row.given <= row.count:
            raise wrong_given(row)
        run = self._runs.get(lease.run_id)
        if run is None or lease.epoch != run.writes or row.epoch != run.epoch:
            done(self._refusal(run, lease))
        elif row.seq - row.count != run.seq or row.count < 1:
            run.writes = 0
            run.refusal = f"a row that ends at {row.seq} and counts {row.count} cannot follow {run.seq}"
            done(self._refusal(run, lease))
        else:
            run.seq = row.seq
            if self._keeps_rows:
                run.rows.append(row)
            if self._keeps_rows and (blobs or row.refs or row.blobs):
                self._blobs.update(blobs)
                run.blobs.update(blobs, row.blobs, (digest for _, digest in row.refs))
            if run.waiting:
                run.wake()
            done(None)

    def hurry(self) -> None:
        """Nothing to hurry: a row is there when `append` returns."""

    async def read(
        self, run_id: str, after: int = 0, limit: int | None = None, size: int = PAGE_BYTES
    ) -> Sequence[Row]:
        """See `port.Journal.read`."""
        check_limit(limit)
        run = self._known(run_id)
        if not self._keeps_rows:
            raise JournalError("This journal keeps no rows; give the run another one to read it")
        first = bisect_right(run.rows, after, key=_seq)
        digest = run.rows[first - 1].digest if first else run.start
        found = run.rows[first:] if limit is None else _page(run.rows[first : first + limit], size)
        for number, row in enumerate(found, 1):
            if not follows(row, digest):
                raise JournalCorrupt(run_id, row.seq, "the digest does not match")
            digest = row.digest
            if number % ROWS_PER_YIELD == 0:
                await asyncio.sleep(0)
        return found

    async def blob(self, run_id: str, digest: str) -> bytes:
        """See `port.Journal.blob`."""
        data = self._blobs.get(digest) if digest in self._known(run_id).blobs else None
        if data is None or blob_digest(data) != digest:
            raise JournalCorrupt(run_id, 0, f"blob {digest} is {'lost' if data is None else 'changed'}")
        return data

    async def release(self, lease: Lease, summary: bytes = b"") -> None:
        """See `port.Journal.release`."""
        run = self._known(lease.run_id)
        if run.epoch == lease.epoch:
            run.held, run.writes = False, 0
            if summary:
                run.describe(summary)

    def describe(self, lease: Lease, summary: bytes) -> None:
        """See `port.Journal.describe`."""
        run = self._runs.get(lease.run_id)
        if run is not None and run.writes == lease.epoch:
            run.describe(summary)

    def keep_snapshot(self, lease: Lease, snapshot: RunSnapshot | None) -> None:
        """See `port.Journal.keep_snapshot`."""
        run = self._runs.get(lease.run_id)
        if run is not None and run.writes == lease.epoch and (snapshot is None or snapshot.seq <= run.seq):
            run.snapshot = snapshot

    async def snapshot(self, run_id: str) -> RunSnapshot | None:
        """See `port.Journal.snapshot`."""
        return self._known(run_id).snapshot

    async def post(self, run_id: str, key: str, body: bytes) -> bool:
        """See `port.Journal.post`."""
        check_id("key", key)
        run = self._known(run_id)
        if key in run.keys:
            return False
        run.keys.add(key)
        run.commands.append(StoredCommand(run.newest_command + 1, key, body))
        run.wake()
        return True

    async def commands(self, run_id: str, after: int = 0) -> Sequence[StoredCommand]:
        """See `port.Journal.commands`."""
        run = self._known(run_id)
        return run.commands[max(after - run.elsewhere, 0) :]

    async def wait(self, run_id: str, seq: int, command: int) -> None:
        """See `port.Journal.wait`; wakes at once."""
        run = self._known(run_id)
        if run.seq > seq or run.newest_command > command:
            return
        entry = (seq, command, asyncio.get_running_loop().create_future())
        run.waiting.append(entry)
        try:
            await entry[2]
        finally:
            run.waiting.remove(entry)

    async def rename(self, run_id: str, name: str) -> None:
        """See `port.Journal.rename`."""
        check_name(name)
        self._known(run_id).name = name

    async def relabel(self, run_id: str, labels: Labels) -> None:
        """See `port.Journal.relabel`."""
        check_labels(labels)
        self._known(run_id).labels = labels

    async def restore(self, run: StoredRun) -> None:
        """See `port.Journal.restore`."""
        check_run(run)
        self._store(run, imported=True)

    async def fork(self, of: str, run: StoredRun, rules: Sequence[StoredRule] = ()) -> None:
        """See `port.Journal.fork`."""
        check_fork(run, rules)
        source = self._known(of)
        check_alike(run, of, source.origin)
        for digest in sorted(named_blobs(run.rows) - run.blobs.keys()):
            await self.blob(of, digest)
        self._store(run, imported=source.imported)
        for rule in rules:
            self._rules.setdefault(rule.id, rule)

    def _store(self, run: StoredRun, *, imported: bool) -> None:
        self._check_open()
        if run.run_id in self._runs:
            raise present(run.run_id)
        made = self._made(run.run_id, run.origin, run.labels)
        made.rows, made.name, made.imported = list(run.rows), run.name, imported
        made.elsewhere = run.commands
        made.describe(run.summary)
        if run.rows:
            made.seq, made.epoch = run.rows[-1].seq, run.rows[-1].epoch
        made.blobs.update(named_blobs(run.rows))
        self._blobs.update(run.blobs)

    async def delete(self, run_id: str) -> None:
        """See `port.Journal.delete`."""
        run = self._known(run_id)
        if run.held:
            raise RunInUse(run_id, "this process")
        del self._runs[run_id]
        self._rules = {
            name: each for name, each in self._rules.items() if (each.scope, each.key) != ("run", run_id)
        }
        for digest in run.blobs:
            if not any(digest in other.blobs for other in self._runs.values()):
                self._blobs.pop(digest, None)
        for _, _, waiter in run.waiting:
            if not waiter.done():
                waiter.set_exception(UnknownName("run", run_id, self._runs))

    async def compact(self) -> int:
        """Nothing to give back: what is deleted is gone. See `port.Journal.compact`."""
        self._check_open()
        for run in self._runs.values():
            if run.held:
                raise RunInUse(run.run_id, "this process")
        return 0

    async def info(self, run_id: str) -> RunInfo:
        """See `port.Journal.info`."""
        self._check_open()
        if run_id not in self._runs:
            raise UnknownName("run", run_id)
        return self._runs[run_id].entry()

    async def runs(
        self, where: RunFilter = EVERY_RUN, before: int = 0, limit: int | None = None
    ) -> Sequence[RunInfo]:
        """See `port.Journal.runs`; looks at run after run."""
        check_limit(limit)
        entries = (run.entry() for run in reversed(self._runs.values()) if run.number < (before or inf))
        return list(islice((entry for entry in entries if is_listed(entry, where)), limit))

    async def count(self, where: RunFilter = EVERY_RUN) -> int:
        """See `port.Journal.count`; looks at run after run."""
        return len(await self.runs(where))

    async def rules(self) -> Sequence[StoredRule]:
        """See `port.Journal.rules`."""
        self._check_open()
        return sorted(self._rules.values(), key=lambda each: (each.created_at, each.id))

    async def add_rule(self, rule: StoredRule) -> bool:
        """See `port.Journal.add_rule`."""
        check_rule(rule)
        self._check_open()
        return self._rules.setdefault(rule.id, rule) is rule

    async def drop_rule(self, rule_id: str) -> None:
        """See `port.Journal.drop_rule`."""
        self._check_open()
        if self._rules.pop(rule_id, None) is None:
            raise UnknownName("rule", rule_id, self._rules)

    async def beat(self) -> None:
        """Nothing to say: memory and owner live and die together."""

    def is_fresh(self, lease: Lease) -> bool:
        """See `port.Journal.is_fresh`."""
        run = self._runs.get(lease.run_id)
        return run is not None and run.writes == lease.epoch

    async def confirm(self, lease: Lease) -> None:
        """See `port.Journal.confirm`."""
        if not self.is_fresh(lease):
            raise self._refusal(self._runs.get(lease.run_id), lease)

    async def close(self) -> None:
        """See `port.Journal.close`; whoever waits gets JournalError."""
        self._closed = True
        for run in self._runs.values():
            run.held, run.writes = False, 0
            for _, _, waiter in run.waiting:
                if not waiter.done():
                    waiter.set_exception(JournalError("The journal was closed"))

    def _made(self, run_id: str, origin: str, labels: Labels) -> _MemoryRun:
        run = _MemoryRun(run_id, origin, self._clock(), self._number + 1, labels)
        self._runs[run_id], self._number = run, run.number
        return run

    def _check_open(self) -> None:
        if self._closed:
            raise JournalError("The journal was closed; open another")

    def _known(self, run_id: str) -> _MemoryRun:
        self._check_open()
        run = self._runs.get(run_id)
        if run is None:
            raise UnknownName("run", run_id, self._runs)
        return run

    def _refusal(self, run: _MemoryRun | None, lease: Lease) -> JournalError:
        if self._closed:
            return JournalError("The journal was closed; open another")
        reason = run.refusal if run is not None and run.epoch == lease.epoch else ""
        return LeaseLost(
            f"Run {lease.run_id}: {reason or f'epoch {lease.epoch} is over; claim the run again'}"
        )
