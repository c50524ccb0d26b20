"""A person's own call of an agent's tool, which the agent's hook answers: no model is asked, no tool runs."""

from __future__ import annotations

from msgspec.structs import replace

from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    PermissionDecided,
    StateChanged,
    ToolEffect,
)
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules import hooks
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compiled import CompiledTeam
from antiphon.values.hooks import DirectResult, PlannedCall
from antiphon.values.message import ToolCall
from antiphon.values.schema.arguments import Invalid


def of_person(
    emit: Emit, run: RunState, team: CompiledTeam, user: Activation, call: ToolCall, effect_id: str
) -> None:
    """A person's own call of an agent's tool: what the agent's hook answers at once, or why it cannot be.

    No model is asked, no tool runs, and only what all agents share is changed.
    """
    message = user.turn.messages[0]
    found = _answer_to_person(run, team, user, message.receiver, call)
    if isinstance(found, EffectFinished):
        emit(replace(found, id=effect_id))
        return
    arguments, answer = found
    # Whoever calls it allows it.
    emit(PermissionDecided(effect_id, True, message.source, arguments=arguments))
    emit(EffectStarted(effect_id, ToolEffect(call.name, arguments=arguments)))
    if answer.run_data:
        emit(StateChanged(user.id, dict(answer.run_data), by="intercept_call"))
    said, reason = (answer.content, "") if answer.outcome == "completed" else ("", answer.content)
    emit(EffectFinished(effect_id, answer.outcome, said, reason=reason, decided_by="intercept_call"))


def _answer_to_person(
    run: RunState, team: CompiledTeam, user: Activation, agent: str, call: ToolCall
) -> tuple[str, DirectResult] | EffectFinished:
    """The arguments of a person's call as they bind, and what the agent's hook makes of them; or the end of a
    call that never ran."""
    member = team.members.get(agent)
    if member is None:
        known = ", ".join(team.members) or "(none)"
        return EffectFinished("", "not_found", reason=f"Unknown agent: {agent}. Known: {known}")
    tool, intercept = member.tools.get(call.name), member.agent.hooks.intercept_call
    if tool is None:
        known = ", ".join(member.tools) or "(none)"
        return EffectFinished("", "not_found", reason=f"{agent} has no tool {call.name}. It has: {known}")
    arguments = tool.revalidate(call.arguments)
    if isinstance(arguments, Invalid):
        return EffectFinished("", "invalid_arguments", reason=arguments.text)
    turn, found = user.turn, None
    try:
        context = hooks.context(run, user, turn.messages, turn.number, user.mailbox.inbox)
        if intercept is not None:
            found = hooks.checked(intercept(context, call.name, arguments), DirectResult, PlannedCall)
    except Exception as error:  # noqa: BLE001 - a hook that raises fails this call, never the run
        return EffectFinished("", "failed", reason=hooks.raised("intercept_call", user, error).reason)
    if not isinstance(found, DirectResult) or found.finishes or found.activation_data:
        reason = f"{call.name} is for {agent} alone: it does more than change what all share"
        return EffectFinished("", "denied", reason=reason)
    return arguments, found
