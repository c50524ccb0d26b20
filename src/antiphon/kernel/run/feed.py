"""The live view of a run: numbered records, and unnumbered deltas beside them.

A subscriber is a cursor on the journal. What it has not read costs no memory of its own but a
bounded buffer of deltas, in which pieces of one text are joined while the reader is slow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from antiphon.journal.port import Journal
from antiphon.kernel.facts.events import (
    EffectFinished,
    Event,
)
from antiphon.kernel.facts.records import ActivationIndex, Record, ReplyDelta
from antiphon.kernel.run.rows import EVENTS_PER_YIELD, read_page
from antiphon.values.model import Delta

RECENT = 10_000
"""Records kept in memory for subscribers; a slower one reads from the journal again."""
TRIM_EVERY_RECORDS = 32
"""New records after which those that everyone has read are forgotten."""
DELTA_BUFFER = 65_536
"""Characters of deltas kept for one slow subscriber; the oldest deltas are dropped beyond it."""


class _Heard(Struct):
    """Deltas of one text that nobody has read yet; they are joined when they are handed out."""

    effect_id: str
    activation: int
    agent: str
    kind: str
    index: int
    texts: deque[str]

    def delta(self) -> ReplyDelta:
        return ReplyDelta(
            self.effect_id, self.activation, self.agent, self.kind, "".join(self.texts), self.index
        )


class Feed:
    """The live end of one run, shared by its subscribers. Costs nothing while there are none."""

    def __init__(self, run_id: str, index: ActivationIndex) -> None:
        self.run_id, self.index = run_id, index
        self.subscribers: list[Subscription] = []
        self.recent: list[Record] = []
        self.durable = 0
        self.over = False
        self._much = TRIM_EVERY_RECORDS

    def add(self, seq: int, at: float, events: Sequence[Event]) -> None:
        """Keep the records of a row that ends at `seq`, for those who watch."""
        self.recent.extend(self.index.records(seq, at, self.run_id, events))
        if len(self.recent) > self._much:
            self._forget()

    def _forget(self) -> None:
        """Keep no record that everyone has read; of those that somebody has not, only so many."""
        read = min((each.position for each in self.subscribers), default=self.durable)
        recent = self.recent
        gone = max(min(read - recent[0].seq + 1, len(recent)), len(recent) - RECENT)
        del recent[: max(gone, 0)]
        self._much = len(recent) + TRIM_EVERY_RECORDS

    def reached(self, seq: int) -> None:
        """Everything up to `seq` is durable and may be shown."""
        self.durable = seq
        for subscriber in self.subscribers:
            subscriber.wake()

    def end(self) -> None:
        """Nothing will follow; subscribers end once they have read everything."""
        self.over = True
        for subscriber in self.subscribers:
            subscriber.wake()

    def delta(self, effect_id: str, activation: int, agent: str, delta: Delta) -> None:
        """Show a delta to whoever watches."""
        for subscriber in self.subscribers:
            subscriber.take(effect_id, activation, agent, delta)


class Subscription:
    """An async iterator over records after `after`, and pieces as they come."""

    def __init__(self, feed: Feed, journal: Journal, after: int, deltas: bool) -> None:
        self._feed, self._journal, self._deltas = feed, journal, deltas
        self.position = after
        # The next one last. Lists: a deque alone takes more than a short run has to say.
        self._read: list[Record] = []
        self._buffer: list[_Heard] = []
        self._size = 0
        self._signal = asyncio.Event()
        feed.subscribers.append(self)
        feed.recent = [] if len(feed.subscribers) == 1 else feed.recent
        self._live_from = feed.durable
        self._signal.set()

    def wake(self) -> None:
        """There is something new to read."""
        self._signal.set()

    def close(self) -> None:
        """Stop watching."""
        if self in self._feed.subscribers:
            self._feed.subscribers.remove(self)

    def take(self, effect_id: str, activation: int, agent: str, delta: Delta) -> None:
        """Buffer a delta, beside the last one if it is of the same text."""
        text = delta.text
        if not self._deltas or not text:
            return
        last = self._buffer[-1] if self._buffer else None
        if last and last.effect_id == effect_id and last.kind == delta.kind and last.index == delta.index:
            # Whoever reads was woken by the first of them.
            last.texts.append(text)
        else:
            heard = _Heard(effect_id, activation, agent, delta.kind, delta.index, deque((text,)))
            self._buffer.append(heard)
            self._signal.set()
        self._size += len(text)
        if self._size > DELTA_BUFFER:
            self._drop()

    def _drop(self) -> None:
        """Forget the oldest deltas until the rest fits; never the last one."""
        while self._size > DELTA_BUFFER:
            oldest = self._buffer[0]
            if len(oldest.texts) > 1:
                self._size -= len(oldest.texts.popleft())
            elif len(self._buffer) > 1:
                self._size -= len(self._buffer.pop(0).texts[0])
            else:
                return

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        # Not a generator: who leaves a loop over one half-way leaves it to be closed by chance.
        feed = self._feed
        while True:
            if self.position < feed.durable:
                if not self._read:
                    self._read.extend(reversed(await self._next()))
                if self._read[-1].seq % EVENTS_PER_YIELD == 0:
                    # Whoever reads a long run awaits nothing else.
                    await asyncio.sleep(0)
                event = self._read[-1].event
                if self._buffer and isinstance(event, EffectFinished):
                    # What was said comes before the record that it was said.
                    for index, heard in enumerate(self._buffer):
                        if heard.effect_id == event.id:
                            return self._give(index)
                record = self._read.pop()
                self.position = record.seq
                return record
            if self._buffer:
                return self._give(0)
            if feed.over:
                self.close()
                raise StopAsyncIteration
            self._signal.clear()
            await self._signal.wait()

    def _give(self, index: int) -> ReplyDelta:
        piece = self._buffer[index].delta()
        del self._buffer[index]
        self._size -= len(piece.text)
        return piece

    async def aclose(self) -> None:
        """`close`, for `contextlib.aclosing`."""
        self.close()

    async def _next(self) -> Sequence[Record]:
        """The records after the position that are durable: from memory, else from the journal."""
        feed, position = self._feed, self.position
        recent = feed.recent
        if recent and recent[0].seq <= position + 1:
            first = position + 1 - recent[0].seq
            return recent[first : feed.durable - recent[0].seq + 1]
        found = await read_page(self._journal, feed.run_id, position, feed.index)
        return [record for record in found if record.seq <= feed.durable]
