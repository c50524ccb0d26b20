"""apply: the fold. It alone changes a State, one event after the other, and only here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from antiphon.errors import Corrupt
from antiphon.kernel.context.compaction import COMPACT, HISTORY
from antiphon.kernel.facts import hops
from antiphon.kernel.facts.activation import NONE, Activation
from antiphon.kernel.facts.agent_call import index_of
from antiphon.kernel.facts.events import (
    CancelRequested,
    EffectFinished,
    EffectStarted,
    Event,
    HistoryCompacted,
    MessagePosted,
    PermissionDecided,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    TurnFinished,
    TurnStarted,
    place,
)
from antiphon.kernel.facts.fold_finished import effect_finished, owe
from antiphon.kernel.facts.fold_started import effect_started
from antiphon.kernel.facts.inbox import deliver
from antiphon.kernel.facts.state import State, log, store, take_up, touch
from antiphon.kernel.facts.transcript_edits import read_history, rewrite, show
from antiphon.values.message import USER, Message
from antiphon.values.model import ChatMessage
from antiphon.values.policy import Grant


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


def _run_started(state: State, event: RunStarted) -> None:
    state.run_id, state.options, state.data = event.run_id, event.options, event.data
    state.activations[0] = Activation(0, USER)


def _run_resumed(state: State, event: RunResumed) -> None:
    state.options = msgspec.structs.replace(state.options, attended=event.attended)
    for activation in state.activations.values():
        for opened in activation.open.values():
            opened.lost += 1
        touch(state, activation)


def _message_posted(state: State, event: MessagePosted) -> None:
    state.mail = event.mail or state.mail
    message = event.message
    publisher = state.activations[event.by] if event.by else None
    if publisher is not None and publisher.past is not None:
        publisher.past.append(message)
    if event.dead:
        activation = state.activations.get(event.to)
        if activation is not None and activation.inbox and activation.inbox[0].id == message.id:
            activation.inbox.pop(0)
        return
    receiver = state.activations[event.to]
    deliver(receiver, message)
    if publisher is not None:
        hops.published(publisher, receiver, message)
    if not receiver.call and receiver.id:
        owe(state.activations[receiver.caller], receiver)
    if receiver.id:
        log(state, receiver.request, message)
    touch(state, receiver)


def _turn_started(state: State, event: TurnStarted) -> None:
    activation = state.activations[event.activation]
    taken = activation.inbox[: event.taken]
    del activation.inbox[: event.taken]
    if activation.laps:
        hops.forget(activation)
    activation.turn += 1
    activation.attempt, activation.asking_since, activation.more = 0, 0.0, False
    activation.tries = activation.fallback = 0
    activation.squeezed, activation.reply = False, ""
    activation.tail, activation.only = event.tail, event.only
    if event.act or event.calls is not None:
        _own_turn(activation, event, tuple(taken))
        return
    activation.taken = tuple(taken) if event.shown is not None else ()
    activation.planned, activation.acted = False, None
    calls = tuple(call for message in taken for call in message.calls) if taken else ()
    if activation.id:
        for message in taken:
            if message.intent == COMPACT and message.sender == USER:
                activation.forced = "asked"
            elif message.intent == HISTORY and message.sender == USER:
                activation.forced = "done"
                show(activation, read_history(message.content))
            elif event.shown is None and (message.content or message.attachments or not message.calls):
                activation.transcript.append(
                    ChatMessage("user", message.content, attachments=message.attachments)
                )
        for each in event.shown or ():
            activation.transcript.append(each)
        if calls:
            activation.transcript.append(ChatMessage("assistant", "", calls, given=True))
    if calls or not activation.id:
        take_up(activation, calls)
    else:
        activation.phase = "plan"


def _own_turn(activation: Activation, event: TurnStarted, taken: tuple[Message, ...]) -> None:
    """A turn that the agent's plan or action does; no model will be shown what it takes."""
    activation.taken, activation.planned = taken, event.calls is not None
    if event.calls is not None:
        activation.ends = {}
        take_up(activation, event.calls)
        return
    if activation.past is None:
        activation.past = []
    activation.past.extend(taken)
    activation.acted, activation.memo, activation.phase = None, {}, "plan"


def _state_changed(state: State, event: StateChanged) -> None:
    activation = state.activations[event.activation]
    if activation.data is NONE:
        activation.data = {}
    for key, value in event.set.items():
        activation.data[key] = list(value) if isinstance(value, list) else value
    for key, values in event.append.items():
        activation.data.setdefault(key, []).extend(values)


def _history_compacted(state: State, event: HistoryCompacted) -> None:
    activation = state.activations[event.activation]
    activation.answer = None
    store(state, rewrite(activation, event))
    touch(state, activation)


def _permission_decided(state: State, event: PermissionDecided) -> None:
    activation = state.activations[place(event.id)]
    index = index_of(event.id)
    activation.pending[index] = event
    if event.remember:
        grants = state.remembered.get(event.remember, ())
        state.remembered[event.remember] = (*grants, event.grant or Grant())
    touch(state, activation)


def _turn_finished(state: State, event: TurnFinished) -> None:
    activation = state.activations[event.activation]
    if event.nudge:
        activation.nudges, activation.finish = activation.nudges + 1, None
        activation.transcript.append(ChatMessage("user", event.nudge))
    elif activation.calls:
        activation.nudges = 0
    activation.phase, activation.more = "rest", event.more
    activation.calls, activation.results, activation.returned = (), [], ()
    touch(state, activation)


def _cancel_requested(state: State, event: CancelRequested) -> None:
    state.mail = event.mail or state.mail
    targets = [event.target] if event.target else list(state.activations[0].open)
    for target in targets:
        if state.find(target) is not None:
            state.cancelling[target] = event.why
    touch(state, state.activations[0])


def _run_closed(state: State, event: RunClosed) -> None:
    state.closed = True


APPLY: Mapping[type, Callable[[State, Any], None]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    MessagePosted: _message_posted,
    TurnStarted: _turn_started,
    EffectStarted: effect_started,
    EffectFinished: effect_finished,
    PermissionDecided: _permission_decided,
    StateChanged: _state_changed,
    HistoryCompacted: _history_compacted,
    TurnFinished: _turn_finished,
    CancelRequested: _cancel_requested,
    RunClosed: _run_closed,
}
