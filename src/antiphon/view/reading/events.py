"""A run's records and pieces as they come, whoever drives it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from antiphon.journal import Journal
from antiphon.kernel.facts.events import RunClosed
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.kernel.run.live.feed import Ended, Subscription
from antiphon.kernel.run.rows import RecordPages
from antiphon.kernel.run.run import open_here


class RunEvents:
    """An async iterator over a run's records, and pieces where it is driven here: `RunConnection.events`.

    It goes over to whoever drives the run: from the journal to this event loop's own, and back.
    position: the number of the last record that was handed out. ended: `closed` once it has ended with the
    run; empty while it goes on, and for who stopped watching before.
    """

    def __init__(self, journal: Journal, run_id: str, after: int, deltas: bool) -> None:
        self._journal, self._run_id, self._deltas = journal, run_id, deltas
        self.position = after
        self.ended: Ended = ""
        self._reached = after
        self._pages: RecordPages | None = None
        # The next one last.
        self._found: list[Record | ReplyDelta] = []
        self._live: Subscription | None = None
        self._over = self._woken = False
        self._waiting: asyncio.Timeout | None = None

    def __aiter__(self) -> RunEvents:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        while not self._found:
            if self._over:
                raise StopAsyncIteration
            self._found = (await self.batch())[::-1]
        item = self._found.pop()
        if isinstance(item, Record):
            self.position = item.seq
        return item

    @property
    def is_over(self) -> bool:
        """Nothing follows: the run is closed, or this was."""
        return self._over

    async def batch(self) -> list[Record | ReplyDelta]:
        """All that has come since the last one, a page at most; it waits while there is nothing.

        Empty when it was woken for nothing, and once it `is_over`. Readers of a run that is driven here are
        given the same objects.
        """
        found: list[Record | ReplyDelta] = []
        while not (found or self._over or self._woken):
            if self._live is not None:
                found = await self._live.batch()
                if not found and self._live.ended:
                    # It was left, or has failed: somebody else may go on, from where it ended.
                    self._live = self._pages = None
            elif (here := open_here(self._journal, self._run_id)) is not None:
                self._live = here.events(self._reached, deltas=self._deltas)
            else:
                found = list(await self._page())
        if not found:
            # Who was woken and is given something looks for what else there is to do when he asks again.
            self._woken = False
        for item in reversed(found):
            if isinstance(item, Record):
                self._reached = item.seq
                if type(item.event) is RunClosed:
                    self._end()
                break
        return found

    async def _page(self) -> Sequence[Record]:
        """The next page of what is stored; it waits while there is none."""
        if self._pages is None:
            self._pages = RecordPages(self._journal, self._run_id, self._reached)
        found = await self._pages.read()
        if not found and self._pages.closed:
            self._end()
        elif not (found or self._woken or self._over):
            # Whoever wakes it lets the time run out.
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as self._waiting:
                    await self._pages.wait()
            self._waiting = None
        return found

    def wake(self) -> None:
        """Whoever waits in `batch` has something else to do."""
        self._woken = True
        if self._live is not None:
            self._live.wake()
        elif self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(0)

    def _end(self) -> None:
        self.ended = "closed"
        self.close()

    def close(self) -> None:
        """Stop watching."""
        self._over = True
        self._found.clear()
        if self._live is not None:
            self._live.close()
            self._live = None

    async def aclose(self) -> None:
        """`close`, for `contextlib.aclosing`."""
        self.close()
