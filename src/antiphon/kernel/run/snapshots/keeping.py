"""When a snapshot is made, and how a run is read that may have one."""

from __future__ import annotations

from contextlib import aclosing, suppress
from math import inf
from typing import NamedTuple

from msgspec import Struct

from antiphon.errors import JournalCorrupt, JournalTooNew
from antiphon.journal.port import Journal, Lease, RunSnapshot
from antiphon.kernel.facts import snapshot
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.kernel.facts.state import RunState, forget_work
from antiphon.kernel.run.rows import UNREADABLE, chunks_of, fold_in
from antiphon.kernel.run.snapshots.version import fold_version

EVERY = 1_024
"""Records between two snapshots of a run, at least: what may have to be folded when it is opened."""
LEFT = 128
"""The same between the last one and one that is made when the run is left: its state may be small again."""
SHARE = 64
"""Bytes of a snapshot for which there is one record between it and the next, so that neither the time nor the
bytes of a record grow with what the run holds."""
LARGEST = 8 << 20
"""Bytes of a snapshot: more than any model reads of a conversation. A run that holds more has none."""


class LatestState(NamedTuple):
    """A stored run as it is now. kept: the record that its snapshot ends with, 0 for none that fits."""

    state: RunState
    cast: ActivationIndex
    kept: int = 0


async def latest_state(journal: Journal, run_id: str) -> LatestState:
    """A stored run as it is now: from its snapshot on, else from its first record.

    What lies before a snapshot is not read, and so is not verified. Raises UnknownName, JournalCorrupt,
    JournalTooNew.
    """
    kept = await journal.snapshot(run_id)
    if kept is not None and kept.version and kept.version == fold_version():
        # One that does not fit is as good as none: the records say what holds, or where they are damaged.
        with suppress(JournalCorrupt, JournalTooNew, *UNREADABLE):
            return await _from(journal, run_id, *snapshot.decode(kept.data), kept)
    return await _from(journal, run_id, RunState(), ActivationIndex(), None)


async def _from(
    journal: Journal, run_id: str, state: RunState, cast: ActivationIndex, kept: RunSnapshot | None
) -> LatestState:
    """The run from there on. The row that a snapshot ends with is read too, to be compared by its digest."""
    known = kept
    async with aclosing(chunks_of(journal, run_id, kept.seq - 1 if kept is not None else 0)) as chunks:
        async for rows in chunks:
            if known is not None:
                (row, _), *rows = rows
                if (row.seq, row.digest) != (known.seq, known.digest):
                    raise JournalCorrupt(run_id, row.seq, "its snapshot is of another run")
                known = None
            fold_in(run_id, state, rows)
            for row, events in rows:
                for number, event in enumerate(events, row.seq - row.count + 1):
                    cast.learn(event, number)
    if known is not None:
        raise JournalCorrupt(run_id, known.seq, "its snapshot is of records that it does not have")
    forget_work(state)
    return LatestState(state, cast, kept.seq if kept is not None else 0)


class SnapshotKeeper(Struct, eq=False):
    """Has a run's journal keep a snapshot now and then, while somebody drives it. Best effort."""

    journal: Journal
    lease: Lease
    stored: LatestState | None = None
    """The run as it was opened; None where nobody opens it again, and none is made."""
    last: int = 0
    """The record that the newest snapshot ends with; 0: there is none."""
    due: float = inf
    """The record after which the next one is made; the runtime looks at it after each row."""

    def keep(self, seq: int, digest: bytes) -> None:
        """Make one of the run as it is after record `seq`, whose row has this digest."""
        stored, version, data = self.stored, fold_version(), b""
        try:
            if stored is not None and version:
                data = snapshot.encode(stored.state, stored.cast)
        except (TypeError, ValueError, OverflowError, RecursionError):
            # A number too large for it, say: the records hold it, and nothing else has to.
            data = b""
        self.due = seq + max(EVERY, len(data) // SHARE)
        if 0 < len(data) <= LARGEST:
            self.last = seq
            self.journal.keep_snapshot(self.lease, RunSnapshot(seq, digest, version, data))

    def leave(self, seq: int, digest: bytes) -> None:
        """The run is left after that record; one that is closed nobody opens again."""
        if self.stored is None or not self.last:
            return
        if self.stored.state.closed:
            self.journal.keep_snapshot(self.lease, None)
        elif seq - self.last >= LEFT:
            self.keep(seq, digest)
