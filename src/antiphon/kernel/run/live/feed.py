"""The live view of a run: numbered records, and unnumbered deltas beside them.

A subscriber is a cursor on the journal and one on the log of deltas, see `deltas/log.py`. What it has not
read costs no memory of its own.

Few readers are woken by every record, and by what was said within SOON. Many are woken group after group, by
a timer whose period grows with their number: their work never holds up for long whatever else is to be done.
It is the number of all who read in the event loop, whichever run: two readers of each of 500 runs are many,
too, and each run has its own place in the period, so that runs that move at once do not wake all of them at
once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence, Set
from contextlib import suppress
from functools import cached_property
from threading import get_ident
from typing import Literal

from antiphon.journal.port import Journal
from antiphon.kernel.facts.events import (
    EffectFinished,
    Event,
)
from antiphon.kernel.facts.records import ActivationIndex, Record, ReplyDelta
from antiphon.kernel.run.live.deltas import WAITING, DeltaLog, Emitted, SaidByEffect
from antiphon.kernel.run.rows import read_page
from antiphon.values.model import Delta, Emit

RECENT = 10_000
"""Records kept in memory for subscribers; a slower one reads from the journal again."""
TRIM_EVERY_RECORDS = 32
"""New records after which those that everyone has read are forgotten."""
FEW = 8
"""Readers that are woken by every record, all at once."""
SOON = 0.02
"""Seconds between two looks at what is said, for few readers: the first delta after that is shown at once."""
LATEST = 0.5
"""Seconds until it is, at most, to however many."""
SECONDS_PER_READER = 0.0005
"""How the period grows between these two."""
GAP = 0.01
"""Seconds between two groups of many readers."""
BATCH = 256
"""Records that a reader is given at once; what a slow one holds is bounded by it."""
MANY = WAITING // 2
"""Deltas that do not wait for the next look."""
UNHEARD = 1.0
"""Seconds between two looks at what is said while nobody listens: what is kept of it stays small."""

_KEPT_AS = "_antiphon_readers"

Ended = Literal["", "closed", "suspended", "failed"]
"""Why no more comes: the run was closed; it was left, and can be resumed; it stopped with an error."""


class Feed:
    """The live end of one run, shared by its subscribers. While there are none, a look a second.

    waiting, said: what was put by of deltas and what was taken in of them, by open effect; whoever ends an
    effect where nobody listens takes both out. timer: of the next look. ended: empty while something may
    follow. recorded: the last record, as far as it matters to those who watch.
    """

    # What only a run needs that is watched, or whose models take long.
    said: dict[str, SaidByEffect] = {}  # noqa: RUF012 - replaced, never changed
    recorded = 0
    _held = False
    _line: Sequence[Subscription] = ()
    _group = 0
    _place = 0
    _news = False
    _shown = 0
    _looked = 0.0
    _unheard: Set[str] = frozenset()

    def __init__(self, run_id: str, index: ActivationIndex, durable: int) -> None:
        self.run_id, self.index, self.durable = run_id, index, durable
        self.subscribers: list[Subscription] = []
        self.recent: list[Record] = []
        self.ended: Ended = ""
        self.waiting: dict[str, deque[Emitted]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self._readers: list[int] | None = None
        self._much = TRIM_EVERY_RECORDS

    @property
    def over(self) -> bool:
        """Nothing will follow."""
        return bool(self.ended)

    @cached_property
    def log(self) -> DeltaLog:
        """What was said so far; most runs are over before anybody asks."""
        self.said = {}
        return DeltaLog(self.index, self.waiting, self.said)

    # -- records ------------------------------------------------------------------------------

    def add(self, seq: int, at: float, events: Sequence[Event]) -> None:
        """Keep the records of a row that ends at `seq`, for those who watch."""
        self.recorded = seq
        records = self.index.records(seq, at, self.run_id, events)
        self.recent.extend(records)
        if self.waiting:
            self._end_effects(records)
        if len(self.recent) > self._much:
            self._forget()

    def _forget(self) -> None:
        """Keep no record that everyone has read; of those that somebody has not, only so many."""
        read = min((each.reached for each in self.subscribers), default=self.durable)
        recent = self.recent
        gone = max(min(read - recent[0].seq + 1, len(recent)), len(recent) - RECENT)
        del recent[: max(gone, 0)]
        self._much = len(recent) + TRIM_EVERY_RECORDS

    def _end_effects(self, records: Sequence[Record]) -> None:
        """What an effect has said is handed out before the record of its end."""
        for record in records:
            event = record.event
            if type(event) is EffectFinished and event.id in self.waiting:
                keep = any(each.deltas for each in self.subscribers)
                self.log.end(event.id, record.seq, void=event.reply is None, keep=keep)
                self._unheard -= {event.id}

    def reached(self, seq: int) -> None:
        """Everything up to `seq` is durable and may be shown."""
        self.durable = seq
        if self._held:
            self._take_in()
        if self._few or self.ended:
            for subscriber in self.subscribers:
                subscriber.wake()
        else:
            self._news = True
            if self.timer is None:
                self.arm()

    def end(self, why: Ended) -> None:
        """Nothing will follow; subscribers end once they have read everything."""
        self.ended = self.ended or why
        if self.timer is not None:
            self.timer.cancel()
        if self.subscribers:
            self._take_in()
        if self._readers is not None:
            # Who was left behind unread counts no longer.
            self._readers[0] -= len(self.subscribers)
            self._readers = None
        for subscriber in self.subscribers:
            subscriber.wake()

    # -- deltas -------------------------------------------------------------------------------

    def emitter(self, waiting: deque[Emitted]) -> Emit:
        """What puts deltas by for those who listen: they are woken soon. Any thread may call it."""
        put, loop, thread = waiting.append, asyncio.get_running_loop(), get_ident()
        asked = False

        def emit(delta: Delta) -> None:
            nonlocal asked
            put(delta)
            if self.timer is not None or asked:
                if len(waiting) > MANY and get_ident() == thread:
                    # A model that does not pause: nothing is lost of what somebody reads.
                    self._take_in()
            elif get_ident() == thread:
                self.arm()
            else:
                asked = True
                # A thread that was given up may outlive the loop.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(arm)

        def arm() -> None:
            nonlocal asked
            asked = False
            if self.timer is None:
                self.arm()

        return emit

    def tell(self, effect_id: str, delta: Emitted) -> None:
        """Put a delta by in whose place the next one comes."""
        waiting = self.waiting.get(effect_id)
        if waiting is None:
            waiting = self.waiting[effect_id] = deque(maxlen=1)
        waiting.append(delta)
        if self.timer is None:
            self.arm()

    def join(self, subscriber: Subscription) -> None:
        """One more reads from now on."""
        self.subscribers.append(subscriber)
        if not self.ended:
            if self._readers is None:
                self._readers = _readers_here()
                self._readers[1] = self._place = self._readers[1] + 1
            self._readers[0] += 1
        if len(self.subscribers) > 1:
            return
        self.recent = []
        # Their models were given what wakes nobody.
        self._unheard = {key for key, waiting in self.waiting.items() if waiting.maxlen == WAITING}
        if self.waiting:
            self._take_in()
        if self.waiting or self.timer is not None:
            self.arm()

    def part(self, subscriber: Subscription) -> None:
        """One reads no more."""
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)
            if self._readers is not None:
                self._readers[0] -= 1

    # -- waking -------------------------------------------------------------------------------

    @property
    def _few(self) -> bool:
        """Whether few read in this event loop."""
        return self._readers is None or self._readers[0] <= FEW

    @property
    def _period(self) -> float:
        """Seconds in which each reader is woken once, as long as so many read in this event loop."""
        every = self._readers[0] if self._readers is not None else 0
        return SOON if every <= FEW else min(max(every * SECONDS_PER_READER, SOON), LATEST)

    def arm(self) -> None:
        """Look at what was said: at once, unless the last look was just now."""
        if self.ended:
            return
        if self.timer is not None:
            self.timer.cancel()
        loop, many = asyncio.get_running_loop(), len(self.subscribers)
        if not many:
            at = loop.time() + UNHEARD
        elif many > FEW:
            at = self._looked + GAP
        elif self._few:
            at = self._looked + SOON
        else:
            period = self._period
            now = loop.time() - self._place * GAP
            at = loop.time() + period - now % period
        self.timer = loop.call_at(at, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take in what was said, and wake the next group of those who read."""
        self.timer, self._looked = None, loop.time()
        if not self.subscribers:
            self.log.take_in()
            self.log.keep_for_nobody()
            if self.waiting:
                self.arm()
            return
        self._take_in()
        if not self._line and (self._news or self.log.number != self._shown):
            self._begin_round()
        group, self._line = self._line[: self._group], self._line[self._group :]
        for subscriber in group:
            subscriber.wake()
        if self._line or self._news or self._unheard:
            self.arm()

    def _take_in(self) -> None:
        self._held = self.log.take_in(self.recorded, self.durable)

    def _begin_round(self) -> None:
        self._news, self._shown = False, self.log.number
        self._line = list(self.subscribers)
        self.log.begin_round(min((each.reached for each in self._line if each.deltas), default=self.durable))
        many = len(self._line)
        self._group = many if many <= FEW else -int(-many * GAP // self._period)


def _readers_here() -> list[int]:
    """How many read runs that the running event loop drives, and of how many runs somebody ever read."""
    loop = asyncio.get_running_loop()
    if not hasattr(loop, _KEPT_AS):
        setattr(loop, _KEPT_AS, [0, 0])
    found: list[int] = getattr(loop, _KEPT_AS)
    return found


class Subscription:
    """An async iterator over records after `after`, and deltas as they come. Made by `Run.events`.

    position: the number of the last record that was handed out. reached: of the last one that was taken from
    the feed. ended: why nothing follows, once it is so: the run was `closed`; it was left, and can be resumed
    (`suspended`); it stopped with an error (`failed`), as whoever waits for a result is told. Empty while it
    goes on, and for who stopped watching before.
    """

    def __init__(self, feed: Feed, journal: Journal, after: int, deltas: bool, recorded: int) -> None:
        self._feed, self._journal, self.deltas = feed, journal, deltas
        self.position = self.reached = after
        self.ended: Ended = ""
        # The next one last. Lists: a deque alone takes more than a short run has to say.
        self._found: list[Record | ReplyDelta] = []
        self._cursor = 0
        # What is said now began with a record that there is.
        self._deltas_from = feed.recorded = recorded
        self._signal = asyncio.Event()
        self._signal.set()
        feed.join(self)

    def wake(self) -> None:
        """There is something new to read; or whoever waits in `batch` has something else to do."""
        self._signal.set()

    def close(self) -> None:
        """Stop watching."""
        self._feed.part(self)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        # Not a generator: who leaves a loop over one half-way leaves it to be closed by chance.
        while not self._found:
            if self.ended:
                raise StopAsyncIteration
            self._found = (await self.batch())[::-1]
        item = self._found.pop()
        if isinstance(item, Record):
            self.position = item.seq
        return item

    async def batch(self) -> list[Record | ReplyDelta]:
        """All that has come since, of records BATCH at most; it waits while there is nothing.

        Empty when it was woken for nothing, and at the end, which `ended` tells. Readers at the same place
        are given the same objects.
        """
        found = await self._ready()
        if not (found or self.ended):
            await self._signal.wait()
            self._signal.clear()
            found = await self._ready()
        return found

    async def _ready(self) -> list[Record | ReplyDelta]:
        """What there is now."""
        feed, found = self._feed, list[Record | ReplyDelta]()
        if self.reached < feed.durable:
            records = await self._next()
            for record in records:
                event = record.event
                if self.deltas and type(event) is EffectFinished and event.id in feed.log.ended:
                    # What was said comes before the record that it was said.
                    found += feed.log.rest(event.id, self._cursor)
                found.append(record)
            self.reached = records[-1].seq
            if len(records) >= BATCH:
                # Whoever reads a long run awaits nothing else.
                await asyncio.sleep(0)
        if self.reached < feed.durable:
            return found
        if self.deltas and self._cursor < feed.log.number and self.reached >= self._deltas_from:
            found += feed.log.after(self._cursor, self.reached)
            self._cursor = feed.log.number
        if not found and feed.ended:
            self.ended = feed.ended
            self.close()
        return found

    async def aclose(self) -> None:
        """`close`, for `contextlib.aclosing`."""
        self.close()

    async def _next(self) -> Sequence[Record]:
        """The records after those it has that are durable: from memory, else from the journal."""
        feed, reached = self._feed, self.reached
        recent = feed.recent
        if recent and recent[0].seq <= reached + 1:
            first = reached + 1 - recent[0].seq
            return recent[first : min(feed.durable - recent[0].seq + 1, first + BATCH)]
        found = await read_page(self._journal, feed.run_id, reached, feed.index)
        return [record for record in found if record.seq <= feed.durable]
