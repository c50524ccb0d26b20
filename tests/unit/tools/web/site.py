"""A host of a test, on this machine: what stands at each path, and what was asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import httpx2

from antiphon.tools.web.client import WebClient
from antiphon.tools.web.courtesy import Courtesy
from antiphon.tools.web.options import WebOptions

HERE = "127.0.0.0/8"


class Site:
    """pages: by path the body, or (status, headers, body); None never answers. heads: each request as it
    came."""

    def __init__(self, pages: Mapping[str, object]) -> None:
        self.pages, self.heads, self.port = dict(pages), list[str](), 0
        self.at_work = set[asyncio.Task[object] | None]()

    @property
    def asked(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [each.split(" ")[1] for each in self.heads]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.at_work.add(asyncio.current_task())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            found = self.pages.get(head.split(" ")[1], (404, {}, b"nothing here"))
            if found is None:
                await reader.read()  # until whoever asked has gone
                return
            status, headers, body = found if isinstance(found, tuple) else (200, {}, found)
            data = body if isinstance(body, bytes) else str(body).encode()
            told = {"Content-Type": "text/html", "Content-Length": str(len(data)), **headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
            writer.write(f"HTTP/1.1 {status} Told\r\n{lines}\r\n".encode() + data)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # whoever asked has gone
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def opened(pages: Mapping[str, object]) -> AsyncGenerator[Site]:
    """A site that answers."""
    site = Site(pages)
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.gather(*[each for each in site.at_work if each is not None])


class Recorded(httpx2.AsyncHTTPTransport):
    """Sends as always, and keeps which addresses it was to connect to."""

    def __init__(self, to: list[str]) -> None:
        super().__init__(trust_env=False, verify=False)
        self._to = to

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._to.append(f"{request.url.host}:{request.url.port}")
        return await super().handle_async_request(request)


async def to_here(host: str, port: int) -> list[str]:
    """Every host is this machine."""
    return ["127.0.0.1"]


class Pauses:
    """A clock that nobody waits for; `slept` is what was waited."""

    def __init__(self) -> None:
        self.time, self.slept = 0.0, list[float]()

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def guest(to: list[str] | None = None, pauses: Pauses | None = None, **options: object) -> WebClient:
    """A client that may visit this machine."""
    pauses = pauses or Pauses()
    asked = {"networks": (HERE,), **options}
    return WebClient(
        WebOptions(**asked),  # type: ignore[arg-type]
        resolve=to_here,
        transport=lambda: Recorded([] if to is None else to),
        courtesy=Courtesy(pauses.now, pauses.sleep),
    )
