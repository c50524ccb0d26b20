"""What became of an agent's tool calls, read off the records of its run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from antiphon import Record, Tool
from antiphon.view import RunTree
from antiphon.view.changes import EffectEnd
from antiphon.view.nodes import ActivationNode, EffectNode


def ended_calls(records: Iterable[Record]) -> Iterator[tuple[ActivationNode, EffectNode]]:
    """The calls that agents have made, in the order they ended, each with whose it was."""
    tree = RunTree(recent=True)
    for record in records:
        for change in tree.add(record):
            if isinstance(change, EffectEnd) and change.effect.is_call:
                yield change.activation, change.effect


def tool_results(calls: Iterable[EffectNode], tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """The results of these calls, as a StructuredMessage holds them."""
    return [_result(each, tools) for each in calls]


def _result(effect: EffectNode, tools: Mapping[str, Tool]) -> dict[str, Any]:
    done, call = effect.outcome == "completed", effect.call
    name, call_id = (call.name, call.id) if call is not None else (effect.name, "")
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
