"""Pages of a run's rows in an SQLite journal, wherever in the run they lie.

The rows are one log in which each leads back to the run's row before (see `sqlite_file`), so that a page far
from the end would cost all that follows it. Whoever walks back leaves marks in memory: where every STRIDE-th
row is. The next page is looked for from the nearest mark after it. A mark only saves steps: what is found
from it is verified as always, and one that leads nowhere is forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, deque
from typing import Any

import apsw
from msgspec import Struct, field

from antiphon.errors import JournalCorrupt
from antiphon.journal.port import Row
from antiphon.journal.sqlite.reader import NEAR, ROW, ROWS, WINDOW, RunHead, head, rows, verified

STRIDE = 256
"""Rows from one mark to the next."""
LONGEST = 100_000
"""Rows of a page, at most, whatever is asked for."""
MARKED_RUNS = 256
"""Runs whose marks are kept: those read last."""

_STEP = "select n, step, seq, count from rows where n = ? and run = ?"
_STEPS = "select n, step, seq, count from rows where n between ? and ? and run = ?"


class _Marks(Struct):
    """Where rows of one run are: the numbers of their last events, ascending, and their own."""

    seqs: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


class RowMarks:
    """Where rows of the runs that were read last are. Belongs to the reader's thread."""

    def __init__(self) -> None:
        self._runs: OrderedDict[int, _Marks] = OrderedDict()

    def above(self, key: int, after: int, limit: int) -> tuple[int, int]:
        """(n, seq) of the nearest row known from which so many end above `after`; zeros when none is."""
        marks = self._runs.get(key)
        at = bisect_right(marks.seqs, after) + (limit - 1) // STRIDE if marks is not None else 0
        if marks is None or at >= len(marks.seqs):
            return 0, 0
        self._runs.move_to_end(key)
        return marks.places[at], marks.seqs[at]

    def note(self, key: int, found: list[tuple[int, int]]) -> None:
        """Keep where rows are, each (n, seq)."""
        if not found:
            return
        marks = self._runs.setdefault(key, _Marks())
        known = dict(zip(marks.seqs, marks.places, strict=True)) | {seq: n for n, seq in found}
        marks.seqs = sorted(known)
        marks.places = [known[seq] for seq in marks.seqs]
        self._runs.move_to_end(key)
        if len(self._runs) > MARKED_RUNS:
            self._runs.popitem(last=False)

    def forget(self, key: int) -> None:
        """Know nothing of a run any more."""
        self._runs.pop(key, None)


def page(
    connection: apsw.Connection, marks: RowMarks, run_id: str, after: int, limit: int, size: int
) -> list[Row]:
    """A page of the run's rows, as `port.Journal.read` says. Raises JournalCorrupt."""
    with connection:
        top = head(connection, run_id)
        if top.seq - after <= limit:
            # All that follows is no more than a page: one walk, and nothing to find again later.
            return _first(rows(connection, run_id, after), size)
        near: deque[int] = deque(maxlen=min(limit, LONGEST) + STRIDE)
        n, seq = marks.above(top.key, after, limit)
        try:
            before = _walk(connection, marks, run_id, top, (n or top.last, seq or top.seq), after, near)
        except JournalCorrupt:
            if not n:
                raise
            # Perhaps the mark was wrong, not the run: the file may have been put back to what it was.
            marks.forget(top.key)
            near.clear()
            before = _walk(connection, marks, run_id, top, (top.last, top.seq), after, near)
        found = _fetch(connection, top, list(near)[:limit], size)
        anchor = connection.execute(ROW, (before, top.key)).fetchone() if before else None
    to_head = found[-1][2] == top.seq if found else True
    return verified(run_id, top, anchor, found[::-1], to_head=to_head)


def _first(found: list[Row], size: int) -> list[Row]:
    """The first of these rows, up to the one that brings their bodies to so many bytes."""
    for count, row in enumerate(found, 1):
        size -= len(row.body)
        if size <= 0:
            return found[:count]
    return found


def _walk(
    connection: apsw.Connection,
    marks: RowMarks,
    run_id: str,
    top: RunHead,
    start: tuple[int, int],
    after: int,
    near: deque[int],
) -> int:
    """Go back from the row `start` (its number, its last event) to the first that ends above `after`; the
    number of the row before that, 0 for none. near: takes the numbers of those passed, oldest first."""
    n, seq = start
    noted: list[tuple[int, int]] = []
    window: dict[int, tuple[Any, ...]] = {}
    walked, step = 0, 1
    while n and seq > after:
        row = window.get(n)
        if row is None and step < NEAR:
            window = {each[0]: each for each in connection.execute(_STEPS, (n - WINDOW, n, top.key))}
            row = window.get(n)
        row = row or connection.execute(_STEP, (n, top.key)).fetchone()
        if row is None:
            raise JournalCorrupt(run_id, seq, "the row is missing")
        _, step, end, count = row
        if end != seq:
            raise JournalCorrupt(run_id, seq, f"the row that should end there ends at {end}")
        # The newest fall out at the other end.
        near.appendleft(n)
        walked += 1
        if walked % STRIDE == 0:
            noted.append((n, seq))
        seq -= count
        if step < 0 or count < 1 or (step == 0) != (seq == 0):
            raise JournalCorrupt(run_id, end, "the row before it cannot be found")
        n = n - step if step else 0
    marks.note(top.key, noted)
    return n


def _fetch(connection: apsw.Connection, top: RunHead, places: list[int], size: int) -> list[tuple[Any, ...]]:
    """The rows of these numbers, oldest first, up to the one that brings their bodies to so many bytes."""
    found: list[tuple[Any, ...]] = []
    if places and places[-1] - places[0] < NEAR * len(places):
        wanted = set(places)
        for row in connection.execute(ROWS, (places[0], places[-1], top.key)):
            if row[0] in wanted:
                found.append(row)
                size -= len(row[8])
                if size <= 0:
                    break
        return found
    for n in places:
        (row,) = connection.execute(ROW, (n, top.key))
        found.append(row)
        size -= len(row[8])
        if size <= 0:
            break
    return found
