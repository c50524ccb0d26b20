"""The Journal port: where runs are kept.

A run is a chain of rows. One append is one row: the events of one step, encoded by
`antiphon.kernel.facts.events`, with the digest of everything before it. A row is refused unless the lease's
epoch is the run's and its first event follows the last one stored.

Implementations: `journal.memory`, `journal.sqlite`. Every one passes `journal.check`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from math import isfinite
from typing import Protocol

from msgspec import Struct

from antiphon.errors import UserError
from antiphon.journal.listing import EVERY_RUN, NO_LABELS, Labels, RunFilter, RunInfo

Refs = tuple[tuple[str, str], ...]
"""Blobs of a row: (JSON pointer into its body, digest of the blob that belongs there)."""

MAX_ID = 200
"""Characters of a run's id, and of a command's key."""
PAGE_BYTES = 65_536
"""Bytes of bodies after which a page of rows ends, where nothing else is asked for."""

Done = Callable[[BaseException | None], None]


class Row(Struct, frozen=True, gc=False):
    """One append. `seq` numbers its last event, from 1; `at` is Unix time in seconds.

    digest: 16 bytes over the previous row's digest and all other fields (see `chain`).
    blobs: digests of further blobs that the events name, kept as long as the run is.
    given: how many of the events, the first ones, came from outside; the rest is what the rules computed
    from them. 0: unknown, in rows written before format 3.
    """

    seq: int
    count: int
    epoch: int
    at: float
    body: bytes
    refs: Refs
    digest: bytes
    blobs: tuple[str, ...] = ()
    given: int = 0


class Lease(Struct, frozen=True):
    """The right to append to one run. `seq` and `digest` are the chain's end when it was claimed.

    imported: the run came in through `restore`, so that what it says was decided elsewhere. True for as
    long as this journal keeps it.
    """

    run_id: str
    epoch: int
    seq: int
    digest: bytes
    imported: bool = False


class StoredCommand(Struct, frozen=True, gc=False):
    """What an outsider left for a run's owner; `number` grows within the run, from 1."""

    number: int
    key: str
    body: bytes


class RunSnapshot(Struct, frozen=True):
    """What a run adds up to at record `seq`: a cache, without which a reader folds all of the run.

    digest: of the row that ends there. version: which fold made it. data: for that fold alone.
    """

    seq: int
    digest: bytes
    version: bytes
    data: bytes


SCOPES = ("run", "project", "owner")
"""What a rule may hold for."""


class StoredRule(Struct, frozen=True):
    """A rule on tools that is kept beside the runs; what it says is in `body` (JSON).

    id: names it, once in the journal. scope: one of SCOPES; key: the id of that run, or the name of the
    project or owner. created_at: Unix seconds.
    """

    id: str
    scope: str
    key: str
    body: bytes
    created_at: float


def rule_digest(rule: StoredRule) -> bytes:
    """What is stored beside a rule so that damage shows."""
    parts = (rule.id, rule.scope, rule.key, float(rule.created_at))
    return blake2b(repr(parts).encode() + rule.body, digest_size=16).digest()


class StoredRun(Struct, frozen=True):
    """A whole run, as it moves from one journal to another.

    blobs: the bytes of every blob that a row names, by its digest. summary: for the list of runs.
    commands: the newest command that the rows name, of the journals where they were written; what is posted
    from now on is numbered after it, so that its owner hears it.
    """

    run_id: str
    rows: Sequence[Row]
    blobs: Mapping[str, bytes]
    origin: str = ""
    name: str = ""
    summary: bytes = b""
    commands: int = 0
    labels: Labels = NO_LABELS


def chain(
    previous: bytes,
    seq: int,
    count: int,
    epoch: int,
    at: float,
    body: bytes,
    refs: Refs,
    blobs: tuple[str, ...] = (),
    given: int = 0,
) -> bytes:
    """The digest of a row: 16 bytes of BLAKE2b over all of its fields and the row before.

    A row whose `given` is 0 has the digest it had in formats 1 and 2.
    """
    named = repr((refs, blobs)).encode() if refs or blobs else b""
    head = _head(seq, count, given, epoch, at, len(named))
    return blake2b(previous + head + named + body, digest_size=16).digest()


# `count` had eight bytes in format 2, the upper four of them always zero: `given` is there now.
_head = struct.Struct("<qiiqdq").pack


def follows(row: Row, previous: bytes) -> bool:
    """Whether a row that was read is the one that was appended after the digest `previous`."""
    if not 0 <= row.given <= row.count:
        return False
    try:
        found = chain(
            previous, row.seq, row.count, row.epoch, row.at, row.body, row.refs, row.blobs, row.given
        )
    except struct.error:
        # A number larger than any that was ever written.
        return False
    return found == row.digest


def wrong_given(row: Row) -> UserError:
    """What `append` raises for a row whose `given` is not in 0..count."""
    return UserError(f"A row of {row.count} events cannot have {row.given} given ones; count them again")


def genesis(run_id: str, origin: str = "") -> bytes:
    """The digest that a run's first row follows; runs of one origin start alike."""
    return blake2b((origin or run_id).encode(), digest_size=16).digest()


def check_origin(run_id: str, stored: str, wanted: str) -> None:
    """Raise UserError when a run is claimed with an origin that is not the stored one."""
    if wanted != (stored or run_id):
        found = stored or "itself"
        raise UserError(
            f"Run {run_id} has its origin in {found}, not in {wanted}; claim it without an origin"
        )


def snapshot_digest(run_id: str, kept: RunSnapshot) -> bytes:
    """What is stored beside a snapshot so that damage shows."""
    parts = (run_id, kept.seq, kept.digest, kept.version)
    return blake2b(repr(parts).encode() + kept.data, digest_size=16).digest()


def blob_digest(data: bytes) -> str:
    """The name of a blob: 64 hex characters of BLAKE2b-256 over its bytes."""
    return blake2b(data, digest_size=32).hexdigest()


def check_id(what: str, text: str) -> None:
    """Raise UserError for a text that cannot name a run or a command.

    An id is shown in terminals, logs and addresses: it has 1 to MAX_ID characters, all of them visible. So no
    controls, no halves of surrogate pairs, nothing that turns the direction of what follows.
    """
    if not 0 < len(text) <= MAX_ID or not text.isprintable():
        raise UserError(
            f"{what} is {text[:40]!a} ({len(text)} characters);"
            f" it must be 1 to {MAX_ID} visible characters, without controls. Give another one"
        )


def check_limit(limit: int | None) -> None:
    """Raise UserError for a number of rows or runs that is no page."""
    if limit is not None and limit < 1:
        raise UserError(f"limit is {limit}; a page holds 1 or more")


def check_rule(rule: StoredRule) -> None:
    """Raise UserError for a rule that holds for nothing, or under no id."""
    check_id("The id of a rule", rule.id)
    if rule.scope not in SCOPES:
        raise UserError(f"A rule holds for one of {', '.join(SCOPES)}; got {rule.scope[:40]!a}")
    check_id(f"The {rule.scope} of a rule", rule.key)
    if not isfinite(rule.created_at):
        raise UserError(f"A rule is made at an instant, in Unix seconds; got {rule.created_at!r}")


def begin(run_id: str, origin: str = "") -> bytes:
    """The digest that the first row of a new run follows. Raises UserError as `check_id`."""
    check_id("run_id", run_id)
    return genesis(run_id, origin)


class Journal(Protocol):
    """What the runtime needs of a store. Everything raises `JournalError` and its kinds only.

    An instance belongs to one event loop and one process; several processes may open one store.
    """

    @property
    def durability(self) -> str:
        """What an acknowledged append survives: `none`, `process` or `power`."""
        ...

    @property
    def place(self) -> str:
        """Where the runs are: the same for every instance that keeps the same ones, and for no other."""
        ...

    async def claim(
        self, run_id: str, *, create: bool = False, origin: str = "", labels: Labels = NO_LABELS
    ) -> Lease:
        """Become the run's owner: the epoch grows by one, earlier leases are fenced.

        origin: the run that a new one begins like (a fork's, and of a fork of it the same): its chain
        starts from `genesis(origin)`, so that equal rows have equal digests in both. labels: of a run that is
        made here; one that is there keeps its own.

        Raises UnknownName (no such run, unless `create`), RunInUse (a living owner has it: another process,
        or somebody with a lease of this very instance that was neither released nor broken by an error),
        UserError (it is there with another origin; with `create`, an id as `check_id` refuses it, labels as
        `check_labels` does),
        JournalCorrupt, JournalTooNew.
        """
        ...

    def append(self, lease: Lease, row: Row, blobs: Mapping[str, bytes], done: Done) -> None:
        """Queue one row and its new blobs; never blocks. Rows of a lease keep their order.

        `done(None)` is called on the loop once the row is as durable as `durability` says,
        `done(error)` when it is not (LeaseLost, Full, JournalError): every later row of the lease
        then fails too. May call `done` before returning. Raises UserError, and queues nothing, for a
        row whose `given` is not in 0..count.
        """
        ...

    def hurry(self) -> None:
        """Somebody waits for what was appended: make it durable at once where that does not hold others up.

        `done` of the rows may be called before this returns.
        """
        ...

    async def read(
        self, run_id: str, after: int = 0, limit: int | None = None, size: int = PAGE_BYTES
    ) -> Sequence[Row]:
        """The rows whose last event is numbered above `after`, oldest first, their chain verified.

        limit: a page, at most so many of them, 1 or more; it ends too with the row that brings its bodies to
        `size` bytes. It is empty only where there is no such row, and costs what it holds, wherever it lies.

        Proven is that each row follows the one before it: by number, by digest, and with no smaller epoch.
        The first one follows the row before it, by the digest that is stored there, which is not computed
        anew; the run's first row follows its genesis. The last one is compared with the run's head where it
        is the newest. So a page says nothing of what lies before it, and one that ends earlier nothing of
        what follows; who reads page after page to an empty one, and looks that each `follows` the last
        digest of the page before, has proven what one reading of all proves.

        Raises UnknownName, UserError (a limit below 1), or JournalCorrupt with the number of the first row
        that does not verify.
        """
        ...

    async def blob(self, run_id: str, digest: str) -> bytes:
        """A blob's bytes, verified against their digest. Raises JournalCorrupt when lost or changed."""
        ...

    async def release(self, lease: Lease, summary: bytes = b"") -> None:
        """Give the run up, after every queued row is durable; a later claim need not wait."""
        ...

    def describe(self, lease: Lease, summary: bytes) -> None:
        """Queue a new summary for the list of runs; best effort, ordered with the rows.

        What `listed` reads in it is stored in the same transaction, and `runs` finds the run by it. Nothing
        is stored under a lease that is over, or of which a row was refused: what it says of rows that are
        not there is not so.
        """
        ...

    def keep_snapshot(self, lease: Lease, snapshot: RunSnapshot | None) -> None:
        """Queue a snapshot of the run in place of the one before, None for none; best effort, as `describe`.

        It may be lost or dropped at any time: with it goes nothing but time. It is no part of the run as that
        moves from journal to journal. Nothing is stored under a lease that is over, or of which a row was
        refused, or for a record that the run does not have yet.
        """
        ...

    async def snapshot(self, run_id: str) -> RunSnapshot | None:
        """What `keep_snapshot` stored last; None without, and where it is not as it was written.

        It may be of any record: whoever uses it compares its digest with that of the row. Raises UnknownName.
        """
        ...

    async def post(self, run_id: str, key: str, body: bytes) -> bool:
        """Post a command for the run's owner, durable on return; False when the key was used before.

        Raises UnknownName, and UserError for a key as `check_id` refuses it.
        """
        ...

    async def commands(self, run_id: str, after: int = 0) -> Sequence[StoredCommand]:
        """The run's commands numbered above `after`, in order."""
        ...

    async def wait(self, run_id: str, seq: int, command: int) -> None:
        """Return when the run has rows past `seq` or commands past `command`; at once if it has.

        For owners (commands) and for watchers in other processes (rows); wakes within 0.25 s. Raises
        UnknownName, also when the run is deleted meanwhile.
        """
        ...

    async def rename(self, run_id: str, name: str) -> None:
        """Give the run a name for the list of runs, whoever holds it; empty takes it away.

        A label beside the records, which do not change: a closed run may have one too. Raises UnknownName,
        and UserError as `check_name`.
        """
        ...

    async def relabel(self, run_id: str, labels: Labels) -> None:
        """Give the run other labels, all three, whoever holds it. Raises UnknownName, UserError as
        `check_labels`."""
        ...

    async def restore(self, run: StoredRun) -> None:
        """Store a run from elsewhere as it was: all of it in one step, durable on return, or nothing.

        Nobody holds it then; its epoch is that of its last row, and its leases say `imported`. Raises
        UserError (its id is here already, or what `transfer.check_run` finds wrong), JournalError.
        """
        ...

    async def fork(self, of: str, run: StoredRun, rules: Sequence[StoredRule] = ()) -> None:
        """Store a run that begins like the run `of` of this journal, whoever holds that one: all of it in one
        step, durable on return, or nothing.

        run: its chain starts where that of `of` does (`origin`). blobs: only those that `of` does not keep;
        the others that its rows name are kept for it too, not copied. rules: kept with it, as by `add_rule`.
        Nobody holds it then; its epoch is that of its last row, and it is `imported` where `of` is. Raises
        UnknownName (there is no run `of`), JournalCorrupt (one of whose blobs is lost), and as `restore`.
        """
        ...

    async def delete(self, run_id: str) -> None:
        """Remove a run that nobody holds: its rows, commands, name, the rules for it alone, and the blobs
        that no other run names.

        It is gone at once and for all; what it held is then cleared away in pieces, so that nobody who writes
        waits for long. Killed in between, the next `delete` or `compact` goes on. The id may be used anew.

        Raises UnknownName, RunInUse (a living owner holds it, this instance too).
        """
        ...

    async def compact(self) -> int:
        """Give the space of what was deleted back to the system; how many bytes the store became smaller by.

        Raises RunInUse while a living owner holds any run (it would wait until all is rewritten),
        JournalFull when there is not room enough to rewrite it, JournalError.
        """
        ...

    async def info(self, run_id: str) -> RunInfo:
        """One run's line of the list. Raises UnknownName, which names no others."""
        ...

    async def runs(
        self, where: RunFilter = EVERY_RUN, before: int = 0, limit: int | None = None
    ) -> Sequence[RunInfo]:
        """The runs that `where` asks for (see `is_listed`), newest first: by falling `number`.

        before: only those of a smaller number, 0 for all; with the last one's of a page it begins the next,
        in which nothing is left out or shown twice, whatever was made, deleted or described in between.
        limit: at most so many, 1 or more; there are more only if there are so many.

        A page is cut before anything is read of its runs. A label, a state, and who drives it, or died over
        it, are found by index: a page takes no longer among many runs than among few. Conditions beside the
        most telling of these are looked at run by run, as a text is, in what the index leaves.

        Raises UserError for a limit below 1.
        """
        ...

    async def count(self, where: RunFilter = EVERY_RUN) -> int:
        """How many runs `runs` would list; nothing is read of them where an index tells it."""
        ...

    async def rules(self) -> Sequence[StoredRule]:
        """Every rule, oldest first. Raises JournalDamaged for one that is not as it was written."""
        ...

    async def add_rule(self, rule: StoredRule) -> bool:
        """Keep a rule beside the runs, durable on return; False when there is one of that id.

        It needs no run that it could hold for, and changes none that is open: whoever opens one next takes it
        in. Raises UserError for one that holds for nothing.
        """
        ...

    async def drop_rule(self, rule_id: str) -> None:
        """Keep a rule no longer. Raises UnknownName."""
        ...

    async def beat(self) -> None:
        """Say that this instance's owner lives; the runtime calls it every 5 s."""
        ...

    def is_fresh(self, lease: Lease) -> bool:
        """Whether nobody can have taken the run since it was claimed or confirmed; from any thread, no I/O.

        False says that nobody knows: ask `confirm`. After a silence that was too long a `beat` does not make
        it true again.
        """
        ...

    async def confirm(self, lease: Lease) -> None:
        """Be heard, and make sure that the lease is still the run's. Raises LeaseLost."""
        ...

    async def close(self) -> None:
        """Flush, release what is held, close. Idempotent."""
        ...
