"""What a server sends unasked, bounded: each such message is a task of the SDK's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any

import anyio
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

MAX_UNASKED = 1_000
"""Notifications and requests of a server within a second, before it is let go of."""


class FencedStream:
    """A stream of a server's messages, which ends when it floods; `ended` is told so."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: Callable[[str], None]) -> None:
        self._stream, self._ended = stream, ended
        self._since, self._count = 0.0, 0

    def __getattr__(self, name: str) -> Any:
        # What the SDK's own streams have beside, such as the context of the last message.
        return getattr(self._stream, name)

    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises as the stream does, EndOfStream at a flood."""
        found = await self._stream.receive()
        if isinstance(found, SessionMessage) and isinstance(
            found.message, JSONRPCNotification | JSONRPCRequest
        ):
            now = asyncio.get_running_loop().time()
            if now - self._since >= 1.0:
                self._since, self._count = now, 0
            self._count += 1
            if self._count > MAX_UNASKED:
                self._ended(f"it sent more than {MAX_UNASKED:,} messages in a second that nobody asked for")
                raise anyio.EndOfStream
        return found

    def __aiter__(self) -> FencedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Let go of it."""
        await self._stream.aclose()

    async def __aenter__(self) -> FencedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)
