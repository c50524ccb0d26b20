"""OwnTime: the time that a tool may take itself, which stands still while it waits for others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class OwnTime:
    """A timeout of `seconds`, to be entered like `asyncio.timeout`; `stopped` holds it, also before it is
    entered. Raises TimeoutError where it is left."""

    __slots__ = ("_left", "_stops", "_timeout")

    def __init__(self, seconds: float) -> None:
        self._left, self._stops = seconds, 0
        self._timeout: asyncio.Timeout | None = None

    async def __aenter__(self) -> None:
        timeout = asyncio.timeout(None if self._stops else self._left)
        await timeout.__aenter__()
        self._timeout = timeout

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            await timeout.__aexit__(kind, error, trace)

    @property
    def stands_still(self) -> bool:
        """Whether others are waited for now."""
        return self._stops > 0

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Time passes by while this is held, by several at once perhaps."""
        self._stops += 1
        timeout = self._timeout
        if self._stops == 1 and timeout is not None and not timeout.expired():
            due = timeout.when()
            self._left = max((due or 0.0) - asyncio.get_running_loop().time(), 0.0)
            timeout.reschedule(None)
        try:
            yield
        finally:
            self._stops -= 1
            timeout = self._timeout
            if not self._stops and timeout is not None and not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time() + self._left)
