"""What is true of every journal at every prefix, as a fold.

    await check_run(journal, run_id)                 # raises InvariantBroken: run, seq, which, why
    await check_journal(journal)                     # every run of the store

The books kept here are the audit's own: nothing is asked of `antiphon.kernel.facts.state`, so that a fault in
the fold cannot excuse itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct, field

from antiphon.journal.port import Journal, Row, follows, genesis
from antiphon.kernel.facts.agent_call import read_call
from antiphon.kernel.facts.events import (
    ASKING,
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
    StateChanged,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.run.rows import events_of
from antiphon.testing.books import Books
from antiphon.values.message import Message, ToolCall

Acts = Callable[[str, str], bool]
"""Whether the tool of this agent (agent, tool) acts on the world."""

KERNEL_CALLS = frozenset({"finish", "get_result", "send_message"})
"""Calls that may complete without having started: the kernel does them itself."""

DONE_BY_RUNNING = frozenset({"completed", "failed", "unknown", "interrupted"})
"""Outcomes that only what has started can have."""

INVARIANTS = {
    "gapless": "rows are numbered without a gap, count their events, and their epochs never fall",
    "chain": "a row's digest covers it and everything before it",
    "started": "RunStarted comes first, once",
    "closed": "RunClosed comes last, once, and nothing is in flight then",
    "ends": "an effect starts once and ends once; what ends without a start is a call that never ran",
    "parents": "what happens, happens to a live activation; a call ends after everything under it",
    "turns": "turns of an activation follow one another, and ids name the turn and attempt they are in",
    "results": "when a turn ends, every call of it has exactly one result",
    "inbox": "a delivered message is taken, or waits while its receiver rests, or becomes a dead letter",
    "action": "an action and what it began stand in its own turn; what it published came before its end",
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


class _Seat(Struct):
    """An activation as the audit knows it. results: how many each call of the turn has. action: its id."""

    agent: str
    call: str = ""
    scope: int = 0
    turn: int = 0
    busy: bool = False
    attempt: int = 0
    inbox: list[Message] = field(default_factory=list)
    taken: list[Message] = field(default_factory=list)
    acts: bool = False
    planned: bool = False
    action: str = ""
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
        self._detached: set[str] = set()
        self._books: dict[int, Books] = {}
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
            what = f"{row.count} events up to {row.seq} of epoch {row.epoch} after {self._row}"
            self._broken("gapless", what)
        if not follows(row, self._digest):
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

    def _state_changed(self, event: StateChanged) -> None:
        self._seat(event.activation)

    def _message_posted(self, event: MessagePosted) -> None:
        if event.dead:
            seat = self._seats.get(event.to)
            if seat is not None:
                seat.inbox = [each for each in seat.inbox if each.id != event.message.id]
            return
        resting = next((each for number, each in self._resting.values() if number == event.to), None)
        self._deliver(resting or self._seat(event.to), event.message)
        if event.by:
            publisher = self._seat(event.by)
            handed_on = any(each.id == event.message.id for each in publisher.taken)
            if publisher.action not in publisher.open and not handed_on:
                self._broken("action", f"activation {event.by} publishes outside of an action")

    def _deliver(self, seat: _Seat, message: Message) -> None:
        seat.inbox.append(message)
        seat.inbox.sort(key=lambda each: each.priority)

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
        seat.taken, seat.acts, seat.planned, seat.action = taken, event.act, event.calls is not None, ""
        calls = () if event.act else event.calls
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
                books.hold(event)
                self._within(books)
        elif kind == "x":
            self._action_started(event, seat, index)
        elif event.kind == "wait" and event.purpose in ASKING:
            self._detach(seat)
        elif kind == "c" and not event.id.endswith("?"):
            self._call_started(event, seat, index)

    def _action_started(self, event: EffectStarted, seat: _Seat, inner: int) -> None:
        """An action, or (`inner`) something that it began."""
        if not inner:
            if not seat.acts or seat.action:
                self._broken("action", f"{event.id} is no action of this turn")
            seat.action = event.id
            return
        if seat.action not in seat.open:
            self._broken("action", f"{event.id} began outside of an action")
        if event.kind == "call":
            for books in self._chain(seat):
                books.calls += 1
                self._within(books)
            self._born_by(event, seat)
        elif event.kind == "wait":
            self._detach(seat)

    def _detach(self, seat: _Seat) -> None:
        """Plans do not wait for people: calls under which somebody is asked have their result."""
        while seat.call:
            number, _, kind, index = self._place(seat.call)
            caller = self._seats[number]
            if caller.planned and kind == "c" and seat.call not in self._detached:
                self._detached.add(seat.call)
                caller.results[index - 1] += 1
            seat = caller

    def _born_by(self, event: EffectStarted, seat: _Seat) -> None:
        child = self._child(event, seat)
        if not event.continues:
            for books in self._chain(child):
                books.activations += 1
                self._within(books)

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
            self._born_by(event, seat)

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
        for _ in range(event.scope if event.kind == "call" else 0):
            scope = self._books[scope].parent
        if not seat.scope:
            # The user's request stands on the run's limits, and on the agent's own before them.
            self._accounts += 1
            scope = self._accounts
            self._books[scope] = Books((self._options or Options()).limits)
        if event.limits is not None:
            self._accounts += 1
            self._books[self._accounts] = Books(event.limits, scope)
            scope = self._accounts
        child.call, child.scope = event.id, scope
        call = seat.calls[self._place(event.id)[3] - 1] if ".x:" not in event.id else None
        asked = read_call(event.arguments or (call.arguments if call is not None else ""))
        if (
            asked.message
            or asked.data is not None
            or asked.calls
            or not (asked.take or asked.mail or child.inbox)
        ):
            opening = Message(
                "forward", seat.agent, event.name, "", event.id, id=event.id + ">", calls=asked.calls
            )
            self._deliver(child, opening)
        for each in (*asked.mail, *(seat.taken[position] for position in asked.take)):
            self._deliver(child, each)
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
            for books in self._chain(seat):
                books.settle(started, event)
                self._within(books)
            if event.reply is not None and started.purpose != "compact":
                self._calls(seat, event.reply.calls if started.purpose != "final" else ())
            return
        if started.kind == "action":
            # The timer of a deadline is older than the action, and may outlast it.
            within = sorted(each for each in seat.open if each.startswith(event.id + ":"))
            if within:
                self._broken("action", f"{event.id} ended before {', '.join(within)}")
            if event.outcome != "completed":
                seat.inbox[:0] = seat.taken
        if started.kind == "call":
            self._returned(event)
        if kind == "l" and event.outcome == "completed" and event.content in ("yes", "always"):
            self._chain(seat)[started.scope].raised()
        if event.id in self._detached:
            self._detached.discard(event.id)
        elif kind == "c" and not event.id.endswith("?") and not started.background:
            seat.results[index - 1] += 1

    def _ended_alone(self, event: EffectFinished, seat: _Seat, turn: int, kind: str, index: int) -> None:
        if event.id in self._known:
            self._broken("ends", f"{event.id} ended twice")
        if kind == "x" and index and seat.action in seat.open and event.outcome not in DONE_BY_RUNNING:
            self._known.add(event.id)
            return
        if kind != "c" or event.id.endswith("?") or turn != seat.turn or index > len(seat.calls):
            self._broken("ends", f"{event.id} ended but never started")
        name = seat.calls[index - 1].name
        if event.outcome in DONE_BY_RUNNING and name not in KERNEL_CALLS:
            self._broken("ends", f"{event.id} ({name}) is {event.outcome} but never started")
        self._known.add(event.id)
        seat.results[index - 1] += 1

    def _returned(self, event: EffectFinished) -> None:
        child = self._children.pop(event.id)
        seat = self._seats.pop(child)
        if seat.open:
            self._broken("parents", f"{event.id} ended before {', '.join(sorted(seat.open))}")
        rests = self._keeping.pop(event.id, None)
        if seat.inbox and (rests is None or not (seat.acts or seat.planned)):
            self._broken("inbox", f"{event.id} ended with {len(seat.inbox)} unread messages")
        if rests is not None:
            seat.busy, seat.scope, seat.call = False, 0, ""
            self._calls(seat, ())
            self._resting[rests] = child, seat

    # -- words -------------------------------------------------------------------------------

    def _place(self, effect_id: str) -> tuple[int, int, str, int]:
        """Activation, turn, kind letter and number of an effect id."""
        try:
            activation, rest = effect_id.split("/")
            turn, _, where = rest.partition(".")
            if where[0] == "x":
                return int(activation), int(turn), "x", len(where) - 1
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

    def _chain(self, seat: _Seat) -> list[Books]:
        found, number = [], seat.scope
        while number:
            books = self._books[number]
            found.append(books)
            number = books.parent
        return found

    def _within(self, books: Books) -> None:
        excess = books.excess()
        if excess:
            self._broken("limits", excess)

    def _broken(self, invariant: str, text: str) -> None:
        raise InvariantBroken(self.run_id, self.seq, invariant, text)


_CHECKS: dict[type, Callable[[Audit, Any], None]] = {
    RunStarted: Audit._run_started,
    RunResumed: Audit._run_resumed,
    MessagePosted: Audit._message_posted,
    TurnStarted: Audit._turn_started,
    EffectStarted: Audit._effect_started,
    EffectFinished: Audit._effect_finished,
    PermissionDecided: Audit._permission_decided,
    StateChanged: Audit._state_changed,
    TurnFinished: Audit._turn_finished,
    HistoryCompacted: Audit._history_compacted,
    CancelRequested: Audit._cancel_requested,
    RunClosed: Audit._run_closed,
}


async def check_run(journal: Journal, run_id: str, *, reading: Collection[str] | None = None) -> None:
    """Check one stored run. Raises InvariantBroken, and what reading raises (Corrupt, UnknownName).

    reading: names of the tools that only read; None derives what acts, see `Audit`.
    """
    origin = next((entry.origin for entry in await journal.runs() if entry.run_id == run_id), "")
    acts = None if reading is None else lambda agent, tool: tool not in reading
    audit = Audit(run_id, acts, digest=genesis(run_id, origin))
    for row in await journal.read(run_id):
        audit.row(row, await events_of(journal, run_id, row))


async def check_journal(journal: Journal, *, reading: Collection[str] | None = None) -> int:
    """Check every run of a store; how many there are."""
    entries = await journal.runs()
    for entry in entries:
        await check_run(journal, entry.run_id, reading=reading)
    return len(entries)
