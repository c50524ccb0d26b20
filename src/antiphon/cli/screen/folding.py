"""What tools gave back: its first lines, and all of it when that is asked for."""

from __future__ import annotations

from collections import deque

from rich.text import Text

from antiphon.cli.display import terminal_escape

SHOWN = 6
"""Lines of an output that are shown at once."""
REMEMBERED = 30
"""Outputs that can still be shown whole."""
LONGEST = 200_000
"""Characters of one that are remembered."""


class FoldedOutputs:
    """The outputs of one screen. key: what is pressed to see one whole."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._kept: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)
        self._back = 0

    def add(self, title: str, text: str, width: int) -> list[Text]:
        """Its first rows; the rest is remembered."""
        lines = terminal_escape.clean(text).rstrip("\n").split("\n") if text else []
        room = max(width - 4, 10)
        shown = [
            each if len(each) <= room else each[: room - 1] + terminal_escape.CUT for each in lines[:SHOWN]
        ]
        rows = [Text(f"    {each}", "dim") for each in shown]
        more, cut = len(lines) - len(shown), shown != lines[:SHOWN]
        if more or cut:
            self._kept.append((title, text[:LONGEST]))
            self._back = 0
            what = f"{more:,} more line{'s' * (more != 1)}" if more else "longer lines"
            told = f"    {terminal_escape.CUT} {what}" + (f"; {self._key} shows all" if self._key else "")
            rows.append(Text(told, "dim"))
        return rows

    def next_whole(self) -> list[Text]:
        """The last one that was folded, whole; after it the one before, and so on; empty where there is no
        more."""
        if self._back >= len(self._kept):
            self._back = 0
            return []
        self._back += 1
        title, text = self._kept[-self._back]
        return [Text(title, "bold"), Text(terminal_escape.clean(text).rstrip("\n"))]
