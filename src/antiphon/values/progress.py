"""What a tool says while it runs: a text, places in files, and what it changes in them.

Shown to whoever watches, and forgotten: no record holds it, and no model is shown it. May import: `codec` and
`fields`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from antiphon.values.codec import clean_text
from antiphon.values.fields import CheckedWhenMade, check_at_least, fit

MAX_TEXT = 4_096
"""Characters that are shown of the text, and of a path."""
MAX_LOCATIONS = 100
"""Places that are shown of one report; the first ones."""
MAX_DIFFS = 20
"""Changes that are shown of one report; the first ones."""
MAX_CHANGED = 65_536
"""Characters that are shown of all texts before and after in one report."""


class FileLocation(CheckedWhenMade, frozen=True, gc=False):
    """A place that a tool works at."""

    path: str
    """As the tool names the file."""
    line: int | None = None
    """From 1; None: the whole file."""


class FileDiff(CheckedWhenMade, frozen=True, gc=False):
    """What a tool changes in a file."""

    path: str
    """As the tool names the file."""
    before: str | None = None
    """The text as it was; None: there was no file."""
    after: str | None = None
    """The text as it is then; None: there is no file any more."""
    cut: bool = False
    """Only the beginnings are shown: a report shows 65,536 characters of all its changes."""


class ToolProgress(Struct, frozen=True, gc=False):
    """All that a tool said at once; the next report takes its place."""

    text: str
    locations: tuple[FileLocation, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    index: int = 0
    """Which report of the call it is, from 1."""
    kind: Literal["progress"] = "progress"
    """As of a `Delta`, in whose place it stands."""


class ReportProgress(Protocol):
    """`ToolContext.report_progress`."""

    def __call__(
        self, text: str = "", *, locations: Iterable[FileLocation] = (), diffs: Iterable[FileDiff] = ()
    ) -> None:
        """Say how far the tool has come: all of it at once, since this takes the place of what was said.

        text: at most 4,096 characters are shown. locations: where it works; the first 100. diffs: what it
        changes; the first 20, and 65,536 characters of their texts. Raises UserError for other types.
        """
        ...


def bounded(index: int, text: Any, locations: Iterable[Any], diffs: Iterable[Any]) -> ToolProgress:
    """A report as it is shown, cut to its bounds. Raises UserError."""
    said = clean_text(str(text)[:MAX_TEXT])
    if not locations and not diffs:
        return ToolProgress(said, index=index)
    places = fit(tuple(locations), tuple[FileLocation, ...], "report_progress(locations=...)")
    changes = fit(tuple(diffs), tuple[FileDiff, ...], "report_progress(diffs=...)")
    for place in places:
        check_at_least(place, 1, "line")
    shown = tuple([replace(each, path=each.path[:MAX_TEXT]) for each in places[:MAX_LOCATIONS]])
    return ToolProgress(said, shown, tuple(_shortened(changes[:MAX_DIFFS])), index)


def _shortened(diffs: tuple[FileDiff, ...]) -> Iterator[FileDiff]:
    """Changes whose texts have MAX_CHANGED characters together. Each may have an equal part of what those
    before it left, and of that half for each text, or what the other one leaves."""
    left = MAX_CHANGED
    for number, diff in enumerate(diffs):
        room = left // (len(diffs) - number)
        before, after = diff.before, diff.after
        if before is not None:
            before = before[: max(room // 2, room - len(after or ""))]
        if after is not None:
            after = after[: room - len(before or "")]
        left -= len(before or "") + len(after or "")
        cut = diff.cut or (before, after) != (diff.before, diff.after)
        yield FileDiff(diff.path[:MAX_TEXT], before, after, cut)
