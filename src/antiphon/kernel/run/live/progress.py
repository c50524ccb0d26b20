"""ProgressReport: what a tool says of how far it has come, as a delta of its effect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from threading import get_ident

from antiphon.kernel.facts.activation import OpenEffect
from antiphon.kernel.run.live.feed import Feed
from antiphon.values.progress import FileDiff, FileLocation, ToolProgress, bounded


class ProgressReport:
    """Shown to whoever watches, and forgotten. Only the latest is kept: a tool may say what it likes."""

    def __init__(self, feed: Feed, opened: OpenEffect) -> None:
        self._feed, self._opened = feed, opened
        self._loop, self._thread, self._said = asyncio.get_running_loop(), get_ident(), 0
        self._latest, self._scheduled = ToolProgress(""), False

    def report(
        self, text: str = "", *, locations: Iterable[FileLocation] = (), diffs: Iterable[FileDiff] = ()
    ) -> None:
        """Show what a tool says, from whatever thread; see `ReportProgress`."""
        self._said += 1
        self._latest = bounded(self._said, text, locations, diffs)
        if get_ident() == self._thread:
            self._show()
        elif not self._scheduled:
            self._scheduled = True
            # A thread that was given up may outlive the loop.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._show)

    def _show(self) -> None:
        self._scheduled = False
        if not self._opened.ended:
            self._feed.tell(self._opened.id, self._latest)
