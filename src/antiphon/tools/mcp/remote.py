"""A server that is reached over streamable HTTP, with a bound on what it may send at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from antiphon.tools.mcp.child import MAX_MESSAGE
from antiphon.tools.mcp.servers import McpServer

CONNECT_SECONDS = 10.0


class _CountedBody(httpx2.AsyncByteStream):
    """A body of at most so many bytes; what is beyond is an error of the network."""

    def __init__(self, body: httpx2.AsyncByteStream, most: int) -> None:
        self._body, self._left = body, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError(f"it sent a message of more than {MAX_MESSAGE:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        """Let go of it."""
        await self._body.aclose()


class _CountingTransport(httpx2.AsyncHTTPTransport):
    """Bounds bodies that are read as one; events of a stream have a bound of their own."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See AsyncHTTPTransport."""
        response = await super().handle_async_request(request)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            body = response.stream
            if isinstance(body, httpx2.AsyncByteStream):
                response.stream = _CountedBody(body, MAX_MESSAGE)
        return response


@asynccontextmanager
async def remote_streams(server: McpServer) -> AsyncGenerator[TransportStreams, None]:
    """Messages from and to a server at its address; its headers go nowhere else."""
    headers = {name: each.reveal() for name, each in server.headers.items()}
    # A call has its own time; while a person is asked in one, nothing comes for long.
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, transport=_CountingTransport()) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams
