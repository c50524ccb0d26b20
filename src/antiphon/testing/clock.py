"""A clock that nobody waits for: when the event loop is idle, time jumps to the next sleeper."""

from __future__ import annotations

import asyncio
import heapq
import itertools

QUIET = 3
"""Laps of the event loop without other work after which time may jump."""


class VirtualClock:
    """A `Clock` whose time moves only by `advance`, and by itself while all are asleep (`autojump`).

    Sleepers wake one at a time, ordered by their instant, then by who lay down first; what the one
    sets off is done before the next wakes. `jumps` lists the instants that were jumped to. A
    function in a thread does not hold time back.
    """

    def __init__(self, start: float = 1_700_000_000.0, *, autojump: bool = True) -> None:
        self.jumps: list[float] = []
        self._now, self._autojump = start, autojump
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._looking: asyncio.AbstractEventLoop | None = None
        self._quiet = 0

    def now(self) -> float:
        """Unix time in seconds, as this clock has it."""
        return self._now

    async def sleep_until(self, instant: float) -> None:
        """Return once `now()` has reached `instant`."""
        if instant <= self._now:
            return
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._sleepers, (instant, next(self._order), sleeper))
        if self._autojump and self._looking is not loop:
            self._looking, self._quiet = loop, 0
            loop.call_soon(self._look, loop)
        await sleeper

    def advance(self, seconds: float) -> None:
        """Move time on and wake whoever is due, in order."""
        end = self._now + seconds
        while (instant := self._next()) is not None and instant <= end:
            self._wake()
        self._now = max(self._now, end)

    @property
    def sleeping(self) -> int:
        """How many wait for a later instant."""
        return sum(not sleeper.done() for _, _, sleeper in self._sleepers)

    def _next(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _wake(self) -> None:
        instant, _, sleeper = heapq.heappop(self._sleepers)
        self._now = max(self._now, instant)
        sleeper.set_result(None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._next() is None:
            self._looking = None
            return
        # Loops of other makers may not say what is ready; then a few laps of patience have to do.
        self._quiet = 0 if getattr(loop, "_ready", ()) else self._quiet + 1
        if self._quiet > QUIET:
            self._quiet = 0
            self._wake()
            self.jumps.append(self._now)
        loop.call_soon(self._look, loop)
