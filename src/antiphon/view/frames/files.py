"""What a call made of files, for a frame: of a text the lines that differ, with a few around them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from antiphon.values.message import FileChange, FileState
from antiphon.view.frames.frame import ChangedFileFrame, CutText

AROUND = 3
"""Lines that are shown before and after those that differ."""


def changed_file(change: FileChange, cut: Callable[[str], CutText]) -> ChangedFileFrame:
    """One file, its texts made shorter by `cut`."""
    before, after = change.before, change.after
    old, new, content = _text(before), _text(after), after.content() if after is not None else None
    line, was, became = (1, old, new) if old is None or new is None else _differing(old, new)
    changed_mode = before is not None and after is not None and before.mode != after.mode
    return ChangedFileFrame(
        change.path, change.folder,
        "created" if before is None else "deleted" if after is None else "changed",
        line, cut(was) if was is not None else None, cut(became) if became is not None else None,
        len(content) if content is not None else 0,
        after.mode if changed_mode and after is not None else 0,
    )  # fmt: skip


def _text(state: FileState | None) -> str | None:
    """What a file holds; None: nothing that could be read, or there is none."""
    return state.text if state is not None and state.kept and not state.data else None


def _differing(before: str, after: str) -> tuple[int, str, str]:
    """The number of the first line shown, and the lines of each from there to the last that differs."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = max(0, _alike(old, new) - AROUND)
    end = max(0, _alike(old[start:][::-1], new[start:][::-1]) - AROUND)
    return start + 1, "".join(old[start : len(old) - end]), "".join(new[start : len(new) - end])


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
