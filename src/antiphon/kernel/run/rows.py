"""History: events to rows and rows to events, large payloads apart, and the fold over them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from antiphon.errors import JournalCorrupt
from antiphon.journal.port import PAGE_BYTES, Journal, Refs, Row, blob_digest, follows
from antiphon.kernel.facts.events import Event, RunClosed, decode
from antiphon.kernel.facts.fold.apply import APPLY
from antiphon.kernel.facts.records import ActivationIndex, Record
from antiphon.kernel.facts.state import RunState, open_span
from antiphon.values.codec import encode_value

NO_COMMAND = 1 << 62
"""A number of a command that never comes: to wait for records alone."""
EVENTS_PER_YIELD = 256
"""Events that are read and folded before other work gets the event loop: a few milliseconds."""
PAGE_ROWS = 32
"""Rows that a reader of records has at hand at once."""
KEPT_INDEXES = 64
_KEPT_AS = "_antiphon_indexes"
LARGE_PAGE = 1 << 20
"""Bytes of rows that are read at once by who reads a whole run."""
LARGE = 4096
"""Bytes above which a payload is stored once, by its digest, beside the rows."""
UNREADABLE = (
    msgspec.MsgspecError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What reading rows raises whose digests are right and which are no events, or events of no run."""


def pack(events: Sequence[Event]) -> tuple[bytes, Refs, dict[str, bytes]]:
    """Encode events with every large payload apart: the body, where payloads belong, the payloads.

    Of nested values the innermost that is large goes, so what stays readable stays small.
    """
    refs: list[tuple[str, str]] = []
    blobs: dict[str, bytes] = {}
    bodies = []
    for index, event in enumerate(events):
        data = encode_value(event)
        if len(data) > LARGE:
            small = _shrink(msgspec.json.decode(data), f"/{index}", refs, blobs)
            data = encode_value(small)
        bodies.append(data)
    return b"[" + b",".join(bodies) + b"]", tuple(refs), blobs


def _shrink(value: Any, path: str, refs: list[tuple[str, str]], blobs: dict[str, bytes]) -> Any:
    """The value with its large parts taken out; None in place of a value that goes as a whole."""
    data = encode_value(value)
    if len(data) <= LARGE:
        return value
    mark = len(refs)
    kept = value
    if isinstance(value, dict):
        kept = {key: _shrink(each, f"{path}/{_escape(key)}", refs, blobs) for key, each in value.items()}
    elif isinstance(value, list):
        kept = [_shrink(each, f"{path}/{index}", refs, blobs) for index, each in enumerate(value)]
    # An event itself always stays, however large its small parts are together.
    if path.count("/") == 1 or (len(refs) > mark and len(encode_value(kept)) <= LARGE):
        return kept
    del refs[mark:]
    name = blob_digest(data)
    blobs[name] = data
    refs.append((path, name))
    return None


def unpack(body: bytes, refs: Refs, blobs: dict[str, bytes]) -> bytes:
    """What `pack` was given."""
    value = msgspec.json.decode(body)
    for path, name in refs:
        *parents, last = [_unescape(part) for part in path.split("/")[1:]]
        target = value
        for key in parents:
            target = target[int(key) if isinstance(target, list) else key]
        target[int(last) if isinstance(target, list) else last] = msgspec.json.decode(blobs[name])
    return msgspec.json.encode(value)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


async def events_of(journal: Journal, run_id: str, row: Row) -> list[Event]:
    """The events of one stored row, payloads in place. Raises JournalCorrupt, JournalTooNew."""
    return decoded(run_id, row, await blobs_of(journal, run_id, row))


async def blobs_of(journal: Journal, run_id: str, row: Row) -> dict[str, bytes]:
    """The payloads of one stored row, by digest. Raises JournalCorrupt."""
    return {name: await journal.blob(run_id, name) for _, name in row.refs} if row.refs else {}


def decoded(run_id: str, row: Row, blobs: dict[str, bytes]) -> list[Event]:
    """The events of one stored row with these payloads. Raises JournalCorrupt, JournalTooNew."""
    try:
        return decode(unpack(row.body, row.refs, blobs) if row.refs else row.body)
    except UNREADABLE as error:
        raise JournalCorrupt(run_id, row.seq, f"its events cannot be read ({error})") from error


ReadRows = Sequence[tuple[Row, Sequence[Event]]]
"""Rows of a run in their order, each with its events."""


async def rows_of(journal: Journal, run_id: str, after: int = 0) -> AsyncGenerator[tuple[Row, list[Event]]]:
    """The rows of a run numbered above `after`, and their events, one by one; see `chunks_of`."""
    async with aclosing(chunks_of(journal, run_id, after)) as chunks:
        async for rows in chunks:
            for each in rows:
                yield each


async def chunks_of(
    journal: Journal, run_id: str, after: int = 0
) -> AsyncGenerator[list[tuple[Row, list[Event]]]]:
    """The rows of a run numbered above `after`, and their events: many at once, EVENTS_PER_YIELD and those of
    one row more at most; other work gets the event loop in between.

    No more than LARGE_PAGE bytes of them are held at once. Raises UnknownName, JournalCorrupt, JournalTooNew.
    """
    last = None
    while page := await journal.read(run_id, after, LARGE_PAGE // 256, LARGE_PAGE):
        check_goes_on(run_id, last, page[0])
        last = page[-1]
        after = last.seq
        for rows in _chunks(page):
            found = _decoded_together(rows)
            if found:
                yield list(zip(rows, found, strict=True))
            for row in () if found else rows:
                yield [(row, await events_of(journal, run_id, row))]
            await asyncio.sleep(0)


def _chunks(page: Sequence[Row]) -> Iterator[Sequence[Row]]:
    first = count = 0
    for end, row in enumerate(page, 1):
        count += row.count
        if count >= EVENTS_PER_YIELD or end == len(page):
            yield page[first:end]
            first, count = end, 0


def _decoded_together(rows: Sequence[Row]) -> list[list[Event]]:
    """The events of each row, decoded in one go; none where a row has payloads apart, or cannot be read."""
    if any(row.refs for row in rows):
        return []
    try:
        found = _decode_rows(b"\n".join([row.body for row in rows]))
    except UNREADABLE:
        return []
    return found if len(found) == len(rows) else []


_decode_rows = msgspec.json.Decoder(list[Event]).decode_lines


def check_goes_on(run_id: str, last: Row | None, row: Row) -> None:
    """Raise JournalCorrupt unless a page that begins with `row` goes on after the one that ended with `last`:
    another run of that id may have taken its place."""
    if last is not None and (row.seq - row.count != last.seq or not follows(row, last.digest)):
        raise JournalCorrupt(run_id, row.seq, "it does not follow the record that was read before it")


def without_body(row: Row) -> Row:
    """What tells that another row follows this one; its body would be held as long as nothing does."""
    return replace(row, body=b"", refs=(), blobs=())


async def fold(
    journal: Journal, run_id: str, seen: Callable[[Event, int], None] | None = None, upto: int | None = None
) -> RunState:
    """The state of a stored run, or as it was after record `upto`; `seen` is shown each event and its number.

    Raises JournalCorrupt.
    """
    state = RunState()
    async with aclosing(chunks_of(journal, run_id)) as chunks:
        async for rows in chunks:
            until = rows if upto is None or rows[-1][0].seq <= upto else _up_to(upto, rows)
            fold_in(run_id, state, until)
            if seen is not None:
                for row, events in until:
                    for number, event in enumerate(events, row.seq - row.count + 1):
                        seen(event, number)
            if until is not rows:
                break
    return state


def _up_to(seq: int, rows: ReadRows) -> ReadRows:
    """The rows, and of the last one the events, up to record `seq`."""
    found = [(row, events[: max(seq - row.seq + len(events), 0)]) for row, events in rows]
    return [each for each in found if each[1]]


async def states_of(journal: Journal, run_id: str) -> AsyncGenerator[tuple[int, Event, RunState]]:
    """Each event of a run, its number, and the state that it leads to: one object, which goes on changing.

    Raises UnknownName, JournalCorrupt, JournalTooNew.
    """
    state = RunState()
    async with aclosing(rows_of(journal, run_id)) as rows:
        async for row, events in rows:
            for seq, event in enumerate(events, row.seq - len(events) + 1):
                fold_next(run_id, state, row, (event,))
                yield seq, event, state


def fold_in(run_id: str, state: RunState, rows: ReadRows) -> None:
    """Fold rows in, each at its own time. Raises JournalCorrupt for one that cannot follow."""
    row, event = None, None
    table, activity = APPLY, state.totals.activity
    try:
        for row, events in rows:
            state.at = at = row.at
            for event in events:
                table[type(event)](state, event)
            if at >= activity.until:
                open_span(activity, at)
            activity.counts[-1] += len(events)
    except UNREADABLE as error:
        seq = row.seq if row is not None else 0
        raise JournalCorrupt(run_id, seq, f"{type(event).__name__} does not follow ({error!r})") from error


def fold_next(run_id: str, state: RunState, row: Row, events: Sequence[Event]) -> None:
    """`fold_in` of one row."""
    fold_in(run_id, state, ((row, events),))


def fold_records(records: Iterable[Record]) -> RunState:
    """The state that the records of a run add up to, the first one first. Raises JournalCorrupt."""
    state = RunState()
    for record in records:
        row = Row(record.seq, 1, 0, record.at, b"", (), b"", ())
        fold_next(record.run_id, state, row, (record.event,))
    return state


class RecordReader:
    """The records of a stored run, read on from where the last reading ended.

    They are folded too, so records that are no run are refused, whoever shows them. seq: the last one's
    number. state: what they add up to.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self.seq, self.state = 0, RunState()
        self._journal, self._run_id, self._index = journal, run_id, ActivationIndex()

    async def records(self) -> AsyncGenerator[Record]:
        """The records that are new. Raises UnknownName, JournalCorrupt, JournalTooNew."""
        async with aclosing(rows_of(self._journal, self._run_id, self.seq)) as rows:
            async for row, events in rows:
                fold_next(self._run_id, self.state, row, events)
                found = records_of(self._run_id, row, events, self._index)
                self.seq = row.seq
                for record in found:
                    yield record

    async def read(self) -> list[Record]:
        """All of `records`."""
        return [record async for record in self.records()]

    async def wait(self) -> None:
        """Wait until there may be new ones."""
        await self._journal.wait(self._run_id, self.seq, NO_COMMAND)


def records_of(run_id: str, row: Row, events: Sequence[Event], index: ActivationIndex) -> list[Record]:
    """The records of a row, which the index learns."""
    try:
        for number, event in enumerate(events, row.seq - len(events) + 1):
            index.learn(event, number)
        return index.records(row.seq, row.at, run_id, events)
    except UNREADABLE as error:
        raise JournalCorrupt(run_id, row.seq, f"its events do not follow ({error})") from error


class RunIndex:
    """Who is who in a stored run, as far as it was read: one for all who read it in an event loop.

    first: the digest of its first row, by which another run of the same id is told apart. seq: the last
    record it knows. closed: that one closes the run.
    """

    def __init__(self) -> None:
        self.first, self.seq, self.closed = b"", 0, False
        self.names = ActivationIndex()
        self._reading = asyncio.Lock()

    async def reach(self, journal: Journal, run_id: str, seq: int) -> None:
        """Know the records up to `seq`, or all there are. Raises as `rows_of`."""
        if self.seq >= seq:
            return
        # One reads, the others find it done.
        async with self._reading:
            if self.seq >= seq:
                return
            async with aclosing(rows_of(journal, run_id, self.seq)) as rows:
                async for row, events in rows:
                    self.records(run_id, row, events)
                    if self.seq >= seq:
                        return

    def records(self, run_id: str, row: Row, events: Sequence[Event]) -> list[Record]:
        """The records of a row that follows what is known, or was known before. Raises JournalCorrupt."""
        first = row.seq - len(events) + 1
        try:
            if row.seq > self.seq:
                for number, event in enumerate(events, first):
                    self.names.learn(event, number)
                self.first, self.seq = self.first or row.digest, row.seq
                self.closed = type(events[-1]) is RunClosed
            return self.names.records(row.seq, row.at, run_id, events)
        except UNREADABLE as error:
            raise JournalCorrupt(run_id, row.seq, f"its events do not follow ({error})") from error


async def index_of(journal: Journal, run_id: str) -> RunIndex:
    """The index of a run that all readers in this event loop share; of KEPT_INDEXES runs, those read last.

    Raises UnknownName, JournalCorrupt.
    """
    loop = asyncio.get_running_loop()
    rows = await journal.read(run_id, 0, 1)
    first = rows[0].digest if rows else b""
    if not hasattr(loop, _KEPT_AS):
        setattr(loop, _KEPT_AS, OrderedDict())
    kept: OrderedDict[object, RunIndex] = getattr(loop, _KEPT_AS)
    place = journal.place, run_id
    known = kept.get(place)
    if known is None or known.first not in (first, b""):
        known = kept[place] = RunIndex()
    kept.move_to_end(place)
    if len(kept) > KEPT_INDEXES:
        kept.popitem(last=False)
    return known


class RecordPages:
    """The records of a stored run numbered above `position`, a page at a time. They are not folded.

    It holds nothing of the run but the place where it reads, and shares the index with all who read it; so
    it costs as little at the end of a long run as at its beginning. The first one in an event loop that
    begins in the middle reads what lies before, once.
    """

    def __init__(self, journal: Journal, run_id: str, after: int = 0) -> None:
        self.position = after
        self._journal, self._run_id = journal, run_id
        self._index: RunIndex | None = None
        self._last: Row | None = None

    @property
    def closed(self) -> bool:
        """Whether the run is closed with the last record that was read."""
        return self._index is not None and self._index.closed and self.position >= self._index.seq

    async def read(self) -> list[Record]:
        """The next page, at most PAGE_ROWS rows; empty when there are no more records now.

        Raises UnknownName, JournalCorrupt, JournalTooNew.
        """
        if self._index is None:
            self._index = await index_of(self._journal, self._run_id)
            await self._index.reach(self._journal, self._run_id, self.position)
        rows = await self._journal.read(self._run_id, self.position, PAGE_ROWS)
        if not rows:
            return []
        check_goes_on(self._run_id, self._last, rows[0])
        await self._index.reach(self._journal, self._run_id, rows[0].seq - rows[0].count)
        found: list[Record] = []
        async for row, events in _small(self._journal, self._run_id, rows):
            found += self._index.records(self._run_id, row, events)
            self._last = without_body(row)
        found = [record for record in found if record.seq > self.position]
        self.position = found[-1].seq
        return found

    async def wait(self) -> None:
        """Wait until there may be more."""
        await self._journal.wait(self._run_id, self.position, NO_COMMAND)


async def _small(
    journal: Journal, run_id: str, rows: Sequence[Row]
) -> AsyncGenerator[tuple[Row, list[Event]]]:
    """The rows and their events, up to the one whose payloads make them a page of PAGE_BYTES."""
    size = 0
    for row in rows:
        blobs = await blobs_of(journal, run_id, row)
        yield row, decoded(run_id, row, blobs)
        size += len(row.body) + sum(map(len, blobs.values()))
        if size >= PAGE_BYTES:
            return


async def read_page(journal: Journal, run_id: str, after: int, index: ActivationIndex) -> list[Record]:
    """A page of the records numbered above `after` of a run that the index knows.

    Raises UnknownName, JournalCorrupt.
    """
    found: list[Record] = []
    async for row, events in _small(journal, run_id, await journal.read(run_id, after, PAGE_ROWS)):
        records = index.records(row.seq, row.at, run_id, events)
        found += [each for each in records if each.seq > after]
    return found


async def read(journal: Journal, run_id: str, after: int = 0) -> list[Record]:
    """The stored records of a run numbered above `after`. Raises UnknownName, JournalCorrupt."""
    pages, found, count = RecordPages(journal, run_id, after), list[Record](), 0
    while page := await pages.read():
        found += page
        count += len(page)
        if count >= EVENTS_PER_YIELD:
            count = 0
            await asyncio.sleep(0)
    return found
