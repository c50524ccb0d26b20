"""Providers over `pydantic_ai`, played by recorded answers."""

import asyncio
import base64
import gc
import json
import sys
from typing import Any

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from antiphon.errors import ConfigError, ModelError
from antiphon.models import resolve_model
from antiphon.models.providers import ProviderModel
from antiphon.values.message import Attachment, ToolCall
from antiphon.values.model import ChatMessage, Reply, Usage
from tests.unit.models.recorded import (
    HELLO,
    KEY,
    SPEC,
    WITH_CALL,
    anthropic,
    ask,
    request,
    sse,
    streamed,
)

pytest.importorskip("pydantic_ai", reason="needs requirements/providers.txt (extra `anthropic`)")


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
    assert reply.usage == Usage(
        input_tokens=100, output_tokens=30, cache_read_tokens=70, cache_write_tokens=10
    )
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.models.groq", None)
    with pytest.raises(ConfigError, match=r"needs the extra `groq`: pip install 'antiphon\[groq\]'"):
        ProviderModel("groq:llama", env={"GROQ_API_KEY": "k"})


@pytest.mark.slow
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
