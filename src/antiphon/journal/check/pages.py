"""Cases of the conformance suite about pages: a run that is read a part at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from antiphon.errors import JournalCorrupt, JournalError, UnknownName, UserError
from antiphon.journal.check.whole_runs import Case, OpenStore
from antiphon.journal.port import PAGE_BYTES, Journal, Row, follows, genesis
from antiphon.journal.row_writer import RowWriter, raises, same

LONG = 1_500
"""Rows of a long run: more than any journal keeps at hand."""


async def pages(open_store: OpenStore) -> None:
    """Pages of any size are the run, each row once; every place in it can be begun at."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("pages", create=True))
        same(list(await journal.read("pages", 0, 5)), [], "a page of a run without rows")
        beside = RowWriter(journal, await journal.claim("pages beside", create=True))
        rows = list[Row]()
        for number in range(40):
            rows += await pen.write(*(b"%d" % each for each in range(LONG // 40 - 1)))
            rows.append(pen.row(b"three", count=3))
            await pen.put(rows[-1])
            # The rows of one run do not lie side by side.
            await beside.write(*(b"x" for _ in range(1 + number % 12)))
        for limit in (1, 7, 100, 10 * LONG):
            same(await _whole(journal, "pages", limit), rows, f"the run in pages of {limit}")
        end = rows[-1].seq
        for after in (0, 1, end // 3, end // 2, end - 700, end - 4, end - 3, end - 1, end, end + 1, 2**40):
            wanted = [row for row in rows if row.seq > after][:5]
            same(list(await journal.read("pages", after, 5)), wanted, f"five rows after {after}")
        rows += await pen.write(b"more")
        same(list(await journal.read("pages", end, 5)), rows[-1:], "a page of what came since")
        same(list(await journal.read("pages", 0, 3)), rows[:3], "the first page, after the others")
    async with open_store() as journal:
        if journal.durability != "none":
            same(await _whole(journal, "pages", 64), rows, "the run in pages, opened again")


async def page_bytes(open_store: OpenStore) -> None:
    """A page ends with the row that brings its bodies to PAGE_BYTES, and has one row at least."""
    half, whole = b"h" * (PAGE_BYTES // 2), b"w" * (3 * PAGE_BYTES)
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("page_bytes", create=True))
        rows = await pen.write(half, half, half, whole, b"small", half)
        for after, wanted in ((0, rows[:2]), (1, rows[1:3]), (2, rows[2:4]), (3, rows[3:4]), (4, rows[4:])):
            same(list(await journal.read("page_bytes", after, 100)), wanted, f"the page after {after}")
        for size, wanted in ((1, rows[:1]), (2 * PAGE_BYTES, rows[:4])):
            same(list(await journal.read("page_bytes", 0, 100, size)), wanted, f"a page of {size} bytes")
        same(list(await journal.read("page_bytes")), rows, "what is read without a limit")


async def page_limits(open_store: OpenStore) -> None:
    """A page of nothing is refused, and a page of a run that is not there, or is there no more."""
    async with open_store() as journal:
        lease = await journal.claim("page_limits", create=True)
        await RowWriter(journal, lease).write(b"a", b"b", b"c")
        for limit in (0, -1):
            await raises(UserError, f"a page of {limit} rows", _as(journal.read("page_limits", 0, limit)))
        await raises(UnknownName, "a page of nobody", _as(journal.read("page_limits nobody", 0, 1)))
        await journal.read("page_limits", 1, 1)
        await journal.release(lease)
        await journal.delete("page_limits")
        await raises(UnknownName, "a page of a deleted run", _as(journal.read("page_limits", 1, 1)))
        rows = await RowWriter(journal, await journal.claim("page_limits", create=True)).write(b"anew")
        same(list(await journal.read("page_limits", 0, 1)), rows, "a page of a new run of that id")


async def broken_pages(open_store: OpenStore) -> None:
    """A row that does not follow is in no page; what lies before it can still be read."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("broken_pages", create=True))
        rows = await pen.write(b"a", b"b", b"c")
        good = pen.row(b"d")
        bad = Row(good.seq, good.count, good.epoch, good.at, b"D", good.refs, good.digest)
        try:
            await pen.put(bad)
        except JournalError:
            return
        same(list(await journal.read("broken_pages", 0, 3)), rows, "the page before it")
        for after in (0, 2, 3):
            reading = _as(journal.read("broken_pages", after, 9))
            error = await raises(JournalCorrupt, f"after {after}", reading)
            same(getattr(error, "seq", 0), 4, "where it is damaged")


async def _whole(journal: Journal, run_id: str, limit: int) -> list[Row]:
    """All rows of a run, a page at a time, each seen to follow the one before."""
    rows, after, digest = list[Row](), 0, genesis(run_id)
    while page := await journal.read(run_id, after, limit):
        same(len(page) <= limit, True, f"a page of {len(page)} rows has at most {limit}")
        for row in page:
            same(follows(row, digest), True, f"the row that ends at {row.seq} follows")
            digest = row.digest
        rows += page
        after = page[-1].seq
    return rows


async def _as(doing: Awaitable[Sequence[object]]) -> Sequence[object]:
    return await doing


CASES: tuple[Case, ...] = (pages, page_bytes, page_limits, broken_pages)
