"""Requests as chat-completions JSON. Each conversation message is encoded once."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from antiphon.errors import ModelError
from antiphon.values.message import Attachment, ToolCall
from antiphon.values.model import ChatMessage, ModelRequest, ToolSpec

_json = msgspec.json.Encoder()
_OWN = frozenset(
    {"model", "messages", "tools", "tool_choice", "stream", "max_tokens", "max_completion_tokens", "n"}
)
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
# Raw NUL never occurs in JSON: it divides a tool result from the files that must follow it later.
_LATER = b"\0"


@runtime_checkable
class Encodes(Protocol):
    """A conversation that keeps what its messages were encoded to, per key."""

    def encoded(self, key: str, encode: Callable[[ChatMessage], bytes]) -> Sequence[bytes]: ...


class Dialect(Struct):
    """What one endpoint was found to accept; learned from its refusals, kept for later calls."""

    cap: str = "max_completion_tokens"
    stream_usage: bool = True
    reasoning: bool = True

    def learn(self, refusal: str) -> bool:
        """Change what a 400's text objects to; whether anything changed."""
        text = refusal.lower()
        if not any(word in text for word in _REFUSING):
            return False
        if "stream_options" in text and self.stream_usage:
            self.stream_usage = False
        elif self.reasoning and ("reasoning_content" in text or "reasoning_details" in text):
            self.reasoning = False
        elif self.cap in text:
            self.cap = "max_tokens" if self.cap == "max_completion_tokens" else "max_completion_tokens"
        else:
            return False
        return True


_REFUSING = (
    "unsupported",
    "not supported",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "forbidden",
    "additional propert",
    "extra input",
    "extra field",
    "does not support",
    "invalid field",
)


def encode_request(
    model: str, request: ModelRequest, dialect: Dialect, *, stream: bool, tools: bytes
) -> bytes:
    """The body, asking `model`. `tools` as `encode_tools` made it, empty for none.

    The tail goes last, as a user message: templates that refuse a late system message are common.
    """
    parts: list[bytes] = []
    if request.system:
        parts.append(_json.encode({"role": "system", "content": request.system}))
    parts += encode_messages(request.messages, dialect.reasoning)
    if request.tail:
        parts.append(_json.encode({"role": "user", "content": request.tail}))
    offered = b',"tools":' + tools if tools else b""
    options = _json.encode(_options(request, dialect, stream, bool(tools)))
    begin = b'{"model":%b,"messages":[' % _json.encode(model)
    end = b"]%b,%b" % (offered, options[1:])
    body = _framed(begin, parts, end)
    return _framed(begin, _files_last(parts), end) if _LATER in body else body


def _framed(begin: bytes, parts: Sequence[bytes], end: bytes) -> bytes:
    """All of it in one copy: a long conversation is most of the body."""
    if not parts:
        return begin + end
    framed = [*parts, parts[-1] + end]
    del framed[-2]
    framed[0] = begin + framed[0]
    return b",".join(framed)


def _options(request: ModelRequest, dialect: Dialect, stream: bool, tools: bool) -> dict[str, Any]:
    """Everything of the body but model, messages and tools."""
    if clash := _OWN.intersection(request.settings):
        raise ModelError(
            "validation", f"settings may not hold {', '.join(sorted(clash))}: the request says it"
        )
    options: dict[str, Any] = {dialect.cap: request.max_output, "stream": stream}
    if stream and dialect.stream_usage:
        options["stream_options"] = {"include_usage": True}
    if tools and request.tool_choice != "auto":
        choice = request.tool_choice
        named = {"type": "function", "function": {"name": choice}}
        options["tool_choice"] = choice if choice in ("none", "required") else named
    if request.output_schema is not None:
        schema = request.output_schema
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in str(schema.get("title", "")))[:64]
        wanted = {"name": name or "output", "schema": schema, "strict": _is_strict(schema)}
        options["response_format"] = {"type": "json_schema", "json_schema": wanted}
    options.update(request.settings)
    return options


def _is_strict(schema: Any) -> bool:
    """Whether every object in it is closed and all its properties are required: strict mode's terms."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" or "properties" in schema:
            closed = schema.get("additionalProperties") is False
            if not closed or set(schema.get("required", ())) != set(schema.get("properties", ())):
                return False
        return all(_is_strict(value) for value in schema.values())
    return all(_is_strict(value) for value in schema) if isinstance(schema, list) else True


def encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    """The `tools` array; empty when there are none."""
    if not tools:
        return b""
    return _json.encode([{"type": "function", "function": tool} for tool in tools])


def encode_messages(messages: Sequence[ChatMessage], reasoning: bool) -> Sequence[bytes]:
    """One piece of JSON per message, from the conversation's own cache where it has one."""
    encode = encode_message if reasoning else _encode_plain
    if isinstance(messages, Encodes):
        return messages.encoded("openai" if reasoning else "openai-plain", encode)
    return [encode(message) for message in messages]


def _encode_plain(message: ChatMessage) -> bytes:
    return encode_message(message, reasoning=False)


def encode_message(message: ChatMessage, reasoning: bool = True) -> bytes:
    """One message; a tool result with files is followed by NUL and the message that shows them."""
    if message.role == "tool":
        result = {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
        encoded = _json.encode(result)
        if message.attachments:
            title = f"Files of the result of {message.name or message.call_id}:"
            shown = {"role": "user", "content": _parts(title, message.attachments)}
            encoded = b"%b%b%b" % (encoded, _LATER, _json.encode(shown))
        return encoded
    if message.role == "assistant":
        return _json.encode(_assistant(message, reasoning))
    content: Any = _parts(message.content, message.attachments) if message.attachments else message.content
    return _json.encode({"role": message.role, "content": content})


def _assistant(message: ChatMessage, reasoning: bool) -> dict[str, Any]:
    kept = message.opaque.get("openai", {}) if isinstance(message.opaque, dict) else {}
    content = kept.get("content", message.content)
    wire: dict[str, Any] = {"role": "assistant", "content": content or (None if message.calls else "")}
    if message.calls:
        wire["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": _arguments(one)}}
            for one in message.calls
        ]
    if reasoning:
        if (field := kept.get("field")) in ("reasoning_content", "reasoning") and message.reasoning:
            wire[field] = message.reasoning
        if kept.get("details"):
            wire["reasoning_details"] = kept["details"]
    return wire


def _arguments(one: ToolCall) -> str:
    """The arguments as a JSON object's text: servers exist that refuse a history with anything else."""
    text = one.arguments.strip()
    if text in ("", "null"):
        return "{}"
    try:
        if isinstance(msgspec.json.decode(text), dict):
            return one.arguments
    except (msgspec.DecodeError, RecursionError):
        return _json.encode({"invalid_arguments": text}).decode()
    return _json.encode({"invalid_arguments": text}).decode()


def _parts(text: str, attachments: Sequence[Attachment]) -> list[dict[str, Any]]:
    """Text and files as content parts."""
    return ([{"type": "text", "text": text}] if text else []) + [_part(one) for one in attachments]


def _part(one: Attachment) -> dict[str, Any]:
    kind = one.media_type.lower().partition(";")[0].strip()
    url = one.url or f"data:{kind};base64,{one.data}"
    name = one.name or kind
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if one.url and not one.data:
        return {"type": "text", "text": f"{name}: {one.url}"}
    if kind in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": one.data, "format": _AUDIO[kind]}}
    if kind.startswith("text/") or kind == "application/json":
        try:
            return {
                "type": "text",
                "text": f"{name}:\n{base64.b64decode(one.data, validate=True).decode('utf-8', 'replace')}",
            }
        except (binascii.Error, ValueError) as error:
            raise ModelError("validation", f"The attachment {name!r} is not base64") from error
    return {"type": "file", "file": {"filename": one.name or "file", "file_data": url}}


def _files_last(parts: Sequence[bytes]) -> list[bytes]:
    """Move files behind the whole block of tool results: nothing may stand between those."""
    out: list[bytes] = []
    held: list[bytes] = []
    for part in parts:
        result, mark, files = part.partition(_LATER)
        if held and not result.startswith(b'{"role":"tool"'):
            out += held
            held = []
        out.append(result)
        if mark:
            held.append(files)
    return out + held
