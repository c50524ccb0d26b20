"""Coroutines for callers that have no `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import Event, Thread
from typing import Any, TypeVar

from antiphon.kernel.run.toolsets.provider import close_unused

_Returned = TypeVar("_Returned")


async def _to_its_end(work: Coroutine[Any, Any, _Returned]) -> _Returned:
    """With what would be left of it: nobody else can use this event loop's providers of tools."""
    try:
        return await work
    finally:
        await close_unused()


def run_here(work: Coroutine[Any, Any, _Returned]) -> _Returned:
    """Run a coroutine to its end, in a thread of its own where this one has an event loop already.

    Whoever interrupts the wait cancels the work, and waits for its end.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_to_its_end(work))
    ended: Future[_Returned] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Future()
    unwanted = Event()

    async def task() -> _Returned:
        begun.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        if unwanted.is_set():
            work.close()
            raise asyncio.CancelledError
        return await _to_its_end(work)

    def thread() -> None:
        try:
            ended.set_result(asyncio.run(task()))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            ended.set_exception(error)

    runs = Thread(target=copy_context().run, args=(thread,), name="antiphon-run")
    try:
        runs.start()
        return ended.result()
    except KeyboardInterrupt:
        # It may come while the thread is started: whoever is second of the two sees the other.
        unwanted.set()
        if begun.done():
            loop, working = begun.result()
            if working is not None and not ended.done():
                loop.call_soon_threadsafe(working.cancel)
        if runs.is_alive():
            wait([ended])
        raise
