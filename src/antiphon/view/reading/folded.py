"""FoldedRun: what a run adds up to, read on from where the last reader of it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing

from antiphon.errors import UserError
from antiphon.journal import Journal
from antiphon.kernel.facts.records import Record
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.run.rows import fold_next
from antiphon.view.changes import CancelRequest, Change, EffectEnd, EffectStart, MessageArrival
from antiphon.view.nodes import DeadLetter
from antiphon.view.reading.chain import ChainReader, RunReplaced
from antiphon.view.tree import RunTree

BARE, OBJECTS = 16_384, 6
"""Bytes of a run without records, and of each byte of a record, once it is objects."""
REMEMBERED = 10_000
"""Commands whose end is known; of more the oldest are forgotten."""


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
        self._taken: dict[int, str | UserError] = {}
        self._request = 0

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
                        self._note(record, self.tree.add(record))
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
        found = self._taken.get(command)
        if isinstance(found, UserError):
            raise found
        if found is not None:
            return found
        if self.tree.closed:
            raise UserError(f"Command {command} was not taken in: run {self.run_id} is closed")
        if self.state.command >= command and not self._request:
            raise UserError(f"Command {command} of run {self.run_id} is too long ago to be known")
        return None

    def _note(self, record: Record, changes: Iterable[Change]) -> None:
        number = getattr(record.event, "command", 0)
        for change in changes:
            match change:
                case EffectStart(activation, effect) | EffectEnd(activation, effect) if (
                    self._request and not activation.id
                ):
                    # The user's turn does the call of a request as soon as that is there.
                    self._keep(self._request, effect.id)
                    self._request = 0
                case EffectEnd(_, effect) if number:
                    self._keep(number, effect.id)
                case DeadLetter(reason=reason) if number:
                    self._keep(number, UserError(f"Command {number} was not taken in: {reason}"))
                case MessageArrival(activation) if number and not activation.id:
                    self._request = number
                case MessageArrival() | CancelRequest() if number:
                    self._keep(number, "")

    def _keep(self, number: int, became: str | UserError) -> None:
        self._taken[number] = became
        if len(self._taken) > REMEMBERED:
            del self._taken[next(iter(self._taken))]
