"""How a span of time is written in options: `45s`, `30m`, `12h`, `90d`, `2w`, `1h30m`."""

from __future__ import annotations

import re

import click

_PART = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)", re.ASCII)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
LONGEST = 100 * 365 * 86400.0


def seconds_of(option: str, text: str) -> float:
    """The span that an option was given, in seconds. Raises UsageError for any other text."""
    spans = [float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)]
    if not spans or _PART.sub("", text) or sum(spans) > LONGEST:
        raise click.UsageError(f"{option} is a time such as 45s, 30m, 2h, 90d or 2w; got {text!r}.")
    return sum(spans)
