"""Requests to one host, spaced: one after the other, with a pause, later where a host asks for that."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

from antiphon.errors import ToolError
from antiphon.values.secret import shown

MAX_WAIT = 20.0
"""Seconds that a request waits for its turn."""
MAX_HOSTS = 1_000
"""Hosts whose last request is remembered."""


class Courtesy:
    """Gives each host's requests their turns; for any number of event loops.

    now: seconds of a steady clock. sleep: waits so many seconds.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now, self._sleep = now, sleep
        self._lock = threading.Lock()
        self._free: dict[str, float] = {}

    async def turn(self, host: str, pause: float) -> None:
        """Return when a host may be asked; `pause` seconds later another one may. Raises ToolError when that
        is more than `MAX_WAIT` seconds away."""
        with self._lock:
            now = self._now()
            begin = max(self._free.pop(host, now), now)
            if begin - now > MAX_WAIT:
                self._free[host] = begin
                raise ToolError(
                    f"{shown(host)} asks not to be visited for the next {begin - now:.0f} seconds; "
                    "go on with something else"
                )
            self._keep(host, begin + pause)
        if begin > now:
            await self._sleep(begin - now)

    def ask_later(self, host: str, seconds: float) -> None:
        """A host asks to be left alone for so long."""
        with self._lock:
            self._keep(host, max(self._free.pop(host, 0.0), self._now() + seconds))

    def _keep(self, host: str, free: float) -> None:
        self._free[host] = free
        while len(self._free) > MAX_HOSTS:
            self._free.pop(next(iter(self._free)))
