"""RecordProjection: something made of each record of a run in order, once for all who want it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, TypeVar

from antiphon.journal import Journal
from antiphon.kernel.facts.records import Record
from antiphon.view.reading.chain import ChainReader, RunReplaced

Made = TypeVar("Made")
BARE = 16_384
"""Bytes of memory beside what is kept, about."""
WINDOW = 8 << 20
"""Bytes of what was made that are kept of one run, the newest."""

Make = Callable[[Record], tuple[Made, int]]
"""Of the next record: what is made of it, and its bytes."""


class RecordProjection(Generic[Made]):
    """What was made of the newest records of a run; of older ones it is made anew by whoever wants it.

    begin: gives what makes it, which is shown every record once, in order. keep_from: what is made of this
    record and later ones is kept, however much that is; None: WINDOW bytes. made: how often something was.
    """

    def __init__(
        self, journal: Journal, run_id: str, begin: Callable[[], Make[Made]], keep_from: int | None = None
    ) -> None:
        self.run_id, self.made = run_id, 0
        self._journal, self._start, self.keep_from = journal, begin, keep_from
        self._reading = asyncio.Lock()
        self._begin()

    def _begin(self) -> None:
        self._reader, self._make = ChainReader(self._journal, self.run_id), self._start()
        self._kept: deque[tuple[Made, int]] = deque()
        self.size = BARE

    @property
    def seq(self) -> int:
        """The number of the last record that it was made of."""
        return self._reader.seq

    async def reach(self, seq: int) -> None:
        """Read on until record `seq` is among what was made, or there are no more records.

        Whoever begins to read asks for all there are, which makes sure that it is still the same run. Raises
        UnknownName, JournalCorrupt, JournalTooNew.
        """
        if seq <= self.seq:
            return
        # One reads, the others find it done.
        async with self._reading:
            if seq <= self.seq:
                return
            try:
                await self._read(seq)
            except RunReplaced:
                self._begin()
                await self._read(seq)

    async def _read(self, seq: int) -> None:
        async with aclosing(self._reader.rows(seq)) as rows:
            async for _, _, records in rows:
                try:
                    for record in records:
                        self._add(record)
                except BaseException:
                    self._begin()
                    raise
                if self.seq >= seq:
                    return

    def _add(self, record: Record) -> None:
        made, size = self._make(record)
        self.made += 1
        first = self.keep_from
        if first is not None and record.seq < first:
            return
        self._kept.append((made, size))
        self.size += size
        while self.size - BARE > WINDOW if first is None else record.seq - len(self._kept) + 1 < first:
            self.size -= self._kept.popleft()[1]

    def of(self, seq: int) -> Made | None:
        """What was made of a record; None when it is not kept, or was not reached."""
        place = seq - (self.seq - len(self._kept) + 1)
        return self._kept[place][0] if 0 <= place < len(self._kept) else None
