"""Coroutines for callers that have no `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

_Returned = TypeVar("_Returned")


def run_here(work: Coroutine[Any, Any, _Returned]) -> _Returned:
    """Run a coroutine to its end, in a thread of its own where this one has an event loop already.

    Whoever interrupts the wait cancels the work, and waits for its end.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    ended: Future[_Returned] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Future()

    async def task() -> _Returned:
        started.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def thread() -> None:
        try:
            ended.set_result(asyncio.run(task()))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            ended.set_exception(error)

    Thread(target=copy_context().run, args=(thread,), name="antiphon-run").start()
    try:
        return ended.result()
    except KeyboardInterrupt:
        loop, cancelled = started.result()
        if not ended.done() and cancelled is not None:
            loop.call_soon_threadsafe(cancelled.cancel)
        wait([ended])
        raise
