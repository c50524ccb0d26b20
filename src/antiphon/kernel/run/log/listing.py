"""What the list of runs says of a run while somebody drives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from antiphon.journal.port import Journal, Lease
from antiphon.kernel.facts.events import (
    HUMAN_INPUTS,
    RunClosed,
    RunResumed,
    RunStarted,
)
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.facts.summary import encode, summary_of

SHOWN = frozenset((RunStarted, RunResumed, RunClosed))
"""Events that a list shows, beside questions and the user's requests."""
SOON_S = 0.05
"""Seconds after a change until it is told: a run that is over by then tells only how it ended."""
PAUSE_S = 1.0
"""Seconds between two descriptions, at least."""


class Listing(Struct):
    """Describes a run to its journal when something changed that a list shows. Best effort.

    The runtime says what changed by setting `news` and, when nothing is due, the timer `due`, which calls
    `tell`: on the way of every request, it calls nothing here.
    """

    journal: Journal
    lease: Lease
    state: RunState
    seq: Callable[[], int]
    """The number of the run's last record."""
    asked: set[str] = field(default_factory=set)
    """Effects that wait for a person."""
    news: bool = False
    due: asyncio.TimerHandle | None = None

    def resume(self) -> None:
        """Know what an earlier owner asked."""
        opened = self.state.open.items()
        self.asked.update(key for key, each in opened if type(each.detail) in HUMAN_INPUTS)

    def tell(self) -> None:
        """Describe the run, if there is news; then again when there is more, after a pause."""
        self.due = None
        if self.news:
            self.news = False
            self.due = asyncio.get_running_loop().call_later(PAUSE_S, self.tell)
            self.journal.describe(self.lease, encode(summary_of(self.state, self.seq())))

    def end(self) -> None:
        """Describe it no more."""
        self.news = False
        if self.due is not None:
            self.due.cancel()
