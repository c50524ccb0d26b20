"""Requests of the user: who waits for them, and how those ended that the state has forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from msgspec import Struct, field
from msgspec.structs import replace

from antiphon.errors import AntiphonError
from antiphon.journal.port import Journal
from antiphon.kernel.facts.activation import FinishedCall
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.facts.fold.calls import KEPT
from antiphon.kernel.facts.ids import opening_id
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.run.rows import states_of
from antiphon.values.message import Message


class AwaitedRequests(Struct):
    """Whom to tell when a request has ended."""

    waiting: dict[str, list[asyncio.Future[None]]] = field(default_factory=dict)
    """By its id."""

    async def until_ended(self, call_id: str) -> None:
        """Wait for it. Raises what `give_up` is told."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self.waiting.setdefault(call_id, [])
        waiting.append(waiter)
        try:
            await waiter
        finally:
            # One that gives up leaves nothing behind.
            if waiter.cancelled():
                waiting.remove(waiter)

    def ended(self, call_id: str) -> None:
        """Tell those who wait for it."""
        for waiter in self.waiting.pop(call_id):
            if not waiter.done():
                waiter.set_result(None)

    def give_up(self, why: Callable[[], Exception]) -> None:
        """Nobody waits any longer for a request that does not end here."""
        for waiter in (each for waiting in self.waiting.values() for each in waiting):
            if not waiter.done():
                waiter.set_exception(why())
        self.waiting.clear()


class EndedRequests:
    """Ends of a run's requests that its state has forgotten, found in the journal again.

    Whoever asks for one will ask for its neighbours: those are kept, KEPT in all, until another is wanted.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal, self._run_id = journal, run_id
        self._found: dict[str, FinishedCall] = {}
        self._reading = asyncio.Lock()

    async def find(self, call_id: str) -> FinishedCall:
        """How a request ended. Reads the run from its beginning; AntiphonError when there was none."""
        # One after the other: whoever waits mostly finds its own beside the first one's.
        async with self._reading:
            if call_id not in self._found and call_id.startswith("0/"):
                self._found = await self._around(call_id)
            if call_id not in self._found:
                raise AntiphonError(f"Run {self._run_id} has no request {call_id}")
            return self._found[call_id]

    async def _around(self, call_id: str) -> dict[str, FinishedCall]:
        found: dict[str, FinishedCall] = {}
        async with aclosing(ended_requests(self._journal, self._run_id)) as requests:
            async for ended in requests:
                found[ended.event.id] = ended
                if call_id in found and len(found) >= KEPT:
                    return found
                if call_id not in found and len(found) > KEPT // 2:
                    del found[next(iter(found))]
        return found if call_id in found else {}


async def ended_requests(journal: Journal, run_id: str) -> AsyncGenerator[FinishedCall]:
    """How the user's requests ended, each with its messages, in that order.

    Raises UnknownName, JournalCorrupt, JournalTooNew.
    """
    async with aclosing(states_of(journal, run_id)) as states:
        async for _, event, state in states:
            if type(event) is EffectFinished and (ended := state.activations[0].done.get(event.id)):
                yield replace(ended, messages=messages_of(state, event.id))


def messages_of(state: RunState, call_id: str) -> tuple[Message, ...]:
    """The messages of a request that has just ended, from the last one back to the one that opened it."""
    messages: list[Message] = []
    for logged in reversed(state.log):
        if logged.request == call_id:
            messages.append(logged.message)
            if logged.message.id == opening_id(call_id):
                break
    return tuple(reversed(messages))
