"""History: events to rows and rows to events, large payloads apart, and the fold over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from antiphon.errors import AntiphonError, JournalCorrupt
from antiphon.journal.port import Journal, Refs, Row, blob_digest
from antiphon.kernel.facts.activation import FinishedCall
from antiphon.kernel.facts.events import EffectFinished, Event, decode
from antiphon.kernel.facts.fold.apply import apply_all
from antiphon.kernel.facts.fold.calls import KEPT
from antiphon.kernel.facts.ids import opening_id
from antiphon.kernel.facts.records import ActivationIndex, Record
from antiphon.kernel.facts.state import RunState
from antiphon.values.codec import encode_value
from antiphon.values.message import Message

NO_COMMAND = 1 << 62
"""A number of a command that never comes: to wait for records alone."""
EVENTS_PER_YIELD = 256
"""Events that are read and folded before other work gets the event loop: a few milliseconds."""
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
    try:
        if not row.refs:
            return decode(row.body)
        blobs = {name: await journal.blob(run_id, name) for _, name in row.refs}
        return decode(unpack(row.body, row.refs, blobs))
    except UNREADABLE as error:
        raise JournalCorrupt(run_id, row.seq, f"its events cannot be read ({error})") from error


async def rows_of(journal: Journal, run_id: str, after: int = 0) -> AsyncGenerator[tuple[Row, list[Event]]]:
    """The rows of a run numbered above `after`, and their events; other work gets the event loop in between.

    Raises UnknownName, JournalCorrupt, JournalTooNew.
    """
    count = 0
    for row in await journal.read(run_id, after):
        events = await events_of(journal, run_id, row)
        count += len(events)
        if count >= EVENTS_PER_YIELD:
            count = 0
            await asyncio.sleep(0)
        yield row, events


async def fold(
    journal: Journal, run_id: str, seen: Callable[[Event], None] | None = None, upto: int | None = None
) -> RunState:
    """The state of a stored run, or as it was after record `upto`; `seen` is shown each event.

    Raises JournalCorrupt.
    """
    state = RunState()
    async with aclosing(rows_of(journal, run_id)) as rows:
        async for row, events in rows:
            if upto is not None and row.seq > upto:
                events = events[: max(upto - row.seq + len(events), 0)]
            if not events:
                break
            _follow(run_id, state, row, events)
            if seen is not None:
                for event in events:
                    seen(event)
    return state


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


async def states_of(journal: Journal, run_id: str) -> AsyncGenerator[tuple[int, Event, RunState]]:
    """Each event of a run, its number, and the state that it leads to: one object, which goes on changing.

    Raises UnknownName, JournalCorrupt, JournalTooNew.
    """
    state = RunState()
    async with aclosing(rows_of(journal, run_id)) as rows:
        async for row, events in rows:
            for seq, event in enumerate(events, row.seq - len(events) + 1):
                _follow(run_id, state, row, (event,))
                yield seq, event, state


def messages_of(state: RunState, call_id: str) -> tuple[Message, ...]:
    """The messages of a request that has just ended, from the last one back to the one that opened it."""
    messages: list[Message] = []
    for logged in reversed(state.log):
        if logged.request == call_id:
            messages.append(logged.message)
            if logged.message.id == opening_id(call_id):
                break
    return tuple(reversed(messages))


def _follow(run_id: str, state: RunState, row: Row, events: Sequence[Event]) -> None:
    try:
        fold_row(state, row, events)
    except (JournalCorrupt, *UNREADABLE) as error:
        raise JournalCorrupt(run_id, row.seq, f"its events do not follow ({error})") from error


def fold_row(state: RunState, row: Row, events: Sequence[Event]) -> None:
    """Fold one row in, at its own time."""
    state.at = row.at
    apply_all(state, events)


async def read(journal: Journal, run_id: str, after: int = 0) -> list[Record]:
    """The stored records of a run numbered above `after`. Raises UnknownName, JournalCorrupt."""
    index, records = ActivationIndex(), list[Record]()
    async for row, events in rows_of(journal, run_id):
        records += _records(run_id, row, events, index)
    return [record for record in records if record.seq > after] if after else records


class RecordReader:
    """The records of a stored run, read on from where the last reading ended.

    They are folded too, so records that are no run are refused, whoever shows them. seq: the last one's
    number. state: what they add up to.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self.seq, self.state = 0, RunState()
        self._journal, self._run_id, self._index = journal, run_id, ActivationIndex()

    async def read(self) -> list[Record]:
        """The records that are new. Raises UnknownName, JournalCorrupt, JournalTooNew."""
        found: list[Record] = []
        async with aclosing(rows_of(self._journal, self._run_id, self.seq)) as rows:
            async for row, events in rows:
                _follow(self._run_id, self.state, row, events)
                found += _records(self._run_id, row, events, self._index)
                self.seq = row.seq
        return found

    async def wait(self) -> None:
        """Wait until there may be new ones."""
        await self._journal.wait(self._run_id, self.seq, NO_COMMAND)


def _records(run_id: str, row: Row, events: Sequence[Event], index: ActivationIndex) -> list[Record]:
    try:
        for event in events:
            index.learn(event)
        return index.records(row.seq, row.at, run_id, events)
    except UNREADABLE as error:
        raise JournalCorrupt(run_id, row.seq, f"its events do not follow ({error})") from error
