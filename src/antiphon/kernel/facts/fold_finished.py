"""finished: what the end of an effect changes. Holds are given back, results booked, callees buried."""

from __future__ import annotations

import msgspec

from antiphon.kernel.context.output_store import DONE
from antiphon.kernel.facts.activation import NONE, Activation, Ended, Open
from antiphon.kernel.facts.agent_call import CALL_AGENT, CallAgent, index_of, returned
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, charged, place
from antiphon.kernel.facts.ledger import answered, pay, raise_limits, settle
from antiphon.kernel.facts.state import State, log, settle_turn, store, take_up, touch, wake
from antiphon.kernel.facts.transcript_edits import abandon, result, spoken
from antiphon.values.codec import encode_value
from antiphon.values.message import USER, ToolCall, ToolResult
from antiphon.values.model import Usage

KEPT = 1_000
"""Ends of background calls that an activation remembers; the oldest are forgotten first."""


def effect_finished(state: State, event: EffectFinished) -> None:
    """Fold the end of an effect in."""
    state.mail = event.mail or state.mail
    if state.cancelling:
        state.cancelling.pop(event.id, None)
    opened = state.open.pop(event.id, None)
    if opened is None:
        _never_started(state, event)
        return
    activation = state.activations[opened.activation]
    del activation.open[event.id]
    opened.ended = True
    kind, purpose = opened.effect.kind, opened.effect.purpose
    if kind == "model":
        _model_finished(state, activation, opened.effect, event)
    elif kind == "tool":
        _counted(state, activation, opened, event)
    elif purpose == "retry":
        activation.phase = "plan"
        touch(state, activation)
    elif purpose == "deadline":
        activation.overdue = event.outcome == "completed"
        touch(state, activation)
    elif purpose == "approval":
        _people_answered(state, activation)
        activation.waiting -= 1
        activation.pending[opened.index] = event
        touch(state, activation)
    elif purpose == "limit" and kind == "wait":
        _limit_answered(state, activation, opened.effect, event)
    elif kind == "action":
        _acted(state, activation, event)
    elif activation.phase == "act":
        _inside(state, activation, opened, event)
    else:
        usage = _bury(state, activation, opened, event) if opened.child else Usage()
        if purpose == "question":
            _people_answered(state, activation)
            _log_return(state, activation, USER, event)
        if opened.detached is not None:
            activation.returned = (*activation.returned, (opened.detached, event))
            activation.more = True
            touch(state, activation)
        elif opened.effect.background:
            activation.done[event.id] = Ended(event, usage)
            if len(activation.done) > KEPT:
                del activation.done[next(iter(activation.done))]
            if activation.id:
                _came_back(activation, opened.effect.name, event)
            touch(state, activation)
        else:
            _counted(state, activation, opened, event)


def _counted(state: State, activation: Activation, opened: Open, event: EffectFinished) -> None:
    """A call that its turn waits for has ended."""
    activation.waiting -= 1
    shown = ""
    if event.outcome == "completed":
        if event.ends and not event.content:
            shown, event = DONE, msgspec.structs.replace(event, content=activation.said)
        elif opened.child and opened.effect.ends:
            event = msgspec.structs.replace(event, why=f"handed over to {opened.effect.name}")
    _book(state, activation, opened.index, event, opened.effect.ends, shown)


def _came_back(activation: Activation, name: str, event: EffectFinished) -> None:
    """A background call has ended: an agent that waits for mail takes a turn, and its rules see the end."""
    call = ToolCall(event.id, CALL_AGENT, encode_value(CallAgent(name)).decode())
    activation.returned = (*activation.returned, (call, event))
    activation.more = activation.more or activation.phase == "rest"


def _never_started(state: State, event: EffectFinished) -> None:
    """A call was refused, or done by the kernel itself; or what an action wished for was."""
    activation = state.activations[place(event.id)]
    if activation.phase == "act":
        activation.memo[event.id] = event
        return
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


def _acted(state: State, activation: Activation, event: EffectFinished) -> None:
    """An action is over; what it was for is unread again unless it completed."""
    activation.acted, activation.memo, activation.phase = event, NONE, "settled"
    if event.outcome != "completed":
        activation.inbox[:0] = activation.taken
        activation.taken = ()
    touch(state, activation)


def _inside(state: State, activation: Activation, opened: Open, event: EffectFinished) -> None:
    """What an action began has ended: it is remembered, should the action be run again."""
    if opened.child:
        _bury(state, activation, opened, event)
    elif opened.effect.kind == "wait":
        _people_answered(state, activation)
        _log_return(state, activation, USER, event)
    activation.memo[event.id] = event


def _limit_answered(
    state: State, activation: Activation, asked: EffectStarted, event: EffectFinished
) -> None:
    _people_answered(state, activation)
    if event.outcome == "completed" and event.content in ("yes", "always"):
        raise_limits(activation.scopes[asked.scope])
    else:
        activation.declined = True
    activation.phase = "plan"
    touch(state, activation)


def _log_return(
    state: State, receiver: Activation, sender: str, event: EffectFinished, task_id: str = ""
) -> None:
    said, thread = result(event).content, task_id or receiver.task_id
    log(state, receiver.request or event.id, returned(sender, receiver.agent, event.id, said, thread))


def _people_answered(state: State, activation: Activation) -> None:
    """A question is closed: the time it took counts for no limit, and deadlines were put off."""
    for scope in activation.scopes:
        answered(scope, state.at)
    caller: Activation | None = activation
    while caller is not None and caller.id:
        if caller.overdue:
            touch(state, caller)
        caller = state.activations.get(caller.caller)


def _bury(state: State, caller: Activation, opened: Open, event: EffectFinished) -> Usage:
    """Let a callee that has returned rest, or forget it; the tokens it used on books of its own."""
    callee = state.activations[opened.child]
    if state.parked:
        wake(state)
    if callee.open:
        raise ValueError(f"activation {callee.id} returned with effects in flight")
    _log_return(state, caller, callee.agent, event, callee.task_id)
    own = len(callee.scopes) - len(caller.scopes)
    usage = callee.scopes[own - 1].usage if own > 0 else Usage()
    if opened.effect.keep:
        store(state, abandon(callee, "cancelled before it was done", state.options.outputs.message))
        other = state.resting.get((caller.id, callee.agent))
        if other is not None:
            _forget(state, state.activations[other])
        state.resting[caller.id, callee.agent] = callee.id
        if callee.inbox:
            owe(caller, callee)
        callee.call, callee.scopes, callee.phase, callee.more = "", (), "rest", False
    else:
        _forget(state, callee)
    return usage


def owe(caller: Activation, callee: Activation) -> None:
    """Note that mail waits for a callee at rest."""
    if caller.unread is NONE:
        caller.unread = {}
    caller.unread[callee.agent] = len(callee.inbox)


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
    wake(state)
    touch(state, activation)
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
        take_up(activation, ())
        activation.exhausted = started.text
        activation.said = reply.content if reply is not None else activation.said
    elif reply is not None:
        activation.failure = None
        activation.said, activation.reply = reply.content or activation.said, reply.content
        activation.window_used, activation.stop = reply.usage.total, reply.stop
        activation.transcript.append(spoken(reply))
        take_up(activation, reply.calls)
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
    if activation.planned:
        activation.ends[index] = event
    stops = event.ends and event.outcome == "denied"
    if activation.finish is None and (stops or ((ends or event.ends) and event.outcome == "completed")):
        activation.finish = event
    settle_turn(state, activation)
