"""What is true of every journal at every prefix, as a fold.

    await check_run(journal, run_id)                 # raises InvariantBroken: run, seq, which, why
    await check_journal(journal)                     # every run of the store

The books kept here are the audit's own: nothing is asked of `antiphon.state`, so that a fault in
the fold cannot excuse itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct, field

from antiphon.event import (
    CancelRequested,
    EffectFinished,
    EffectStarted,
    Event,
    HistoryCompacted,
    MessagePosted,
    Options,
    PermissionDecided,
    RunClosed,
    RunResumed,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from antiphon.history import events_of
from antiphon.journal.port import Journal, Row, chain, genesis
from antiphon.limits import NANO, Limits
from antiphon.message import Message, ToolCall

Acts = Callable[[str, str], bool]
"""Whether the tool of this agent (agent, tool) acts on the world."""

KERNEL_CALLS = frozenset({"finish", "get_result", "send_message"})
"""Calls that may complete without having started: the kernel does them itself."""

INVARIANTS = {
    "gapless": "rows are numbered without a gap, count their events, and their epochs never fall",
    "chain": "a row's digest covers it and everything before it",
    "started": "RunStarted comes first, once",
    "closed": "RunClosed comes last, once, and nothing is in flight then",
    "ends": "an effect starts once and ends once; what ends without a start is a call that never ran",
    "parents": "what happens, happens to a live activation; a call ends after everything under it",
    "turns": "turns of an activation follow one another, and ids name the turn and attempt they are in",
    "results": "when a turn ends, every call of it has exactly one result",
    "inbox": "a delivered message is taken or becomes a dead letter, before its activation ends",
    "mail": "mail is taken in once, in order",
    "view": "only a living activation's view of its conversation is shortened",
    "permission": "no acting tool starts unless allowed, with the arguments that were allowed",
    "limits": "tokens and money spent and held, calls and activations stay within every scope's limits",
}


class InvariantBroken(AssertionError):
    """A journal tells of something that must not be; `invariant` is a key of INVARIANTS."""

    def __init__(self, run_id: str, seq: int, invariant: str, text: str) -> None:
        super().__init__(f"Run {run_id}, record {seq}, {invariant}: {text} ({INVARIANTS[invariant]})")
        self.run_id, self.seq, self.invariant = run_id, seq, invariant


class _Books(Struct):
    limits: Limits
    parent: int = 0
    spent: int = 0
    held: int = 0
    paid: int = 0
    reserved: int = 0
    calls: int = 0
    activations: int = 0


class _Seat(Struct):
    """An activation as the audit knows it. results: how many each call of the turn has."""

    agent: str
    call: str = ""
    scope: int = 0
    turn: int = 0
    busy: bool = False
    attempt: int = 0
    inbox: list[Message] = field(default_factory=list)
    calls: tuple[ToolCall, ...] = ()
    results: list[int] = field(default_factory=list)
    open: set[str] = field(default_factory=set)


class Audit:
    """Checks one run as its rows come. Raises InvariantBroken at the first event that must not be.

    acts: which tools act on the world. None derives it from the journal: a tool that was once
    started with an instant permission acts, so every other start of it needs one too.
    """

    def __init__(self, run_id: str, acts: Acts | None = None, *, seq: int = 0, digest: bytes = b"") -> None:
        self.run_id, self.seq = run_id, seq
        self._acts = acts
        self._row, self._digest, self._epoch = seq, digest or genesis(run_id), 0
        self._options: Options | None = None
        self._over = False
        self._seats: dict[int, _Seat] = {}
        self._children: dict[str, int] = {}
        self._resting: dict[tuple[int, str], tuple[int, _Seat]] = {}
        self._keeping: dict[str, tuple[int, str]] = {}
        self._books: dict[int, _Books] = {}
        self._born = self._accounts = 0
        self._mail = 0
        self._open: dict[str, EffectStarted] = {}
        self._known: set[str] = set()
        self._ruled: dict[str, PermissionDecided] = {}
        self._acting: set[tuple[str, str]] = set()
        self._unruled: dict[tuple[str, str], int] = {}

    def row(self, row: Row, events: Sequence[Event]) -> None:
        """Take in the next row."""
        self.seq = row.seq
        if row.seq - row.count != self._row or row.count != len(events) or row.epoch < self._epoch:
            self._broken(
                "gapless", f"{row.count} events up to {row.seq} of epoch {row.epoch} after {self._row}"
            )
        digest = chain(self._digest, row.seq, row.count, row.epoch, row.at, row.body, row.refs, row.blobs)
        if digest != row.digest:
            self._broken("chain", "the digest does not match")
        self._row, self._digest, self._epoch = row.seq, row.digest, row.epoch
        for place, event in enumerate(events):
            self.seq = row.seq - row.count + 1 + place
            self.event(event)

    def event(self, event: Event) -> None:
        """Take in the next event."""
        if self._over:
            self._broken("closed", f"{type(event).__name__} after the run was closed")
        if self._options is None and type(event) is not RunStarted:
            self._broken("started", f"{type(event).__name__} before the run was started")
        mail = getattr(event, "mail", 0)
        if mail:
            if mail != self._mail + 1:
                self._broken("mail", f"mail {mail} after mail {self._mail}")
            self._mail = mail
        _CHECKS[type(event)](self, event)

    # -- the run -----------------------------------------------------------------------------

    def _run_started(self, event: RunStarted) -> None:
        if self._options is not None:
            self._broken("started", "the run started again")
        self._options = event.options
        self._seats[0] = _Seat("user")

    def _run_resumed(self, event: RunResumed) -> None:
        """Nothing to check: whatever was in flight stays in flight."""

    def _cancel_requested(self, event: CancelRequested) -> None:
        """Nothing to check: a target that is gone is simply too late."""

    def _run_closed(self, event: RunClosed) -> None:
        if self._open:
            self._broken("closed", f"{', '.join(self._open)} still in flight")
        self._over = True

    # -- messages and turns ------------------------------------------------------------------

    def _history_compacted(self, event: HistoryCompacted) -> None:
        if not self._seat(event.activation).busy or event.trimmed < 0:
            self._broken("view", f"activation {event.activation} is in no turn")

    def _message_posted(self, event: MessagePosted) -> None:
        if event.dead:
            seat = self._seats.get(event.to)
            if seat is not None:
                seat.inbox = [each for each in seat.inbox if each.id != event.message.id]
        else:
            self._seat(event.to).inbox.append(event.message)

    def _turn_started(self, event: TurnStarted) -> None:
        seat = self._seat(event.activation)
        if seat.busy:
            self._broken(
                "turns", f"turn {seat.turn + 1} of activation {event.activation} before {seat.turn} ended"
            )
        if event.taken > len(seat.inbox):
            self._broken("inbox", f"{event.taken} messages taken of {len(seat.inbox)}")
        taken = seat.inbox[: event.taken]
        del seat.inbox[: event.taken]
        seat.turn, seat.attempt, seat.busy = seat.turn + 1, 0, True
        calls = event.calls
        self._calls(seat, tuple(each for one in taken for each in one.calls) if calls is None else calls)

    def _calls(self, seat: _Seat, calls: tuple[ToolCall, ...]) -> None:
        seat.calls, seat.results = calls, [0] * len(calls)

    def _turn_finished(self, event: TurnFinished) -> None:
        seat = self._seat(event.activation)
        if not seat.busy:
            self._broken("turns", f"activation {event.activation} is in no turn that could end")
        for call, count in zip(seat.calls, seat.results, strict=True):
            if count != 1:
                self._broken("results", f"{call.name} ({call.id}) has {count} results")
        seat.busy = False
        self._calls(seat, ())

    # -- effects -----------------------------------------------------------------------------

    def _effect_started(self, event: EffectStarted) -> None:
        number, turn, kind, index = self._place(event.id)
        seat = self._seat(number)
        if event.id in self._known:
            self._broken("ends", f"{event.id} started again")
        if not seat.busy or turn != seat.turn:
            self._broken(
                "turns", f"{event.id} started in turn {seat.turn}{'' if seat.busy else ', which is over'}"
            )
        self._known.add(event.id)
        self._open[event.id] = event
        seat.open.add(event.id)
        if kind == "m":
            if index != seat.attempt + 1:
                self._broken("turns", f"{event.id} follows attempt {seat.attempt}")
            seat.attempt = index
            for books in self._chain(seat):
                books.held += event.hold
                books.reserved += event.cost
                self._within(books)
        elif kind == "c" and not event.id.endswith("?"):
            self._call_started(event, seat, index)

    def _call_started(self, event: EffectStarted, seat: _Seat, index: int) -> None:
        if index > len(seat.calls):
            self._broken("parents", f"{event.id} is not among the {len(seat.calls)} calls of its turn")
        call = seat.calls[index - 1]
        for books in self._chain(seat):
            books.calls += 1
            self._within(books)
        if event.background:
            seat.results[index - 1] += 1
        if event.kind == "tool":
            self._permitted(event, seat.agent, event.arguments or call.arguments)
        elif event.kind == "call":
            child = self._child(event, seat)
            for books in self._chain(child):
                books.activations += 1
                self._within(books)

    def _child(self, event: EffectStarted, seat: _Seat) -> _Seat:
        """The activation that a call starts, or goes on with, on books of its own where it has limits."""
        caller = self._place(event.id)[0]
        if event.continues:
            number, child = self._resting.pop((caller, event.name), (0, _Seat("")))
            if number != event.continues:
                self._broken("parents", f"{event.id} continues {event.continues}, which does not rest for it")
        else:
            self._born += 1
            number, child = self._born, _Seat(event.name)
        scope = seat.scope
        if not seat.scope:
            # The user's request stands on the run's limits, and on the agent's own before them.
            self._accounts += 1
            scope = self._accounts
            self._books[scope] = _Books((self._options or Options()).limits)
        if event.limits is not None:
            self._accounts += 1
            self._books[self._accounts] = _Books(event.limits, scope)
            scope = self._accounts
        child.call, child.scope = event.id, scope
        child.inbox.append(Message("forward", seat.agent, event.name, "", event.id, id=event.id + ">"))
        self._seats[number] = child
        self._children[event.id] = number
        if event.keep:
            self._keeping[event.id] = caller, event.name
        return child

    def _permitted(self, event: EffectStarted, agent: str, arguments: str) -> None:
        ruled = self._ruled.get(event.id)
        if ruled is not None:
            if not ruled.allowed:
                self._broken("permission", f"{event.id} started although {ruled.by or 'somebody'} denied it")
            if ruled.arguments != arguments:
                self._broken("permission", f"{event.id} runs {arguments}, allowed was {ruled.arguments}")
            return
        tool = agent, event.name
        if self._acts is not None:
            if not event.allowed and self._acts(*tool):
                self._broken("permission", f"{event.name} acts; {event.id} started without a ruling")
        elif event.allowed:
            self._acting.add(tool)
            if tool in self._unruled:
                self.seq = self._unruled[tool]
                self._broken("permission", f"{event.name} acts and started without a ruling")
        elif tool in self._acting:
            self._broken("permission", f"{event.name} acts; {event.id} started without a ruling")
        else:
            self._unruled.setdefault(tool, self.seq)

    def _permission_decided(self, event: PermissionDecided) -> None:
        number, _, kind, index = self._place(event.id)
        seat = self._seat(number)
        if kind != "c" or index > len(seat.calls):
            self._broken("permission", f"a ruling on {event.id}, which is no call of the turn")
        if event.id in self._ruled:
            self._broken("permission", f"{event.id} was ruled on twice")
        self._ruled[event.id] = event

    def _effect_finished(self, event: EffectFinished) -> None:
        number, turn, kind, index = self._place(event.id)
        seat = self._seat(number)
        started = self._open.pop(event.id, None)
        if started is None:
            self._ended_alone(event, seat, turn, kind, index)
            return
        seat.open.discard(event.id)
        if started.kind == "model":
            used = _used(started, event)
            for books in self._chain(seat):
                books.held -= started.hold
                books.spent += min(used, started.hold)
                books.reserved -= started.cost
                books.paid += _paid(started, event, used)
                self._within(books)
            if event.reply is not None and started.purpose != "compact":
                self._calls(seat, event.reply.calls if started.purpose != "final" else ())
            return
        if started.kind == "call":
            self._returned(event)
        if kind == "c" and not event.id.endswith("?") and not started.background:
            seat.results[index - 1] += 1

    def _ended_alone(self, event: EffectFinished, seat: _Seat, turn: int, kind: str, index: int) -> None:
        if event.id in self._known:
            self._broken("ends", f"{event.id} ended twice")
        if kind != "c" or event.id.endswith("?") or turn != seat.turn or index > len(seat.calls):
            self._broken("ends", f"{event.id} ended but never started")
        name = seat.calls[index - 1].name
        if event.outcome in ("completed", "failed", "unknown", "interrupted") and name not in KERNEL_CALLS:
            self._broken("ends", f"{event.id} ({name}) is {event.outcome} but never started")
        self._known.add(event.id)
        seat.results[index - 1] += 1

    def _returned(self, event: EffectFinished) -> None:
        child = self._children.pop(event.id)
        seat = self._seats.pop(child)
        if seat.open:
            self._broken("parents", f"{event.id} ended before {', '.join(sorted(seat.open))}")
        if seat.inbox:
            self._broken("inbox", f"{event.id} ended with {len(seat.inbox)} unread messages")
        rests = self._keeping.pop(event.id, None)
        if rests is not None:
            seat.busy, seat.scope = False, 0
            self._calls(seat, ())
            self._resting[rests] = child, seat

    # -- words -------------------------------------------------------------------------------

    def _place(self, effect_id: str) -> tuple[int, int, str, int]:
        """Activation, turn, kind letter and number of an effect id."""
        try:
            activation, rest = effect_id.split("/")
            turn, where = rest.split(".")
            return int(activation), int(turn), where[0], int(where[1:].removesuffix("?"))
        except (ValueError, IndexError):
            self._broken("turns", f"{effect_id!r} is no place in a run")
            raise

    def _seat(self, number: int) -> _Seat:
        seat = self._seats.get(number)
        if seat is None:
            self._broken("parents", f"activation {number} is not alive")
            raise LookupError(number)
        return seat

    def _chain(self, seat: _Seat) -> list[_Books]:
        found, number = [], seat.scope
        while number:
            books = self._books[number]
            found.append(books)
            number = books.parent
        return found

    def _within(self, books: _Books) -> None:
        limits = books.limits
        usd = None if limits.usd is None else int(limits.usd * NANO)
        for what, used, limit in (
            ("nano-USD", books.paid + books.reserved, usd),
            ("tokens", books.spent + books.held, limits.tokens),
            ("calls", books.calls, limits.calls),
            ("activations", books.activations, limits.activations),
        ):
            if limit is not None and used > limit:
                self._broken("limits", f"{used:,} {what} spent and held, {limit:,} allowed")
        if books.held < 0 or books.reserved < 0:
            self._broken("limits", f"{books.held:,} tokens and {books.reserved:,} nano-USD held")

    def _broken(self, invariant: str, text: str) -> None:
        raise InvariantBroken(self.run_id, self.seq, invariant, text)


def _paid(started: EffectStarted, event: EffectFinished, used: int) -> int:
    """Nano-USD of a model call, without what was billed beyond the hold."""
    return min(event.cost, started.cost) if event.cost is not None else started.cost if used else 0


def _used(started: EffectStarted, event: EffectFinished) -> int:
    """Tokens of a model call: as billed; all that was held where a bill may come that nobody saw."""
    usage = event.reply.usage if event.reply is not None else event.usage
    if usage is not None:
        return usage.input + usage.output
    unseen = event.outcome in ("interrupted", "cancelled") or event.why.startswith(("cut", "timeout"))
    return started.hold if unseen else 0


_CHECKS: dict[type, Callable[[Audit, Any], None]] = {
    RunStarted: Audit._run_started,
    RunResumed: Audit._run_resumed,
    MessagePosted: Audit._message_posted,
    TurnStarted: Audit._turn_started,
    EffectStarted: Audit._effect_started,
    EffectFinished: Audit._effect_finished,
    PermissionDecided: Audit._permission_decided,
    TurnFinished: Audit._turn_finished,
    HistoryCompacted: Audit._history_compacted,
    CancelRequested: Audit._cancel_requested,
    RunClosed: Audit._run_closed,
}


async def check_run(journal: Journal, run_id: str, *, reading: Collection[str] | None = None) -> None:
    """Check one stored run. Raises InvariantBroken, and what reading raises (Corrupt, UnknownName).

    reading: names of the tools that only read; None derives what acts, see `Audit`.
    """
    audit = Audit(run_id, None if reading is None else lambda agent, tool: tool not in reading)
    for row in await journal.read(run_id):
        audit.row(row, await events_of(journal, run_id, row))


async def check_journal(journal: Journal, *, reading: Collection[str] | None = None) -> int:
    """Check every run of a store; how many there are."""
    entries = await journal.runs()
    for entry in entries:
        await check_run(journal, entry.run_id, reading=reading)
    return len(entries)
