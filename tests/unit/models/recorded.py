"""Recorded answers of providers, and models that hear them: no network."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from antiphon.models.providers import ProviderModel
from antiphon.values.model import ChatMessage, Delta, ModelRequest, Reply, ToolSpec

Respond = Callable[[httpx2.Request], httpx2.Response]
KEY = "sk-ant-very-secret"


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in pieces; `closed` once it is let go."""

    def __init__(self, pieces: list[bytes], error: Exception | None = None, hang: bool = False) -> None:
        self.pieces, self.error, self.hang, self.closed = pieces, error, hang, False
        self.hanging = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.hang:
            self.hanging.set()
            await asyncio.Event().wait()
        if self.error:
            raise self.error

    async def aclose(self) -> None:
        self.closed = True


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


def streamed(body: bytes | Pieces, headers: dict[str, str] | None = None) -> Respond:
    def respond(request: httpx2.Request) -> httpx2.Response:
        stream = body if isinstance(body, Pieces) else Pieces([body])
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream", **(headers or {})}, stream=stream
        )

    return respond


def anthropic(respond: Respond, seen: list[dict[str, Any]] | None = None, **options: Any) -> ProviderModel:
    pytest.importorskip("anthropic", reason="needs requirements/providers.txt (extra `anthropic`)")
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def recording(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(json.loads(request.content))
        return respond(request)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(recording))
    provider = AnthropicProvider(api_key=KEY, http_client=client)
    return ProviderModel(AnthropicModel("claude-sonnet-5", provider=provider), **options)


def ask(model: ProviderModel, request: ModelRequest) -> tuple[Reply, list[Delta]]:
    deltas: list[Delta] = []
    return asyncio.run(model.complete(request, deltas.append)), deltas


def request(*messages: ChatMessage, **fields: Any) -> ModelRequest:
    return ModelRequest("m", "Be kind.", messages or (ChatMessage("user", "Hi"),), **fields)


SPEC = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-20260301",
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 20, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 10,
                  "output_tokens": 1},
    },
}  # fmt: skip


def block(index: int, kind: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": kind},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason: str = "end_turn") -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ]


def text_block(text: str, index: int = 0) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})


def call_block(index: int, *arguments: str) -> list[dict[str, Any]]:
    kind = {"type": "tool_use", "id": f"toolu_{index}", "name": "add", "input": {}}
    return block(index, kind, *({"type": "input_json_delta", "partial_json": piece} for piece in arguments))


THINKING = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Add "},
    {"type": "thinking_delta", "thinking": "them."},
    {"type": "signature_delta", "signature": "c2lnbmVk"},
)
HIDDEN = block(1, {"type": "redacted_thinking", "data": "aGlkZGVu"})
WITH_CALL = sse(
    START, *THINKING, *HIDDEN, *text_block("Let me ", 2), *call_block(3, '{"a"', ": 1}"), *end("tool_use")
)
HELLO = sse(START, *text_block("Hello."), *end())
