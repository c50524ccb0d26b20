"""A span as it is sent: names, times, attributes and links, and where its ids come from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal

from msgspec import Struct

Attribute = str | int | float | bool | tuple[str, ...]
"""What an attribute holds."""
Attributes = Mapping[str, Attribute]
MAX_TEXT = 32_768
"""Characters of an attribute; of more, the first ones."""
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.{0,200})?")


class SpanContext(Struct, frozen=True):
    """Which span is meant, of which trace."""

    trace_id: str
    """32 hex characters."""
    span_id: str
    """16 hex characters."""
    sampled: bool = True
    """Of one that somebody else made: whether they keep it."""


class SpanEvent(Struct, frozen=True):
    """Something that happened in a span, without a length."""

    name: str
    at: float
    """Unix seconds."""
    attributes: Attributes = {}


class RunSpan(Struct, frozen=True):
    """Something that took a while. The same run gives the same spans, however often it is read."""

    context: SpanContext
    name: str
    kind: Literal["internal", "client"]
    """`client`: somebody outside of this process was asked."""
    start: float
    """Unix seconds."""
    end: float
    """Unix seconds."""
    parent: SpanContext | None = None
    remote_parent: bool = False
    """Who asked for the run had a span for that: `parent`."""
    attributes: Attributes = {}
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanContext, ...] = ()
    """Spans of those whose messages it read."""
    error: bool = False
    """It went wrong."""
    reason: str = ""
    """Why, where content was asked for."""


def context_of(run_id: str, request: str, kind: str, name: str) -> SpanContext:
    """The ids of a span of a run: made from its place, so that an export in two processes gives the same.

    request: the id of the user's request, which is a trace. kind, name: `turn` and `3/2`, for one.
    """
    return SpanContext(_digest(16, run_id, request), _digest(8, run_id, kind, name))


def _digest(size: int, *parts: str) -> str:
    made = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()
    # An id of zeros means that there is none.
    return made if made.strip("0") else made[:-1] + "1"


def remote(traceparent: str) -> SpanContext | None:
    """The span that a header `traceparent` names (W3C Trace Context); None for a header that is none."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or not found[1].strip("0") or not found[2].strip("0"):
        return None
    return SpanContext(found[1], found[2], bool(int(found[3], 16) & 1))


def nanoseconds(at: float) -> int:
    """Unix seconds as whole nanoseconds; a float holds microseconds of today, so the rest is zero."""
    return round(at * 1_000_000) * 1_000
