"""A loopback server that plays byte scripts: every way a model endpoint can go wrong.

    async with WireServer() as server:
        server.play(WIRES[3].stream)
        ... ask server.url, then ask again: what is not scripted is answered well

It runs inside the event loop it is opened in, without tasks or threads of its own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Step: TypeAlias = bytes | Literal["hang", "close", "reset", "pause", "refuse"]
"""What the server does next: send bytes, say nothing for ever, end the connection properly, break
it, wait a moment, or (as the only step) not listen at all. Bytes of one step leave in one write."""

Answer: TypeAlias = tuple[Step, ...]
"""What is done for one request. After the last step the connection waits for the next request."""

PAUSE = 0.002
"""Seconds of a `pause`: enough to be another packet."""


class Wire(Struct, frozen=True):
    """One scripted fault, and what a good client makes of it.

    stream, whole: the answers to successive requests, for a client that asked for a stream and for
        one that asked for a whole answer.
    outcome: `reply`, or the kind of `ModelError`.
    content, calls, stop: what a reply then holds; calls as (name, arguments).
    retry_after: seconds an error must carry.
    """

    name: str
    outcome: str
    stream: tuple[Answer, ...]
    whole: tuple[Answer, ...]
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    stop: str = "stop"
    retry_after: float | None = None


class WireServer:
    """Plays what it is told to; a request beyond that gets `GOOD`. Opened with `async with`.

    requests: the bodies that came in, decoded. open: how many connections are open now.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.heads: list[bytes] = []
        self.open: set[_Connection] = set()
        self._answers: deque[Answer] = deque()
        self._server: asyncio.Server | None = None
        self._socket = socket.socket()

    async def __aenter__(self) -> WireServer:
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in list(self.open):
            connection.drop()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        self._socket.close()

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    async def play(self, *answers: Answer) -> None:
        """Answer the next requests so. `("refuse",)` must stand alone, before anything else is played."""
        self._answers = deque(answers)
        if answers == (("refuse",),):
            self._answers.clear()
        elif self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: _Connection(self), sock=self._socket)

    def next_answer(self, head: bytes, body: bytes) -> Answer:
        """Record a request and say what it gets."""
        self.heads.append(head)
        try:
            asked = json.loads(body)
        except ValueError:
            asked = body
        self.requests.append(asked)
        if self._answers:
            return self._answers.popleft()
        return GOOD_STREAM if isinstance(asked, dict) and asked.get("stream") else GOOD_WHOLE


class _Connection(asyncio.Protocol):
    """One connection: reads requests, plays answers step by step."""

    def __init__(self, server: WireServer) -> None:
        self._server = server
        self._buffer = b""
        self._steps: deque[Step] = deque()
        self._playing = False
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            self._server.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    def drop(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if self._playing or not (mark or self._buffer.startswith(_TLS_HELLO)):
            return
        size = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        if len(rest) >= size:
            self._buffer = rest[size:]
            self._steps = deque(self._server.next_answer(head, rest[:size]))
            self._playing = True
            self._step()

    def _step(self) -> None:
        """Do one step and arrange the next, each in its own turn of the loop."""
        transport = self._transport
        if transport is None:
            return
        if not self._steps:
            self._playing = False
            self.data_received(b"")
            return
        step = self._steps.popleft()
        loop = asyncio.get_running_loop()
        if isinstance(step, bytes):
            transport.write(step)
            self._timer = loop.call_soon(self._step)
        elif step == "pause":
            self._timer = loop.call_later(PAUSE, self._step)
        elif step == "close":
            transport.close()
        elif step == "reset":
            _break(transport)


def _break(transport: asyncio.Transport) -> None:
    """Send RST instead of FIN."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def http(
    body: bytes = b"", status: int = 200, *, kind: str = "application/json", headers: Sequence[str] = ()
) -> bytes:
    """A whole HTTP answer with its length."""
    lines = [f"HTTP/1.1 {status} S", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*pieces: bytes, kind: str = "text/event-stream", end: bool = True) -> Answer:
    """An HTTP answer in chunks, one step each; `end` also sends the last, empty chunk."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    steps = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
    return (head, *steps, b"0\r\n\r\n") if end else (head, *steps)


def sse(*chunks: Any, done: bool = True) -> bytes:
    """Chunks as server-sent events; a `str` is put in as it is."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, *(["[DONE]"] if done else [])]).encode()


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One chunk of a streamed chat completion."""
    return {"id": "c", "model": "wire", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def completion(finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    """A whole chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c", "model": "wire", "choices": [choice], "usage": USAGE}


def piece(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> Any:
    """One piece of a tool call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields = (("index", index), ("id", call_id), ("type", "function"), ("function", function))
    return {key: value for key, value in fields if value is not None}


_TLS_HELLO = b"\x16\x03"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
USAGE_CHUNK = {"id": "c", "choices": [], "usage": USAGE}
GOOD_STREAM: Answer = chunked(sse(chunk(content="fi"), chunk(content="ne"), chunk("stop"), USAGE_CHUNK))
GOOD_WHOLE: Answer = (http(json.dumps(completion(content="fine")).encode()),)
