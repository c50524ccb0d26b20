"""Runs of the list, a page at a time: those of a project, and those that nobody drives."""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec.structs import replace

from antiphon.journal import Journal
from antiphon.journal.listing import RunFilter, RunInfo

PAGE = 500
"""Runs that are looked at between two breaths."""


async def listed(journal: Journal, where: RunFilter) -> AsyncIterator[RunInfo]:
    """The runs that are asked for, newest first. Raises JournalError."""
    before = 0
    while page := await journal.runs(where, before, PAGE):
        for info in page:
            yield info
        before = page[-1].number


def runs_of(journal: Journal, project: str) -> AsyncIterator[RunInfo]:
    """The runs of a project, newest first. Raises JournalError."""
    return listed(journal, RunFilter(project=project))


async def undriven(journal: Journal, *, every: bool) -> AsyncIterator[RunInfo]:
    """What nobody drives and is not closed: what is open, what was posted in since it rests, and what
    somebody who died may have gone on with since it was said to rest. every: what rests, too.

    Raises JournalError.
    """
    open_ones = RunFilter(states=("open",), driven=False)
    resting = RunFilter(states=("open", "waiting", "idle"), driven=False)
    posted = replace(resting, posted=True)
    for where in (resting,) if every else (open_ones, posted, RunFilter(interrupted=True)):
        async for info in listed(journal, where):
            yield info
