"""How many runs a host drives at once; the others stand in a line, first come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol


class Occupant(Protocol):
    """What is in a slot."""

    def hurry(self) -> None:
        """Somebody waits for a slot: leave this one if nothing is done in it."""
        ...


class Slots:
    """So many slots. Belongs to one event loop."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._within: list[Occupant] = []
        self._waiting = 0

    @property
    def full(self) -> bool:
        """Whether who comes now has to wait."""
        return self._free.locked()

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return self._waiting > 0

    @asynccontextmanager
    async def one(self, occupant: Occupant) -> AsyncIterator[None]:
        """Wait for a slot and keep it."""
        self._waiting += 1
        try:
            if self.full:
                for each in self._within:
                    each.hurry()
            await self._free.acquire()
        finally:
            self._waiting -= 1
        self._within.append(occupant)
        try:
            yield
        finally:
            self._within.remove(occupant)
            self._free.release()
