"""The Clock port: the only source of time in a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from msgspec import Struct

from antiphon.kernel.facts.events import EffectFinished

LONGEST_NAP = 60.0
"""Seconds after which a sleeper looks again: an event loop does not count while the machine is asleep."""


class Clock(Protocol):
    """Wall time and waiting for it. Durations of tools are the event loop's, not the clock's."""

    def now(self) -> float:
        """Unix time in seconds."""
        ...

    async def sleep_until(self, instant: float) -> None:
        """Return once `now()` has reached `instant`."""
        ...


def _steady() -> Callable[[], float]:
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):
        if hasattr(time, name):
            return partial(time.clock_gettime, getattr(time, name))
    return time.monotonic


STEADY = _steady()
"""Seconds of a clock that nobody sets; it counts while the machine is asleep, where there is such a one."""


class SystemClock(Struct, frozen=True):
    """The machine's own time, which passes at a steady pace. Made by `system_clock`."""

    now: Callable[[], float]

    async def sleep_until(self, instant: float) -> None:
        """See `Clock.sleep_until`."""
        while (left := instant - self.now()) > 0:  # noqa: ASYNC110 - the loop's clock is another one
            await asyncio.sleep(min(left, LONGEST_NAP))


async def wait_until(clock: Clock, effect_id: str, due_at: float, too_late: str = "") -> EffectFinished:
    """Let a timer's instant come; too_late: that of a person's time to answer, and what is said then."""
    await clock.sleep_until(due_at)
    return EffectFinished(effect_id, "limit", reason=too_late) if too_late else EffectFinished(effect_id)
