"""What the writer's thread does beside rows: each job runs inside the transaction of its batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from antiphon.errors import LeaseLost, RunInUse, UnknownName
from antiphon.journal.files.seal import Seal
from antiphon.journal.listing import Labels, check_labels
from antiphon.journal.port import Lease, RunSnapshot, StoredRun, check_id, check_origin
from antiphon.journal.sqlite import anchored
from antiphon.journal.sqlite import reader as reading
from antiphon.journal.sqlite import runs as storing
from antiphon.journal.sqlite.file import check_seal
from antiphon.journal.sqlite.owners import Clocks, SqliteOwners
from antiphon.journal.sqlite.writer import SqliteWriter, Tail, WriteJob

_HELD = "select epoch, owner from runs where key = ?"
_RELEASE = "update runs set owner = null where key = ? and epoch = ?"
_POST = (
    "insert into commands(run, number, key, digest, body, seal)"
    " select ?1, ?2, ?3, ?4, ?5, ?6 where not exists(select 1 from commands where run = ?1 and key = ?3)"
)
_COUNT_COMMANDS = "update runs set commands = ? where key = ?"


class SqliteJobs:
    """The jobs of one instance. What they are given comes first, the WriteJob last."""

    def __init__(self, writer: SqliteWriter, owners: SqliteOwners, clocks: Clocks, path: Path) -> None:
        self._writer, self._owners, self._clocks, self._path = writer, owners, clocks, path

    def claim(self, run_id: str, create: bool, origin: str, labels: Labels, job: WriteJob) -> Lease:
        """Become the owner of a run; see `port.Journal.claim`."""
        connection, seal = self._writer.connection, self.checked_seal()
        if create:
            check_id("run_id", run_id)
            check_labels(labels)
        try:
            top = reading.head(connection, run_id)
        except UnknownName:
            if not create:
                self._writer.anchor.missing(run_id)
                raise
            start = origin if origin != run_id else ""
            storing.add_run(connection, seal, run_id, start, self._clocks.wall(), labels)
            top = reading.head(connection, run_id)
            self._writer.anchor.tide(runs=top.key)
        if origin:
            check_origin(run_id, top.origin, origin)
        anchored.check_head(self._writer.anchor, seal, run_id, top, connection)
        before = self._owners.holder(connection, top.key)
        if before is not None and before == self._owners.key:
            tail = self._writer.tails.get(run_id)
            # A lease that a failure broke is nobody's; one of this very transaction has no tail yet.
            if tail is None or tail.refusal is None:
                raise RunInUse(run_id, f"{self._owners.me}, in this journal's own instance")
        elif before is not None:
            self._owners.check_gone(connection, run_id, before)
        self._owners.take(connection, top.key, before)
        self._writer.anchor.row(top.key, run_id, top.epoch + 1, top.seq, top.digest)
        self._writer.anchor.sync_with_this()
        sealed = seal.head(run_id, top.origin, top.imported)
        job.claimed = Tail(run_id, top.key, top.epoch + 1, top.seq, top.last, (top.seq, top.last), sealed)
        return Lease(run_id, top.epoch + 1, top.seq, top.digest, bool(top.imported))

    def confirm(self, lease: Lease, job: WriteJob) -> None:
        """See `port.Journal.confirm`."""
        tail = self._writer.tails.get(lease.run_id)
        held = (lease.epoch, self._owners.key)
        if tail is None or self._writer.connection.execute(_HELD, (tail.key,)).fetchone() != held:
            raise LeaseLost(f"Run {lease.run_id}: another owner took it over after epoch {lease.epoch}")
        self._owners.say_alive(self._writer.connection)

    def release(self, lease: Lease, summary: bytes, job: WriteJob) -> None:
        """See `port.Journal.release`."""
        tail = self._writer.tails.get(lease.run_id)
        if tail is None or tail.epoch != lease.epoch:
            return
        if summary:
            self.describe(lease, summary, job)
        self._writer.connection.execute(_RELEASE, (tail.key, tail.epoch))
        self._writer.anchor.sync_with_this()
        del self._writer.tails[lease.run_id]

    def describe(self, lease: Lease, summary: bytes, job: WriteJob) -> None:
        """See `port.Journal.describe`."""
        tail = self._writer.tails.get(lease.run_id)
        # What a refused row said is not so.
        if tail is not None and tail.epoch == lease.epoch and tail.refusal is None:
            storing.describe(self._writer.connection, tail.key, tail.epoch, summary)

    def keep_snapshot(self, lease: Lease, kept: RunSnapshot | None, job: WriteJob) -> None:
        """See `port.Journal.keep_snapshot`."""
        tail = self._writer.tails.get(lease.run_id)
        if tail is None or tail.epoch != lease.epoch or tail.refusal is not None:
            return
        if kept is None or kept.seq <= tail.seq:
            connection = self._writer.connection
            storing.keep_snapshot(connection, self._writer.seal, lease.run_id, tail.key, kept)

    def post(self, run_id: str, key: str, body: bytes, job: WriteJob) -> bool:
        """See `port.Journal.post`."""
        connection = self._writer.connection
        top = reading.head(connection, run_id)
        run, number = top.key, top.commands + 1
        digest = reading.command_digest(run_id, number, key, body)
        connection.execute(_POST, (run, number, key, digest, body, self.checked_seal().command(digest)))
        if not connection.changes():
            return False
        connection.execute(_COUNT_COMMANDS, (number, run))
        self._writer.anchor.command(run, run_id, number, digest)
        job.moved = run_id, number
        return True

    def keep_beside(self, run_id: str, keep: Callable[..., None], job: WriteJob) -> None:
        """Keep something beside a run: its name, its labels."""
        key = reading.head(self._writer.connection, run_id).key
        keep(self._writer.connection, self.checked_seal(), run_id, key)

    def store(self, run: StoredRun, store: Callable[..., None], job: WriteJob) -> None:
        """Store a whole run; see `port.Journal.restore` and `fork`."""
        connection, anchor = self._writer.connection, self._writer.anchor
        store(connection, self.checked_seal(), run=run, now=self._clocks.wall())
        top = reading.head(connection, run.run_id)
        anchor.row(top.key, run.run_id, top.epoch, top.seq, top.digest)
        anchor.tide(rows=top.last, runs=top.key)
        anchor.sync_with_this()

    def seal_all(self, seal: Seal, job: WriteJob) -> int:
        """Seal everything with another key; how many runs."""
        self.checked_seal()
        self._owners.check_held(self._writer.connection, None)
        return storing.seal_all(self._writer.connection, seal)

    def checked_seal(self) -> Seal:
        """The seal for all but rows: these need no look, as sealing anew ends every lease."""
        check_seal(self._writer.connection, self._path, self._writer.seal)
        return self._writer.seal

    def delete(self, run_id: str, job: WriteJob) -> bool:
        """Take the run out, and clear away the first piece, of most runs all; whether there is more."""
        connection = self._writer.connection
        top = reading.head(connection, run_id)
        owner = self._owners.holder(connection, top.key)
        self._owners.check_held(connection, top.key)
        self._writer.anchor.forget([top.key])
        storing.take_out(connection, run_id, top)
        if owner is not None:
            self._owners.forget(connection, owner)
        return storing.clear(connection, job)

    def give_up(self, job: WriteJob) -> None:
        """Hold no run any more, and be no owner."""
        connection = self._writer.connection
        connection.executemany(_RELEASE, [(each.key, each.epoch) for each in self._writer.tails.values()])
        self._writer.tails.clear()
        self._writer.anchor.sync_with_this()
        if self._owners.key:
            self._owners.forget(connection, self._owners.key)
