"""An event stream means the same however its bytes are cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ModelError
from antiphon.models.openai.reply import ReplyMaker, decode_chunk
from antiphon.models.sse import ServerEvent, SSEReader
from antiphon.testing.wire import Answer
from antiphon.testing.wire_scripts import wires


def stream(*data: str, end: str = "\n", done: bool = True) -> bytes:
    lines = [*data, *(["[DONE]"] if done else [])]
    return "".join(f"data: {line}{end}{end}" for line in lines).encode()


# Streams as endpoints send them, beside those of the wire scripts.
SHAPES: dict[str, bytes] = {
    "openai": stream(
        '{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
        '{"id":"1","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}',
        '{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
        '{"id":"1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}',
    ),
    "openrouter": b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
    + stream('{"choices":[{"delta":{"content":"a"}}]}', '{"choices":[{"delta":{},"finish_reason":"stop"}]}'),
    "vllm": stream(
        '{"choices":[{"delta":{"reasoning":"hm"}}]}',
        '{"choices":[{"delta":{"content":"é"}}]}',
        '{"choices":[{"delta":{"content":""},"finish_reason":"stop","stop_reason":null}]}',
    ),
    "llama.cpp": stream(
        '{"choices":[{"finish_reason":null,"delta":{"content":"→"}}],"timings":{"n":1}}',
        '{"choices":[{"finish_reason":"stop","delta":{}}],"usage":{"prompt_tokens":1}}',
    ),
    "crlf": stream('{"choices":[{"delta":{"content":"🙂"},"finish_reason":"stop"}]}', end="\r\n"),
    "cr": stream('{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}', end="\r"),
    "mixed": b'\xef\xbb\xbfid: 4\rdata: {"choices":\r\ndata: [{"finish_reason":"stop"}]}\r\n\r\n' + stream(),
    "short": stream('{"choices":[{"finish_reason":"stop"}]}', done=False),
}


def bodies() -> dict[str, bytes]:
    """Every stream of the wire scripts that comes to a reply, without HTTP around it."""
    found = dict(SHAPES)
    for wire in wires():
        if wire.outcome == "reply" and len(wire.stream) == 1:
            body = unchunked(wire.stream[0])
            if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"d", b":", b"r"):
                found[wire.name] = body
    return found


def unchunked(answer: Answer) -> bytes:
    head, *steps = [step for step in answer if isinstance(step, bytes)]
    if b"chunked" not in head:
        return b""
    return b"".join(step.partition(b"\r\n")[2].removesuffix(b"\r\n") for step in steps)


STREAMS = {name: body for name, body in bodies().items() if len(body) < 20_000}


def read(*pieces: bytes) -> tuple[list[ServerEvent], int | None, str]:
    reader = SSEReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [*events, *reader.close()], reader.retry, reader.last_id


def meaning(events: list[ServerEvent]) -> object:
    """The reply of a stream, as far as ids are the server's own."""
    maker = ReplyMaker(lambda _: None, "test", "m")
    for event in events:
        if event.data == b"[DONE]":
            break
        maker.take(decode_chunk(event.data, "test"))
    reply = maker.finish()
    return reply.content, [(call.name, call.arguments) for call in reply.calls], reply.stop, reply.usage


def test_there_are_thirty_streams() -> None:
    assert len(STREAMS) >= 30


@pytest.mark.parametrize("name", STREAMS)
def test_every_split_gives_the_same_events_and_reply(name: str) -> None:
    body = STREAMS[name]
    whole = read(body)
    assert meaning(whole[0]) is not None
    for cut in range(len(body) + 1):
        assert read(body[:cut], body[cut:]) == whole
    assert read(*(body[place : place + 1] for place in range(len(body)))) == whole


SHORTEST = sorted(STREAMS, key=lambda name: len(STREAMS[name]))[:5]


@pytest.mark.parametrize("name", SHORTEST)
def test_all_pairs_of_splits_of_the_shortest(name: str) -> None:
    body = STREAMS[name]
    whole = read(body)
    for one, two in itertools.combinations(range(len(body) + 1), 2):
        assert read(body[:one], body[one:two], body[two:]) == whole


@given(
    st.lists(
        st.sampled_from(
            [
                b"data: a",
                b"data:",
                b"id: 7",
                b"event: x",
                b":c",
                b"\r",
                b"\n",
                b"\r\n",
                b"retry: 5",
                b"\xc3",
                b"\xef\xbb\xbf",
            ]
        ),
        max_size=12,
    ),
    st.data(),
)
def test_any_bytes_mean_the_same_in_any_pieces(parts: list[bytes], data: st.DataObject) -> None:
    body = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    places = [0, *cuts, len(body)]
    assert read(*(body[a:b] for a, b in itertools.pairwise(places))) == read(body)


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data\n\n", [ServerEvent(b"")]),
        (b"data\ndata\n\n", [ServerEvent(b"\n")]),
        (b"data: a\ndata: b\n\n", [ServerEvent(b"a\nb")]),
        (b"data:  a\n\n", [ServerEvent(b" a")]),
        (b"event: x\n\ndata: a\n\n", [ServerEvent(b"a")]),
        (b"event: x\ndata: a\n\n", [ServerEvent(b"a", "x")]),
        (b"id: 1\ndata: a\n\nid\ndata: c\n\n", [ServerEvent(b"a", id="1"), ServerEvent(b"c")]),
        (b"id: 1\ndata: a\n\ndata: b\n\n", [ServerEvent(b"a", id="1"), ServerEvent(b"b", id="1")]),
        (b"id: a\0b\ndata: a\n\n", [ServerEvent(b"a")]),
        (b": data: a\n\n", []),
        (b"dat: a\nother\n\n", []),
        (b"data: a", [ServerEvent(b"a")]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb", []),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"", []),
    ],
)  # fmt: skip
def test_the_standard_by_example(body: bytes, events: list[ServerEvent]) -> None:
    assert read(body)[0] == events


def test_retry_is_digits_only() -> None:
    assert read(b"retry: 1500\n")[1] == 1500
    assert read(b"retry: 1.5\nretry: -1\nretry: x\nretry:\n")[1] is None


def test_text_replaces_what_is_not_utf8() -> None:
    assert read(b"data: \xff\n\n")[0][0].text == "�"


@pytest.mark.parametrize(
    "pieces", [[b"data: " + b"x" * 200], [b"x" * 30] * 9, [b"data: " + b"x" * 200 + b"\n"]]
)
def test_a_line_beyond_the_limit_is_refused(pieces: list[bytes]) -> None:
    reader = SSEReader(max_line=100)
    with pytest.raises(ModelError, match="more than"):
        list(map(reader.feed, pieces))


@pytest.mark.parametrize("line", [b"data: xxxxxxxx\n", b"data\n", b"data:\n"])
def test_an_event_beyond_the_limit_is_refused(line: bytes) -> None:
    reader = SSEReader(max_event=500)
    with pytest.raises(ModelError, match="event of more than 500 bytes"):
        list(map(reader.feed, [line] * 501))
