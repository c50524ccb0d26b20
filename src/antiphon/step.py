"""step: what happens next. The heart of Antiphon, and pure.

`step(state, team)` yields events, and the caller applies each one before it asks for the next. It
takes the activations that the last events touched, one by one, and leads each through its turn:

    rest ── mail ──> TurnStarted ──> plan ── EffectStarted model ──> model
    model ── reply with calls ──> calls ── all ended ──> settled
    model ── reply without ──────────────────────────> settled
    settled ── TurnFinished ──> another turn, or EffectFinished of the call the activation is

No clock, no I/O, no randomness: everything it knows is in the state and the team.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import msgspec
from msgspec import Struct

from antiphon.activation import Activation
from antiphon.agent import Agent
from antiphon.errors import RETRYABLE
from antiphon.event import (
    EffectFinished,
    EffectStarted,
    Event,
    MessagePosted,
    Outcome,
    PermissionDecided,
    TurnFinished,
    TurnStarted,
)
from antiphon.limits import fits
from antiphon.message import ToolCall
from antiphon.route import route
from antiphon.state import State
from antiphon.team import NUDGE, Member, Team


def step(state: State, team: Team) -> Iterator[Event]:
    """What happens next, event by event, until everyone waits for the world."""
    if state.cancelling:
        yield from _cancel(state)
    ready = state.ready
    while ready:
        activation = ready.popleft()
        activation.queued = False
        if not activation.id:
            yield from _serve_user(state, team, activation)
        elif state.activations.get(activation.id) is activation:
            yield from _advance(state, team, activation)


def _serve_user(state: State, team: Team, user: Activation) -> Iterator[Event]:
    """The user's turns only do the calls that came with the mail, and wait for none of them."""
    while True:
        if user.phase == "rest":
            if not user.inbox:
                return
            yield TurnStarted(user.id, 1)
        elif user.phase == "calls":
            while user.cursor < len(user.calls):
                yield from route(state, team, None, user, user.cursor)
        else:
            yield TurnFinished(user.id)


def _advance(state: State, team: Team, activation: Activation) -> Iterator[Event]:
    member = team.members.get(activation.agent)
    if member is None:
        yield from _close(state, activation)
        why = f"the team has no agent {activation.agent} any more"
        yield EffectFinished(activation.call, "failed", activation.said, why=why)
        return
    while True:
        phase = activation.phase
        if phase == "calls":
            yield from _do_calls(state, team, member, activation)
            if activation.phase == "calls":
                return
        elif phase == "settled":
            ending = _decide(member.agent, activation)
            if isinstance(ending, Return):
                yield from _return(state, activation, ending)
                return
            yield ending
        elif phase == "plan":
            asked = _ask(state, team.models[activation.agent].name, member, activation)
            if isinstance(asked, EffectStarted):
                yield asked
            elif asked is not None:
                yield from _return(state, activation, asked)
            return
        elif phase == "rest":
            if not activation.more and not activation.inbox:
                return
            yield TurnStarted(activation.id, len(activation.inbox))
        elif phase == "failed":
            wait = _retry(state, member.agent, activation)
            if isinstance(wait, EffectStarted):
                yield wait
            else:
                yield from _return(state, activation, wait)
            return
        else:
            lost = [opened.effect for opened in activation.open.values() if opened.lost]
            if not lost or lost[0].kind != "model":
                return
            yield EffectFinished(lost[0].id, "interrupted", why="the process stopped during the call")


class Return(Struct, frozen=True):
    """An activation's end: the outcome of the call that it is, its value, and why."""

    outcome: Outcome = "completed"
    value: str = ""
    why: str = ""


def _ask(state: State, model: str, member: Member, activation: Activation) -> EffectStarted | Return | None:
    """Ask the model, or end the activation, or (None) wait for room in the budget."""
    agent = member.agent
    head = member.head if activation.caller else member.entry_head
    size, so_far = activation.transcript.measure()
    hold = head.size + size + agent.max_output
    for scope in activation.scopes:
        turns = scope.limits.turns
        if turns is not None and activation.turn > turns:
            return Return(
                "limit", activation.said, f"the limit of {turns} turns of one activation is used up"
            )
        fit = fits(scope, hold)
        if fit == "never":
            left = f"{scope.tokens:,} of {scope.limits.tokens:,} tokens are spent"
            return Return("budget", activation.said, f"the budget is used up: {left}, up to {hold:,} needed")
        if fit == "later":
            state.parked.append(activation)
            return None
    digest = blake2b(head.seed + so_far, digest_size=8).hexdigest()
    new_head = head.digest if head.digest != activation.head else ""
    return EffectStarted(
        f"{activation.id}/{activation.turn}.m{activation.attempt + 1}",
        "model",
        model,
        digest=digest,
        head=new_head,
        hold=hold,
    )


def _retry(state: State, agent: Agent, activation: Activation) -> EffectStarted | Return:
    """Wait before asking again after a passing failure, or end the activation."""
    failure, retry = activation.failure, agent.retry
    if failure is None:
        return Return("failed", activation.said, "the model call failed")
    why = failure.why
    if why.partition(":")[0] in RETRYABLE and activation.attempt < retry.attempts:
        effect_id = f"{activation.id}/{activation.turn}.w{activation.attempt}"
        delay = failure.retry_after
        if delay is None:
            delay = min(retry.base * 2.0 ** (activation.attempt - 1), retry.ceiling) * _jitter(effect_id)
        if delay <= retry.ceiling and activation.waited + delay <= retry.window:
            return EffectStarted(effect_id, "wait", purpose="retry", until=state.at + delay)
        why += f" (asked to wait {delay:,.0f} s, more than the {retry.ceiling:,.0f} s allowed)"
    return Return("failed", activation.said, why)


def _jitter(effect_id: str) -> float:
    """Between 0.5 and 1, from the id alone, so that a replay waits the same."""
    return 0.5 + blake2b(effect_id.encode(), digest_size=2).digest()[0] / 512


def _do_calls(state: State, team: Team, member: Member, activation: Activation) -> Iterator[Event]:
    """Start as many of the turn's calls as its agent lets run at once."""
    calls, mode = activation.calls, member.agent.tool_execution
    if activation.pending:
        yield from _rule(state, team, member, activation)
    if not activation.cursor and len(calls) > 1:
        finishing = _first_finishing(member, calls)
        if finishing >= 0:
            yield from _finish_alone(state, team, member, activation, finishing)
            return
    while activation.cursor < len(calls):
        if mode != "parallel" and (activation.waiting or activation.pending):
            return
        index = activation.cursor
        if mode == "single" and index:
            why = "only one call per reply is done; this one was skipped"
            yield EffectFinished(_call_id(activation, index), "skipped", why=why)
        else:
            yield from route(state, team, member, activation, index)


def _first_finishing(member: Member, calls: tuple[ToolCall, ...]) -> int:
    return next((index for index, call in enumerate(calls) if call.name in member.finishing), -1)


def _finish_alone(
    state: State, team: Team, member: Member, activation: Activation, finishing: int
) -> Iterator[Event]:
    """A finishing call is exclusive: the first one counts, every other call is skipped."""
    for index, call in enumerate(activation.calls):
        if index == finishing:
            yield from route(state, team, member, activation, index)
        else:
            why = (
                f"{call.name} was skipped: {activation.calls[finishing].name} ends the task in the same reply"
            )
            yield EffectFinished(_call_id(activation, index), "skipped", why=why)


def _rule(state: State, team: Team, member: Member, activation: Activation) -> Iterator[Event]:
    """Take up approvals that were answered: decide, then start or refuse the call."""
    for index, event in list(activation.pending.items()):
        effect_id = _call_id(activation, index)
        if isinstance(event, EffectFinished):
            allowed = event.outcome == "completed" and event.content in ("yes", "always")
            why = "" if allowed else event.why or "refused"
            tool = member.tools.get(activation.calls[index].name)
            bound = tool.reread(event.arguments) if tool is not None else event.arguments
            arguments = bound if isinstance(bound, str) else event.arguments
            always = tool.digest if tool is not None and event.content == "always" else ""
            event = PermissionDecided(effect_id, allowed, event.by, why, arguments, always)
            yield event
        if event.allowed:
            yield from route(state, team, member, activation, index, event)
        else:
            by = f" by {event.by}" if event.by else ""
            yield EffectFinished(effect_id, "denied", why=f"permission denied{by}: {event.why}")


def _decide(agent: Agent, activation: Activation) -> Return | TurnFinished:
    """What follows a settled turn: another one, or the return."""
    finish = activation.finish
    if finish is not None:
        return Return("completed", finish.content)
    if activation.exhausted:
        return Return("limit", activation.said, activation.exhausted)
    if activation.calls or activation.inbox:
        return TurnFinished(activation.id, more=True)
    if agent.completion == "text":
        return Return("completed", activation.transcript.messages[-1].content)
    if activation.nudges < agent.nudges:
        return TurnFinished(activation.id, more=True, nudge=NUDGE)
    return Return("no_progress", activation.said, f"{agent.nudges} nudges to finish were not followed")


def _return(state: State, activation: Activation, ending: Return) -> Iterator[Event]:
    """End the turn and the call that the activation is; everything under it is closed first."""
    yield TurnFinished(activation.id)
    yield from _close(state, activation)
    finish = activation.finish
    attachments = finish.attachments if finish is not None else ()
    yield EffectFinished(activation.call, ending.outcome, ending.value, attachments, why=ending.why)
    yield from _results(state, activation.call)


def _results(state: State, call: str) -> Iterator[Event]:
    """End the waits for the result of a background call."""
    caller = state.activations.get(int(call[: call.index("/")]))
    if caller is not None and call in caller.done:
        event = caller.done[call].event
        for opened in list(caller.open.values()):
            if opened.effect.purpose == "result" and opened.effect.name == call:
                yield msgspec.structs.replace(event, id=opened.effect.id)


def _close(state: State, activation: Activation) -> Iterator[Event]:
    """Cancel every effect in flight under an activation, innermost first; unread mail is dead."""
    for message in list(activation.inbox):
        yield MessagePosted(message, activation.id, dead=f"{activation.agent} ended before it read this")
    for opened in list(activation.open.values()):
        child = state.activations.get(opened.child) if opened.child else None
        if child is not None:
            yield from _close(state, child)
        yield EffectFinished(
            opened.effect.id, "cancelled", child.said if child else "", why="the caller ended"
        )


def _cancel(state: State) -> Iterator[Event]:
    for target, why in list(state.cancelling.items()):
        opened = state.find(target)
        if opened is not None:
            child = state.activations.get(opened.child) if opened.child else None
            if child is not None:
                yield from _close(state, child)
            yield EffectFinished(target, "cancelled", child.said if child else "", why=why or "cancelled")
            yield from _results(state, target)


def _call_id(activation: Activation, index: int) -> str:
    return f"{activation.id}/{activation.turn}.c{index + 1}"
