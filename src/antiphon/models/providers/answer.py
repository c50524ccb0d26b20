"""What `pydantic_ai` gives back, as deltas and one whole reply."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)

from antiphon.errors import ModelError
from antiphon.models.providers.kept import pack
from antiphon.values.message import ToolCall, new_id
from antiphon.values.model import MAX_CALLS, Delta, Emit, Reply, Stop, Usage, too_many_calls

_STOPS: dict[str, Stop] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
    "tool_call": "calls",
}
_REASONING = ("reasoning_tokens", "thinking_tokens", "thoughts_tokens")


class Deltas:
    """Passes a stream's events on as deltas; calls are numbered in the order they begin."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._calls: dict[int, int] = {}
        self._named: set[int] = set()

    def take(self, event: Any) -> None:
        """Pass on one event; those that carry nothing new are passed over."""
        if isinstance(event, PartStartEvent):
            self._piece(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            self._piece(event.index, event.delta)

    def _piece(self, index: int, piece: Any) -> None:
        if isinstance(piece, TextPart):
            self._send("text", piece.content)
        elif isinstance(piece, TextPartDelta):
            self._send("text", piece.content_delta)
        elif isinstance(piece, ThinkingPart):
            self._send("reasoning", piece.content)
        elif isinstance(piece, ThinkingPartDelta):
            self._send("reasoning", piece.content_delta or "")
        elif isinstance(piece, ToolCallPart):
            self._call(index, piece.tool_name, piece.args)
        elif isinstance(piece, ToolCallPartDelta):
            self._call(index, piece.tool_name_delta or "", piece.args_delta)

    def _call(self, index: int, name: str, arguments: Any) -> None:
        place = self._calls.setdefault(index, len(self._calls))
        if name:
            self._send("call_name", name, place)
        if arguments:
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            self._send("call_arguments", text, place)

    def _send(self, kind: Any, text: str, index: int = 0) -> None:
        if text:
            self._emit(Delta(kind, text, index))


def reply_of(response: ModelResponse, where: str) -> Reply:
    """The reply; `ModelError` when the provider did not end it as one that is whole.

    where: the provider as an error may name it.
    """
    stop = _stop(response, where)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            texts.append(part.content)
        elif isinstance(part, ThinkingPart):
            thoughts.append(part.content)
        elif isinstance(part, ToolCallPart):
            if len(calls) == MAX_CALLS:
                raise too_many_calls(where, len(calls) + 1)
            calls.append(_call(part, calls, stop))
        else:
            raise ModelError("provider", f"{where} sent a {part.part_kind} part, which has no place here")
    if calls and stop == "stop":
        stop = "calls"
    elif stop == "calls" and not calls:
        raise ModelError("disconnected", f"{where} said it called a tool, but sent no call")
    return Reply(
        "".join(texts),
        tuple(calls),
        stop,
        read_usage(response.usage),
        "".join(thoughts),
        response.model_name or "",
        pack(response),
    )


def _stop(response: ModelResponse, where: str) -> Stop:
    raw = str((response.provider_details or {}).get("finish_reason") or "")
    if response.state == "suspended":
        raise ModelError("provider", f"{where} paused its answer ({raw[:60]}), which is not supported here")
    if response.state != "complete":
        raise ModelError("disconnected", f"{where} broke off in the middle of its answer")
    if response.finish_reason is None:
        if raw:
            raise ModelError("provider", f"{where} stopped for a reason unknown here: {raw[:60]}")
        raise ModelError("disconnected", f"{where} ended its answer without a finish reason")
    if response.finish_reason == "error":
        raise ModelError("disconnected", f"{where} gave its answer up" + (f": {raw[:60]}" if raw else ""))
    return _STOPS[response.finish_reason]


def _call(part: ToolCallPart, before: list[ToolCall], stop: Stop) -> ToolCall:
    """A call with a name and an id of its own."""
    given = part.args if part.args is not None else ""
    arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    # In a reply that was cut, arguments that are missing may never have begun: the caller must know.
    missing = "" if stop == "length" else "{}"
    taken = not part.tool_call_id or any(one.id == part.tool_call_id for one in before)
    return ToolCall(
        f"call_{new_id()[:24]}" if taken else part.tool_call_id, part.tool_name, arguments or missing
    )


def read_usage(usage: Any) -> Usage | None:
    """Input with what was cached, output with what was reasoned: so the providers' figures arrive here.

    None when nothing was said that can be.
    """
    details = usage.details or {}
    reasoning = usage.output_reasoning_tokens or next(
        (details[name] for name in _REASONING if details.get(name)), 0
    )
    return Usage.reported(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens or 0,
        reasoning or 0,
        usage.cache_write_tokens or 0,
    )
