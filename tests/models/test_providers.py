"""Providers over `pydantic_ai`, played by recorded answers: no network."""

import asyncio
import base64
import gc
import json
import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from antiphon.errors import ConfigError, ModelError
from antiphon.message import Attachment, ToolCall
from antiphon.model import ChatMessage, Delta, Reply, Request, ToolSpec, Usage
from antiphon.models import resolve_model
from antiphon.models.providers import KNOWN, ProviderModel

pydantic_ai = pytest.importorskip(
    "pydantic_ai", reason="needs requirements/providers.txt (extra `anthropic`)"
)

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


def ask(model: ProviderModel, request: Request) -> tuple[Reply, list[Delta]]:
    deltas: list[Delta] = []
    return asyncio.run(model.complete(request, deltas.append)), deltas


def request(*messages: ChatMessage, **fields: Any) -> Request:
    return Request("m", "Be kind.", messages or (ChatMessage("user", "Hi"),), **fields)


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


def test_a_stream_becomes_deltas_and_one_reply() -> None:
    reply, deltas = ask(anthropic(streamed(WITH_CALL)), request(tools=(SPEC,)))
    assert [(d.kind, d.text, d.index) for d in deltas] == [
        ("reasoning", "Add ", 0),
        ("reasoning", "them.", 0),
        ("text", "Let me ", 0),
        ("call_name", "add", 0),
        ("call_arguments", '{"a"', 0),
        ("call_arguments", ": 1}", 0),
    ]
    assert (reply.content, reply.reasoning, reply.stop) == ("Let me ", "Add them.", "calls")
    assert reply.calls == (ToolCall("toolu_3", "add", '{"a": 1}'),)
    assert reply.model == "claude-sonnet-5-20260301"
    assert reply.usage == Usage(input=100, output=30, cached=70)
    assert "Add" not in json.dumps(reply.opaque)
    assert "Let me" not in json.dumps(reply.opaque)


def test_signed_reasoning_returns_untouched_and_in_its_place() -> None:
    seen: list[dict[str, Any]] = []
    reply, _ = ask(anthropic(streamed(WITH_CALL)), request(tools=(SPEC,)))
    # As the journal keeps it: through JSON and back.
    kept = msgspec.json.decode(msgspec.json.encode(reply), type=Reply)
    said = ChatMessage("assistant", kept.content, kept.calls, reasoning=kept.reasoning, opaque=kept.opaque)
    result = ChatMessage("tool", "2", call_id="toolu_3", name="add")
    ask(anthropic(streamed(HELLO), seen), request(ChatMessage("user", "Hi"), said, result, tools=(SPEC,)))
    assert seen[0]["messages"][1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Add them.", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "aGlkZGVu"},
            {"type": "text", "text": "Let me "},
            {"type": "tool_use", "id": "toolu_3", "name": "add", "input": {"a": 1}},
        ],
    }


@pytest.mark.parametrize("change", ["content", "reasoning", "calls", "provider", "other"])
def test_a_message_that_was_changed_goes_without_the_reasoning(change: str) -> None:
    seen: list[dict[str, Any]] = []
    reply, _ = ask(anthropic(streamed(WITH_CALL)), request(tools=(SPEC,)))
    fields: dict[str, Any] = {
        "content": reply.content, "calls": reply.calls, "reasoning": reply.reasoning, "opaque": reply.opaque
    }  # fmt: skip
    if change == "provider":
        fields["opaque"] = {"providers": {**reply.opaque["providers"], "provider_name": "google"}}
    elif change == "other":
        fields["opaque"] = {"openai": {"field": "reasoning_content"}}
    else:
        fields[change] = () if change == "calls" else fields[change].upper()
    said = ChatMessage("assistant", **fields)
    ask(anthropic(streamed(HELLO), seen), request(ChatMessage("user", "Hi"), said))
    kinds = [part["type"] for part in seen[0]["messages"][1]["content"]]
    assert kinds == (["text"] if change == "calls" else ["text", "tool_use"])


def test_the_request_says_all_of_ours_and_nothing_else() -> None:
    seen: list[dict[str, Any]] = []
    image = Attachment("image/png", base64.b64encode(b"png").decode())
    note = Attachment("text/plain", base64.b64encode(b"a note").decode(), name="note.txt")
    messages = (
        ChatMessage("system", "Early."),
        ChatMessage("user", "Look", attachments=(image, note)),
        ChatMessage("assistant", "", (ToolCall("c1", "add", "{broken"), ToolCall("c2", "add", "null"))),
        ChatMessage("tool", "no", call_id="c1", name="add", is_error=True),
        ChatMessage("tool", "3", call_id="c2", name="add", attachments=(image,)),
        ChatMessage("system", "Late."),
    )
    options = {"parallel_tool_calls": False, "stop": "END", "extra_body": {"mine": 1}}
    asked = request(
        *messages,
        tools=(SPEC, replace(SPEC, name="sub")),
        tool_choice="add",
        tail="Now.",
        max_output=77,
        settings=options,
    )
    ask(anthropic(streamed(HELLO), seen), asked)
    body = seen[0]
    assert (body["max_tokens"], body["stop_sequences"]) == (77, ["END"])
    assert (body["stream"], body["mine"]) == (True, 1)
    assert "Be kind." in json.dumps(body["system"])
    assert "Early." in json.dumps(body["system"])
    assert body["tools"][0]["input_schema"] == SPEC.parameters
    assert body["tool_choice"] == {"type": "tool", "name": "add", "disable_parallel_tool_use": True}
    user, assistant, results = body["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "image", "text"]
    assert user["content"][2]["text"] == "note.txt:\na note"
    assert [part["input"] for part in assistant["content"]] == [{"invalid_arguments": "{broken"}, {}]
    first, second, late, tail = results["content"]
    assert (first["tool_use_id"], first["is_error"]) == ("c1", True)
    assert (second["tool_use_id"], second["is_error"]) == ("c2", False)
    assert "image" in json.dumps(second)
    assert late["text"] == "<system>\nLate.\n</system>"
    assert tail["text"] == "Now."


def test_a_schema_is_asked_for_natively() -> None:
    seen: list[dict[str, Any]] = []
    schema = {"title": "Sum", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ask(anthropic(streamed(HELLO), seen), request(output_schema=schema))
    asked = seen[0]["output_config"]["format"]
    assert asked["type"] == "json_schema"
    assert asked["schema"]["required"] == ["n"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"settings": {"max_tokens": 3}}, "settings may not hold max_tokens"),
        ({"settings": {"temprature": 1}}, "'temprature' is not known for anthropic"),
        ({"settings": {"google_thinking_config": {}}}, "names that begin with anthropic_"),
    ],
)
def test_settings_that_nobody_would_read_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        ask(anthropic(streamed(HELLO)), request(**fields))
    assert caught.value.kind == "validation"


def test_an_attachment_that_is_not_base64_is_refused() -> None:
    message = ChatMessage("user", "x", attachments=(Attachment("image/png", "%%", name="a.png"),))
    with pytest.raises(ModelError, match=r"a\.png.*not base64"):
        ask(anthropic(streamed(HELLO)), request(message))


def refusal(status: int, kind: str, text: str, **headers: str) -> Respond:
    body = {"type": "error", "error": {"type": kind, "message": text}}
    return lambda _: httpx2.Response(status, headers=headers, json=body)


@pytest.mark.parametrize(
    ("status", "type_", "text", "kind"),
    [
        (429, "rate_limit_error", "slow down", "rate_limit"),
        (529, "overloaded_error", "busy", "overloaded"),
        (503, "api_error", "down", "overloaded"),
        (500, "api_error", "oops", "overloaded"),
        (401, "authentication_error", f"invalid x-api-key {KEY}", "auth"),
        (403, "permission_error", "not yours", "permission"),
        (402, "billing_error", "no credit", "quota"),
        (400, "invalid_request_error", "Your credit balance is too low", "quota"),
        (400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum", "context"),
        (413, "request_too_large", "too large", "context"),
        (400, "invalid_request_error", "messages: no", "validation"),
        (404, "not_found_error", "model: nope", "validation"),
        (408, "timeout_error", "late", "timeout"),
    ],
)
def test_refusals_are_classified_in_words_that_are_safe(
    status: int, type_: str, text: str, kind: str
) -> None:
    asked: list[dict[str, Any]] = []
    with pytest.raises(ModelError) as caught:
        ask(anthropic(refusal(status, type_, text), asked), request())
    error = caught.value
    assert (error.kind, error.status) == (kind, status)
    assert len(asked) == 1, "a retry is the run's to make"
    assert error.text.startswith(f"anthropic (claude-sonnet-5) answered {status}")
    assert KEY not in error.text
    if kind != "auth":
        assert text.split(":")[0] in error.text


def test_the_wait_a_provider_asks_for_is_told() -> None:
    respond = refusal(429, "rate_limit_error", "slow", **{"retry-after": "7"})
    with pytest.raises(ModelError) as caught:
        ask(anthropic(respond), request())
    assert caught.value.retry_after == 7.0
    nonsense = refusal(429, "rate_limit_error", "slow", **{"retry-after": "999999999"})
    with pytest.raises(ModelError) as caught:
        ask(anthropic(nonsense), request())
    assert caught.value.retry_after is None


def test_a_key_is_masked_where_a_provider_repeats_it() -> None:
    from antiphon.models.providers.failures import failure, shown

    assert shown(f"bad\u202e key {KEY}\n", (KEY,)) == "bad key ***"
    assert failure(RuntimeError(KEY), "here", False, ()).text == "here: RuntimeError"


def test_an_error_inside_a_stream_is_classified() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    with pytest.raises(ModelError) as caught:
        ask(anthropic(streamed(sse(START, *text_block("Hel"), error))), request())
    assert caught.value.kind == "overloaded"


@pytest.mark.parametrize(
    "body",
    [
        Pieces([sse(START, *text_block("Hel"))]),
        Pieces([sse(START, *text_block("Hel"))], httpx2.ReadError("reset")),
        Pieces([sse(START)[:-40]]),
        Pieces([sse(START, *call_block(0, '{"a"'))]),
        Pieces([]),
    ],
    ids=["no end mark", "reset", "half an event", "half a call", "nothing"],
)
def test_what_has_no_end_mark_is_no_reply(body: Pieces) -> None:
    with pytest.raises(ModelError) as caught:
        ask(anthropic(streamed(body)), request())
    assert caught.value.kind in ("cut", "network")
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (sse(START, *text_block("x"), *end("who_knows")), "provider", "unknown here: who_knows"),
        (sse(START, *text_block("x"), *end("pause_turn")), "provider", "paused"),
        (sse(START, *text_block("x"), *end("tool_use")), "cut", "sent no call"),
        (sse(START, *call_block(0, '{"a"'), *end("max_tokens")), "validation", "raise max_output"),
    ],
)
def test_a_stop_reason_is_never_invented(body: bytes, kind: str, words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the SDK warns about a reason that it does not know
        with pytest.raises(ModelError, match=words) as caught:
            ask(anthropic(streamed(body)), request(tools=(SPEC,)))
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("reason", "stop"), [("end_turn", "stop"), ("max_tokens", "length"), ("refusal", "refusal")]
)
def test_stop_reasons_are_the_ports(reason: str, stop: str) -> None:
    reply, _ = ask(anthropic(streamed(sse(START, *text_block("x"), *end(reason)))), request())
    assert (reply.stop, reply.opaque) == (stop, None)


def test_a_host_that_cannot_be_reached_is_network() -> None:
    def respond(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    with pytest.raises(ModelError) as caught:
        ask(anthropic(respond), request())
    assert (caught.value.kind, caught.value.status) == ("network", 0)

    def late(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("late")

    with pytest.raises(ModelError) as caught:
        ask(anthropic(late), request())
    assert caught.value.kind == "timeout"


def test_silence_is_a_timeout() -> None:
    hanging = Pieces([sse(START, *text_block("Hel"))], hang=True)
    with pytest.raises(ModelError, match=r"stopped in the middle.*idle") as caught:
        ask(anthropic(streamed(hanging), idle=0.01), request())
    assert caught.value.kind == "timeout"
    assert hanging.closed
    silent = Pieces([], hang=True)
    with pytest.raises(ModelError, match=r"has sent nothing for 0\.01 s") as caught:
        ask(anthropic(streamed(silent), first_event=0.01), request())
    assert caught.value.kind == "timeout"


def test_a_cancelled_call_closes_its_connection() -> None:
    hanging = Pieces([sse(START, *text_block("Hel"))], hang=True)
    heard: list[Delta] = []

    async def go() -> None:
        task = asyncio.ensure_future(anthropic(streamed(hanging)).complete(request(), heard.append))
        await hanging.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert hanging.closed
    assert [delta.text for delta in heard] == ["Hel"]


RESPONSE: dict[str, Any] = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.1", "output": [], "tools": [],
    "parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress",
}  # fmt: skip
REASONING = {
    "id": "rs_1", "type": "reasoning", "encrypted_content": "ZW5j",
    "summary": [{"type": "summary_text", "text": "Thinking."}],
}  # fmt: skip
FUNCTION = {
    "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a":1}',
    "status": "completed",
}  # fmt: skip
OPENAI_USAGE = {
    "input_tokens": 100, "output_tokens": 50, "total_tokens": 150,
    "input_tokens_details": {"cached_tokens": 60}, "output_tokens_details": {"reasoning_tokens": 40},
}  # fmt: skip


def responses(seen: list[dict[str, Any]]) -> ProviderModel:
    pytest.importorskip("openai", reason="needs requirements/providers.txt (extra `openai`)")
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    done = {**RESPONSE, "status": "completed", "output": [REASONING, FUNCTION], "usage": OPENAI_USAGE}
    started = {**REASONING, "summary": [], "encrypted_content": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": started},
        {"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "output_index": 0,
         "summary_index": 0, "part": {"type": "summary_text", "text": ""}},
        {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0,
         "summary_index": 0, "delta": "Thinking."},
        {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
        {"type": "response.output_item.added", "output_index": 1, "item": {**FUNCTION, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1,
         "delta": '{"a":1}'},
        {"type": "response.output_item.done", "output_index": 1, "item": FUNCTION},
        {"type": "response.completed", "response": done},
    ]  # fmt: skip
    body = sse(*({**event, "sequence_number": number} for number, event in enumerate(events)))

    def respond(sent: httpx2.Request) -> httpx2.Response:
        seen.append(json.loads(sent.content))
        return streamed(body)(sent)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
    return ProviderModel(
        OpenAIResponsesModel("gpt-5.1", provider=OpenAIProvider(api_key="k", http_client=client))
    )


def test_reasoning_items_of_openai_return_with_their_ids() -> None:
    seen: list[dict[str, Any]] = []
    reply, deltas = ask(responses(seen), request(tools=(SPEC,)))
    assert [(d.kind, d.text) for d in deltas] == [
        ("reasoning", "Thinking."),
        ("call_name", "add"),
        ("call_arguments", '{"a":1}'),
    ]
    assert (reply.usage, reply.stop) == (Usage(100, 50, 60, 40), "calls")
    said = ChatMessage("assistant", "", reply.calls, reasoning=reply.reasoning, opaque=reply.opaque)
    result = ChatMessage("tool", "2", call_id=reply.calls[0].id, name="add")
    ask(responses(seen), request(ChatMessage("user", "Hi"), said, result, tools=(SPEC,)))
    items = {item.get("type"): item for item in seen[1]["input"]}
    assert items["reasoning"]["id"] == "rs_1"
    assert items["reasoning"]["encrypted_content"] == "ZW5j"
    assert items["reasoning"]["summary"] == [{"type": "summary_text", "text": "Thinking."}]
    assert (items["function_call"]["id"], items["function_call"]["call_id"]) == ("fc_1", "call_1")
    assert items["function_call_output"]["call_id"] == "call_1"


def google(seen: list[dict[str, Any]]) -> ProviderModel:
    pytest.importorskip("google.genai", reason="needs requirements/providers.txt (extra `google`)")
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    call = {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "c2ln"}
    usage = {
        "promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 30,
        "cachedContentTokenCount": 50, "totalTokenCount": 140,
    }  # fmt: skip
    chunks = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": True}]}}]},
        {
            "candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP"}],
            "usageMetadata": usage,
            "modelVersion": "gemini-3.8-flash",
        },
    ]
    body = b"".join(b"data: %s\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)

    def respond(sent: httpx2.Request) -> httpx2.Response:
        seen.append(json.loads(sent.content))
        return streamed(body)(sent)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(respond), timeout=60)
    return ProviderModel(
        GoogleModel("gemini-3.8-flash", provider=GoogleProvider(api_key="k", http_client=client))
    )


def test_thought_signatures_of_google_return_at_their_call() -> None:
    seen: list[dict[str, Any]] = []
    reply, _ = ask(google(seen), request(tools=(SPEC,)))
    assert (reply.reasoning, reply.stop) == ("Hm.", "calls")
    assert reply.usage == Usage(100, 40, 50, 30)
    said = ChatMessage("assistant", "", reply.calls, reasoning=reply.reasoning, opaque=reply.opaque)
    result = ChatMessage("tool", "2", call_id=reply.calls[0].id, name="add")
    ask(google(seen), request(ChatMessage("user", "Hi"), said, result, tools=(SPEC,)))
    parts = [part for content in seen[1]["contents"] for part in content["parts"]]
    (called,) = [part for part in parts if "functionCall" in part]
    assert called["thoughtSignature"] == "c2ln"


ENV = {"ANTHROPIC_API_KEY": KEY}


def test_a_model_string_is_resolved() -> None:
    pytest.importorskip("anthropic", reason="needs requirements/providers.txt (extra `anthropic`)")
    model = resolve_model("claude/claude-x", ENV)
    assert model.name == "anthropic:claude-x"
    assert isinstance(model, ProviderModel)
    assert KEY not in repr(model)


@pytest.mark.parametrize("prefix", sorted(KNOWN))
def test_what_is_not_set_is_named_with_its_extra(prefix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model(f"{prefix}:some-model", {})
    known = KNOWN[prefix]
    assert f"the extra `{known.extra}`: pip install 'antiphon[{known.extra}]'" in str(caught.value)
    for names in known.settings:
        assert " or ".join(names) in str(caught.value)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pydantic_ai.models.groq", None)
    with pytest.raises(ConfigError, match=r"needs the extra `groq`: pip install 'antiphon\[groq\]'"):
        ProviderModel("groq:llama", env={"GROQ_API_KEY": "k"})


@pytest.mark.parametrize("text", ["anthropic:", "nobody:x", "x"])
def test_a_string_that_names_no_provider_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected PREFIX:MODEL"):
        ProviderModel(text, env=ENV)


def test_one_model_serves_many_event_loops_and_closes_with_each() -> None:
    pytest.importorskip("anthropic", reason="needs requirements/providers.txt (extra `anthropic`)")
    # A port that nothing listens on: the call fails, its connections are made and let go all the same.
    model = ProviderModel("anthropic:x", env={**ENV, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    for _ in range(3):
        with pytest.raises(ModelError) as caught:
            asyncio.run(model.complete(request(), lambda _: None))
        assert caught.value.kind == "network"
        assert not model._loops

    async def closed_early() -> None:
        with pytest.raises(ModelError):
            await model.complete(request(), lambda _: None)
        await model.aclose()
        assert not model._loops
        await model.aclose()

    asyncio.run(closed_early())
    gc.collect()
