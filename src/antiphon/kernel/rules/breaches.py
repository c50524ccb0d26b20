"""A limit leaves no room for the next model call: ask somebody, a cheaper model, another agent; or stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.agent_call import CALL_AGENT, AgentCall
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    Event,
    LimitEffect,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.fold.calls import planned_above
from antiphon.kernel.facts.ledger import LedgerScope, no_more_calls, overspent
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.answers import deadline_of
from antiphon.kernel.rules.builtins import call_detail
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam
from antiphon.values.hooks import Return
from antiphon.values.message import ToolCall
from antiphon.values.result import Outcome

LAST_WORD = (
    "You have used all your turns. Sum up for the user what was done, what came out and what is open. "
    "Do not call tools."
)


class Breach(Struct, frozen=True):
    """A limit that leaves no room for the next model call."""

    outcome: Outcome
    reason: str
    scope: int
    """Whose it is: 0 the innermost ledger scope."""
    raisable: bool = True
    """As much again could make room."""


CallModel = Callable[..., EffectStarted | Return | Breach]
"""`models.call_model`."""


def on_breach(
    run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation, breach: Breach,
    call_model: CallModel,
) -> EffectStarted | Return | Iterable[Event]:  # fmt: skip
    """What the limits say of their own breach. Events: another agent takes over."""
    if run.totals.overruns and (reason := overspent(activation.scopes)):
        return Return("budget", activation.progress.best_text, reason)
    limits, progress = activation.scopes[breach.scope].limits, activation.progress
    if (
        limits.on_breach == "ask"
        and breach.raisable
        and run.options.interactive
        and not progress.raise_declined
    ):
        joins = _asked_already(run, activation.scopes[breach.scope])
        until = None if joins else deadline_of(run, activation)
        text = f"{breach.reason}. Allow as much again?"
        asked = LimitEffect(text, breach.scope, planned_above(run, activation), until, joins)
        number = progress.raises + 1
        return EffectStarted(ids.limit_id(activation.id, activation.turn.number, number), asked)
    found: Any = None
    if limits.on_breach == "degrade" and breach.outcome == "budget":
        found = _degrade(run, team, member, activation, breach, limits.breach_target, call_model)
    elif (
        limits.on_breach == "handoff" and not progress.raise_declined and limits.breach_target in team.members
    ):
        found = _hand_over(run, team, activation, limits.breach_target, breach)
    if found is None and breach.outcome == "limit" and member.agent.loop.summarize_at_limit:
        number = activation.turn.attempts.fallback
        found = call_model(run, team, member, activation, number, "final", breach.reason, beside=LAST_WORD)
    if isinstance(found, Breach):
        breach, found = found, None
    return found or Return(breach.outcome, progress.best_text, breach.reason)


def _asked_already(run: RunState, scope: LedgerScope) -> str:
    """The open question about a limit of that scope, whoever asked it; empty when nobody did."""
    for opened in run.open.values():
        detail = opened.detail
        if type(detail) is not LimitEffect or detail.joins:
            continue
        if run.activations[opened.activation].scopes[detail.scope] is scope:
            return opened.id
    return ""


def joined_end(opened: OpenEffect) -> EffectFinished:
    """The end of a limit that joined a question which has ended, as that did."""
    answer = opened.answer or EffectFinished(opened.id, "cancelled")
    reason = answer.reason
    if answer.outcome == "cancelled":
        reason = f"the question that it joined was taken back: {reason}"
    return EffectFinished(
        opened.id, answer.outcome, answer.content, reason=reason, decided_by=answer.decided_by
    )


def _degrade(
    run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation, breach: Breach,
    to: str, call_model: CallModel,
) -> EffectStarted | Return | None:  # fmt: skip
    """Ask the cheaper model, if there is room for that."""
    for number, option in enumerate(team.models[activation.agent]):
        if to in (option.spare, option.name):
            reason = f"degraded: {breach.reason}"
            asked = call_model(run, team, member, activation, number, reason=reason)
            if not isinstance(asked, Breach):
                return asked
    return None


def _hand_over(
    run: RunState, team: CompiledTeam, activation: Activation, to: str, breach: Breach
) -> tuple[Event, ...] | None:
    """Another agent goes on: its result is this activation's own."""
    # Money that is used up is nobody's to spend: the other agent needs a scope outside of it.
    outside = breach.scope + 1 if breach.outcome == "budget" else 0
    if outside >= len(activation.scopes) - len(run.totals.scopes) or no_more_calls(activation.scopes):
        return None
    messages = activation.conversation.transcript.messages
    task = next((each.content for each in messages if each.role == "user"), "")
    text = f"{task}\n\n[system] {activation.agent} began this and had to stop: {breach.reason}."
    if activation.progress.best_text:
        text += f" What it had so far:\n{activation.progress.best_text}"
    asked = ToolCall("hand_over", CALL_AGENT, msgspec.json.encode(AgentCall(to, text)).decode())
    detail = call_detail(
        team, to, limits=team.members[to].agent.limits, finishes=True, outside=outside, breach=breach.reason
    )
    return (
        TurnFinished(activation.id, another_turn=True),
        TurnStarted(activation.id, 0, (asked,)),
        EffectStarted(ids.call_id(activation.id, activation.turn.number + 1, 0), detail),
    )
