"""What became of agents' tool calls, and who gave the result, read off the records of their run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec import Struct, field

from antiphon import Record, Tool
from antiphon.kernel.facts import ids
from antiphon.view import RunTree
from antiphon.view.changes import EffectEnd
from antiphon.view.nodes import EffectNode

KERNEL_CALLS = frozenset({"call_agent", "finish", "get_result", "send_message"})
"""Calls that are no tools; a reply has neither them nor their results."""

ToolsOf = Callable[[str], Mapping[str, Tool]]
"""The tools of the agent of that name, by name."""


class Work(Struct):
    """What was done for one message. giver: whose result it is in the end."""

    giver: str
    results: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)


class Workings(Struct):
    """The calls of each activation of a run, in the order in which they were asked for."""

    calls: dict[int, list[EffectNode]]
    agents: dict[int, str]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Workings:
        """Those of these records, of the whole run so far."""
        tree = RunTree(recent=True)
        found: dict[int, list[tuple[tuple[int, int, int], EffectNode]]] = {}
        agents: dict[int, str] = {}
        for record in records:
            for change in tree.add(record):
                if isinstance(change, EffectEnd) and change.effect.is_call:
                    by, effect = change.activation, change.effect
                    agents[by.id] = by.agent
                    found.setdefault(by.id, []).append((ids.located(effect.id), effect))
        in_order = {number: sorted(each, key=itemgetter(0)) for number, each in found.items()}
        return cls({number: [effect for _, effect in each] for number, each in in_order.items()}, agents)

    def of_agent(self, agent: str) -> int:
        """The first activation of an agent that has made calls; 0 when there is none."""
        return next((number for number, name in sorted(self.agents.items()) if name == agent), 0)

    def done(self, activation: int, agent: str, given: int, tools_of: ToolsOf) -> Work:
        """What an agent did for a message, and after it whoever it handed the message over to.

        activation: 0 when it made no calls. given: how many calls came with the message.
        """
        work = Work(agent)
        seen: set[int] = {0}
        while activation not in seen:
            seen.add(activation)
            effects, tools = self.calls.get(activation, ()), tools_of(work.giver)
            for place, each in enumerate(effects):
                name = each.call.name if each.call is not None else each.name
                if name in tools or name not in KERNEL_CALLS:
                    work.results.append(_result(each, tools))
                    if place >= given:
                        work.calls.append(_call(each))
            activation, given = 0, 0
            if (callee := _handed_over(effects)) is not None:
                activation, work.giver = callee
        return work


def _handed_over(effects: Sequence[EffectNode]) -> tuple[int, str] | None:
    """The activation whose result became the agent's own, and its agent."""
    for each in effects:
        if each.callee is not None and each.finishes and each.outcome == "completed":
            return each.callee.id, each.callee.agent
    return None


def _named(effect: EffectNode) -> tuple[str, str]:
    return (effect.call.name, effect.call.id) if effect.call is not None else (effect.name, "")


def _call(effect: EffectNode) -> dict[str, Any]:
    """A call as a StructuredMessage holds it: what the model wrote, else what was understood of it."""
    name, call_id = _named(effect)
    written = [effect.call.arguments] if effect.call is not None else []
    for text in [*written, effect.arguments]:
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(arguments, dict):
            return {"name": name, "arguments": arguments, "id": call_id or None}
    return {"name": name, "arguments": {}, "id": call_id or None}


def _result(effect: EffectNode, tools: Mapping[str, Tool]) -> dict[str, Any]:
    done, (name, call_id) = effect.outcome == "completed", _named(effect)
    return {
        "name": name,
        "result": _value(effect.content, tools.get(name)) if done else None,
        "call_id": call_id,
        "status": "success" if done else "error",
        "error": None if done else effect.reason or effect.outcome,
    }


def _value(content: str, tool: Tool | None) -> Any:
    """A result is recorded as text; of a tool that does not return text it is the JSON of a value."""
    if tool is not None and inspect.signature(tool.function).return_annotation in (str, "str"):
        return content
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        return content
