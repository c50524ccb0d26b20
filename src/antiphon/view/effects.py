"""What each kind of effect is called by readers: the one place that tells details apart for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from antiphon.kernel.facts.agent_call import AgentCall, read_call
from antiphon.kernel.facts.events import (
    ActionEffect,
    ApprovalEffect,
    CallEffect,
    Detail,
    HumanInput,
    InstructionsEffect,
    LimitEffect,
    ModelEffect,
    QuestionEffect,
    ResultEffect,
    RoomEffect,
    StepEffect,
    TimerEffect,
    ToolEffect,
)
from antiphon.values.message import USER, Message, ToolCall
from antiphon.view.nodes import ActivationNode, EffectKind, EffectNode, WaitDetail, deliver


def node_of(effect_id: str, detail: Detail, call: ToolCall | None) -> EffectNode:
    """An effect as a node; `call` is the call of its turn that it does."""
    kind, name, purpose = _NAMES[type(detail)](detail)
    arguments = getattr(detail, "arguments", "") or (call.arguments if call is not None else "")
    effect = EffectNode(effect_id, kind, name, purpose, call, arguments)
    if kind == "wait":
        effect.wait = _waits(detail)
    if type(detail) is CallEffect:
        effect.text = detail.breach or detail.shown
        effect.background, effect.finishes = detail.background, detail.finishes
    elif type(detail) is ToolEffect:
        effect.finishes = detail.finishes
    elif type(detail) is ModelEffect:
        effect.text = detail.reason
    else:
        effect.text = getattr(detail, "text", "")
        effect.finishes = getattr(detail, "finishes", False)
    return effect


def _waits(detail: Detail) -> WaitDetail:
    if isinstance(detail, HumanInput):
        asked = detail if type(detail) is QuestionEffect else QuestionEffect("")
        rule = detail.by if type(detail) is ApprovalEffect else ""
        joins = detail.joins if type(detail) is LimitEffect else ""
        return WaitDetail(
            detail.deadline or 0.0, options=asked.options, schema=asked.schema, rule=rule, joins=joins,
            tool=asked.tool,
        )  # fmt: skip
    return WaitDetail(detail.due_at if type(detail) is TimerEffect else 0.0)


def _call(detail: CallEffect) -> tuple[EffectKind, str, str]:
    return "call", detail.agent, "ask" if detail.own_model else "limit" if detail.breach else ""


_NAMES: Mapping[type, Callable[[Any], tuple[EffectKind, str, str]]] = {
    ModelEffect: lambda detail: ("model", detail.model, "" if detail.purpose == "reply" else detail.purpose),
    ToolEffect: lambda detail: ("tool", detail.name, ""),
    CallEffect: _call,
    ApprovalEffect: lambda detail: ("wait", detail.name, "approval"),
    QuestionEffect: lambda detail: ("wait", detail.tool or USER, "question"),
    LimitEffect: lambda detail: ("wait", USER, "joined" if detail.joins else "limit"),
    TimerEffect: lambda detail: ("wait", "", detail.purpose),
    ResultEffect: lambda detail: ("wait", detail.call_id, "result"),
    RoomEffect: lambda detail: ("wait", "", "room"),
    ActionEffect: lambda detail: ("action", detail.agent, ""),
    StepEffect: lambda detail: ("step", detail.name, ""),
    InstructionsEffect: lambda detail: ("instructions", detail.agent, ""),
}
"""Of each kind of effect: what a reader calls it, its name, its purpose."""


def asked_of(effect: EffectNode) -> AgentCall:
    """What a call carries. The kernel reads it too: only records made by hand hold something else."""
    try:
        return read_call(effect.arguments)
    except msgspec.DecodeError:
        return AgentCall(effect.name)


def callee_of(
    caller: ActivationNode, effect: EffectNode, asked: AgentCall, number: int, at: float, prefix: str
) -> ActivationNode:
    """The activation that a call is, and the message that it opens with."""
    callee = ActivationNode(number, effect.name, caller.id, effect.id, caller.path_of(effect.id))
    callee.started_at, callee.task_id, callee.prefix = at, asked.task_id or caller.task_id, prefix
    callee.opening = Message(
        "forward", caller.agent, callee.agent, asked.message, effect.id, effect.id + ">", callee.task_id,
        intent=asked.intent, attachments=effect.call.attachments if effect.call is not None else (),
        calls=asked.calls, data=asked.data,
    )  # fmt: skip
    return callee


def hand_over(callee: ActivationNode, asked: AgentCall, taken: Sequence[Message]) -> Message | None:
    """Put what a call carries into its callee's inbox; what it opened with, where that was more than nothing.

    taken: by the turn of the caller, some of which may be handed on.
    """
    opening = callee.opening
    if opening is None:
        return None
    silent = not (opening.content or opening.attachments or opening.calls) and opening.data is None
    told = not silent or not (asked.forward or asked.inbox or callee.inbox)
    if told:
        deliver(callee, opening)
    for each in asked.inbox:
        deliver(callee, each)
    for position in asked.forward:
        if position < len(taken):
            deliver(callee, taken[position])
    return opening if told else None
