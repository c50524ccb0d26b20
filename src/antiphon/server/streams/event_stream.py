"""EventStream: one reader of a run as Server-Sent Events.

It is one task, beside the one that listens whether the reader is still there. What has come is sent as one
chunk; a reader that does not read holds its place in the run, and nothing else: what it was not sent is read,
or joined, when it reads again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Any

import msgspec
from litestar.response import Stream
from litestar.types import ASGIApp, Receive, Scope, Send

from antiphon.errors import AntiphonError
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.server.problems import refusal_of
from antiphon.server.served import Served
from antiphon.server.streams.shared import SharedProjection
from antiphon.view.reading.events import RunEvents

ALIVE_SECONDS = 15.0
"""After so long without anything a comment says that the stream lives."""
CHUNK = 65_536
"""Bytes after which a chunk is sent though there is more."""
_encode = msgspec.json.Encoder().encode


def event_of(item: Record | ReplyDelta) -> bytes:
    """A record or a piece as an event. JSON holds no line break, so it is one line."""
    if isinstance(item, Record):
        return b"id: %d\nevent: record\ndata: %b\n\n" % (item.seq, _encode(item))
    return b"event: delta\ndata: %b\n\n" % _encode(item)


class EventStream:
    """The chunks of one stream, as an async iterator; `close` it, begun or not.

    frames: of a reader that wants these. is_known: whether who opened it still may read. left: called once,
    when it is closed.
    """

    def __init__(
        self, events: RunEvents, frames: SharedProjection[bytes] | None, served: Served,
        is_known: Callable[[], bool], left: Callable[[], None],
    ) -> None:  # fmt: skip
        self._events, self._frames, self._served = events, frames, served
        self._is_known, self._left = is_known, left
        self._position = events.position
        self._loop = asyncio.get_running_loop()
        self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(ALIVE_SECONDS, self._look)
        self._is_silent = self._is_closed = False
        self._chunks = self._all()
        served.readers[id(self)] = events.wake

    def __aiter__(self) -> AsyncGenerator[bytes]:
        return self._chunks

    async def _all(self) -> AsyncGenerator[bytes]:
        yield b": antiphon\nretry: 1000\n\n"
        end: dict[str, Any] = {}
        while not end:
            try:
                items = await self._events.batch()
                # What was opened with a token ends with it, whatever has come.
                if not self._is_known():
                    end = {"reason": "token"}
                    break
                frames = await self._frames_of(items)
            except AntiphonError as error:
                end = {"reason": "failed", "problem": refusal_of(error).problem}
                break
            for chunk in self._chunks_of(items, frames):
                self._sent_at = self._loop.time()
                yield chunk
            if items:
                continue
            if self._events.is_over:
                end = {"reason": "closed"}
            elif self._served.leaving.is_set():
                end = {"reason": "server_left"}
            elif self._is_silent:
                self._is_silent, self._sent_at = False, self._loop.time()
                yield b": alive\n\n"
        yield b"event: end\ndata: " + _encode(end) + b"\n\n"

    async def _frames_of(self, items: list[Record | ReplyDelta]) -> Iterator[bytes]:
        """The frames of the records among these."""
        after = self._position
        for item in reversed(items):
            if isinstance(item, Record):
                self._position = item.seq
                break
        if self._frames is None or self._position == after:
            return iter(())
        return iter(await self._frames.between(after, self._position))

    def _chunks_of(self, items: list[Record | ReplyDelta], frames: Iterator[bytes]) -> Iterable[bytes]:
        if self._frames is None and items:
            return self._served.event_chunks.of(items, lambda: self._joined(items, frames))
        return self._joined(items, frames)

    def _joined(self, items: list[Record | ReplyDelta], frames: Iterator[bytes]) -> Iterator[bytes]:
        of, found, size = self._served.event_encodings.of, list[bytes](), 0
        for item in items:
            if self._frames is not None and isinstance(item, Record):
                event = b"id: %d\nevent: frame\ndata: %b\n\n" % (item.seq, next(frames))
            else:
                event = of(item, event_of)
            found.append(event)
            size += len(event)
            if size >= CHUNK:
                yield b"".join(found)
                found, size = [], 0
        if found:
            yield b"".join(found)

    def _look(self) -> None:
        """See whether it has been silent for so long."""
        since = self._loop.time() - self._sent_at
        if since >= ALIVE_SECONDS:
            since, self._is_silent = 0.0, True
            self._events.wake()
        self._timer = self._loop.call_later(ALIVE_SECONDS - since, self._look)

    async def close(self) -> None:
        """Read no more."""
        if not self._is_closed:
            self._is_closed = True
            del self._served.readers[id(self)]
            self._timer.cancel()
            self._events.close()
            self._left()
            await self._chunks.aclose()


class EventStreamResponse(Stream):
    """A response whose stream is closed with it, however it ends."""

    def __init__(self, stream: EventStream, **options: Any) -> None:
        super().__init__(stream, **options)
        self._stream = stream

    def to_asgi_response(self, *args: Any, **options: Any) -> Any:
        """See `litestar.Response`."""
        return _Closing(super().to_asgi_response(*args, **options), self._stream)


class _Closing:
    def __init__(self, response: ASGIApp, stream: EventStream) -> None:
        self._response, self._stream = response, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            await self._stream.close()
