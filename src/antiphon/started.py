"""started: what the start of an effect changes. A start holds its worst case; a call's gives birth."""

from __future__ import annotations

from antiphon.activation import Activation, Open
from antiphon.calling import forward, index_of
from antiphon.event import EffectStarted, place
from antiphon.limits import asked, books
from antiphon.message import USER, Message, ToolResult
from antiphon.state import State, log, settle_turn, touch, wake
from antiphon.view import awake


def effect_started(state: State, event: EffectStarted) -> None:
    """Fold the start of an effect in."""
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
            wake(state)
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
        log(state, activation.request, question)
    if event.background:
        activation.results[index] = ToolResult(event.text)
        settle_turn(state, activation)
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
    log(state, request, message)
    state.activations[child] = callee
    for scope in scopes:
        scope.activations += 1
    touch(state, callee)
