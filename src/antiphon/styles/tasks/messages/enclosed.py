"""What comes with a message beside its text: how it travels in a run, and how a model is shown it.

Metadata and tool results are the `data` of the kernel's message. A model is shown them before the text
itself, all but what is for programs: the type, `in_reply_to`, and names that begin with `_`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from antiphon import Agent, Message
from antiphon.kernel.context.compaction import COMPACT, HISTORY
from antiphon.styles.tasks.errors import InvalidMessage
from antiphon.styles.tasks.messages import codec
from antiphon.styles.tasks.messages.message import RESULTS, StructuredMessage
from antiphon.values.hooks import ModelInput, TurnContext
from antiphon.values.message import USER
from antiphon.values.model import ChatMessage

FOR_PROGRAMS = frozenset({"type", "in_reply_to"})
"""Metadata that no model is shown."""


def enclosed(message: StructuredMessage) -> Any:
    """The metadata and tool results of a message in JSON's own types. Raises InvalidMessage."""
    described = message.to_dict()
    metadata, results = described["metadata"], described["tool_results"]
    if RESULTS in metadata:
        raise InvalidMessage(f"metadata: {RESULTS!r} is a name of Antiphon's own; use another")
    if results:
        asked = {each["id"]: each["arguments"] for each in described["tool_calls"]}
        for each in results:
            if each["call_id"] in asked:
                each["arguments"] = asked[each["call_id"]]
        metadata[RESULTS] = results
    return codec.plain(metadata)


def metadata_of(data: Any) -> dict[Any, Any]:
    """The metadata in what `enclosed` made; of other data none."""
    found = codec.value(data)
    return {key: each for key, each in found.items() if key != RESULTS} if isinstance(found, dict) else {}


def has_results(data: Any) -> bool:
    """Whether tool results are in what `enclosed` made."""
    return isinstance(data, dict) and RESULTS in data


def shows_something(message: StructuredMessage) -> bool:
    """Whether a model is shown more of a message than its text."""
    return bool(_shown(enclosed(message)))


def shows_enclosed(agent: Agent) -> Agent:
    """The agent, whose model is shown what comes with a message, right before the message.

    Its turns are two events longer each, so it is for messages that bring something.
    """
    own = agent.hooks.prepare_input
    if agent.hooks.act is not None:
        return agent

    def prepare(context: TurnContext) -> ModelInput | None:
        said = [_shown(each.data) for each in context.new_messages]
        if own is not None:
            found = own(replace(context, new_messages=_joined(context.new_messages, said)))
            if found is not None:
                return found
        return _input(context.new_messages, said) if any(said) else None

    return replace(agent, hooks=replace(agent.hooks, prepare_input=prepare))


def _joined(messages: Sequence[Message], said: Sequence[str]) -> list[Message]:
    """Messages whose text begins with what comes with them."""
    return [
        replace(each, content="\n\n".join(filter(None, (before, each.content)))) if before else each
        for each, before in zip(messages, said, strict=True)
    ]


def _input(messages: Sequence[Message], said: Sequence[str]) -> ModelInput:
    shown: list[ChatMessage] = []
    for each, before in zip(messages, said, strict=True):
        if each.sender == USER and each.intent in (COMPACT, HISTORY):
            continue
        if before:
            shown.append(ChatMessage("user", before))
        if each.content or each.attachments or not (each.calls or before):
            shown.append(ChatMessage("user", each.content, attachments=each.attachments))
    return ModelInput(shown)


def _shown(data: Any) -> str:
    """What a model is shown of a message's data; empty when there is nothing."""
    data = _readable(data)
    if not isinstance(data, dict):
        return ""
    told = {
        key: each
        for key, each in data.items()
        if key not in FOR_PROGRAMS and key != RESULTS and not key.startswith("_")
    }
    results = data.get(RESULTS)
    lines = [_result(each) for each in results if isinstance(each, dict)] if isinstance(results, list) else []
    parts = [f"About the message: {_json(told)}"] if told else []
    parts += ["\n".join(["Tool results that come with the message:", *lines])] if lines else []
    return "\n\n".join(parts)


def _result(result: dict[str, Any]) -> str:
    failed = result.get("status") == "error"
    kept = ("name", "arguments", "status", "error" if failed else "result")
    return _json({key: result[key] for key in kept if key in result})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _readable(plain: Any) -> Any:
    """What `codec.plain` wrote without its marks: a date is its text, a set a list."""
    if isinstance(plain, list):
        return [_readable(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if codec.KIND not in plain:
        return {key: _readable(each) for key, each in plain.items()}
    kind, held = plain[codec.KIND], plain.get("value")
    if kind == "timedelta" and isinstance(held, list):
        return str(timedelta(*held))
    if kind == "dict" and isinstance(held, list):
        pairs = [(_readable(key), _readable(each)) for key, each in held]
        return {key if isinstance(key, str) else _json(key): each for key, each in pairs}
    return _readable(held)
