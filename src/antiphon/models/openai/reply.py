"""Chat-completions answers: chunks in, deltas out, one whole reply at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from antiphon.errors import ModelError
from antiphon.models.openai.failures import body_error
from antiphon.models.openai.tags import TagDivider, strip_reasoning
from antiphon.values.message import ToolCall, new_id
from antiphon.values.model import MAX_CALLS, Delta, Emit, Reply, Stop, Usage, too_many_calls
from antiphon.values.secret import shown

_STOPS: dict[str, Stop] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "calls",
    "tool_use": "calls",
    "function_call": "calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
}
"""Every reason that is known, in lower case. A reason that is not here is an error: it may mean anything."""


class _Function(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _ContentPart(Struct):
    type: str = ""
    text: str | None = None


class _ReplyMessage(Struct):
    content: str | list[_ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _ReplyChoice(Struct):
    index: int | None = 0
    delta: _ReplyMessage | None = None
    message: _ReplyMessage | None = None
    finish_reason: str | None = None
    usage: Raw = Raw(b"null")


class _Groq(Struct):
    usage: Raw = Raw(b"null")


class Chunk(Struct):
    """One chunk of a stream, or a whole answer: they differ in `delta` and `message` only."""

    choices: list[_ReplyChoice] | None = None
    usage: Raw = Raw(b"null")
    model: str | None = None
    error: Any = None
    x_groq: _Groq | None = None
    halves: bool = False


class _Details(Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Tokens(Struct):
    """The spellings of usage in use: OpenAI's two, DeepSeek's, Moonshot's, xAI's."""

    prompt_tokens: int | None = None
    input_tokens: int | None = None
    completion_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None
    reasoning_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


class _PendingCall:
    """A call that is being put together."""

    __slots__ = ("arguments", "id", "name", "place")

    def __init__(self, place: int) -> None:
        self.place, self.id, self.name = place, "", ""
        self.arguments: list[str] = []


def decode_chunk(data: bytes, where: str) -> Chunk:
    """One JSON answer or chunk; `ModelError("disconnected")` when it is not one."""
    try:
        # Not strict: numbers as texts and the like are seen in the wild, and harmless.
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Servers that cut texts by UTF-16 units write half a character as \\uD83D; only json reads that.
        if (b"\\u" in data or b'"tool_calls"' in data) and (chunk := _mended(data)):
            return chunk
        text = f"{where} sent something that is no chat completion: {shown(str(error), limit=100)}"
        raise ModelError("disconnected", text) from None


def _mended(data: bytes) -> Chunk | None:
    """A chunk with halves of characters, or with what is no call among its calls."""
    try:
        found = json.loads(data, object_hook=_mended_object)
        chunk = msgspec.convert(found, Chunk, strict=False)
    except (ValueError, msgspec.ValidationError, RecursionError):
        return None
    chunk.halves = b"\\u" in data
    return chunk


def _mended_object(found: dict[str, Any]) -> dict[str, Any]:
    """An object of a chunk as `convert` takes it: calls only among its calls, its usage as JSON."""
    calls = found.get("tool_calls")
    if isinstance(calls, list):
        found["tool_calls"] = [each for each in calls if isinstance(each, dict)]
    if "usage" in found:
        found["usage"] = Raw(json.dumps(found["usage"]).encode())
    return found


def mend(text: str) -> str:
    """Halves of a character put together where they meet, U+FFFD where they do not."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_decoder = msgspec.json.Decoder(Chunk, strict=False)


class ReplyMaker:
    """Puts one reply together; `take` each chunk, then `finish`.

    Raises `ModelError` for an error object in the answer, and from `finish` when the answer has no
    end mark or is not whole.
    """

    def __init__(
        self, emit: Emit, where: str, model: str, *, tags: bool = True, secrets: Sequence[str] = ()
    ) -> None:
        self._emit, self._where, self._model, self._tags = emit, where, model, tags
        self._secrets = secrets
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._field = ""
        self._details: list[Any] = []
        self._refusal: list[str] = []
        self._slots: list[_PendingCall] = []
        self._by_index: dict[int, _PendingCall] = {}
        self._usage: Usage | None = None
        self._divider = TagDivider(self._show, self._show_reasoning) if tags else None
        self._halves = False
        self.reason = ""

    def take(self, chunk: Chunk) -> None:
        """Take in one chunk. After a finish reason only usage is still listened to."""
        if chunk.halves:
            self._halves = True
        if chunk.error:
            raise body_error(chunk.error, self._where, self._secrets)
        if chunk.model:
            self._model = chunk.model
        if len(chunk.usage) > 4:
            self._usage = read_usage(chunk.usage)
        if chunk.x_groq is not None and len(chunk.x_groq.usage) > 4:
            self._usage = read_usage(chunk.x_groq.usage)
        for choice in chunk.choices or ():
            if choice.index:
                continue
            if len(choice.usage) > 4:
                self._usage = read_usage(choice.usage)
            if self.reason:
                continue
            said = choice.delta or choice.message
            if said is not None:
                self._take(said)
            if choice.finish_reason:
                self.reason = choice.finish_reason

    def _take(self, said: _ReplyMessage) -> None:
        content = said.content
        if content:
            if not isinstance(content, str):
                content = "".join(part.text or "" for part in content)
            self._text.append(content)
            if self._divider is None or (self._divider.plain and "<" not in content):
                self._show(content)
            else:
                self._divider.feed(content)
        if thought := said.reasoning_content or said.reasoning:
            self._field = self._field or ("reasoning_content" if said.reasoning_content else "reasoning")
            self._reasoning.append(thought)
            self._send("reasoning", thought)
        if said.reasoning_details and not self._halves:
            self._details += said.reasoning_details
        if said.refusal:
            self._refusal.append(said.refusal)
            self._show(said.refusal)
        for piece in said.tool_calls or ():
            self._take_call(piece)

    def _take_call(self, piece: _CallDelta) -> None:
        function = piece.function or _Function()
        name, arguments = function.name or "", function.arguments or ""
        slot = self._slot(piece, name)
        slot.id = slot.id or piece.id or ""
        if name and name != slot.name and not slot.arguments:
            slot.name += name
            self._send("call_name", name, slot.place)
        if arguments:
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            slot.arguments.append(text)
            self._send("call_arguments", text, slot.place)

    def _slot(self, piece: _CallDelta, name: str) -> _PendingCall:
        """The call that a piece belongs to, by index where there is one, else by id, else the latest."""
        if piece.index is not None:
            slot = self._by_index.get(piece.index)
            # Servers exist that give every call the index 0: a fresh id with a name is a fresh call.
            if slot is None or (piece.id and name and slot.id and piece.id != slot.id):
                slot = self._by_index[piece.index] = self._opened()
            return slot
        if piece.id:
            return next((one for one in self._slots if one.id == piece.id), None) or self._opened()
        if name or not self._slots:
            return self._opened()
        return self._slots[-1]

    def _opened(self) -> _PendingCall:
        if len(self._slots) == MAX_CALLS:
            raise too_many_calls(self._where, len(self._slots) + 1)
        self._slots.append(_PendingCall(len(self._slots)))
        return self._slots[-1]

    def _show(self, text: str) -> None:
        self._emit(Delta("text", mend(text) if self._halves else text))

    def _show_reasoning(self, text: str) -> None:
        self._reasoning.append(text)
        self._send("reasoning", text)

    def _send(
        self, kind: Literal["reasoning", "call_name", "call_arguments"], text: str, index: int = 0
    ) -> None:
        self._emit(Delta(kind, mend(text) if self._halves else text, index))

    def _joined(self, pieces: list[str]) -> str:
        text = "".join(pieces)
        return mend(text) if self._halves else text

    def finish(self) -> Reply:
        """The reply, once the answer has ended as the endpoint meant it to."""
        if not self.reason:
            raise ModelError("disconnected", f"{self._where} ended its answer without a finish reason")
        stop = _STOPS.get(self.reason.lower())
        if stop is None:
            reason = shown(self.reason, self._secrets, 60)
            raise ModelError("provider", f"{self._where} stopped for a reason unknown here: {reason}")
        if self._divider is not None:
            self._divider.close()
        calls = self._calls(stop)
        raw = self._joined(self._text)
        content = strip_reasoning(raw) if self._tags else raw
        if self._refusal:
            stop = "refusal"
            content = content or self._joined(self._refusal)
        elif calls and stop == "stop":
            stop = "calls"
        elif stop == "calls" and not calls:
            raise ModelError("disconnected", f"{self._where} said it called a tool, but sent no call")
        kept: dict[str, Any] = {}
        if self._field:
            kept["field"] = self._field
        if self._details:
            kept["details"] = self._details
        if content != raw and raw:
            kept["content"] = raw
        opaque = {"openai": kept} if kept else None
        return Reply(content, calls, stop, self._usage, self._joined(self._reasoning), self._model, opaque)

    def _calls(self, stop: Stop) -> tuple[ToolCall, ...]:
        """The calls, each with a name and an id of its own."""
        calls: list[ToolCall] = []
        ids: set[str] = set()
        for slot in self._slots:
            arguments = self._joined(slot.arguments)
            if not slot.name:
                raise ModelError("disconnected", f"{self._where} sent a tool call without a name")
            call_id = slot.id if slot.id and slot.id not in ids else f"call_{new_id()[:24]}"
            ids.add(call_id)
            # In a reply that was cut, arguments that are missing may never have begun: the caller must know.
            missing = "" if stop == "length" else "{}"
            calls.append(ToolCall(call_id, self._joined([slot.name]), arguments or missing))
        return tuple(calls)


def read_usage(raw: Raw) -> Usage | None:
    """Usage in any known spelling; None when it cannot be read, or lacks one of its two counts."""
    try:
        told = msgspec.json.decode(raw, type=_Tokens, strict=False)
    except (msgspec.DecodeError, RecursionError):
        return None
    inputs = told.prompt_tokens_details or told.input_tokens_details or _Details()
    outputs = told.completion_tokens_details or told.output_tokens_details or _Details()
    taken = told.prompt_tokens if told.prompt_tokens is not None else told.input_tokens
    given = told.completion_tokens if told.completion_tokens is not None else told.output_tokens
    if taken is None or given is None:
        # Half of a bill is none: what is missing may be the larger part.
        return None
    cached = inputs.cached_tokens or told.cached_tokens or told.prompt_cache_hit_tokens or 0
    reasoning = outputs.reasoning_tokens or told.reasoning_tokens or 0
    if reasoning and told.total_tokens == taken + given + reasoning:
        # Here reasoning was counted beside the output, not as a part of it.
        given += reasoning
    return Usage.reported(taken, given, cached, reasoning)
