"""Who waits, in this process, for runs to move."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from antiphon.errors import JournalError, UnknownName
from antiphon.journal.sqlite.reader import GONE

Waiter = tuple[int, int, "asyncio.Future[None]"]
"""The last event and the last command that are known already, and what is set when there is more."""


class Waiters:
    """Waiters by run. Belongs to one event loop.

    watched: how many there are of each run, for the reader's thread, which looks for these runs only.
    """

    def __init__(self, watched: dict[str, int]) -> None:
        self._watched = watched
        self._waiting: dict[str, list[Waiter]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @contextmanager
    def one(self, run_id: str, seq: int, command: int) -> Iterator[asyncio.Future[None]]:
        """What is set once the run has events past `seq` or commands past `command`."""
        waiter = (seq, command, asyncio.get_running_loop().create_future())
        waiting = self._waiting.setdefault(run_id, [])
        waiting.append(waiter)
        self._watched[run_id] = len(waiting)
        try:
            yield waiter[2]
        finally:
            waiting.remove(waiter)
            if not waiting:
                del self._waiting[run_id]
                self._watched.pop(run_id, None)

    def wake(self, moved: Mapping[str, tuple[int, int]]) -> None:
        """Tell those whose runs have moved so far, or are gone."""
        for run_id, (seq, command) in moved.items():
            for after, read, waiter in self._waiting.get(run_id, ()):
                if waiter.done():
                    continue
                if (seq, command) == GONE:
                    waiter.set_exception(UnknownName("run", run_id))
                elif seq > after or command > read:
                    waiter.set_result(None)

    def fail(self, error: JournalError) -> None:
        """Tell everybody that nothing more is heard."""
        for waiters in self._waiting.values():
            for _, _, waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
