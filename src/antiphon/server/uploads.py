"""How many uploads go on at once, and that one after the other takes its place."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from antiphon.server.problems import Refusal

AT_ONCE = 4
"""Uploads into one project at once."""


class Uploads:
    """Those that go on, by project. Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @contextmanager
    def one(self, project: str) -> Iterator[asyncio.Lock]:
        """One more; the lock is held while the file is put in its place. Raises Refusal for too many."""
        if self._open[project] >= AT_ONCE:
            raise Refusal(
                429, "uploads", f"{AT_ONCE} files are on their way to the project", "Send one after the other"
            )
        self._open[project] += 1
        try:
            yield self._locks.setdefault(project, asyncio.Lock())
        finally:
            self._open[project] -= 1
            if not self._open[project]:
                del self._open[project]
