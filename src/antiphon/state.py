"""State: the fold of a run's events. `apply` alone changes it, and only here.

Everything is a fact that an event stated, but for two work lists: `ready` (activations that the
last events touched) and `parked` (those whose hold must wait). Losing them costs one scan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from antiphon.activation import Activation, Ended, Logged, Open
from antiphon.calling import forward, index_of, returned
from antiphon.errors import Corrupt
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
    charged,
    place,
)
from antiphon.limits import answered, asked, books, pay, settle
from antiphon.memory import COMPACT, HISTORY
from antiphon.message import USER, Message, ToolCall, ToolResult
from antiphon.model import ChatMessage, Usage
from antiphon.outputs import DONE
from antiphon.view import Removed, abandon, awake, conclude, read_history, result, rewrite, show, spoken

KEPT = 1_000
"""Ends of background calls that an activation remembers; the oldest are forgotten first."""
WOKEN = 8
"""Parked activations that are asked again whenever there may be room; each that starts wakes more."""
LOGGED = 10_000
"""Messages of the log; when there are more, the older half is forgotten."""


class State(Struct):
    """A run, folded. `at`: the time of the last row, Unix seconds. `mail`: the last mail taken.

    remembered: digests of tools allowed for the rest of the run. cancelling: effects to stop, and why.
    usage: tokens by model. open: every effect in flight. log: messages between agents. resting:
    callees to be continued, by caller and name. outputs: tool results that were cut, by handle. spent:
    nano-USD; unpriced: calls of unknown price. failures: of each model, how many in a row, and when.
    """

    run_id: str = ""
    at: float = 0.0
    mail: int = 0
    options: Options = Options()
    data: Any = None
    activations: dict[int, Activation] = field(default_factory=dict)
    born: int = 0
    open: dict[str, Open] = field(default_factory=dict)
    remembered: tuple[str, ...] = ()
    cancelling: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)
    log: list[Logged] = field(default_factory=list)
    resting: dict[tuple[int, str], int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    stored: int = 0
    spent: int = 0
    unpriced: int = 0
    failures: dict[str, tuple[int, float]] = field(default_factory=dict)
    closed: bool = False
    ready: deque[Activation] = field(default_factory=deque)
    parked: list[Activation] = field(default_factory=list)

    def find(self, effect_id: str) -> Open | None:
        """The open effect of that id, if it is in flight."""
        return self.open.get(effect_id)


def apply(state: State, event: Event) -> None:
    """Fold one event in. Raises Corrupt for one that cannot follow what was folded before."""
    apply_all(state, (event,))


def apply_all(state: State, events: Iterable[Event]) -> None:
    """Fold events in, in order. Raises Corrupt as `apply` does."""
    event: Event | None = None
    table = APPLY
    try:
        for event in events:
            table[type(event)](state, event)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise Corrupt(state.run_id, 0, f"{type(event).__name__} does not follow ({error!r})") from error


def _touch(state: State, activation: Activation) -> None:
    if not activation.queued:
        activation.queued = True
        state.ready.append(activation)


def _wake(state: State) -> None:
    for parked in state.parked[:WOKEN]:
        _touch(state, parked)
    del state.parked[:WOKEN]


def _run_started(state: State, event: RunStarted) -> None:
    state.run_id, state.options, state.data = event.run_id, event.options, event.data
    state.activations[0] = Activation(0, USER)


def _run_resumed(state: State, event: RunResumed) -> None:
    state.options = msgspec.structs.replace(state.options, attended=event.attended)
    for activation in state.activations.values():
        for opened in activation.open.values():
            opened.lost = True
        _touch(state, activation)


def _message_posted(state: State, event: MessagePosted) -> None:
    state.mail = event.mail or state.mail
    activation = state.activations.get(event.to)
    if event.dead:
        if activation is not None and activation.inbox and activation.inbox[0].id == event.message.id:
            activation.inbox.pop(0)
    else:
        receiver = state.activations[event.to]
        receiver.inbox.append(event.message)
        if receiver.id:
            _log(state, receiver.request, event.message)
        _touch(state, receiver)


def _turn_started(state: State, event: TurnStarted) -> None:
    activation = state.activations[event.activation]
    taken = activation.inbox[: event.taken]
    del activation.inbox[: event.taken]
    activation.turn += 1
    activation.attempt, activation.asking_since, activation.more = 0, 0.0, False
    activation.tries = activation.fallback = 0
    calls = event.calls
    if calls is None:
        calls = tuple(call for message in taken for call in message.calls) if taken else ()
    if activation.id:
        for message in taken:
            if message.intent == COMPACT and message.sender == USER:
                activation.forced = "asked"
            elif message.intent == HISTORY and message.sender == USER:
                activation.forced = "done"
                show(activation, read_history(message.content))
            elif message.content or message.attachments or not message.calls:
                activation.transcript.append(
                    ChatMessage("user", message.content, attachments=message.attachments)
                )
        if calls:
            activation.transcript.append(ChatMessage("assistant", "", calls))
    if calls or not activation.id:
        _take_up(activation, calls)
    else:
        activation.phase = "plan"


def _take_up(activation: Activation, calls: tuple[ToolCall, ...]) -> None:
    activation.calls, activation.cursor = calls, 0
    activation.results = [None] * len(calls)
    activation.phase = "calls" if calls else "settled"


def _effect_started(state: State, event: EffectStarted) -> None:
    activation = state.activations[place(event.id)]
    if event.id in state.open:
        raise ValueError(f"{event.id} started twice")
    kind = event.kind
    opened = Open(event, activation.id, since=state.at)
    state.open[event.id] = activation.open[event.id] = opened
    if kind == "model":
        activation.attempt += 1
        if event.purpose != "compact":
            activation.tries = activation.tries + 1 if event.fallback == activation.fallback else 1
            activation.fallback = event.fallback
            activation.asking_since = activation.asking_since or state.at
        activation.phase = "model"
        if event.purpose == "compact" and activation.forced:
            activation.forced = "done"
        activation.head = event.head or activation.head
        for scope in activation.scopes:
            scope.held += event.hold
            scope.reserved += event.cost
        if state.parked:
            _wake(state)
        return
    if event.purpose == "deadline":
        activation.overdue = False
        activation.deadlines += 1
        return
    if event.purpose == "retry":
        activation.phase = "model"
        return
    index = opened.index = index_of(event.id)
    if index >= activation.cursor:
        activation.cursor = index + 1
    if event.purpose != "approval":
        activation.pending.pop(index, None)
        for scope in activation.scopes:
            scope.calls += 1
    if kind == "wait" and event.purpose != "result":
        for scope in activation.scopes:
            asked(scope, state.at)
    if kind == "call":
        _give_birth(state, activation, opened)
    elif event.purpose == "question":
        question = Message("forward", activation.agent, USER, event.text, event.id, id=event.id + ">")
        _log(state, activation.request, question)
    if event.background:
        activation.results[index] = ToolResult(event.text)
        _settle_turn(state, activation)
    else:
        activation.waiting += 1


def _give_birth(state: State, caller: Activation, opened: Open) -> None:
    event, call = opened.effect, caller.calls[opened.index]
    state.born += 1
    child = state.born
    scopes = books(event.limits, caller.scopes, state.options.limits)
    depth = caller.depth + 1 if caller.id else 0
    request = caller.request or event.id
    callee = Activation(child, event.name, event.id, caller.id, request, depth, scopes, event.digest)
    if event.continues:
        state.born -= 1
        child, born = event.continues, callee
        callee = state.activations[child]
        del state.resting[callee.caller, callee.agent]
        awake(callee, born)
    opened.child = child
    message = forward(caller.agent, callee, event.arguments or call.arguments, call.attachments)
    callee.inbox.append(message)
    _log(state, request, message)
    state.activations[child] = callee
    for scope in scopes:
        scope.activations += 1
    _touch(state, callee)


def _log(state: State, request: str, message: Message) -> None:
    state.log.append(Logged(request, message))
    if len(state.log) > LOGGED:
        del state.log[: LOGGED // 2]


def _effect_finished(state: State, event: EffectFinished) -> None:
    state.mail = event.mail or state.mail
    if state.cancelling:
        state.cancelling.pop(event.id, None)
    opened = state.open.pop(event.id, None)
    if opened is None:
        activation = state.activations[place(event.id)]
        if event.id.rpartition(".")[2][0] != "c":
            raise ValueError(f"{event.id} ended but never started")
        if event.outcome == "limit":
            activation.exhausted = event.why
        elif not event.ends:
            for scope in activation.scopes:
                scope.calls += 1
        if not activation.id:
            # A request that never became a call: whoever asked is told how it ended all the same.
            activation.done[event.id] = Ended(event, Usage())
        _book(state, activation, index_of(event.id), event)
        return
    activation = state.activations[opened.activation]
    del activation.open[event.id]
    opened.ended = True
    kind, purpose = opened.effect.kind, opened.effect.purpose
    if kind == "model":
        _model_finished(state, activation, opened.effect, event)
    elif purpose == "retry":
        activation.phase = "plan"
        _touch(state, activation)
    elif purpose == "deadline":
        activation.overdue = event.outcome == "completed"
        _touch(state, activation)
    elif purpose == "approval":
        _people_answered(state, activation)
        activation.waiting -= 1
        activation.pending[opened.index] = event
        _touch(state, activation)
    else:
        usage = _bury(state, activation, opened, event) if opened.child else Usage()
        if purpose == "question":
            _people_answered(state, activation)
            _log_return(state, activation.request, USER, activation.agent, event)
        if opened.effect.background:
            activation.done[event.id] = Ended(event, usage)
            if len(activation.done) > KEPT:
                del activation.done[next(iter(activation.done))]
            _touch(state, activation)
        else:
            activation.waiting -= 1
            shown = DONE if event.ends and event.outcome == "completed" and not event.content else ""
            if shown:
                event = msgspec.structs.replace(event, content=activation.said)
            _book(state, activation, opened.index, event, opened.effect.ends, shown)


def _log_return(state: State, request: str, sender: str, receiver: str, event: EffectFinished) -> None:
    _log(state, request, returned(sender, receiver, event.id, result(event).content))


def _people_answered(state: State, activation: Activation) -> None:
    """A question is closed: the time it took counts for no limit, and deadlines were put off."""
    for scope in activation.scopes:
        answered(scope, state.at)
    caller: Activation | None = activation
    while caller is not None and caller.id:
        if caller.overdue:
            _touch(state, caller)
        caller = state.activations.get(caller.caller)


def _bury(state: State, caller: Activation, opened: Open, event: EffectFinished) -> Usage:
    """Let a callee that has returned rest, or forget it; the tokens it used on books of its own."""
    callee = state.activations[opened.child]
    if state.parked:
        _wake(state)
    if callee.open:
        raise ValueError(f"activation {callee.id} returned with effects in flight")
    _log_return(state, callee.request, callee.agent, caller.agent, event)
    own = len(callee.scopes) - len(caller.scopes)
    usage = callee.scopes[own - 1].usage if own else Usage()
    if opened.effect.keep:
        _store(state, abandon(callee, "cancelled before it was done", state.options.outputs.message))
        other = state.resting.get((caller.id, callee.agent))
        if other is not None:
            _forget(state, state.activations[other])
        state.resting[caller.id, callee.agent] = callee.id
        callee.call, callee.scopes, callee.phase, callee.more = "", (), "rest", False
    else:
        _forget(state, callee)
    return usage


def _forget(state: State, gone: Activation) -> None:
    """Drop an activation, and those that rested for it."""
    lost = [gone.id]
    while lost:
        number = lost.pop()
        del state.activations[number]
        for key in [key for key in state.resting if key[0] == number] if state.resting else ():
            lost.append(state.resting.pop(key))


def _model_finished(
    state: State, activation: Activation, started: EffectStarted, event: EffectFinished
) -> None:
    reply = event.reply
    usage = reply.usage if reply is not None else event.usage
    used = usage.total if usage is not None else charged(started, event)
    cost = event.cost if event.cost is not None else started.cost if used else 0
    for scope in activation.scopes:
        settle(scope, started.hold, used)
        pay(scope, started.cost, cost)
        if used:
            scope.usage = scope.usage + (usage or Usage())
            scope.unpriced += event.cost is None and not started.cost
    if used:
        state.spent += cost
        state.unpriced += event.cost is None and not started.cost
        state.usage[started.name] = state.usage.get(started.name, Usage()) + (usage or Usage())
    _wake(state)
    _touch(state, activation)
    # A request that was wrong says nothing of the model's health.
    if event.outcome == "failed" and not event.why.startswith(("validation", "context", "refused")):
        state.failures[started.name] = state.failures.get(started.name, (0, 0.0))[0] + 1, state.at
    elif reply is not None and state.failures:
        state.failures.pop(started.name, None)
    if event.outcome == "interrupted":
        activation.phase, activation.asking_since = "plan", 0.0
    elif started.purpose == "compact":
        activation.phase, activation.window_used = "plan", 0
        activation.answer = reply.content if reply is not None else ""
    elif started.purpose == "final":
        _take_up(activation, ())
        activation.exhausted = started.text
        activation.said = reply.content if reply is not None else activation.said
    elif reply is not None:
        activation.failure = None
        activation.said = reply.content or activation.said
        activation.window_used, activation.stop = reply.usage.total, reply.stop
        activation.transcript.append(spoken(reply))
        _take_up(activation, reply.calls)
    else:
        activation.failure = event
        activation.phase = "failed"


def _book(
    state: State,
    activation: Activation,
    index: int,
    event: EffectFinished,
    ends: bool = False,
    shown: str = "",
) -> None:
    """Store the one result of call `index`; `shown` is what the model sees of it, where that differs."""
    activation.pending.pop(index, None)
    if index >= activation.cursor:
        activation.cursor = index + 1
    activation.results[index] = ToolResult(shown) if shown else result(event)
    stops = event.ends and event.outcome == "denied"
    if activation.finish is None and (stops or ((ends or event.ends) and event.outcome == "completed")):
        activation.finish = event
    _settle_turn(state, activation)


def _settle_turn(state: State, activation: Activation) -> None:
    """When every call of the turn has its result, add them to the conversation in call order."""
    _touch(state, activation)
    if activation.waiting or activation.pending or activation.cursor < len(activation.calls):
        return
    activation.phase = "settled"
    if not activation.id:
        return
    _store(state, conclude(activation, state.options.outputs.message))


def _store(state: State, removed: Removed) -> None:
    """Keep results for reading by their handles; the oldest go when there are too many bytes."""
    for ref, text in removed:
        if ref not in state.outputs:
            state.outputs[ref] = text
            state.stored += len(text)
    while state.stored > state.options.outputs.kept and len(state.outputs) > 1:
        state.stored -= len(state.outputs.pop(next(iter(state.outputs))))


def _history_compacted(state: State, event: HistoryCompacted) -> None:
    activation = state.activations[event.activation]
    activation.answer = None
    _store(state, rewrite(activation, event))
    _touch(state, activation)


def _permission_decided(state: State, event: PermissionDecided) -> None:
    activation = state.activations[place(event.id)]
    index = index_of(event.id)
    activation.pending[index] = event
    if event.remember:
        state.remembered = (*state.remembered, event.remember)
    _touch(state, activation)


def _turn_finished(state: State, event: TurnFinished) -> None:
    activation = state.activations[event.activation]
    if event.nudge:
        activation.nudges, activation.finish = activation.nudges + 1, None
        activation.transcript.append(ChatMessage("user", event.nudge))
    elif activation.calls:
        activation.nudges = 0
    activation.phase, activation.more = "rest", event.more
    activation.calls, activation.results = (), []
    _touch(state, activation)


def _cancel_requested(state: State, event: CancelRequested) -> None:
    state.mail = event.mail or state.mail
    targets = [event.target] if event.target else list(state.activations[0].open)
    for target in targets:
        if state.find(target) is not None:
            state.cancelling[target] = event.why
    _touch(state, state.activations[0])


def _run_closed(state: State, event: RunClosed) -> None:
    state.closed = True


APPLY: Mapping[type, Callable[[State, Any], None]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    MessagePosted: _message_posted,
    TurnStarted: _turn_started,
    EffectStarted: _effect_started,
    EffectFinished: _effect_finished,
    PermissionDecided: _permission_decided,
    HistoryCompacted: _history_compacted,
    TurnFinished: _turn_finished,
    CancelRequested: _cancel_requested,
    RunClosed: _run_closed,
}
