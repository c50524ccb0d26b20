"""The process: listens, says where, and leaves in good order."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn
from litestar import Litestar

from antiphon.errors import ConfigError
from antiphon.server.gate import LOOPBACK, MAX_BODY
from antiphon.server.served import Served

HEADERS = 64 * 1024
"""Bytes of a request's line and headers."""
BACKLOG = 512
GOODBYE_SECONDS = 1
"""How long connections have to end once the runs are left."""
CONNECTIONS = 2_500
"""Connections at once; more are answered 503."""


class Listener(uvicorn.Server):
    """uvicorn without its own signals: who serves decides what they mean."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See uvicorn."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises ConfigError when it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"Nothing can listen at {host} port {port}: {error.strerror or error}. Give another --port"
        ) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    return host.strip("[]") in {each.strip("[]") for each in LOOPBACK}


async def serve(
    app: Litestar, listening: socket.socket, stop: asyncio.Event, drain_seconds: float,
    ready: Callable[[str], None], until: Awaitable[None] | None = None,
) -> None:  # fmt: skip
    """Serve until `stop` is set, or `until` returns; then drain the host's runs, end the streams and return.

    ready: told the address once it answers. drain_seconds: what is in flight gets so long to end.
    """
    served: Served = app.state.served
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", proxy_headers=False, server_header=False,
        ws="websockets-sansio", ws_max_size=4 * MAX_BODY, ws_per_message_deflate=False,
        h11_max_incomplete_event_size=HEADERS, limit_concurrency=CONNECTIONS, backlog=BACKLOG,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
    )  # fmt: skip
    server = Listener(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    waited: set[asyncio.Future[Any]] = {serving, asyncio.ensure_future(stop.wait())}
    if until is not None:
        waited.add(asyncio.ensure_future(until))
    try:
        address = listening.getsockname()
        name = f"[{address[0]}]" if ":" in address[0] else address[0]
        ready(f"http://{name}:{address[1]}")
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        await served.host.drain(drain_seconds)
    finally:
        served.leaving.set()
        server.should_exit = True
        for each in waited - {serving}:
            each.cancel()
        await serving
