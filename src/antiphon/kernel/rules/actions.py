"""What the operations of actions and tools begin with, and what the end of an action or a tool brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from antiphon.kernel.facts.activation import Activation, OpenEffect, inside
from antiphon.kernel.facts.agent_call import AgentCall
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    MessagePosted,
    StateChanged,
    StepEffect,
    ToolEffect,
)
from antiphon.kernel.facts.fold.inbox import full, labelled
from antiphon.kernel.facts.ids import parent_of
from antiphon.kernel.facts.ledger import no_more_calls
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.builtins import ask_user, call_detail, cannot_call
from antiphon.kernel.rules.cancelling import cancel
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compiled import CompiledTeam, at_work
from antiphon.values.actions import AskOperation, CallOperation, Operation, QuestionOperation, StepOperation
from antiphon.values.message import USER, Message
from antiphon.values.tool import Tool

LEFT = "the action ended without it"
"""Why what an action began and did not wait for is cancelled."""
LEFT_BY_TOOL = "the tool ended without it"
"""The same of a tool."""


def begin(
    emit: Emit,
    run: RunState,
    team: CompiledTeam,
    activation: Activation,
    effect_id: str,
    operation: Operation,
) -> None:
    """The start of an operation of an action or a tool, or its refusal."""
    within = activation.open[parent_of(effect_id)].detail
    tool = within if type(within) is ToolEffect else None
    used_up, cut_off = "", False
    if tool is not None:
        member = at_work(team.members[activation.agent], activation)
        used_up = no_more_calls(activation.scopes, of_agents=False)
        cut_off = not goes_on(member.tools.get(tool.name))
    if used_up:
        emit(EffectFinished(effect_id, "limit", reason=used_up))
    elif isinstance(operation, StepOperation):
        emit(EffectStarted(effect_id, StepEffect(operation.name)))
    elif isinstance(operation, QuestionOperation) or (
        isinstance(operation, CallOperation) and operation.agent == USER
    ):
        if not run.options.interactive:
            emit(EffectFinished(effect_id, "not_found", reason="nobody is there to answer"))
        elif isinstance(operation, QuestionOperation):
            seconds = operation.timeout_seconds
            until = None if seconds is None else run.at + seconds
            ask_user(
                emit, run, activation, effect_id, operation.text, operation.options, operation.schema, until,
                cut_off,
            )  # fmt: skip
        else:
            ask_user(emit, run, activation, effect_id, operation.text, cut_off=cut_off)
    else:
        _call(emit, run, team, activation, effect_id, operation, cut_off)


def goes_on(tool: Tool | None) -> bool:
    """Whether a tool that only waits is run again by whoever takes the run up, and goes on waiting."""
    return tool is not None and (tool.effect != "once" or tool.reconcile == "resume")


def _call(
    emit: Emit,
    run: RunState,
    team: CompiledTeam,
    activation: Activation,
    effect_id: str,
    operation: AskOperation | CallOperation,
    cut_off: bool,
) -> None:
    """Call another agent, or the caller's own to ask its model."""
    own = isinstance(operation, AskOperation)
    name = activation.agent if isinstance(operation, AskOperation) else operation.agent
    if not own:
        refusal = cannot_call(run, team, team.members[activation.agent], activation, name)
        if refusal is not None:
            emit(EffectFinished(effect_id, refusal[0], reason=refusal[1]))
            return
    used_up = no_more_calls(activation.scopes)
    if used_up:
        emit(EffectFinished(effect_id, "limit", reason=used_up))
        return
    agent = team.members[name].agent
    keeps = not own and agent.context == "continue"
    arguments = msgspec.json.encode(AgentCall(name, operation.text)).decode()
    detail = call_detail(
        team, name, arguments=arguments, limits=None if own else agent.limits, own_model=own,
        stays_dormant=keeps, reactivates=run.dormant.get((activation.id, name), 0) if keeps else 0,
        cut_off=cut_off,
    )  # fmt: skip
    emit(EffectStarted(effect_id, detail))


def end_tool(
    emit: Emit, run: RunState, opened: OpenEffect, end: EffectFinished | Callable[[Emit], None]
) -> None:
    """The end of a tool that began something inside: what it did not wait for is cancelled first."""
    for each in inside(run.activations[opened.activation], opened):
        cancel(emit, run, each, LEFT_BY_TOOL)
    if isinstance(end, EffectFinished):
        emit(end)
    else:
        end(emit)


def end(
    emit: Emit, run: RunState, activation: Activation, end: EffectFinished,
    changed: StateChanged | None = None, published: Sequence[Message] = (),
) -> None:  # fmt: skip
    """The end of an action, with what it changed and published.

    What it began and did not wait for is cancelled first. Messages that the caller's inbox has no
    room for are dead letters.
    """
    caller = run.activations[activation.caller]
    for opened in reversed(list(activation.open.values())):
        if opened.id != end.id:
            cancel(emit, run, opened, LEFT)
    if changed is not None:
        emit(changed)
    for message in published:
        refused = full(caller, run.options.limits)
        told = labelled(message, activation)
        emit(MessagePosted(told, caller.id, dead_letter=refused, by=activation.id))
    emit(end)
