"""Deadlines: an instant, or how long something may take, as a message may say it.

instant("2h", at)                       # two hours after `at`
instant("2030-01-01T12:00:00Z", at)     # then; without an offset it is UTC
instant(1_900_000_000, at)              # Unix seconds
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from antiphon.styles.tasks.errors import InvalidMessage

UNITS: Mapping[str, int] = {"w": 604_800, "d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
"""What a duration may be written in, and how many seconds each is."""
LAST = datetime.max.replace(tzinfo=UTC).timestamp()
"""The end of the calendar, Unix seconds; what lies behind it is no deadline, but milliseconds."""
LONGEST = 64
"""Characters of a text that may be a deadline."""

_PART = re.compile(rf"([0-9]+(?:\.[0-9]+)?)\s*({'|'.join(UNITS)})\s*")
_EXPECTED = (
    'a duration such as "2h", "30m" or "1d 4h" (w, d, h, m, s), an ISO instant such as '
    '"2030-01-01T12:00:00Z", or Unix seconds'
)


def instant(deadline: Any, at: float) -> float:
    """When it is, Unix seconds; durations count from `at`.

    deadline: text, a number, `datetime`, `date` (its first moment) or `timedelta`. Raises
    InvalidMessage that says what is expected.
    """
    try:
        found = _instant(deadline, at)
    except (ValueError, OverflowError) as error:
        raise _invalid(deadline) from error
    if not math.isfinite(found) or not 0 <= found <= LAST:
        raise _invalid(deadline)
    return found


def _instant(deadline: Any, at: float) -> float:
    if isinstance(deadline, str):
        return _read(deadline.strip(), at)
    if isinstance(deadline, timedelta):
        return at + deadline.total_seconds()
    if isinstance(deadline, datetime):
        return (deadline if deadline.tzinfo is not None else deadline.replace(tzinfo=UTC)).timestamp()
    if isinstance(deadline, date):
        return datetime.combine(deadline, time(tzinfo=UTC)).timestamp()
    if isinstance(deadline, int | float) and not isinstance(deadline, bool):
        return float(deadline)
    raise _invalid(deadline)


def _read(text: str, at: float) -> float:
    if len(text) > LONGEST:
        raise _invalid(text)
    seconds, place = 0.0, 0
    while (part := _PART.match(text, place)) is not None:
        seconds += float(part[1]) * UNITS[part[2]]
        place = part.end()
    if place and place == len(text):
        return at + seconds
    return _instant(datetime.fromisoformat(text), at)


def _invalid(deadline: Any) -> InvalidMessage:
    return InvalidMessage(f"deadline: expected {_EXPECTED}; got {deadline!r:.80}")
