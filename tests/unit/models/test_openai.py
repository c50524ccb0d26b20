"""The chat-completions adapter: what it sends, what it makes of what it gets, what it never shows."""

import asyncio
import base64
import json
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ConfigError, ModelError
from antiphon.models.openai import OpenAIModel, strip_reasoning
from antiphon.models.openai.failures import kind_of, read_error, retry_after
from antiphon.models.openai.reply import ReplyMaker, decode_chunk
from antiphon.models.openai.tags import TagDivider
from antiphon.models.openai.wire import Dialect, encode_messages, encode_request, encode_tools
from antiphon.testing.wire import WireServer, chunk, completion, http, piece
from antiphon.values.message import Attachment, ToolCall
from antiphon.values.model import ChatMessage, Delta, ModelRequest, Reply, ToolSpec, Usage
from antiphon.values.secret import Secret, shown

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ASKED = ModelRequest("ignored", "Be brief.", (ChatMessage("user", "Hello"),))


def body(request: ModelRequest, dialect: Dialect | None = None, stream: bool = True) -> dict[str, Any]:
    dialect = dialect or Dialect()
    made = encode_request("m", request, dialect, stream=stream, tools=encode_tools(request.tools))
    decoded: dict[str, Any] = json.loads(made)
    return decoded


def ask(request: ModelRequest, *answers: Any, **options: Any) -> tuple[Reply | ModelError, WireServer]:
    async def go() -> tuple[Reply | ModelError, WireServer]:
        async with WireServer() as server:
            await server.play(*answers)
            model = OpenAIModel("m", base_url=server.url, **options)
            try:
                return await model.complete(request, lambda _: None), server
            except ModelError as error:
                return error, server
            finally:
                await model.aclose()

    return asyncio.run(go())


# What is sent


def test_a_plain_request() -> None:
    assert body(ASKED) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "max_completion_tokens": 4096,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_system_and_tail_only_where_there_is_one() -> None:
    sent = body(ModelRequest("m", "", (ChatMessage("user", "a"),), tail="It is noon."), stream=False)
    assert sent["messages"] == [{"role": "user", "content": "a"}, {"role": "user", "content": "It is noon."}]
    assert "stream_options" not in sent
    assert sent["stream"] is False


def test_tools_choice_settings_and_cap() -> None:
    request = ModelRequest("m", "", (), (ADD,), "required", max_output=7, settings={"temperature": 0.5})
    sent = body(request, Dialect(cap="max_tokens"))
    assert sent["tools"] == [{"type": "function", "function": msgspec.to_builtins(ADD)}]
    assert (sent["tool_choice"], sent["max_tokens"], sent["temperature"]) == ("required", 7, 0.5)
    named = body(msgspec.structs.replace(request, tool_choice="add"))["tool_choice"]
    assert named == {"type": "function", "function": {"name": "add"}}
    assert "tool_choice" not in body(msgspec.structs.replace(request, tool_choice="auto"))
    assert "tool_choice" not in body(msgspec.structs.replace(request, tools=()))


@pytest.mark.parametrize("closed", [True, False])
def test_structured_output_is_strict_only_where_its_schema_is(closed: bool) -> None:
    schema = {
        "title": "In voice",
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    schema |= {"additionalProperties": False} if closed else {}
    sent = body(ModelRequest("m", "", (), output_schema=schema))["response_format"]
    wanted = {"name": "In_voice", "schema": schema, "strict": closed}
    assert sent == {"type": "json_schema", "json_schema": wanted}


def test_settings_may_not_say_what_the_request_says() -> None:
    came, _ = ask(msgspec.structs.replace(ASKED, settings={"stream": False, "model": "x"}))
    assert isinstance(came, ModelError)
    assert came.kind == "validation"
    assert "model, stream" in came.text


def test_settings_that_are_no_json_are_refused() -> None:
    came, server = ask(msgspec.structs.replace(ASKED, settings={"x": object()}))
    assert isinstance(came, ModelError)
    assert (came.kind, server.requests) == ("validation", [])


def test_lone_surrogates_are_refused_before_anything_is_sent() -> None:
    came, server = ask(ModelRequest("m", "", (ChatMessage("user", "\ud800"),)))
    assert isinstance(came, ModelError)
    assert (came.kind, server.requests) == ("validation", [])


def test_calls_and_results() -> None:
    calls = (ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "now", " "), ToolCall("c3", "add", '{"a":'))
    sent = body(
        ModelRequest("m", "", (ChatMessage("assistant", "", calls), ChatMessage("tool", "2", call_id="c1")))
    )
    assistant, result = sent["messages"]
    assert assistant["content"] is None
    assert [one["function"]["arguments"] for one in assistant["tool_calls"]] == [
        '{"a": 1}',
        "{}",
        '{"invalid_arguments":"{\\"a\\":"}',
    ]
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "2"}


@pytest.mark.parametrize("text", ["[1]", "null", '"x"', "[" * 50_000, "\x00"])
def test_a_history_never_holds_arguments_that_are_no_object(text: str) -> None:
    sent = body(ModelRequest("m", "", (ChatMessage("assistant", "", (ToolCall("c", "t", text),)),)))
    assert isinstance(json.loads(sent["messages"][0]["tool_calls"][0]["function"]["arguments"]), dict)


def test_attachments_of_a_user() -> None:
    data = base64.b64encode(b"hi").decode()
    files = (
        Attachment("image/png", data),
        Attachment("image/png", url="https://x/y.png"),
        Attachment("application/pdf", data, name="a.pdf"),
        Attachment("text/plain", data, name="a.txt"),
        Attachment("audio/wav", data),
        Attachment("application/zip", url="https://x/z.zip", name="z"),
    )
    content = body(ModelRequest("m", "", (ChatMessage("user", "See", attachments=files),)))["messages"][0][
        "content"
    ]
    assert content == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}},
        {"type": "text", "text": "a.txt:\nhi"},
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        {"type": "text", "text": "z: https://x/z.zip"},
    ]


def test_files_of_tool_results_come_after_all_results_of_the_turn() -> None:
    image = (Attachment("image/png", "aGk="),)
    messages = (
        ChatMessage("assistant", "", (ToolCall("1", "t"), ToolCall("2", "t"))),
        ChatMessage("tool", "a", call_id="1", name="t", attachments=image),
        ChatMessage("tool", "b", call_id="2", name="t"),
        ChatMessage("assistant", "done"),
        ChatMessage("tool", "c", call_id="3", name="t", attachments=image),
    )
    sent = body(ModelRequest("m", "", messages))["messages"]
    assert [one["role"] for one in sent] == ["assistant", "tool", "tool", "user", "assistant", "tool", "user"]
    assert sent[3]["content"][0]["text"] == "Files of the result of t:"


class Cached(list[ChatMessage]):
    """A conversation that keeps encodings, as the kernel's does."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        super().__init__(messages)
        self.kept: dict[str, list[bytes]] = {}
        self.encodings = 0

    def encoded(self, key: str, encode: Callable[[ChatMessage], bytes]) -> Sequence[bytes]:
        kept = self.kept.setdefault(key, [])
        for message in self[len(kept) :]:
            self.encodings += 1
            kept.append(encode(message))
        return kept


def test_each_message_is_encoded_once() -> None:
    run = Cached([ChatMessage("user", str(n)) for n in range(50)])
    plain = encode_messages(list(run), True)
    for _ in range(3):
        assert list(encode_messages(run, True)) == list(plain)
    run.append(ChatMessage("assistant", "x"))
    encode_messages(run, True)
    assert run.encodings == 51


def test_reasoning_goes_back_under_the_name_it_came_with() -> None:
    deltas: list[Delta] = []
    maker = ReplyMaker(deltas.append, "x", "m")
    detail = [{"type": "reasoning.encrypted", "data": "e30="}]
    maker.take(decode_chunk(json.dumps(chunk(reasoning="hm", reasoning_details=detail)).encode(), "x"))
    maker.take(decode_chunk(json.dumps(chunk("stop", content="yes")).encode(), "x"))
    reply = maker.finish()
    said = ChatMessage("assistant", reply.content, reasoning=reply.reasoning, opaque=reply.opaque)
    sent = body(ModelRequest("m", "", (said,)))["messages"][0]
    assert sent == {"role": "assistant", "content": "yes", "reasoning": "hm", "reasoning_details": detail}
    plain = body(ModelRequest("m", "", (said,)), Dialect(reasoning=False))["messages"][0]
    assert plain == {"role": "assistant", "content": "yes"}


def test_a_history_keeps_tags_the_reply_does_not_show() -> None:
    maker = ReplyMaker(lambda _: None, "x", "m")
    maker.take(decode_chunk(json.dumps(completion(content="<think>hm</think>yes")).encode(), "x"))
    reply = maker.finish()
    assert (reply.content, reply.reasoning) == ("yes", "hm")
    sent = body(ModelRequest("m", "", (ChatMessage("assistant", reply.content, opaque=reply.opaque),)))[
        "messages"
    ][0]
    assert sent["content"] == "<think>hm</think>yes"


def test_foreign_opaque_data_is_left_alone() -> None:
    said = ChatMessage("assistant", "yes", opaque={"anthropic": {"signature": "x"}})
    assert body(ModelRequest("m", "", (said,)))["messages"] == [{"role": "assistant", "content": "yes"}]


def test_what_an_endpoint_refuses_is_remembered() -> None:
    async def go() -> list[dict[str, Any]]:
        refusal = http(b'{"error":{"message":"Unrecognized request argument: max_completion_tokens"}}', 400)
        async with WireServer() as server:
            await server.play((refusal,))
            model = OpenAIModel("m", base_url=server.url)
            for _ in range(2):
                await model.complete(ASKED, lambda _: None)
            await model.aclose()
            return server.requests

    requests = asyncio.run(go())
    caps = ["max_tokens" if "max_tokens" in sent else "max_completion_tokens" for sent in requests]
    assert caps == ["max_completion_tokens", "max_tokens", "max_tokens"]


def test_an_endpoint_that_refuses_both_caps_is_believed() -> None:
    both = http(b'{"error":{"message":"max_tokens and max_completion_tokens are unsupported"}}', 400)
    came, server = ask(ASKED, (both,), (both,), (both,), (both,))
    assert isinstance(came, ModelError)
    assert came.kind == "validation"
    assert len(server.requests) == 3


def test_a_value_that_is_too_large_teaches_nothing() -> None:
    too_large = http(b'{"error":{"message":"max_completion_tokens is too large: 4096"}}', 400)
    came, server = ask(ASKED, (too_large,))
    assert isinstance(came, ModelError)
    assert len(server.requests) == 1


# What comes back


@pytest.mark.parametrize("place", ["top", "choice", "x_groq"])
def test_usage_in_every_place(place: str) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    end: dict[str, Any] = chunk("stop", content="x")
    if place == "top":
        end["usage"] = usage
    elif place == "choice":
        end["choices"][0]["usage"] = usage
    else:
        end["x_groq"] = {"usage": usage}
    maker = ReplyMaker(lambda _: None, "x", "m")
    maker.take(decode_chunk(json.dumps(end).encode(), "x"))
    assert maker.finish().usage == Usage(5, 2)


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("plain", "plain"),
        ("  plain  ", "  plain  "),
        ("<think>a</think>b", "b"),
        ("<think>a</think>\n\nb ", "b"),
        ("a<think>b", "a"),
        ("<think>a</think>b<reasoning>c</reasoning>d", "bd"),
        ("a<think>b</reason>c", "a"),
        ("<think>a<think>b</think>c", "c"),
        ("<THINK>a</Think>b", "b"),
        ("<thinking>a</think>b</thinking>c", "c"),
        ("a</think>b", "a</think>b"),
        ("<reason>a</reason>", ""),
        ("a < b <thin> c", "a < b <thin> c"),
        ("<thin\u212a>x</think>y", "<thin\u212a>x</think>y"),
        ("İ<think>İ</think>b", "İb"),
    ],
)
def test_reasoning_tags(text: str, outside: str) -> None:
    assert strip_reasoning(text) == outside


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<reason>", "</reason>", "a", "<", "</", "th", "İ"])),
    st.data(),
)
def test_tags_mean_the_same_in_any_pieces(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    places = [0, *sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8))), len(text)]
    outside: list[str] = []
    inside: list[str] = []
    divider = TagDivider(outside.append, inside.append)
    for start, end in pairwise(places):
        divider.feed(text[start:end])
    divider.close()
    whole = "".join(outside)
    assert (whole if whole == text else whole.strip()) == strip_reasoning(text)


# Errors


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 3.5 "}, 3.5),
        ({"retry-after": "20s"}, 20.0),
        ({"retry-after": "150ms"}, 0.15),
        ({"retry-after-ms": "150", "retry-after": "9"}, 0.15),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 99 Foo 1970, nonsense"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "86401"}, None),
        ({"retry-after": "9" * 5000}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    found = retry_after(headers, now=100.0)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    "given_body", [b"", b"{}", b"[]", b"null", b'{"error":[]}', b'{"error":{"message":{"a":1}}}', b"\xff"]
)
def test_any_error_body_can_be_read(given_body: bytes) -> None:
    said = read_error(given_body)
    assert isinstance(said.text, str)
    assert kind_of(500, said) == "overloaded"


def test_what_is_shown_is_one_short_printable_line() -> None:
    text = shown("a\x1b[31m\r\n\x00\u202e" + "b" * 500)
    assert text.isprintable()
    assert len(text) == 200


@pytest.mark.parametrize("limit", [{"first_timeout": 0.02}, {"total_timeout": 0.02}])
def test_endless_trickles_end_with_a_limit(limit: dict[str, float]) -> None:
    trickle = [b"6\r\n: hm\n\n\r\n", "pause"] * 100
    head: tuple[Any, ...] = (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",)
    answer = (
        (*head, *trickle)
        if "total_timeout" in limit
        else (b"HTTP/1.1 200 OK\r\n", *[b"x: y\r\n", "pause"] * 100)
    )
    came, _ = ask(ASKED, answer, **limit)
    assert isinstance(came, ModelError)
    assert came.kind == "timeout"


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ("Unknown field: stream_options", "stream_usage", False),
        ("reasoning_content is not allowed here", "reasoning", False),
        ("'max_completion_tokens' is not supported", "cap", "max_tokens"),
        ("max_tokens must be positive", "", None),
        ("something unsupported", "", None),
    ],
)
def test_a_dialect_is_learned_from_refusals(said: str, field: str, value: Any) -> None:
    dialect = Dialect()
    assert dialect.learn(said) is bool(field)
    assert dialect == (msgspec.structs.replace(Dialect(), **{field: value}) if field else Dialect())


def test_an_attachment_that_is_no_base64_is_refused() -> None:
    file = Attachment("text/plain", "!!!", name="a.txt")
    came, _ = ask(ModelRequest("m", "", (ChatMessage("user", "", attachments=(file,)),)))
    assert isinstance(came, ModelError)
    assert (came.kind, came.text) == ("validation", "The attachment 'a.txt' is not base64")


# Configuration and secrets


def test_a_model_has_a_name() -> None:
    with pytest.raises(ConfigError, match="name is empty"):
        OpenAIModel("", base_url="http://x")


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://x/v1", "https://", "https://u:p@x/v1", "https://x/v1?key=1", "http://[::1"],
)
def test_a_base_url_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        OpenAIModel("m", base_url=url)


@pytest.mark.parametrize("tail", ["", "/", "/chat/completions"])
def test_base_urls_are_taken_as_people_write_them(tail: str) -> None:
    assert repr(OpenAIModel("m", base_url=f"http://x/v1{tail}")) == "OpenAIModel('m', base_url='http://x/v1')"


@pytest.mark.parametrize("key", ["sk-canary\nx: y", "sk-canary-é"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIModel("m", base_url="http://x/v1", api_key=key)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_the_key_is_sent_and_shown_nowhere() -> None:
    canary = "sk-canary-3141592653"
    echo = http(
        json.dumps({"error": f"{canary} Bearer {canary}"}).encode(), 400, headers=(f"x-echo: {canary}",)
    )
    options: dict[str, Any] = {"api_key": Secret(canary), "headers": {"api-key": Secret(f"{canary}-2")}}
    came, server = ask(ASKED, (echo,), **options)
    assert isinstance(came, ModelError)
    assert f"authorization: bearer {canary}".encode() in server.heads[0].lower()
    assert f"api-key: {canary}-2".encode() in server.heads[0].lower()
    model = OpenAIModel("m", base_url="http://x/v1", **options)
    shown_anywhere = [repr(model), str(vars(model)), repr(came), came.text, *traceback.format_exception(came)]
    assert canary not in "".join(shown_anywhere)


def test_no_key_sends_no_header() -> None:
    came, server = ask(ASKED, api_key="")
    assert isinstance(came, Reply)
    assert b"authorization" not in server.heads[0].lower()


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_no_call_is_dropped_and_a_call_without_an_id_gets_one(whole: bool) -> None:
    calls = ["add", None, piece(0, None, "add", '{"a":1}'), 7, piece(1, "c2", "add", '{"a":2}')]
    said = completion("tool_calls", tool_calls=calls) if whole else chunk("tool_calls", tool_calls=calls)
    maker = ReplyMaker(lambda _: None, "x", "m")
    maker.take(decode_chunk(json.dumps(said).encode(), "x"))
    reply = maker.finish()
    first, second = reply.calls
    assert reply.usage == (Usage(7, 3) if whole else None)
    assert (first.name, first.arguments) == ("add", '{"a":1}')
    assert first.id.startswith("call_")
    assert second == ToolCall("c2", "add", '{"a":2}')


def test_with_no_call_left_the_reply_is_cut() -> None:
    maker = ReplyMaker(lambda _: None, "x", "m")
    maker.take(decode_chunk(json.dumps(chunk("tool_calls", tool_calls=["add"])).encode(), "x"))
    with pytest.raises(ModelError, match="said it called a tool, but sent no call"):
        maker.finish()
