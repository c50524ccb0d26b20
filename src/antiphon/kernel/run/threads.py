"""The threads in which synchronous tools run."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Threads:
    """Daemon threads for synchronous tools, `limit` at most; a call beyond them waits its turn.

    A call that is abandoned keeps its thread until the function returns; the result is dropped.
    """

    def __init__(self, limit: int = 32) -> None:
        self._limit = limit
        self._threads = 0
        self._idle = 0
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run `function` in a thread; the future belongs to the running loop."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not self._idle and self._threads < self._limit:
            self._threads += 1
            threading.Thread(target=self._work, name="antiphon-tool", daemon=True).start()
        else:
            self._idle -= 1
        self._jobs.put((function, future))
        return future

    def close(self) -> None:
        """Let every thread end once its function has returned."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            loop = future.get_loop()
            try:
                outcome: Any = function()
                failed = False
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits the future
                outcome, failed = error, True
            # The loop may be gone by now: the call was abandoned and nobody waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._done, future, outcome, failed)

    def _done(self, future: asyncio.Future[Any], outcome: Any, failed: bool) -> None:
        self._idle += 1
        if future.done():
            return
        if failed:
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
