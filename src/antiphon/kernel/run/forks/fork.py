"""fork: a new run that begins as another one did, up to one of its records.

A fork is no crash: nothing in it was cut off, and nothing is done twice. So it branches off where nothing is
at work, after a whole row, and its first own record says where it comes from. All is stored in one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import UserError
from antiphon.journal import open_journal
from antiphon.journal.listing import Labels
from antiphon.journal.port import Journal, Row, StoredRule, StoredRun, chain
from antiphon.kernel.facts import summary
from antiphon.kernel.facts.events import Event, Fork, RunResumed
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.run.clock import Clock
from antiphon.kernel.run.open import system_clock
from antiphon.kernel.run.rows import fold_next, pack, rows_of
from antiphon.kernel.run.stopping import at_work, rests
from antiphon.values.fields import fit
from antiphon.values.message import new_id


class ForkedRun(Struct, frozen=True):
    """A run that was made by `fork`."""

    run_id: str
    """The new one's."""
    origin: str
    """The run that it branched off."""
    seq: int
    """The last record taken over from there; its own begin after it."""
    at_work: tuple[str, ...] = ()
    """Where that is an earlier record than was asked for: the effects that somebody performed then, by id,
    which are why. Empty where the run was closed or drained, or that record does not end a row."""


async def fork(
    journal: Journal | str, run_id: str, at: int | None = None, *, labels: Labels | None = None,
    clock: Clock | None = None,
) -> ForkedRun:  # fmt: skip
    """Make a new run that begins with the records of another one up to `at`; durable on return.

    journal: a Journal, which stays open, or the URL of one. at: a record's number; None: as far as it goes.
    Taken over is what ends, up to there, with a record after which nothing is at work: no model is asked, no
    tool, action or step runs (they may wait for people, timers and each other), and the run is neither closed
    nor drained. Whoever drives the other run is not disturbed, and nothing of it changes. labels: of the new
    run; None: those of the other. clock: says what time it is.

    The new run has the conversations, data, budgets used and permissions of the other one as they were, the
    rules for that run alone as they are now, no name and none of its commands. What waits goes on waiting as
    long as was left. Open it with `open_run(run_id=...)` and ask, or answer what is open in another way.
    Blobs are shared, so it costs its records only, and outlives the other one.

    Raises UnknownName; UserError for a record that the run does not have, or before which nothing rests;
    JournalError and its kinds.
    """
    at, store = fit(at, int | None, "fork(at)"), open_journal(journal)
    try:
        return await _fork(store, run_id, at, labels, clock)
    finally:
        if store is not journal:
            await store.close()


async def _fork(
    journal: Journal, run_id: str, at: int | None, labels: Labels | None, clock: Clock | None
) -> ForkedRun:
    info = await journal.info(run_id)
    if at is not None and not 1 <= at <= info.seq:
        raise UserError(f"Not forked: run {run_id} has the records 1 to {info.seq:,}; got {at:,}")
    found = await _taken_over(journal, run_id, at)
    last, state, made = found.rows[-1], found.state, new_id()
    now = max((clock or system_clock(last.at)).now(), last.at)
    row, blobs = _first_row(run_id, last, made, now, state)
    fold_next(made, state, row, [_first_event(run_id, last, made, now, state)])
    stored = StoredRun(
        made, [*found.rows, row], blobs, info.origin or run_id,
        labels=info.labels if labels is None else labels,
        summary=summary.encode(summary.summary_of(state, row.seq)),
    )  # fmt: skip
    await journal.fork(run_id, stored, await _rules(journal, run_id, made))
    return ForkedRun(made, run_id, last.seq, found.at_work)


class _TakenOver(Struct):
    """What of a run is taken over, and the state it adds up to. at_work: see ForkedRun."""

    rows: Sequence[Row]
    state: RunState
    at_work: tuple[str, ...] = ()


async def _taken_over(journal: Journal, run_id: str, at: int | None) -> _TakenOver:
    rows, events, state, whole = list[Row](), list[list[Event]](), RunState(), 0
    async with aclosing(rows_of(journal, run_id)) as found:
        async for row, of_row in found:
            if at is not None and row.seq > at:
                break
            fold_next(run_id, state, row, of_row)
            rows.append(row)
            events.append(of_row)
            if not state.closed and state.owner.draining is None and rests(state):
                whole = len(rows)
    if not whole:
        raise UserError(
            f"Not forked: run {run_id} has no record yet up to there after which nothing is at work"
        )
    if whole == len(rows):
        return _TakenOver(rows, state)
    # Folded on beyond it to look: once more up to there.
    busy, state = at_work(state), RunState()
    for row, of_row in zip(rows[:whole], events, strict=False):
        fold_next(run_id, state, row, of_row)
    return _TakenOver(rows[:whole], state, busy)


def _first_event(run_id: str, last: Row, made: str, now: float, state: RunState) -> RunResumed:
    """What the fork says of itself; its owner so far is the one that the other run had."""
    owner, came_from = state.owner, Fork(run_id, last.seq, last.digest.hex(), shift=now - last.at)
    return RunResumed(
        state.options.interactive, owner.manifest, made, came_from, owner.policy, rules=owner.rules
    )


def _first_row(
    run_id: str, last: Row, made: str, now: float, state: RunState
) -> tuple[Row, dict[str, bytes]]:
    event = _first_event(run_id, last, made, now, state)
    body, refs, blobs = pack([event])
    named = (event.manifest,) if event.manifest else ()
    seq, epoch = last.seq + 1, last.epoch + 1
    digest = chain(last.digest, seq, 1, epoch, now, body, refs, named, 1)
    return Row(seq, 1, epoch, now, body, refs, digest, named, 1), blobs


async def _rules(journal: Journal, run_id: str, made: str) -> list[StoredRule]:
    """The rules for a run alone, for the new one."""
    return [
        replace(each, id=new_id(), key=made)
        for each in await journal.rules()
        if (each.scope, each.key) == ("run", run_id)
    ]
