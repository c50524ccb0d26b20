"""Whether anybody looks: a server that is there for one person's look ends some time after that."""

from __future__ import annotations

import asyncio

from litestar.types import ASGIApp, Receive, Scope, Send

from antiphon.kernel.run.clock import Clock
from antiphon.server.subjects import Subject


class Presence:
    """ASGI middleware around the whole app: requests of those who were let in, and streams that are open.

    A page that is shown asks something at least once a minute, also in the background.
    """

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app, self._clock = app, clock
        self._open, self._seen = 0, clock.now()
        self._first = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
            if isinstance(scope.get("user"), Subject):
                self._seen = self._clock.now()
                self._first.set()

    async def until_left(self, seconds: float) -> None:
        """Wait until somebody has looked, and then nobody for so long."""
        await self._first.wait()
        while (due := self._seen + seconds) > (now := self._clock.now()) or self._open:
            await self._clock.sleep_until(max(due, now + 1))
