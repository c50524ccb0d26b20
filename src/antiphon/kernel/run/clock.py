"""The Clock port: the only source of time in a run."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time and waiting for it. Durations of tools are the event loop's, not the clock's."""

    def now(self) -> float:
        """Unix time in seconds."""
        ...

    async def sleep_until(self, instant: float) -> None:
        """Return once `now()` has reached `instant`."""
        ...


class SystemClock:
    """The machine's own clock; a jump backwards only makes a wait longer."""

    now = staticmethod(time.time)

    async def sleep_until(self, instant: float) -> None:
        """See `Clock.sleep_until`."""
        while (left := instant - time.time()) > 0:  # noqa: ASYNC110 - the wall clock may be set meanwhile
            await asyncio.sleep(min(left, 60.0))
