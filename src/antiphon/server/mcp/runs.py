"""The runs that an MCP client may see, and no others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from antiphon.errors import UnknownName, UserError
from antiphon.host import Host
from antiphon.journal.listing import Labels, RunFilter, RunInfo
from antiphon.journal.port import check_id
from antiphon.view import RunConnection

AT_WORK = 64
"""Calls of one client's program that go on at once."""


class CallerRuns(Protocol):
    """What a caller does runs with. who: recorded for what they answer."""

    who: str

    def connect(self, run_id: str) -> AbstractAsyncContextManager[RunConnection]:
        """A run of the team that the caller may see. Raises UnknownName, of another's run as of none."""

    async def start(self, message: str, **options: Any) -> str:
        """Start a run, a conversation; its id. Raises UserError, JournalError."""

    async def list(self, limit: int) -> Sequence[RunInfo]:
        """Runs of the team, newest first."""


class LocalRuns:
    """The runs of a team that nobody else owns: for whoever has started this program."""

    def __init__(self, host: Host, team: str, who: str) -> None:
        self._host, self._team, self.who = host, team, who

    @asynccontextmanager
    async def connect(self, run_id: str) -> AsyncGenerator[RunConnection]:
        """See CallerRuns."""
        await check_team(self._host, self._team, run_id, owner="")
        async with self._host.connect(run_id) as run:
            yield run

    async def start(self, message: str, **options: Any) -> str:
        """See CallerRuns."""
        return (await self._host.start(self._team, message, conversation=True, **options)).run_id

    async def list(self, limit: int) -> Sequence[RunInfo]:
        """See CallerRuns."""
        return await self._host.journal.runs(RunFilter(owner="", team=self._team), 0, limit)


async def check_team(host: Host, team: str, run_id: str, *, owner: str | None = None) -> None:
    """Raise UnknownName unless the run is there and of the team, and of that owner if one is given."""
    try:
        check_id("run_id", run_id)
        labels: Labels = (await host.info(run_id)).labels
    except UserError:
        # What cannot be an id is the id of no run.
        raise UnknownName("run", run_id) from None
    if labels.team != team or owner not in (None, labels.owner):
        raise UnknownName("run", run_id)
