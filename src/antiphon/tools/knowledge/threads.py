"""Blocking work of a source in a thread that neither the event loop nor the process's end waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Made = TypeVar("_Made")


def beside(work: Callable[[], _Made]) -> Callable[[], _Made]:
    """Begin work in another thread; called, the result waits for it and gives what it returned or raised."""
    made: Future[_Made] = Future()

    def run() -> None:
        try:
            made.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            made.set_exception(error)

    threading.Thread(target=run, name="antiphon-knowledge", daemon=True).start()
    return made.result


def in_thread(work: Callable[[], _Made]) -> asyncio.Future[_Made]:
    """What `work` returns or raises. Whoever cancels the future waits no more, and the work goes on."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Made] = loop.create_future()

    def settle(result: _Made | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: _Made | None = None
        failed: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            failed = error
        try:
            loop.call_soon_threadsafe(settle, result, failed)
        except RuntimeError:
            return  # the loop was closed meanwhile: nobody waits

    threading.Thread(target=run, name="antiphon-knowledge", daemon=True).start()
    return future
