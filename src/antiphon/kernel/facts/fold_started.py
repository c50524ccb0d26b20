"""started: what the start of an effect changes. A start holds its worst case; a call's gives birth."""

from __future__ import annotations

from antiphon.kernel.facts import hops
from antiphon.kernel.facts.activation import Activation, Open
from antiphon.kernel.facts.agent_call import index_of, opening, read_call
from antiphon.kernel.facts.events import EffectStarted, place
from antiphon.kernel.facts.inbox import deliver
from antiphon.kernel.facts.ledger import asked, books
from antiphon.kernel.facts.state import State, log, settle_turn, touch, wake
from antiphon.kernel.facts.transcript_edits import awake
from antiphon.values.message import USER, Message, ToolResult


def effect_started(state: State, event: EffectStarted) -> None:
    """Fold the start of an effect in."""
    activation = state.activations[place(event.id)]
    if event.id in state.open:
        raise ValueError(f"{event.id} started twice")
    opened = Open(event, activation.id, since=state.at)
    state.open[event.id] = activation.open[event.id] = opened
    if event.kind == "model":
        _model_started(state, activation, event)
    elif event.kind == "tool":
        _call_started(state, activation, opened)
    elif event.kind == "action":
        activation.phase = "act"
    elif event.purpose == "deadline":
        activation.overdue = False
        activation.deadlines += 1
    elif event.purpose == "retry":
        activation.phase = "model"
    elif activation.phase == "act" or (event.purpose == "limit" and event.kind == "wait"):
        _beside_calls(state, activation, opened)
    else:
        _call_started(state, activation, opened)


def _model_started(state: State, activation: Activation, event: EffectStarted) -> None:
    activation.attempt += 1
    if event.purpose != "compact":
        activation.tries = activation.tries + 1 if event.fallback == activation.fallback else 1
        activation.fallback = event.fallback
        activation.asking_since = activation.asking_since or state.at
    activation.phase = "model"
    if event.purpose == "compact":
        activation.squeezed = True
        activation.forced = "done" if activation.forced else ""
    activation.head = event.head or activation.head
    for scope in activation.scopes:
        scope.held += event.hold
        scope.reserved += event.cost
    if state.parked:
        wake(state)


def _beside_calls(state: State, activation: Activation, opened: Open) -> None:
    """What an action began, or a question about a limit: no call of the turn."""
    event = opened.effect
    if event.purpose == "limit":
        activation.phase = "model"
        activation.raised += 1
    if event.kind == "wait":
        _people_asked(state, activation, event)
    elif event.kind == "call":
        for scope in activation.scopes:
            scope.calls += 1
        _give_birth(state, activation, opened)


def _call_started(state: State, activation: Activation, opened: Open) -> None:
    event, kind = opened.effect, opened.effect.kind
    index = opened.index = index_of(event.id)
    if index >= activation.cursor:
        activation.cursor = index + 1
    if event.purpose == "limit":
        activation.declined = True
    if event.purpose != "approval":
        activation.pending.pop(index, None)
        for scope in activation.scopes:
            scope.calls += 1
    if kind == "wait" and event.purpose != "result":
        _people_asked(state, activation, event)
    if kind == "call":
        _give_birth(state, activation, opened)
    if event.background:
        activation.results[index] = ToolResult(event.text)
        settle_turn(state, activation)
    else:
        activation.waiting += 1


def _people_asked(state: State, activation: Activation, event: EffectStarted) -> None:
    for scope in activation.scopes:
        asked(scope, state.at)
    if event.purpose == "question":
        question = Message(
            "forward", activation.agent, USER, event.text, event.id, event.id + ">", activation.task_id
        )
        log(state, activation.request, question)
    _hold_no_round(state, activation)


def _hold_no_round(state: State, waiting: Activation) -> None:
    """Nobody's plan waits for people: a call under which somebody asks goes on in the background."""
    activation = waiting
    while activation.caller:
        caller = state.activations[activation.caller]
        opened = caller.open[activation.call]
        if caller.planned and not opened.detached and opened.index >= 0:
            opened.detached = caller.calls[opened.index]
            caller.results[opened.index] = ToolResult("")
            caller.waiting -= 1
            settle_turn(state, caller)
        activation = caller


def _give_birth(state: State, caller: Activation, opened: Open) -> None:
    event = opened.effect
    call = caller.calls[opened.index] if opened.index >= 0 else None
    state.born += 1
    child = state.born
    scopes = books(event.limits, caller.scopes[event.scope :], state.options.limits)
    request = caller.request or event.id
    # Plans add no depth, and an agent that asks its own model is still the same agent.
    deeper = caller.id and not caller.planned and event.purpose != "ask"
    callee = Activation(
        child, event.name, event.id, caller.id, request, caller.depth + bool(deeper), scopes, event.digest
    )
    callee.asks = event.purpose == "ask"
    if event.continues:
        state.born -= 1
        child, born = event.continues, callee
        callee = state.activations[child]
        del state.resting[callee.caller, callee.agent]
        caller.unread.pop(callee.agent, None) if caller.unread else None
        awake(callee, born)
    else:
        for scope in scopes:
            scope.activations += 1
    opened.child = child
    state.activations[child] = callee
    read = read_call(event.arguments or (call.arguments if call is not None else ""))
    callee.task_id = read.task_id or caller.task_id
    message = opening(caller, callee, read, call.attachments if call is not None else ())
    if message is not None:
        deliver(callee, message)
        log(state, request, message)
    for each in read.mail:
        deliver(callee, each)
    for position in read.take:
        hops.hand_on(caller, callee, position)
    touch(state, callee)
