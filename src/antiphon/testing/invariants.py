"""What is true of every journal at every prefix, as a fold.

    await check_run(journal, run_id)                 # raises InvariantBroken: run, seq, which, why
    await check_journal(journal)                     # every run of the store

The books kept here are the audit's own: nothing is asked of `antiphon.kernel.facts.state`, so that a fault in
the fold cannot excuse itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Any, NoReturn

from msgspec.structs import replace

from antiphon.journal.port import Journal, Row, follows, genesis
from antiphon.kernel.facts.agent_call import read_call
from antiphon.kernel.facts.events import (
    ActionEffect,
    CallEffect,
    CancelRequested,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    Event,
    FilesChanged,
    HumanInput,
    InstructionsEffect,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    QuestionEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    ToolEffect,
    ToolsetOffered,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.ledger import run_scope
from antiphon.kernel.facts.options import Options
from antiphon.kernel.run.rows import events_of
from antiphon.testing.audit.files import check_changes
from antiphon.testing.audit.forks import branched
from antiphon.testing.audit.ledger import (
    INSIDE,
    INVARIANTS,
    AuditedActivation,
    AuditLedger,
    InvariantBroken,
    another_team,
    misattributed,
    place,
    ran,
)
from antiphon.testing.audit.permission import Acts, OfferAudit, PermissionAudit
from antiphon.values.message import Message, ToolCall

__all__ = ["INVARIANTS", "Audit", "InvariantBroken", "check_journal", "check_run"]


class Audit:
    """Checks one run as its rows come. Raises InvariantBroken at the first event that must not be.

    acts: which tools act on the world; None derives it from the journal, see `PermissionAudit`.
    """

    def __init__(self, run_id: str, acts: Acts | None = None, *, seq: int = 0, digest: bytes = b"") -> None:
        self.run_id, self.seq, self._at = run_id, seq, inf
        self._row, self._digest, self._before, self._epoch = seq, digest or genesis(run_id), b"", 0
        self._options: Options | None = None
        self._over = self._draining = False
        self._rules: tuple[Any, ...] = ()
        self._seats: dict[int, AuditedActivation] = {}
        self._resting: dict[tuple[int, str], tuple[int, AuditedActivation]] = {}
        self._children, self._keeping = dict[str, int](), dict[str, tuple[int, str]]()
        self._books: dict[int, AuditLedger] = {}
        self._born = self._accounts = self._shared = self._command = 0
        self._open: dict[str, EffectStarted] = {}
        self._known, self._detached = set[str](), set[str]()
        self._queued: dict[str, ToolCall] = {}
        self._permissions, self._offers = PermissionAudit(acts), OfferAudit()

    def row(self, row: Row, events: Sequence[Event]) -> None:
        """Take in the next row."""
        self.seq = row.seq
        if row.seq - row.count != self._row or row.count != len(events) or row.epoch < self._epoch:
            self._broken("gapless", f"{row.count} up to {row.seq} of epoch {row.epoch} after {self._row}")
        if not follows(row, self._digest):
            self._broken("chain", "the digest does not match")
        self._before, self._row, self._digest = self._digest, row.seq, row.digest
        self._epoch, self._at = row.epoch, row.at
        for offset, event in enumerate(events, 1 - row.count):
            self.seq = row.seq + offset
            self.event(event)

    def event(self, event: Event) -> None:
        """Take in the next event."""
        if self._over:
            self._broken("closed", f"{type(event).__name__} after the run was closed")
        if self._options is None and type(event) is not RunStarted:
            self._broken("started", f"{type(event).__name__} before the run was started")
        if number := getattr(event, "command", 0):
            if number != self._command + 1:
                self._broken("command", f"command {number} after command {self._command}")
            self._command = number
        if wrong := misattributed(event):
            self._broken("decided", wrong)
        _CHECKS[type(event)](self, event)

    # -- the run -----------------------------------------------------------------------------

    def _run_started(self, event: RunStarted) -> None:
        if self._options is not None:
            self._broken("started", "the run started again")
        self._options, self._rules = event.options, event.rules
        if event.options.run_limits is not None:
            self._accounts = self._shared = 1
            self._books[1] = AuditLedger(run_scope(event.options.run_limits).limits)
        self._seats[0] = AuditedActivation("user")

    def _run_resumed(self, event: RunResumed) -> None:
        self._draining, self._rules = False, event.rules
        if event.fork is not None:
            self._command, here = 0, (self.seq - 1, self._before.hex())
            if wrong := branched(event.fork, here, self._open):
                self._broken("forked", wrong)
        if event.run_limits is not None:
            self._books[self._shared].limited(run_scope(event.run_limits).limits)
        another_team(event, self._seats, self._resting, self._keeping, self._open)

    def _drain_started(self, event: DrainStarted) -> None:
        self._draining = True
        if strange := set(event.not_begun) - self._open.keys():
            self._broken("drained", f"{', '.join(sorted(strange))} is not in flight")

    def _run_closed(self, event: RunClosed) -> None:
        if self._open:
            self._broken("closed", f"{', '.join(self._open)} still in flight")
        self._over = True

    def _transcript_compacted(self, event: TranscriptCompacted) -> None:
        if not self._seat(event.activation).busy or event.trimmed < 0:
            self._broken("view", f"activation {event.activation} is in no turn")

    def _message_posted(self, event: MessagePosted) -> None:
        if event.dead_letter:
            if seat := self._seats.get(event.to):
                seat.inbox = [each for each in seat.inbox if each.id != event.message.id]
            return
        if event.begins:
            self._queued_begins(event.begins, event.to)
            return
        resting = next((each for number, each in self._resting.values() if number == event.to), None)
        (resting or self._seat(event.to)).deliver(event.message)
        if event.by:
            publisher = self._seat(event.by)
            handed_on = any(each.id == event.message.id for each in publisher.taken)
            if publisher.action not in publisher.open and not handed_on and not publisher.planned:
                self._broken("action", f"activation {event.by} publishes outside of an action or a plan")
            if not handed_on and (lost := publisher.labels.difference(event.message.labels)):
                self._broken("labels", f"what activation {event.by} publishes lacks {sorted(lost)}")

    def _queued_begins(self, call_id: str, number: int) -> None:
        """A request begins once those before it have ended, in their order."""
        if call_id not in self._queued:
            self._broken("parents", f"{call_id} begins, but is not queued")
        call = self._queued.pop(call_id)
        detail: Any = self._open[call_id].detail
        first = next(
            each.id for each in self._open.values()
            if type(each.detail) is CallEffect and self._place(each.id)[0] == 0
            and (each.detail.agent, each.detail.stays_dormant) == (detail.agent, True)
        )  # fmt: skip
        if first != call_id:
            self._broken("parents", f"{call_id} begins before {first} has ended")
        self._child(call_id, replace(detail, reactivates=number), self._seats[0], call)

    def _turn_started(self, event: TurnStarted) -> None:
        seat = self._seat(event.activation)
        if seat.busy:
            self._broken("turns", f"activation {event.activation}: another turn before {seat.turn} ended")
        if event.messages > len(seat.inbox):
            self._broken("inbox", f"{event.messages} messages taken of {len(seat.inbox)}")
        taken = seat.take(event.messages)
        seat.turn, seat.attempt, seat.busy, seat.offered = seat.turn + 1, 0, True, self._offers.now
        seat.taken, seat.acts, seat.planned, seat.action = taken, event.act, event.calls is not None, ""
        calls = () if event.act else event.calls
        seat.plan(tuple(each for one in taken for each in one.calls) if calls is None else calls)

    def _next_turn(self, seat: AuditedActivation, effect_id: str) -> None:
        """A model call whose id names the next turn: the last one is over, and no message is taken."""
        if wrong := seat.unanswered():
            self._broken("results", wrong)
        if not seat.calls:
            self._broken("turns", f"{effect_id} begins a turn, but turn {seat.turn} is not over")
        if seat.inbox:
            self._broken("inbox", f"{effect_id} begins a turn while {len(seat.inbox)} messages wait")
        seat.turn, seat.attempt, seat.offered = seat.turn + 1, 0, self._offers.now
        seat.taken, seat.acts, seat.planned, seat.action = [], False, False, ""
        seat.plan(())

    def _turn_finished(self, event: TurnFinished) -> None:
        seat = self._seat(event.activation)
        if not seat.busy:
            self._broken("turns", f"activation {event.activation} is in no turn that could end")
        if wrong := seat.unanswered():
            self._broken("results", wrong)
        seat.busy = False
        seat.plan(())

    def _effect_started(self, event: EffectStarted) -> None:
        number, turn, kind, index = self._place(event.id)
        seat = self._seat(number)
        if self._draining:
            self._broken("drained", f"{event.id} started")
        if event.id in self._known:
            self._broken("ends", f"{event.id} started again")
        detail = event.detail
        if seat.busy and kind == "m" and turn == seat.turn + 1:
            self._next_turn(seat, event.id)
        if not seat.busy or turn != seat.turn:
            over = "" if seat.busy else ", which is over"
            self._broken("turns", f"{event.id} started in turn {seat.turn}{over}")
        self._known.add(event.id)
        self._open[event.id] = event
        seat.open.add(event.id)
        if isinstance(detail, HumanInput):
            self._detach(seat, event.id, detail.detaches)
        if type(detail) is ModelEffect:
            if index != seat.attempt + 1:
                self._broken("turns", f"{event.id} follows attempt {seat.attempt}")
            seat.attempt = index
            for books in self._chain(seat):
                books.hold(detail)
                self._within(books, ModelEffect)
        elif kind == "i" and (seat.attempt or seat.acts or seat.instructed):
            self._broken("instructions", f"{event.id} comes too late, or again")
        elif kind == "x":
            if not seat.acts or seat.action:
                self._broken("action", f"{event.id} is no action of this turn")
            seat.action = event.id
        elif kind == INSIDE:
            self._operation_started(event, seat)
        elif kind == "c" and not event.id.endswith("?"):
            self._call_started(event, seat, index)

    def _operation_started(self, event: EffectStarted, seat: AuditedActivation) -> None:
        """Something begins inside an action or a tool."""
        within = event.id.partition(INSIDE)[0]
        if within not in seat.open or not isinstance(self._open[within].detail, ActionEffect | ToolEffect):
            self._broken("action", f"{event.id} began outside of an action or a tool")
        if type(event.detail) is CallEffect or within != seat.action:
            for books in self._chain(seat):
                books.calls += 1
                self._within(books)
        if type(event.detail) is CallEffect:
            self._born_by(event.id, event.detail, seat)

    def _detach(self, seat: AuditedActivation, effect_id: str, recorded: tuple[str, ...] | None) -> None:
        """Plans do not wait for people: calls under which somebody is asked have their result."""
        found = []
        while seat.call:
            number, _, kind, index = self._place(seat.call)
            caller = self._seats[number]
            if caller.planned and kind == "c" and seat.call not in self._detached:
                found.append(seat.call)
                self._detached.add(seat.call)
                caller.results[index - 1] += 1
            seat = caller
        if recorded is not None and tuple(found) != recorded:
            self._broken("results", f"{effect_id} detaches {recorded}, not {tuple(found)}")

    def _born_by(self, effect_id: str, detail: CallEffect, seat: AuditedActivation) -> None:
        call = seat.calls[self._place(effect_id)[3] - 1] if INSIDE not in effect_id else None
        child = self._child(effect_id, detail, seat, call)
        if not detail.reactivates:
            for books in self._chain(child):
                books.activations += 1
                self._within(books)

    def _call_started(self, event: EffectStarted, seat: AuditedActivation, index: int) -> None:
        if index > len(seat.calls):
            self._broken("parents", f"{event.id} is not among the {len(seat.calls)} calls of its turn")
        detail, call = event.detail, seat.calls[index - 1]
        for books in self._chain(seat):
            books.calls += 1
            self._within(books, type(detail))
        if isinstance(detail, ToolEffect | QuestionEffect):
            arguments = detail.arguments or call.arguments
            if wrong := self._permissions.exposed(event.id, detail, seat):
                self._broken("labels", wrong)
            self.seq, which, wrong = self._permissions.started(event.id, detail, seat, arguments, self.seq)
            if wrong:
                self._broken(which, wrong)
        elif type(detail) is CallEffect:
            if detail.background:
                seat.results[index - 1] += 1
            if detail.queued:
                self._queued[event.id] = call
            else:
                self._born_by(event.id, detail, seat)

    def _child(
        self, effect_id: str, detail: CallEffect, seat: AuditedActivation, call: ToolCall | None
    ) -> AuditedActivation:
        """The activation that a call starts, or goes on with, on books of its own where it has limits."""
        caller = self._place(effect_id)[0]
        if detail.reactivates:
            number, child = self._resting.pop((caller, detail.agent), (0, AuditedActivation("")))
            if number != detail.reactivates:
                self._broken(
                    "parents", f"{effect_id} reactivates {detail.reactivates}, which is not dormant for it"
                )
        else:
            self._born += 1
            number, child = self._born, AuditedActivation(detail.agent)
        scope = seat.scope
        for _ in range(detail.outside):
            scope = self._books[scope].parent
        if not seat.scope:
            self._accounts += 1
            scope = self._accounts
            self._books[scope] = AuditLedger((self._options or Options()).limits, self._shared)
        if detail.limits is not None:
            self._accounts += 1
            self._books[self._accounts] = AuditLedger(detail.limits, scope)
            scope = self._accounts
        child.call, child.scope = effect_id, scope
        asked = read_call(detail.arguments or (call.arguments if call is not None else ""))
        told = asked.message or asked.data is not None or asked.calls
        if told or not (asked.forward or asked.inbox or child.inbox):
            opening = Message(
                "forward", seat.agent, detail.agent, "", effect_id, id=effect_id + ">", calls=asked.calls,
                labels=tuple(seat.labels),
            )  # fmt: skip
            child.deliver(opening)
        for each in asked.inbox:
            child.deliver(replace(each, labels=(*each.labels, *seat.labels)))
        for position in asked.forward:
            child.deliver(seat.taken[position])
        self._seats[number] = child
        self._children[effect_id] = number
        if detail.stays_dormant:
            self._keeping[effect_id] = caller, detail.agent
        return child

    def _permission_decided(self, event: PermissionDecided) -> None:
        number, _, kind, index = self._place(event.id)
        is_call = kind == "c" and index <= len(self._seat(number).calls)
        if wrong := self._permissions.decided(event, is_call):
            self._broken("permission", wrong)
        if event.rule and all(each.id != event.rule for each in self._rules):
            self._broken("permission", f"{event.id} is decided by {event.rule}, which is not in force")

    def _effect_finished(self, event: EffectFinished) -> None:
        number, turn, kind, index = self._place(event.id)
        seat = self._seat(number)
        started = self._open.pop(event.id, None)
        if started is None:
            self._ended_alone(event, seat, turn, kind, index)
            return
        seat.open.discard(event.id)
        detail = started.detail
        if wrong := seat.misfit(detail, event, self._at, self._open):
            self._broken("answers", wrong)
        if type(detail) is InstructionsEffect:
            seat.instructed = event.outcome == "completed"
        if type(detail) is ModelEffect:
            for books in self._chain(seat):
                books.settle(detail, event)
                self._within(books)
            if event.reply is not None and detail.purpose != "compact":
                seat.plan(event.reply.calls if detail.purpose != "final" else ())
            return
        if wrong := seat.outlived(detail, event.id):
            self._broken("action", wrong)
        if number:
            seat.shown(detail, event)
        if type(detail) is ActionEffect and event.outcome != "completed":
            seat.inbox[:0] = seat.taken
        if type(detail) is CallEffect and self._queued.pop(event.id, None) is None:
            self._returned(event)
        allowed = event.outcome == "completed" and event.content in ("yes", "always")
        if type(detail) is LimitEffect and allowed and not detail.joins:
            self._chain(seat)[detail.scope].raised()
        background = type(detail) is CallEffect and detail.background
        if event.id in self._detached:
            self._detached.discard(event.id)
        elif kind == "c" and not event.id.endswith("?") and not background:
            seat.results[index - 1] += 1

    def _ended_alone(
        self, event: EffectFinished, seat: AuditedActivation, turn: int, kind: str, index: int
    ) -> None:
        if event.id in self._known:
            self._broken("ends", f"{event.id} ended twice")
        if kind == INSIDE and event.id.partition(INSIDE)[0] in seat.open and not ran(event.outcome):
            self._known.add(event.id)
            return
        if kind != "c" or event.id.endswith("?") or turn != seat.turn or index > len(seat.calls):
            self._broken("ends", f"{event.id} ended but never started")
        name = seat.calls[index - 1].name
        if ran(event.outcome, name):
            self._broken("ends", f"{event.id} ({name}) is {event.outcome} but never started")
        self._known.add(event.id)
        seat.results[index - 1] += 1

    def _returned(self, event: EffectFinished) -> None:
        child = self._children.pop(event.id)
        seat = self._seats.pop(child)
        if seat.open:
            self._broken("parents", f"{event.id} ended before {', '.join(sorted(seat.open))}")
        if caller := self._place(event.id)[0]:
            self._seats[caller].labels |= seat.labels
        rests = self._keeping.pop(event.id, None)
        begun = event.outcome != "skipped"  # by a plan, which only left it messages
        if seat.inbox and (rests is None or (begun and not (seat.acts or seat.planned))):
            self._broken("inbox", f"{event.id} ended with {len(seat.inbox)} unread messages")
        if rests is not None:
            seat.busy, seat.scope, seat.call, seat.instructed = False, 0, "", False
            seat.plan(())
            self._resting[rests] = child, seat

    def _place(self, effect_id: str) -> tuple[int, int, str, int]:
        """Activation, turn, kind letter and number of an effect id."""
        found = place(effect_id)
        if found is None:
            self._broken("turns", f"{effect_id!r} is no place in a run")
        return found

    def _seat(self, number: int) -> AuditedActivation:
        seat = self._seats.get(number)
        if seat is None:
            self._broken("parents", f"activation {number} is not alive")
        return seat

    def _chain(self, seat: AuditedActivation) -> list[AuditLedger]:
        found, number = [], seat.scope
        while number:
            books = self._books[number]
            found.append(books)
            number = books.parent
        return found

    def _within(self, books: AuditLedger, started: type | None = None) -> None:
        if excess := books.excess(started):
            self._broken("limits", excess)

    def _broken(self, invariant: str, text: str) -> NoReturn:
        raise InvariantBroken(self.run_id, self.seq, invariant, text)


_CHECKS: dict[type, Callable[[Audit, Any], object]] = {
    RunStarted: Audit._run_started,
    RunResumed: Audit._run_resumed,
    MessagePosted: Audit._message_posted,
    TurnStarted: Audit._turn_started,
    EffectStarted: Audit._effect_started,
    EffectFinished: Audit._effect_finished,
    FilesChanged: lambda audit, event: check_changes(audit._open, event, audit._broken),
    PermissionDecided: Audit._permission_decided,
    StateChanged: lambda audit, event: audit._seat(event.activation),
    TurnFinished: Audit._turn_finished,
    TranscriptCompacted: Audit._transcript_compacted,
    CancelRequested: lambda *_: None,
    DrainStarted: Audit._drain_started,
    ToolsetOffered: lambda audit, event: audit._offers.offer(event),
    RunClosed: Audit._run_closed,
}


async def check_run(journal: Journal, run_id: str, *, reading: Collection[str] | None = None) -> None:
    """Check one stored run. Raises InvariantBroken, and what reading raises (JournalCorrupt, UnknownName).

    reading: names of the tools that only read; None derives what acts, see `Audit`.
    """
    origin = next((entry.origin for entry in await journal.runs() if entry.run_id == run_id), "")
    await _check(journal, run_id, origin, reading)


async def _check(journal: Journal, run_id: str, origin: str, reading: Collection[str] | None) -> None:
    acts = None if reading is None else lambda agent, tool: tool not in reading
    audit = Audit(run_id, acts, digest=genesis(run_id, origin))
    for row in await journal.read(run_id):
        audit.row(row, await events_of(journal, run_id, row))


async def check_journal(journal: Journal, *, reading: Collection[str] | None = None) -> int:
    """Check every run of a store; how many there are."""
    for entry in (entries := await journal.runs()):
        await _check(journal, entry.run_id, entry.origin, reading)
    return len(entries)
