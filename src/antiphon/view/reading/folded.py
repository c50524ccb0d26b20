"""FoldedRun: what a run adds up to, read on from where the last reader of it ended."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from antiphon.errors import UserError
from antiphon.journal import Journal
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.run.rows import fold_next
from antiphon.view.reading.chain import ChainReader, RunReplaced
from antiphon.view.reading.commands_taken import CommandsTaken
from antiphon.view.tree import RunTree

BARE, OBJECTS = 16_384, 6
"""Bytes of a run without records, and of each byte of a record, once it is objects."""


class FoldedRun:
    """A stored run as of its record `seq`: its state, its tree, and what became of commands.

    All of it goes on changing, and belongs to whoever calls `read_on` next: take from it what you need before
    you await anything, and change nothing. tree: of what still goes on only, with `recent`.
    """

    def __init__(self, journal: Journal, run_id: str, *, recent: bool) -> None:
        self.run_id = run_id
        self._journal, self._recent = journal, recent
        self._reading = asyncio.Lock()
        self._begin()

    def _begin(self) -> None:
        self._reader = ChainReader(self._journal, self.run_id)
        self.state, self.tree = RunState(), RunTree(recent=self._recent)
        self._taken = CommandsTaken()

    @property
    def seq(self) -> int:
        """The number of the last record."""
        return self._reader.seq

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return BARE + self._reader.size * OBJECTS

    async def read_on(self) -> None:
        """Fold in what is new; all of it anew where another run has come under this id.

        Raises UnknownName, JournalCorrupt, JournalTooNew.
        """
        async with self._reading:
            try:
                await self._read()
            except RunReplaced:
                self._begin()
                await self._read()

    async def _read(self) -> None:
        async with aclosing(self._reader.rows()) as rows:
            async for row, events, records in rows:
                try:
                    fold_next(self.run_id, self.state, row, events)
                    for record in records:
                        self._taken.note(record, self.tree.add(record))
                except BaseException:
                    # Half a row is in it.
                    self._begin()
                    raise

    async def wait(self) -> None:
        """Wait until there may be something new. Raises UnknownName."""
        await self._reader.wait()

    def taken(self, command: int) -> str | None:
        """What a command became, see `RunConnection.taken`; None while it has not been taken in.

        Raises UserError with the reason when it came too late, was not delivered, or is too long ago.
        """
        found = self._taken.of(command)
        if found is not None:
            return found
        if self.tree.closed:
            raise UserError(f"Command {command} was not taken in: run {self.run_id} is closed")
        if self.state.command >= command and not self._taken.awaits_call:
            raise UserError(f"Command {command} of run {self.run_id} is too long ago to be known")
        return None
