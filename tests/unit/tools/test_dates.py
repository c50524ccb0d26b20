"""Dates: what is read, what is counted, what is refused. Today is 20 November 2026 here."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from antiphon.errors import ToolError
from antiphon.tools.dates import date_tools, parse_date, parse_span, shift

NOW = date(2026, 11, 20)
TOOLS: dict[str, Any] = {tool.name: tool for tool in date_tools(lambda: NOW)}


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-05-01", date(2026, 5, 1)),
        ("2026-5-1", date(2026, 5, 1)),
        ("1 May 2026", date(2026, 5, 1)),
        ("1st of may 2026", date(2026, 5, 1)),
        ("May 1, 2026", date(2026, 5, 1)),
        ("Sept 2nd 2026", date(2026, 9, 2)),
        ("31.12.2026", date(2026, 12, 31)),
        ("31/12/2026", date(2026, 12, 31)),
        ("12/31/2026", date(2026, 12, 31)),
        ("5/5/2026", date(2026, 5, 5)),
        ("  Today ", NOW),
        ("tomorrow", date(2026, 11, 21)),
        ("yesterday", date(2026, 11, 19)),
    ],
)
def test_parse_date(text: str, day: date) -> None:
    assert parse_date(text, NOW) == day


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("4/5/2026", "can be two dates"),
        ("2026-02-30", "day is out of range"),
        ("0000-01-01", "year"),
        ("1 Foo 2026", "no month"),
        ("soon", "is not a date"),
        ("", "is not a date"),
        ("٤/5/2026", "two dates"),
    ],
)
def test_no_date(text: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        parse_date(text, NOW)


def test_spans() -> None:
    assert parse_span("90 days") == (90, "day")
    assert parse_span("a  week") == (1, "week")
    assert parse_span("-2 months") == (-2, "month")
    assert parse_span("0 days") == (0, "day")
    with pytest.raises(ToolError, match="is not a number of days"):
        parse_span("2 hours")


def test_shift() -> None:
    assert shift(date(2026, 1, 31), 1, "month") == date(2026, 2, 28)
    assert shift(date(2024, 2, 29), 1, "year") == date(2025, 2, 28)
    assert shift(date(2026, 3, 31), -1, "month") == date(2026, 2, 28)
    for count, unit in ((9_000_000, "day"), (9999, "year"), (-2100 * 12, "month")):
        with pytest.raises(ToolError, match="outside the years"):
            shift(NOW, count, unit)


def test_the_tools() -> None:
    assert TOOLS["today"]() == "Today is 2026-11-20 (Friday, 20 November 2026)"
    assert TOOLS["weekday"]("20 July 1969") == "1969-07-20 is a Sunday"
    between = TOOLS["days_between"]
    assert (
        between("2026-01-01", "2026-03-15") == "From 2026-01-01 to 2026-03-15: 73 days (10 weeks and 3 days)"
    )
    assert between("today", "tomorrow") == "From 2026-11-20 to 2026-11-21: 1 day"
    assert "2001-09-09 is the earlier" in between("today", "2001-09-09")
    add = TOOLS["date_add"]
    assert add("2026-05-01", "90 days") == "90 days after 2026-05-01: 2026-07-30 (Thursday, 30 July 2026)"
    assert (
        add("today", "1 week", "before") == "1 week before 2026-11-20: 2026-11-13 (Friday, 13 November 2026)"
    )


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_examples_are_right_calls(tool: Any) -> None:
    assert tool.effect == "read"
    assert tool.examples
    for example in tool.examples:
        assert isinstance(tool(**example.arguments), str)
