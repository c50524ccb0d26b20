"""What stands at the end of a terminal, drawn again in place, and what is finished above it.

The terminal's own cursor stands, hidden, at the first column of the first of these rows whenever nothing is
being written. So wherever a terminal of another size has moved them to, and however it has broken them, all
of them lie from there on: nothing is left behind, nothing above is touched. Where a person writes is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""A terminal that knows these shows what lies between at once."""
_TO_END = "\x1b[J"
_ROW = "\x1b[2K"
_PLAIN = "\x1b[0m"


class RowPainter:
    """write: takes the text of one whole frame. Rows come as text with colours alone, narrower than the
    terminal; that is for their maker to see to."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._rows: list[str] = []
        self._open = False

    def open(self) -> None:
        """Take the cursor, and have pastes told apart from what is typed."""
        self._open = True
        self._write("\x1b[?25l\x1b[?2004h\r")

    def close(self) -> None:
        """Take the rows away and give the cursor back: what is written next follows what is finished."""
        if self._open:
            self._open = False
            self._rows = []
            self._write(f"\r{_TO_END}{_PLAIN}\x1b[?2004l\x1b[?25h")

    def paint(self, finished: Sequence[str], rows: Sequence[str], *, anew: bool = False) -> None:
        """One frame: `finished` goes above, for good; `rows` take the place of those before.

        anew: what stands there now is not known, as after a change of the terminal's size.
        """
        wanted = list(rows)
        if not self._open or (not finished and not anew and wanted == self._rows):
            return
        if finished or anew:
            above = "".join(f"{each}{_PLAIN}\r\n" for each in finished)
            text = f"\r{_TO_END}{above}" + "\r\n".join(f"{each}{_PLAIN}" for each in wanted)
        else:
            text = self._changed(wanted)
        back = f"\x1b[{len(wanted) - 1}A\r" if len(wanted) > 1 else "\r"
        self._rows = wanted
        self._write(f"{_BEGIN}{text}{back}{_END}")

    def _changed(self, wanted: list[str]) -> str:
        """From the first row on, only what is another; ends on the last row."""
        before, parts = self._rows, list[str]()
        for number, row in enumerate(wanted):
            known = before[number] if number < len(before) else None
            if known is None:
                parts.append(f"{row}{_PLAIN}")
            elif known != row:
                parts.append(f"{_ROW}{row}{_PLAIN}")
            else:
                parts.append("")
        text = "\r\n".join(parts)
        if len(before) > len(wanted):
            # The rows that are left lie below the last one.
            text += f"\r\n{_TO_END}\x1b[1A" if wanted else _TO_END
        return text
