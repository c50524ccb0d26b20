"""A run of this journal that another process drives: seen, told and answered as if it were driven here."""

from __future__ import annotations

import asyncio

from antiphon import Record, ReplyDelta
from antiphon.cli.session.elsewhere import RemoteRun
from antiphon.cli.source import JournalRuns
from antiphon.errors import RunSuspended
from antiphon.values.message import Attachment, new_id
from antiphon.view.connection import RunConnection

LOOK = 1.0
"""Seconds between two looks whether somebody drives the run, while nothing happens in it."""


class WatchedRun(RemoteRun):
    """The run with the face of FollowedRun. What waits for its owner raises RunSuspended once there is none.

    runs: of the journal.
    """

    def __init__(self, runs: JournalRuns, run_id: str) -> None:
        super().__init__(runs, run_id)
        self._journal = runs.journal

    async def post(
        self, to: str, text: str, *, intent: str = "", attachments: tuple[Attachment, ...] = ()
    ) -> str:
        """See RemoteRun."""
        run = RunConnection(self._journal, self.run_id)
        if "/" in to:
            await run.post(to, text, attachments=attachments)
            return to
        command = await run.ask(to, text, intent=intent, attachments=attachments, key=new_id())
        while True:
            try:
                async with asyncio.timeout(LOOK):
                    return await run.taken(command)
            except TimeoutError:
                await self.check()

    def opened(self, after: int) -> WatchedEvents:
        """See RemoteRun."""
        return WatchedEvents(self, RunConnection(self._journal, self.run_id), after)

    async def check(self) -> None:
        """Raises RunSuspended where nobody drives it."""
        if not (await self._journal.info(self.run_id)).owner:
            raise RunSuspended(self.run_id, "nobody drives it any more")


class WatchedEvents:
    """Its stream; ends with RunSuspended when nobody drives it any more, once all of it was read."""

    def __init__(self, run: WatchedRun, connection: RunConnection, after: int) -> None:
        self._run, self._events = run, connection.events(after)
        # The next one last.
        self._found: list[Record | ReplyDelta] = []

    def __aiter__(self) -> WatchedEvents:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        while not self._found:
            looking = asyncio.get_running_loop().call_later(LOOK, self._events.wake)
            try:
                self._found = (await self._events.batch())[::-1]
            finally:
                looking.cancel()
            if self._events.is_over and not self._found:
                raise StopAsyncIteration
            if not self._found:
                await self._run.check()
        return self._found.pop()

    def wake(self) -> None:
        """See FollowedEvents."""
        self._events.wake()

    async def aclose(self) -> None:
        """Stop watching."""
        await self._events.aclose()
