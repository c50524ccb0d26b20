"""ChainReader: the records of a stored run read on and on, by somebody who keeps what they add up to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from antiphon.journal import Journal
from antiphon.journal.port import Row
from antiphon.journal.transfer import MAX_SEQ
from antiphon.kernel.facts.events import Event
from antiphon.kernel.facts.records import ActivationIndex, Record
from antiphon.kernel.run.rows import (
    EVENTS_PER_YIELD,
    LARGE_PAGE,
    NO_COMMAND,
    blobs_of,
    check_goes_on,
    decoded,
    records_of,
    without_body,
)


class RunReplaced(Exception):
    """Under this id there is another run than the one that was read: forget that, and begin anew."""


class ChainReader:
    """Reads the rows that are new, each once. What was read must be there still, by the digest of its last
    row, which stands for all before it: a run that was deleted and made anew, or taken in from elsewhere, is
    another one however alike its id and its numbers are.

    seq: the number of the last record. size: bytes of the rows that were read.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self.run_id, self.seq, self.size = run_id, 0, 0
        self._journal, self._index = journal, ActivationIndex()
        self._last: Row | None = None

    async def rows(self, upto: int = MAX_SEQ) -> AsyncGenerator[tuple[Row, list[Event], list[Record]]]:
        """The new rows, with their events and records. upto: whoever wants those up to there only leaves off
        then; so many are read at once. Raises RunReplaced, UnknownName, JournalCorrupt, JournalTooNew."""
        last, count = self._last, 0
        after = self.seq - (last is not None)
        while page := await self._journal.read(
            self.run_id, after, max(min(upto - after, LARGE_PAGE // 256), 1), LARGE_PAGE
        ):
            if last is not None and self.seq > after:
                if page[0].digest != last.digest:
                    raise RunReplaced
                alone = len(page[0].body) >= LARGE_PAGE
                page, after = page[1:], self.seq
                if not page and alone:
                    # A row that was a page of its own.
                    continue
                if not page:
                    return
            check_goes_on(self.run_id, last, page[0])
            last, after = page[-1], page[-1].seq
            for row in page:
                blobs = await blobs_of(self._journal, self.run_id, row)
                events = decoded(self.run_id, row, blobs)
                count += len(events)
                if count >= EVENTS_PER_YIELD:
                    count = 0
                    await asyncio.sleep(0)
                found = records_of(self.run_id, row, events, self._index)
                self.size += len(row.body) + sum(map(len, blobs.values()))
                self._last, self.seq = without_body(row), row.seq
                yield row, events, found
        if self.seq > after:
            raise RunReplaced

    async def wait(self) -> None:
        """Wait until there may be new ones."""
        await self._journal.wait(self.run_id, self.seq, NO_COMMAND)
