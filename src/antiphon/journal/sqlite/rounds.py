"""Rows on their way to the writer: held until the event loop comes round, or somebody waits for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from antiphon.journal.sqlite.writer import Append, Ended, Moved, SqliteWriter, WriteJob

QUICK_S = 0.002
"""Seconds that a disk may take for a commit for which the event loop waits."""
PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Seconds for which nobody waits for a disk that took longer: doubled each time that it does so again."""


class HeldRows:
    """Appends of one round of the event loop are one batch.

    It is committed on the loop's own thread when nothing else is on its way to the file and the disk was
    quick the last time: changing threads twice costs more than such a commit. If not, or when another process
    writes, the writer's thread does it. Where one run alone is at work its rows are committed as soon as
    somebody waits for them. Belongs to the event loop.

    settle: told what a batch did.
    """

    def __init__(self, writer: SqliteWriter, settle: Callable[[Ended, Moved], None]) -> None:
        self._writer, self._settle = writer, settle
        self._rows: list[Append] = []
        self._on_the_way = 0
        self._is_due = False
        # Of this round: which run had rows first, and whether others had some; was the last one a run's own?
        self._first, self._many, self._was_alone = "", False, True
        self._not_before, self._pause = 0.0, PAUSE_S

    def add(self, item: Append) -> None:
        """Hold a row until the loop comes round."""
        if not self._is_due:
            self._is_due, self._first = True, item.run_id
            asyncio.get_running_loop().call_soon(self._come_round)
        elif item.run_id != self._first:
            self._many = True
        self._rows.append(item)

    def hurry(self) -> None:
        """Commit the rows now, unless those of others should share the transaction."""
        if self._rows and self._was_alone and not self._many:
            self._commit()

    def put(self, job: WriteJob) -> None:
        """Queue anything else to write, after the rows."""
        self.pass_on()
        self._on_the_way += 1
        self._writer.put(job)

    def ended(self, ended: Ended, moved: Moved) -> None:
        """What the writer's thread has done."""
        self._on_the_way -= len(ended)
        self._settle(ended, moved)

    def _come_round(self) -> None:
        self._is_due, self._was_alone, self._many = False, not self._many, False
        if self._rows:
            self._commit()

    def _commit(self) -> None:
        now = time.monotonic()
        done = None
        if not self._on_the_way and now >= self._not_before:
            done = self._writer.commit_now(self._rows)
        if done is None:
            self.pass_on()
            return
        self._rows = []
        ended, moved, seconds = done
        if seconds > QUICK_S:
            self._not_before, self._pause = now + self._pause, min(2 * self._pause, LONGEST_PAUSE_S)
        else:
            self._pause = PAUSE_S
        self._settle(ended, moved)

    def pass_on(self) -> None:
        """Leave the rows to the writer's thread."""
        rows, self._rows = self._rows, []
        self._on_the_way += len(rows)
        for row in rows:
            self._writer.put(row)
