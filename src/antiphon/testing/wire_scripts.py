"""The wire scripts: what endpoints were seen to do, and what each must come to."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from typing import Any

from antiphon.testing.wire import USAGE_CHUNK, Answer, Wire, chunk, chunked, completion, http, piece, sse

LIMIT = 200_000
"""Bytes of one answer: give a client under test this limit, some scripts go beyond it."""

ECHO = "wire-test-key-0123456789"
"""The key to give to a client under test: some scripts repeat it in their errors."""


def wires() -> tuple[Wire, ...]:
    """All scripts; names differ."""
    return (
        *_statuses(),
        *_limits(),
        *_connections(),
        *_streams(),
        *_bodies(),
        *_calls(),
        *_ends(),
        *_errors(),
    )


def _both(name: str, outcome: str, *answers: Answer, **expected: Any) -> Wire:
    """The same bytes whatever was asked."""
    return Wire(name, outcome, answers, answers, **expected)


def _status(name: str, outcome: str, status: int, body: Any = b"", *headers: str, **expected: Any) -> Wire:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return _both(name, outcome, (http(raw, status, headers=headers),), **expected)


def _error(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _said(name: str, outcome: str, *deltas: dict[str, Any], finish: str = "stop", **expected: Any) -> Wire:
    """A whole answer: the deltas as a stream, and put together as one message."""
    message: dict[str, Any] = {}
    for delta in deltas:
        for key, value in delta.items():
            message[key] = message[key] + value if key in message else value
    events = sse(*(chunk(**delta) for delta in deltas), chunk(finish), USAGE_CHUNK)
    body = json.dumps(completion(finish, **message)).encode()
    return Wire(name, outcome, (chunked(events),), ((http(body),),), **expected)


def _streamed(name: str, outcome: str, *steps: Any, **expected: Any) -> Wire:
    """What only a stream can do; as a whole answer the same bytes, which are read all the same."""
    return _both(name, outcome, tuple(steps), **expected)


def _statuses() -> list[Wire]:
    """Refusals by status."""
    html = b"<html><body><h1>Bad gateway</h1></body></html>"
    return [
        _status("redirect_301", "validation", 301, b"", "location: http://127.0.0.1:1/elsewhere?key=1"),
        _status("redirect_307", "validation", 307, b"", "location: /v2/chat/completions"),
        _status("status_400", "validation", 400, _error("messages[0].content is missing")),
        _status("status_400_empty", "validation", 400),
        _status("status_400_context", "context_length", 400, _error("too long", "context_length_exceeded")),
        _status(
            "status_400_context_words",
            "context_length",
            400,
            _error("This model's maximum context length is 8192 tokens"),
        ),
        _status("status_400_policy", "refusal", 400, _error("flagged", "content_policy_violation")),
        _status("status_401", "auth", 401, _error(f"Incorrect API key provided: {ECHO}", "invalid_api_key")),
        _status("status_402", "quota", 402, _error("Insufficient Balance")),
        _status("status_403", "permission", 403, _error("Country not supported", "unsupported_country")),
        _status("status_404_model", "validation", 404, _error("no such model", "model_not_found")),
        _status("status_404_html", "validation", 404, b"<html>not found</html>"),
        _status("status_404_ollama", "validation", 404, _error("model 'x' not found", None, "api_error")),
        _status("status_405", "validation", 405, {"detail": "Method Not Allowed"}),
        _status("status_408", "timeout", 408),
        _status("status_409", "overloaded", 409),
        _status("status_413", "context_length", 413, html),
        _status("status_415", "validation", 415),
        _status("status_418", "validation", 418),
        _status("status_422", "validation", 422, {"detail": [{"loc": ["body", "n"], "msg": "bad"}]}),
        _status("status_425", "overloaded", 425),
        _status("status_500", "overloaded", 500, _error("The server had an error", None, "server_error")),
        _status(
            "status_500_context",
            "context_length",
            500,
            _error("the request exceeds the available context size"),
        ),
        _status("status_500_empty", "overloaded", 500),
        _status("status_501", "provider", 501),
        _status("status_502_html", "overloaded", 502, html),
        _status("status_503", "overloaded", 503, b"", "retry-after: 3", retry_after=3.0),
        _status("status_504", "overloaded", 504, html),
        _status("status_529", "overloaded", 529, _error("Overloaded", None, "overloaded_error")),
        _status("status_599", "overloaded", 599),
        _status("body_is_array", "validation", 400, [_error("wrong")]),
        _status("body_is_text", "overloaded", 500, b"upstream connect error"),
        _status("body_repeats_key", "permission", 403, _error(f"key {ECHO} may not do this")),
        _status("body_with_escapes", "validation", 400, _error("\x1b]0;pwned\x07\x1b[31mred\u202e\r\n\x00")),
        _status("body_is_huge", "overloaded", 500, b"x" * 300_000),
        _status("body_is_deep", "validation", 400, b"[" * 60_000),
    ]


def _limits() -> list[Wire]:
    """429 and how long to wait."""
    limited = _error("Rate limit reached", "rate_limit_exceeded", "requests")
    quota = _error("You exceeded your current quota", "insufficient_quota", "insufficient_quota")
    return [
        _status("limit_seconds", "rate_limit", 429, limited, "retry-after: 7", retry_after=7.0),
        _status("limit_fraction", "rate_limit", 429, limited, "Retry-After: 0.5", retry_after=0.5),
        _status("limit_unit", "rate_limit", 429, limited, "retry-after: 20s", retry_after=20.0),
        _status(
            "limit_ms", "rate_limit", 429, limited, "retry-after-ms: 250", "retry-after: 1", retry_after=0.25
        ),
        _status(
            "limit_past_date",
            "rate_limit",
            429,
            limited,
            "retry-after: Wed, 21 Oct 2015 07:28:00 GMT",
            retry_after=0.0,
        ),
        _status("limit_nonsense", "rate_limit", 429, limited, "retry-after: soon"),
        _status("limit_negative", "rate_limit", 429, limited, "retry-after: -5"),
        _status("limit_infinite", "rate_limit", 429, limited, "retry-after: inf"),
        _status("limit_absurd", "rate_limit", 429, limited, "retry-after: 99999999"),
        _status("limit_empty", "rate_limit", 429),
        _status("quota", "quota", 429, quota, "retry-after: 7", retry_after=7.0),
        _status("limit_overloaded", "overloaded", 429, _error("busy", None, "engine_overloaded_error")),
    ]


def _connections() -> list[Wire]:
    """Connections that fail, before an answer and in the middle of one."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    begun = chunked(sse(chunk(content="half"), done=False), end=False)
    json_head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
    return [
        _both("refused", "network", ("refuse",)),
        _both("closed_at_once", "network", ("close",)),
        _both("reset_at_once", "network", ("reset",)),
        _both("tls_alert", "network", (b"\x15\x03\x01\x00\x02\x02\x46", "close")),
        _both("ssh_banner", "network", (b"SSH-2.0-OpenSSH_9.6\r\n", "close")),
        _both("headers_never", "timeout", ("hang",)),
        _both("headers_half_hang", "timeout", (head[:30], "hang")),
        _both("headers_half_close", "network", (head[:30], "close")),
        _both("headers_endless", "network", (b"HTTP/1.1 200 OK\r\n" + b"x-pad: 1\r\n" * 30_000, "close")),
        _both("first_byte_never", "timeout", (head + b"\r\n", "hang")),
        _both("first_byte_reset", "disconnected", (head + b"\r\n", "reset")),
        _both("stall_between_chunks", "timeout", (*begun, "hang")),
        _both("stall_inside_chunk", "timeout", (*begun, b"40\r\ndata: {", "hang")),
        _both("reset_inside_chunk", "disconnected", (*begun, b"40\r\ndata: {", "pause", "reset")),
        _both("close_inside_chunk", "disconnected", (*begun, b"40\r\ndata: {", "close")),
        _both("close_between_chunks", "disconnected", (*begun, "close")),
        _both("bad_chunk_size", "disconnected", (*begun, b"zz\r\nnonsense", "close")),
        _both("json_too_short", "disconnected", (json_head + b'{"choices":[', "close")),
        _both("json_stalls", "timeout", (json_head + b'{"choices":[', "hang")),
        _both("refusal_stalls", "auth", (b"HTTP/1.1 401 No\r\ncontent-length: 50\r\n\r\n{", "close")),
        _both("continue_first", "reply", (b"HTTP/1.1 100 Continue\r\n\r\n", *_fine()), content="fine"),
        _both(
            "early_hints", "reply", (b"HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n", *_fine()), content="fine"
        ),
    ]


def _fine() -> Answer:
    return chunked(sse(chunk(content="fine"), chunk("stop"), USAGE_CHUNK))


def _streams() -> list[Wire]:
    """How events may be written and cut."""
    body = sse(chunk(content="füñ"), chunk(content="→🙂"), chunk("stop"), USAGE_CHUNK)
    plain = json.dumps(chunk(content="füñ→🙂"), ensure_ascii=False)
    utf8 = sse(plain, chunk("stop"))
    text = "füñ→🙂"
    halves = sse(
        '{"choices":[{"delta":{"content":"\\ud83d"}}]}', '{"choices":[{"delta":{"content":"\\ude42"}}]}'
    )
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    no_utf8 = b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n'
    return [
        _streamed(
            "byte_by_byte", "reply", *chunked(*(utf8[i : i + 1] for i in range(len(utf8)))), content=text
        ),
        _streamed("split_utf8", "reply", *_cut_in_characters(utf8), content=text),
        _streamed("crlf", "reply", *chunked(body.replace(b"\n", b"\r\n")), content=text),
        _streamed("cr", "reply", *chunked(body.replace(b"\n", b"\r")), content=text),
        _streamed(
            "comments",
            "reply",
            *chunked(b": hi\n\n:\n" + body.replace(b"\n\n", b"\n\n: ping\n\n")),
            content=text,
        ),
        _streamed("bom", "reply", *chunked(b"\xef\xbb\xbf" + body), content=text),
        _streamed("no_space", "reply", *chunked(body.replace(b"data: ", b"data:")), content=text),
        _streamed("fields", "reply", *chunked(b"retry: 10\nid: 1\nevent: message\n" + body), content=text),
        _streamed("no_last_line_end", "reply", *chunked(body.rstrip(b"\n")), content=text),
        _streamed(
            "data_on_two_lines",
            "reply",
            *chunked(body.replace(b'"choices"', b'\ndata: "choices"')),
            content=text,
        ),
        _streamed("close_delimited", "reply", head + body, "close", content=text),
        _streamed("wrong_type", "reply", *chunked(body, kind="text/plain"), content=text),
        _streamed("type_says_json", "reply", *chunked(body, kind="application/json"), content=text),
        _streamed(
            "half_characters",
            "reply",
            *chunked(halves.replace(b"data: [DONE]\n\n", b"") + sse(chunk("stop"))),
            content="🙂",
        ),
        _streamed(
            "empty_chunks",
            "reply",
            *chunked(sse({}, {"choices": []}, {"choices": None}, done=False) + body),
            content=text,
        ),
        _streamed("comments_for_ever", "provider", *chunked(*[b": still thinking\n\n" * 500] * 30), "hang"),
        _streamed("giant_line", "provider", *chunked(b"data: " + b"x" * (LIMIT + 1)), "hang"),
        _streamed("giant_event", "provider", *chunked(b"data: 1\n" * (LIMIT // 4)), "hang"),
        _streamed("invalid_json", "disconnected", *chunked(sse(chunk(content="a"), '{"choices": [{'))),
        _streamed("half_character_nonsense", "disconnected", *chunked(sse('{"choices": "\\ud83d"}'))),
        _streamed("chunk_is_list", "disconnected", *chunked(sse(chunk(content="a"), "[1, 2]"))),
        _streamed("chunk_is_deep", "disconnected", *chunked(sse(chunk(content="a"), "[" * 50_000))),
        _streamed("invalid_utf8", "disconnected", *chunked(no_utf8)),
    ]


def _cut_in_characters(body: bytes) -> Answer:
    """Cut so that no piece but the first begins a character."""
    cuts = [place for place, byte in enumerate(body) if byte & 0xC0 == 0x80]
    places = [0, *cuts, len(body)]
    return chunked(*(body[a:b] for a, b in pairwise(places)))


def _bodies() -> list[Wire]:
    """Whole bodies: plain, compressed, wrong."""
    good = json.dumps(completion(content="fine")).encode()
    packed = gzip.compress(good)
    encoding = ("content-encoding: gzip",)
    bomb = gzip.compress(b" " * (LIMIT * 50))
    return [
        _both("whole_answer", "reply", (http(good),), content="fine"),
        _both(
            "whole_pretty",
            "reply",
            (http(b"\n\n " + json.dumps(completion(content="fine"), indent=2).encode()),),
            content="fine",
        ),
        _both("whole_bom", "reply", (http(b"\xef\xbb\xbf" + good),), content="fine"),
        _both("whole_wrong_type", "reply", (http(good, kind="text/html"),), content="fine"),
        _both("whole_truncated", "disconnected", (http(good[:-20]),)),
        _both("whole_no_choices", "disconnected", (http(b'{"id":"x","choices":[]}'),)),
        _both(
            "whole_error", "overloaded", (http(json.dumps(_error("busy", None, "server_error")).encode()),)
        ),
        _both("whole_list", "rate_limit", (http(b'[{"error":{"code":429,"message":"slow down"}}]'),)),
        _both("empty_200", "disconnected", (http(b""),)),
        _both("blank_200", "disconnected", (http(b"\n \n"),)),
        _both("status_204", "disconnected", (b"HTTP/1.1 204 No Content\r\n\r\n",)),
        _both("web_page", "provider", (http(b"<!doctype html><title>Log in</title>", kind="text/html"),)),
        _both("gzip", "reply", (http(packed, headers=encoding),), content="fine"),
        _both("gzip_truncated", "disconnected", (http(packed[:-30], headers=encoding),)),
        _both("gzip_garbage", "disconnected", (http(b"no gzip at all", headers=encoding),)),
        _both("gzip_bomb", "provider", (http(bomb, headers=encoding),)),
        _both(
            "unknown_encoding",
            "disconnected",
            (http(b"data: \x00\x01\x02\n\n", headers=("content-encoding: zz",)),),
        ),
        _both("giant_answer", "provider", (http(good[:-1] + b" " * LIMIT + b"}"),)),
    ]


def _called(*deltas: Any, finish: str = "tool_calls") -> Answer:
    """A stream whose chunks hold these pieces of calls."""
    return chunked(sse(*(chunk(tool_calls=list(delta)) for delta in deltas), chunk(finish), USAGE_CHUNK))


def _calls() -> list[Wire]:
    """Tool calls as servers write them; all of them come to the same two calls."""
    two = (("add", '{"a":1}'), ("sub", '{"b":2}'))
    add, sub = piece(0, "c1", "add", '{"a":1}'), piece(1, "c2", "sub", '{"b":2}')
    bare = [piece(None, "c1", "add", '{"a":1}'), piece(None, "c2", "sub", '{"b":2}')]
    begun, more, rest = (
        piece(0, "c1", "add", '{"a"'),
        piece(1, "c2", "sub", '{"b"'),
        piece(0, arguments=":1}"),
    )
    end = piece(1, arguments=":2}")
    whole = http(json.dumps(completion("tool_calls", content=None, tool_calls=[add, sub])).encode())
    stopped = http(json.dumps(completion("stop", content="", tool_calls=bare)).encode())
    answers: dict[str, Answer] = {
        "calls_parallel": _called([add, sub]),
        "calls_one_after_another": _called([add], [sub]),
        "calls_crossed": _called([begun], [more], [rest], [end]),
        "calls_same_index": _called([add], [{**sub, "index": 0}]),
        "calls_index_as_text": _called([{**add, "index": "0"}], [{**sub, "index": "1"}]),
        "calls_without_index": _called(bare),
        "calls_without_index_in_pieces": _called(
            [bare[0]], [piece(None, "c2", "sub", '{"b"')], [piece(None, arguments=":2}")]
        ),
        "calls_without_id": _called([piece(0, None, "add", '{"a":1}')], [piece(1, None, "sub", '{"b":2}')]),
        "calls_same_id": _called([add], [{**sub, "id": "c1"}]),
        "calls_id_in_each_piece": _called([begun], [piece(0, "c1", None, ":1}")], [sub]),
        "calls_name_repeated": _called([begun], [piece(0, "c1", "add", ":1}")], [sub]),
        "calls_name_in_pieces": _called(
            [piece(0, "c1", "a")], [piece(0, name="dd", arguments='{"a":1}')], [sub]
        ),
        "calls_arguments_object": _called([piece(0, "c1", "add", {"a": 1})], [sub]),
        "calls_but_stop": _called([add, sub], finish="stop"),
        "calls_whole": (whole,),
        "calls_whole_but_stop": (stopped,),
    }
    return [_both(name, "reply", answer, calls=two, stop="calls") for name, answer in answers.items()]


def _call_ends() -> list[Wire]:
    """Calls with odd arguments, and calls that are not whole."""
    text = '{"a": 1, "b": "ü"}'
    letters = [[piece(0, arguments=letter)] for letter in text]
    add, half = piece(0, "c1", "add", '{"a":1}'), piece(0, "c1", "add", '{"a":')
    cut = chunked(sse(chunk(tool_calls=[half]), done=False), end=False)

    def one(name: str, answer: Answer, arguments: str, called: str = "add") -> Wire:
        return _both(name, "reply", answer, calls=((called, arguments),), stop="calls")

    return [
        one("call_one_byte_pieces", _called([piece(0, "c1", "add", "")], *letters), text),
        one("call_in_one_piece", _called([piece(0, "c1", "add", text)]), text),
        one("call_arguments_missing", _called([piece(0, "c1", "now")]), "{}", "now"),
        one("call_arguments_broken", _called([half]), '{"a":'),
        _both("call_promised", "disconnected", _called([], finish="tool_calls")),
        _both("call_without_name", "disconnected", _called([piece(0, "c1", None, "{}")])),
        _both(
            "call_cut_by_length",
            "reply",
            _called([half], finish="length"),
            calls=(("add", '{"a":'),),
            stop="length",
        ),
        _both(
            "call_cut_before_arguments",
            "reply",
            _called([piece(0, "c1", "add")], finish="length"),
            calls=(("add", ""),),
            stop="length",
        ),
        _both(
            "call_before_length",
            "reply",
            _called([add], finish="length"),
            calls=(("add", '{"a":1}'),),
            stop="length",
        ),
        _both("call_cut_by_close", "disconnected", (*cut, "close")),
        _both("call_without_end", "disconnected", chunked(sse(chunk(tool_calls=[add]), done=False))),
    ]


def _ends() -> list[Wire]:
    """End marks, and what comes after them; other things a reply may hold."""
    half = sse(chunk(content="fine"), done=False)
    stop = sse(chunk("stop"), done=False)
    ended = chunked(half, sse(chunk("stop")), end=False)
    after = sse(chunk(content=" more"), chunk("length"))
    second = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]}
    thought = {"reasoning_content": "hm"}
    return [
        _both("no_end_mark", "disconnected", chunked(half)),
        _both("done_without_reason", "disconnected", chunked(sse(chunk(content="fine")))),
        _both("reason_without_done", "reply", chunked(half, stop), content="fine"),
        _both("reason_then_break", "disconnected", (*chunked(half, stop, end=False), "close")),
        _both("reason_then_hang", "timeout", (*chunked(half, stop, end=False), "hang")),
        _both("done_then_hang", "reply", (*ended, "hang"), content="fine"),
        _both("done_then_reset", "reply", (*ended, "pause", "reset"), content="fine"),
        _both("done_then_close", "reply", (*ended, "close"), content="fine"),
        _both("two_ends", "reply", chunked(half, stop, after), content="fine"),
        _both(
            "data_after_done",
            "reply",
            chunked(half, sse(chunk("stop")), after, b"data: {garbage\n\n"),
            content="fine",
        ),
        _both(
            "flood_after_done", "reply", (*ended, *[b"1000\r\n" + b"x" * 4096 + b"\r\n"] * 40), content="fine"
        ),
        _said("stop_length", "reply", {"content": "fine"}, finish="length", content="fine", stop="length"),
        _said("stop_in_capitals", "reply", {"content": "fine"}, finish="STOP", content="fine"),
        _said(
            "stop_filter", "reply", {"content": "fi"}, finish="content_filter", content="fi", stop="refusal"
        ),
        _said("stop_unknown", "provider", {"content": "fine"}, finish="moon_phase"),
        _said(
            "refusal", "reply", {"refusal": "I can"}, {"refusal": "not."}, content="I cannot.", stop="refusal"
        ),
        _said("reasoning_content", "reply", thought, {"content": "fine"}, content="fine"),
        _said("reasoning", "reply", {"reasoning": "hm"}, {"content": "fine"}, content="fine"),
        _said("tags", "reply", {"content": "<thi"}, {"content": "nk>hm</think>\nfine"}, content="fine"),
        _said("tags_open", "reply", {"content": "<think>hm"}, content=""),
        _said("parts", "reply", {"content": [{"type": "text", "text": "fine"}]}, content="fine"),
        _both("second_choice", "reply", chunked(half, sse(second, chunk("stop"))), content="fine"),
    ]


def _errors() -> list[Wire]:
    """Errors inside an answer that began well; parameters an endpoint does not know."""
    begun = sse(chunk(content="ha"), done=False)

    def inside(name: str, outcome: str, error: Any) -> Wire:
        return _both(name, outcome, chunked(begun, sse(error)))

    named = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    unknown = http(json.dumps(_error("Unsupported parameter: 'max_completion_tokens'")).encode(), 400)
    no_usage = http(
        b'{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}', 422
    )
    return [
        inside("error_overloaded", "overloaded", _error("busy", None, "server_error")),
        inside("error_limit", "rate_limit", _error("slow", "rate_limit_exceeded")),
        inside("error_context", "context_length", _error("maximum context length is 5", None)),
        inside("error_gateway_code", "overloaded", {"error": {"code": 502, "message": "bad gateway"}}),
        inside("error_text", "provider", {"error": "something broke"}),
        inside("error_repeats_key", "provider", {"error": f"denied for {ECHO}"}),
        _both("error_event", "overloaded", chunked(begun, named)),
        _both("cap_unknown", "reply", (unknown,), _fine(), content="fine"),
        _both("cap_and_usage_unknown", "reply", (unknown,), (no_usage,), _fine(), content="fine"),
    ]
