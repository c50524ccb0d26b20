"""What goes wrong at a provider, as recorded."""

import asyncio
import warnings
from typing import Any

import httpx2
import pytest

from antiphon.errors import ModelError
from antiphon.values.model import Delta
from tests.unit.models.recorded import (
    KEY,
    SPEC,
    START,
    Pieces,
    Respond,
    anthropic,
    ask,
    call_block,
    end,
    request,
    sse,
    streamed,
    text_block,
)

pytest.importorskip("pydantic_ai", reason="needs requirements/providers.txt (extra `anthropic`)")


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
        (
            400,
            "invalid_request_error",
            "prompt is too long: 300000 tokens > 200000 maximum",
            "context_length",
        ),
        (413, "request_too_large", "too large", "context_length"),
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
    from antiphon.models.providers.failures import failure
    from antiphon.values.secret import shown

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
    assert caught.value.kind in ("disconnected", "network")
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (sse(START, *text_block("x"), *end("who_knows")), "provider", "unknown here: who_knows"),
        (sse(START, *text_block("x"), *end("pause_turn")), "provider", "paused"),
        (sse(START, *text_block("x"), *end("tool_use")), "disconnected", "sent no call"),
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


@pytest.mark.parametrize("arguments", ['{"a"', ""])
def test_a_call_that_was_cut_is_handed_on_as_it_is(arguments: str) -> None:
    """Whoever asked decides what becomes of it; nothing is made up to complete it."""
    body = sse(START, *call_block(0, arguments), *end("max_tokens"))
    reply, _ = ask(anthropic(streamed(body)), request(tools=(SPEC,)))
    assert (reply.stop, [each.arguments for each in reply.calls]) == ("length", [arguments])


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


@pytest.mark.slow
def test_silence_is_a_timeout() -> None:
    hanging = Pieces([sse(START, *text_block("Hel"))], hang=True)
    with pytest.raises(ModelError, match=r"stopped in the middle.*idle") as caught:
        ask(anthropic(streamed(hanging), idle_timeout=0.01), request())
    assert caught.value.kind == "timeout"
    assert hanging.closed
    silent = Pieces([], hang=True)
    with pytest.raises(ModelError, match=r"has sent nothing for 0\.01 s") as caught:
        ask(anthropic(streamed(silent), first_timeout=0.01), request())
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
