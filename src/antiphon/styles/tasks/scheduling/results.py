"""What became of an agent's tool calls, read off the records of its run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antiphon import Record, Tool, ToolCall
from antiphon.kernel.facts.events import EffectFinished, TurnStarted


def tool_results(
    records: Iterable[Record], agent: str, given: Sequence[Sequence[ToolCall]], tools: Mapping[str, Tool]
) -> list[dict[str, Any]]:
    """The results of the agent's calls in order, as a StructuredMessage holds them.

    given: the calls that came with each message to the agent, in the order they were sent.
    """
    found: list[dict[str, Any]] = []
    mail = iter(given)
    calls: Sequence[ToolCall] = ()
    for record in records:
        event = record.event
        if record.agent != agent:
            continue
        if isinstance(event, TurnStarted):
            calls = next(mail, ()) if event.taken else ()
        elif isinstance(event, EffectFinished) and event.reply is not None:
            calls = event.reply.calls
        elif isinstance(event, EffectFinished) and (place := event.id.rpartition(".c")[2]).isdecimal():
            call = calls[int(place) - 1]
            found.append(_result(event, call, tools.get(call.name)))
    return found


def _result(event: EffectFinished, call: ToolCall, tool: Tool | None) -> dict[str, Any]:
    done = event.outcome == "completed"
    return {
        "name": call.name,
        "result": _value(event.content, tool) if done else None,
        "call_id": call.id,
        "status": "success" if done else "error",
        "error": None if done else event.why or event.outcome,
    }


def _value(content: str, tool: Tool | None) -> Any:
    """A result is recorded as text; of a tool that does not return text it is the JSON of a value."""
    if tool is not None and inspect.signature(tool.function).return_annotation in (str, "str"):
        return content
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        return content
