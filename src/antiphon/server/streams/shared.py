"""SharedProjection: what is made of a run's records, for one reader among many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic

from antiphon.errors import JournalCorrupt
from antiphon.host import Host
from antiphon.journal.transfer import MAX_SEQ
from antiphon.view.reading.projection import Made, Make, RecordProjection


class SharedProjection(Generic[Made]):
    """What is made of a run's records, as all readers share it.

    Where that is too long ago to be kept, it is made anew for this reader alone, until it has caught up.
    begin: gives what makes it. name: tells what is made of the same run apart.
    """

    def __init__(self, host: Host, name: str, run_id: str, begin: Callable[[], Make[Made]]) -> None:
        self._host, self._name, self._run_id = host, name, run_id
        self._begin = begin
        self._shared: RecordProjection[Made] | None = None
        self._own: RecordProjection[Made] | None = None

    async def between(self, after: int, last: int) -> list[Made]:
        """Of the records numbered above `after`, to `last`, which are there.

        Raises UnknownName, JournalError.
        """
        if self._shared is None:
            new = partial(RecordProjection, self._host.journal, self._run_id, self._begin)
            shared = self._host.readings.of((self._name, self._run_id), RecordProjection, new)
            # It may have been made of another run, that had this id before.
            await shared.reach(MAX_SEQ)
            self._shared = shared
        found = await _made(self._shared, after, last)
        if len(found) == last - after:
            self._own = None
            return found
        if self._own is None:
            self._own = RecordProjection(self._host.journal, self._run_id, self._begin, after + 1)
        self._own.keep_from = after + 1
        found = await _made(self._own, after, last)
        if len(found) < last - after:
            raise JournalCorrupt(self._run_id, last, "it was there before, and is not any more")
        return found


async def _made(source: RecordProjection[Made], after: int, last: int) -> list[Made]:
    await source.reach(last)
    found = [source.of(seq) for seq in range(after + 1, last + 1)]
    return [each for each in found if each is not None]
