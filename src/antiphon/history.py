"""History: events to rows and rows to events, large payloads apart, and the fold over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from antiphon.errors import Corrupt
from antiphon.event import Event, decode
from antiphon.journal.port import Journal, Refs, Row, blob_digest
from antiphon.state import State, apply

LARGE = 4096
"""Bytes above which a payload is stored once, by its digest, beside the rows."""


def pack(body: bytes) -> tuple[bytes, Refs, dict[str, bytes]]:
    """Move every large payload of a body into a blob: the smaller body, where they belong, the blobs.

    The innermost value that is large goes, so what stays readable stays small.
    """
    refs: list[tuple[str, str]] = []
    blobs: dict[str, bytes] = {}

    def shrink(value: Any, path: str) -> Any:
        data = msgspec.json.encode(value)
        if len(data) <= LARGE:
            return value
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        kept = {key: shrink(each, f"{path}/{_escape(str(key))}") for key, each in items}
        shrunk: Any = kept if isinstance(value, dict) else list(kept.values())
        # The row and its events stay; a payload without a large part goes as a whole.
        if path.count("/") < 2 or (kept and len(msgspec.json.encode(shrunk)) <= LARGE):
            return shrunk
        name = blob_digest(data)
        blobs[name] = data
        while refs and refs[-1][0].startswith(path + "/"):
            refs.pop()
        refs.append((path, name))
        return None

    smaller = shrink(msgspec.json.decode(body), "")
    if not refs:
        return body, (), {}
    return msgspec.json.encode(smaller), tuple(refs), blobs


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
    """The events of one stored row, payloads in place. Raises Corrupt, NewerFormat."""
    if not row.refs:
        return decode(row.body)
    blobs = {name: await journal.blob(run_id, name) for _, name in row.refs}
    try:
        return decode(unpack(row.body, row.refs, blobs))
    except (LookupError, ValueError, TypeError) as error:
        raise Corrupt(run_id, row.seq, f"a payload does not fit its place ({error})") from error


async def fold(journal: Journal, run_id: str, seen: Callable[[Event], None] | None = None) -> State:
    """The state of a stored run; `seen` is shown each event. Raises Corrupt."""
    state = State()
    for row in await journal.read(run_id):
        events = await events_of(journal, run_id, row)
        try:
            fold_row(state, row, events)
        except Corrupt as error:
            raise Corrupt(run_id, row.seq, str(error)) from error
        if seen is not None:
            for event in events:
                seen(event)
    return state


def fold_row(state: State, row: Row, events: Sequence[Event]) -> None:
    """Fold one row in, at its own time."""
    state.at = row.at
    for event in events:
        apply(state, event)
