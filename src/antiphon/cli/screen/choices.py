"""A list that a person picks from, in the editor's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from rich.text import Text

from antiphon.cli.display import terminal_escape

_PAGE = 8


class OfferedLine(Struct, frozen=True):
    """One of them. line: what is sent when it is picked, as if it had been written."""

    text: str
    line: str


class Choices:
    """chosen: called once, with the line of what was picked; None: with nothing. The last one is offered
    first."""

    def __init__(
        self, title: str, offered: Sequence[OfferedLine], chosen: Callable[[str | None], None]
    ) -> None:  # fmt: skip
        self._title, self._offered, self._chosen = title, list(offered), chosen
        self._at = len(self._offered) - 1

    def rows(self, limit: int) -> list[Text]:
        """The list, as much of it as there is room for around what is picked."""
        room = max(limit - 2, 1)
        first = max(0, min(self._at - room // 2, len(self._offered) - room))
        rows = [
            Text(f"  {terminal_escape.line(each.text, 300)}", "reverse" if number == self._at else "")
            for number, each in enumerate(self._offered)
        ][first : first + room]
        told = f"Up, Down, Enter; Esc leaves it as it is ({self._at + 1} of {len(self._offered)})"
        return [Text(self._title, "bold"), *rows, Text(told, "dim")]

    def pressed(self, key: str) -> bool:
        """Take a key; each is for it."""
        last = len(self._offered) - 1
        moves = {"up": -1, "down": 1, "pageup": -_PAGE, "pagedown": _PAGE}
        if key == "enter":
            self._chosen(self._offered[self._at].line)
        elif key == "escape":
            self._chosen(None)
        else:
            self._at = max(0, min(self._at + moves.get(key, 0), last))
        return True
