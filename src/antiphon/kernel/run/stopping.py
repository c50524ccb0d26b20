"""How what was cancelled is stopped, also when it ignores that."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Generator, Mapping
from contextlib import suppress
from typing import Any

GRACE = 1.0
"""Seconds that what was cancelled gets to clean up."""


class Stoppable:
    """The rest of a coroutine that has been started and waits for something; await it, once.

    One that goes on although it was cancelled is closed after GRACE, so that nobody waits for it for
    ever; `closed` says so.
    """

    __slots__ = ("_coroutine", "_waits_for", "closed")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._coroutine, self._waits_for = coroutine, waits_for
        self.closed = False

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, waits_for = self._coroutine, self._waits_for
        timer: asyncio.TimerHandle | None = None
        try:
            while True:
                try:
                    value = yield waits_for
                except BaseException as error:
                    # A cancellation above all: it is the coroutine's to handle.
                    if self.closed:
                        self._close()
                        raise
                    if timer is None and isinstance(error, asyncio.CancelledError):
                        timer = self._close_later()
                    waits_for = coroutine.throw(error)
                else:
                    waits_for = coroutine.send(value)
        except StopIteration as finished:
            return finished.value
        finally:
            if timer is not None:
                timer.cancel()

    def _close_later(self) -> asyncio.TimerHandle:
        task = asyncio.current_task()

        def overdue() -> None:
            self.closed = True
            if task is not None:
                task.cancel()

        return asyncio.get_running_loop().call_later(GRACE, overdue)

    def _close(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            # Taken back, so that whoever cancelled first is who is heard: a timeout, or the run.
            task.uncancel()
        with suppress(RuntimeError):
            # It is raised by a coroutine that ignores even this; there is nothing harder.
            self._coroutine.close()


async def stop(tasks: Collection[asyncio.Task[None]], names: Mapping[asyncio.Task[None], str]) -> list[str]:
    """Cancel tasks; the names of those that go on all the same."""
    for task in tasks:
        task.cancel()
    _, pending = await asyncio.wait(tasks, timeout=2 * GRACE) if tasks else ((), ())
    return [names.get(task, "what was cancelled before") for task in pending]
