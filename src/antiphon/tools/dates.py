"""Calendar arithmetic: which weekday, how many days between, which date after. Gregorian, years 1 to 9999."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Literal

from antiphon.errors import ToolError
from antiphon.values.model import Example
from antiphon.values.tool import Tool, tool

_MONTHS = [name.lower() for name in calendar.month_name]
_DAYS = list(calendar.day_name)
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})$")
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+)\.?,? (\d{4})$")
_MONTH_FIRST = re.compile(r"([a-z]+)\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})$")
_NUMBERS = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})$")
_SPAN = re.compile(
    r"([+-]?\d{1,7}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve) (day|week|month|year)s?$"
)
_COUNTS = {"a": 1, "an": 1} | {
    word: at
    for at, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
}


def parse_date(text: str, today: date) -> date:
    """A date as people write it: 2026-05-01, 1 May 2026, May 1, 2026, 31.12.2026, today, tomorrow, yesterday.

    Raises `ToolError` for anything else, and for 4/5/2026, which can be two dates.
    """
    said = " ".join(text.lower().split())
    near = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1}
    if said in near:
        return today + timedelta(days=near[said])
    try:
        if match := _ISO.match(said):
            return date(*(int(part) for part in match.groups()))
        if match := _DAY_FIRST.match(said):
            return date(int(match[3]), _month(match[2]), int(match[1]))
        if match := _MONTH_FIRST.match(said):
            return date(int(match[3]), _month(match[1]), int(match[2]))
        if match := _NUMBERS.match(said):
            first, second, year = int(match[1]), int(match[3]), int(match[4])
            if match[2] == "." or first > 12 or first == second:
                return date(year, second, first)
            if second > 12:
                return date(year, first, second)
            raise ToolError(
                f"{text!r} can be two dates; write it as {year}-{first:02d}-{second:02d} (year-month-day)"
            )
    except ValueError as error:
        raise ToolError(f"{text!r} is not a date: {error}") from error
    raise ToolError(f"{text!r} is not a date; write it as 2026-05-01 or 1 May 2026")


def _month(word: str) -> int:
    for at, name in enumerate(_MONTHS):
        if at and len(word) >= 3 and name.startswith(word):
            return at
    raise ValueError(f"no month is called {word!r}")


def parse_span(text: str) -> tuple[int, str]:
    """A number of days, weeks, months or years. Raises `ToolError`."""
    match = _SPAN.match(" ".join(text.lower().split()))
    if match is None:
        raise ToolError(f"{text!r} is not a number of days, weeks, months or years, such as '90 days'")
    return _COUNTS.get(match[1]) or int(match[1]), match[2]


def shift(start: date, count: int, unit: str) -> date:
    """`count` units after `start`; a day the month does not have becomes its last. Raises `ToolError`."""
    try:
        if unit in ("day", "week"):
            return start + timedelta(days=count * (7 if unit == "week" else 1))
        months = start.year * 12 + start.month - 1 + count * (12 if unit == "year" else 1)
        year, month = months // 12, months % 12 + 1
        return date(year, month, min(start.day, calendar.monthrange(year, month)[1]))
    except (OverflowError, ValueError, calendar.IllegalMonthError) as error:
        raise ToolError("the date is outside the years 1 to 9999") from error


def long_form(day: date) -> str:
    """2026-05-01 (Friday, 1 May 2026)."""
    return (
        f"{day.isoformat()} ({_DAYS[day.weekday()]}, {day.day} {calendar.month_name[day.month]} {day.year})"
    )


def days(count: int) -> str:
    """`1 day`, `2 days`."""
    return f"{count} day{'' if count == 1 else 's'}"


_BETWEEN = {
    "How many days are between 2025-02-01 and 2025-06-30?": ("2025-02-01", "2025-06-30"),
    "How many days from 1 January 2023 to 5 May 2023?": ("1 January 2023", "5 May 2023"),
    "Number of days from today until 2030-01-01": ("today", "2030-01-01"),
    "How many days until December 31, 2029?": ("today", "December 31, 2029"),
    "How long ago was 2001-09-09?": ("today", "2001-09-09"),
    "Days since 3 June 2018": ("today", "3 June 2018"),
    "How many days are left before 2031-07-01?": ("today", "2031-07-01"),
    "How long was it from 2 May 2019 until 8 July 2020?": ("2 May 2019", "8 July 2020"),
    "How much time lies between 4 July 2020 and 9 August 2021?": ("4 July 2020", "9 August 2021"),
}
_WEEKDAYS = {
    "What weekday is 2025-12-24?": "2025-12-24",
    "Which day of the week was 9 November 1989?": "9 November 1989",
    "On what day does 1 January 2030 fall?": "1 January 2030",
    "Is 2031-05-01 a weekday?": "2031-05-01",
    "Was 2000-02-29 a Monday or a Tuesday?": "2000-02-29",
}
_SHIFTS = {
    "What date is 45 days after 2025-03-10?": ("2025-03-10", "45 days", "after"),
    "Which day is 3 weeks before 10 June 2025?": ("10 June 2025", "3 weeks", "before"),
    "What is the date 10 days from today?": ("today", "10 days", "after"),
    "Add 2 months to 2025-11-30": ("2025-11-30", "2 months", "after"),
    "What date was it 100 days ago?": ("today", "100 days", "before"),
    "Give me the date 20 days after 3 March 2026": ("3 March 2026", "20 days", "after"),
    "When is 2 years after 5 May 2024?": ("5 May 2024", "2 years", "after"),
}
_TODAYS = ["What date is it today?", "What day is it?", "Which date do we have?", "Tell me the current date."]


def date_tools(clock: Callable[[], date] = date.today) -> list[Tool]:
    """The tools `today`, `weekday`, `days_between` and `date_add`; `clock` says what today is."""
    return [*_naming(clock), *_counting(clock)]


def _naming(clock: Callable[[], date]) -> list[Tool]:
    @tool(effect="read", timeout=10, examples=tuple(Example(asked, "today") for asked in _TODAYS))
    def today() -> str:
        """Say today's date and weekday."""
        return f"Today is {long_form(clock())}"

    @tool(
        effect="read",
        timeout=10,
        examples=tuple(Example(asked, "weekday", {"day": day}) for asked, day in _WEEKDAYS.items()),
    )
    def weekday(day: str) -> str:
        """Say which day of the week a date is.

        Args:
            day: a date such as 2026-05-01, 1 May 2026, today.
        """
        found = parse_date(day, clock())
        return f"{found.isoformat()} is a {_DAYS[found.weekday()]}"

    return [today, weekday]


def _counting(clock: Callable[[], date]) -> list[Tool]:
    @tool(
        effect="read",
        timeout=10,
        examples=tuple(
            Example(asked, "days_between", {"start": start, "end": end})
            for asked, (start, end) in _BETWEEN.items()
        ),
    )
    def days_between(start: str, end: str) -> str:
        """Count the days between two dates; the first day is not counted, the last one is.

        Args:
            start: a date such as 2026-05-01, 1 May 2026, today.
            end: another date.
        """
        first, last = parse_date(start, clock()), parse_date(end, clock())
        count = abs((last - first).days)
        weeks = f" ({count // 7} weeks and {days(count % 7)})" if count >= 14 else ""
        earlier = f"; {last.isoformat()} is the earlier" if last < first else ""
        return f"From {first.isoformat()} to {last.isoformat()}: {days(count)}{weeks}{earlier}"

    @tool(
        effect="read",
        timeout=10,
        examples=tuple(
            Example(asked, "date_add", {"start": start, "span": span, "direction": direction})
            for asked, (start, span, direction) in _SHIFTS.items()
        ),
    )
    def date_add(start: str, span: str, direction: Literal["after", "before"] = "after") -> str:
        """Find the date some days, weeks, months or years after or before a date.

        Args:
            start: a date such as 2026-05-01, 1 May 2026, today.
            span: such as "90 days", "6 weeks", "2 months".
            direction: after or before the start.
        """
        first = parse_date(start, clock())
        count, unit = parse_span(span)
        found = shift(first, -count if direction == "before" else count, unit)
        units = unit if abs(count) == 1 else f"{unit}s"
        return f"{abs(count)} {units} {direction} {first.isoformat()}: {long_form(found)}"

    return [days_between, date_add]
