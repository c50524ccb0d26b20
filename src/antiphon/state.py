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
from antiphon.errors import Corrupt
from antiphon.event import (
    CancelRequested,
    EffectFinished,
    EffectStarted,
    Event,
    MessagePosted,
    Options,
    PermissionDecided,
    RunClosed,
    RunResumed,
    RunStarted,
    TurnFinished,
    TurnStarted,
    place,
)
from antiphon.limits import Scope, settle
from antiphon.message import USER, Attachment, Message, ToolCall, ToolResult
from antiphon.model import ChatMessage, Usage

KEPT = 1_000
"""Ends of background calls that an activation remembers; the oldest are forgotten first."""
WOKEN = 8
"""Parked activations that are asked again whenever there may be room; each that starts wakes more."""
LOGGED = 10_000
"""Messages of the log; when there are more, the older half is forgotten."""


class State(Struct):
    """A run, folded. `at`: the time of the last row, Unix seconds. `mail`: the last mail taken.

    remembered: digests of tools allowed for the rest of the run. cancelling: effects to stop, and why.
    usage: tokens by model. open: every effect in flight. log: messages between agents.
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
    closed: bool = False
    ready: deque[Activation] = field(default_factory=deque)
    parked: list[Activation] = field(default_factory=list)

    def find(self, effect_id: str) -> Open | None:
        """The open effect of that id, if it is in flight."""
        return self.open.get(effect_id)

    @property
    def idle(self) -> bool:
        """Nothing is in flight and nobody has anything to do."""
        return not self.open and not self.ready


def apply(state: State, event: Event) -> None:
    """Fold one event in. Raises Corrupt for one that cannot follow what was folded before."""
    try:
        APPLY[type(event)](state, event)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise Corrupt(state.run_id, 0, f"{type(event).__name__} does not follow ({error!r})") from error


def apply_all(state: State, events: Iterable[Event]) -> None:
    """Fold events in, each of them before the next is asked for. Raises Corrupt as `apply` does."""
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
    activation.attempt, activation.waited, activation.more = 0, 0.0, False
    calls = event.calls
    if calls is None:
        calls = tuple(call for message in taken for call in message.calls) if taken else ()
    if activation.id:
        for message in taken:
            if message.content or message.attachments or not message.calls:
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
    opened = Open(event, activation.id)
    state.open[event.id] = activation.open[event.id] = opened
    if kind == "model":
        activation.attempt += 1
        activation.phase = "model"
        activation.head = event.head or activation.head
        for scope in activation.scopes:
            scope.held += event.hold
        if state.parked:
            _wake(state)
        return
    if event.purpose == "retry":
        activation.phase = "model"
        activation.waited += event.until - state.at
        return
    index = opened.index = _index(event.id)
    if index >= activation.cursor:
        activation.cursor = index + 1
    if event.purpose != "approval":
        activation.pending.pop(index, None)
        for scope in activation.scopes:
            scope.calls += 1
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
    scopes = caller.scopes
    if event.limits is not None and scopes:
        scopes = (Scope(event.limits), *scopes)
    elif not scopes:
        own = (Scope(event.limits),) if event.limits is not None else ()
        scopes = (*own, Scope(state.options.limits))
    opened.child = child
    depth = caller.depth + 1 if caller.id else 0
    request = caller.request or event.id
    callee = Activation(child, event.name, event.id, caller.id, request, depth, scopes, event.digest)
    message = forward(caller.agent, callee, event.arguments or call.arguments, call.attachments)
    callee.inbox.append(message)
    _log(state, request, message)
    state.activations[child] = callee
    for scope in scopes:
        scope.activations += 1
    _touch(state, callee)


class CallAgent(Struct, frozen=True, omit_defaults=True):
    """The arguments of `call_agent`; `background`: do not wait for the result."""

    agent_name: str
    message: str
    background: bool = False


_call_agent = msgspec.json.Decoder(CallAgent)


def _log(state: State, request: str, message: Message) -> None:
    state.log.append(Logged(request, message))
    if len(state.log) > LOGGED:
        del state.log[: LOGGED // 2]


def forward(caller: str, callee: Activation, arguments: str, attachments: tuple[Attachment, ...]) -> Message:
    """The message that a call carries, made from the call alone."""
    call = callee.call
    content = _call_agent.decode(arguments).message
    return Message("forward", caller, callee.agent, content, call, id=call + ">", attachments=attachments)


def _index(effect_id: str) -> int:
    """Which call of its turn an effect is: `3/2.c1` is 0."""
    number = effect_id[effect_id.rindex(".") + 2 :]
    return int(number[:-1] if number[-1] == "?" else number) - 1


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
        _book(state, activation, _index(event.id), event)
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
    elif purpose == "approval":
        activation.waiting -= 1
        activation.pending[opened.index] = event
        _touch(state, activation)
    else:
        usage = _bury(state, activation, event, opened.child) if opened.child else Usage()
        if purpose == "question":
            _log_return(state, activation.request, USER, activation.agent, event)
        if opened.effect.background:
            activation.done[event.id] = Ended(event, usage)
            if len(activation.done) > KEPT:
                del activation.done[next(iter(activation.done))]
            _touch(state, activation)
        else:
            activation.waiting -= 1
            _book(state, activation, opened.index, event, opened.effect.ends)


def _log_return(state: State, request: str, sender: str, receiver: str, event: EffectFinished) -> None:
    call, content = event.id, result(event).content
    _log(
        state, request, Message("return", sender, receiver, content, call, call + "<", in_reply_to=call + ">")
    )


def _bury(state: State, caller: Activation, event: EffectFinished, child: int) -> Usage:
    """Forget a callee that has returned; the tokens it used, when it had books of its own."""
    callee = state.activations.pop(child)
    if state.parked:
        _wake(state)
    if callee.open:
        raise ValueError(f"activation {child} returned with effects in flight")
    _log_return(state, callee.request, callee.agent, caller.agent, event)
    own = len(callee.scopes) - len(caller.scopes)
    return callee.scopes[own - 1].usage if own else Usage()


def _model_finished(
    state: State, activation: Activation, started: EffectStarted, event: EffectFinished
) -> None:
    reply = event.reply
    usage = reply.usage if reply is not None else event.usage
    used = usage.total if usage is not None else _charged(started, event)
    for scope in activation.scopes:
        settle(scope, started.hold, used)
        if used:
            scope.usage = scope.usage + (usage or Usage())
    if usage is not None and used:
        state.usage[started.name] = state.usage.get(started.name, Usage()) + usage
    _wake(state)
    _touch(state, activation)
    if reply is not None:
        activation.failure = None
        activation.said = reply.content or activation.said
        activation.transcript.append(
            ChatMessage(
                "assistant", reply.content, reply.calls, reasoning=reply.reasoning, opaque=reply.opaque
            )
        )
        _take_up(activation, reply.calls)
    elif event.outcome == "interrupted":
        activation.phase = "plan"
    else:
        activation.failure = event
        activation.phase = "failed"


def _charged(started: EffectStarted, event: EffectFinished) -> int:
    """Tokens to book for a call whose bill is unknown: all that was held, or nothing."""
    if event.outcome in ("interrupted", "cancelled") or event.why.startswith(("cut", "timeout")):
        return started.hold
    return 0


def _book(
    state: State, activation: Activation, index: int, event: EffectFinished, ends: bool = False
) -> None:
    """Store the one result of call `index`."""
    activation.pending.pop(index, None)
    if index >= activation.cursor:
        activation.cursor = index + 1
    activation.results[index] = result(event)
    if (ends or event.ends) and event.outcome == "completed" and activation.finish is None:
        activation.finish = event
    _settle_turn(state, activation)


def result(event: EffectFinished) -> ToolResult:
    """A call's end as the model is shown it."""
    if event.outcome == "completed":
        return ToolResult(event.content, event.attachments)
    partial = f"\nPartial output: {event.content}" if event.content else ""
    return ToolResult(f"Error: {event.why}{partial}", event.attachments, is_error=True)


def _settle_turn(state: State, activation: Activation) -> None:
    """When every call of the turn has its result, add them to the conversation in call order."""
    _touch(state, activation)
    if activation.waiting or activation.pending or activation.cursor < len(activation.calls):
        return
    activation.phase = "settled"
    if activation.id:
        append = activation.transcript.append
        for call, found in zip(activation.calls, activation.results, strict=True):
            if found is not None:
                append(
                    ChatMessage(
                        "tool", found.content, (), call.id, call.name, found.is_error, found.attachments
                    )
                )


def _permission_decided(state: State, event: PermissionDecided) -> None:
    activation = state.activations[place(event.id)]
    index = _index(event.id)
    activation.pending[index] = event
    if event.remember:
        state.remembered = (*state.remembered, event.remember)
    _touch(state, activation)


def _turn_finished(state: State, event: TurnFinished) -> None:
    activation = state.activations[event.activation]
    if event.nudge:
        activation.nudges += 1
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
    TurnFinished: _turn_finished,
    CancelRequested: _cancel_requested,
    RunClosed: _run_closed,
}
