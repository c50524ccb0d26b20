"""The process: listens, says where, and leaves in good order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn
from litestar import Litestar

from antiphon.errors import ConfigError
from antiphon.server.gate import LOOPBACK, MAX_BODY
from antiphon.server.log import LOG
from antiphon.server.served import Served

HEADERS = 64 * 1024
"""Bytes of a request's line and headers."""
BACKLOG = 512
GOODBYE_SECONDS = 1
"""How long connections have to end once the runs are left."""
CONNECTIONS = 2_500
"""Connections at once; more are answered 503."""


COLLECTED = (5_000, 5, 80)
"""How seldom Python looks for objects that only know each other: after so many more objects, among these;
each fifth time among those since the last fifth; and each eightieth of these among all, which holds everybody
up for 0.1 s and more. Two million objects wait for that, at most."""


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
        made = socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
        # Named so, since asyncio sends at once (TCP_NODELAY) over what says that it is TCP only; else the end
        # of a response waits for the receipt of its beginning, which comes 40 ms later.
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=made.detach())
    except OSError as error:
        raise ConfigError(
            f"Nothing can listen at {host} port {port}: {error.strerror or error}. Give another --port"
        ) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    return host.strip("[]") in {each.strip("[]") for each in LOOPBACK}


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """What is there already is not looked through again, and what comes is seldom, see COLLECTED."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        # All or nothing: what a program has frozen itself stays so.
        if not frozen:
            gc.unfreeze()


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
        LOG.info("serving %s at port %d", ", ".join(sorted(served.host.teams)), address[1])
        with seldom_collected():
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        LOG.info("leaving the runs in good order, %s s at most", drain_seconds)
        cut = await served.host.drain(drain_seconds)
        LOG.info("left; runs in which something was cut off: %d", len(cut))
    finally:
        served.leave()
        server.should_exit = True
        for each in waited - {serving}:
            each.cancel()
        await serving
