"""Rows of an editor: what is written with the cursor in it, and the files that may be mentioned."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from antiphon.cli.display import terminal_escape


def editor_rows(mark: str, text: str, cursor: int, width: int, limit: int) -> list[Text]:
    """What is written, as rows no wider than `width`, at most `limit`, with that of the cursor among them."""
    mark = mark if cell_len(mark) <= width // 2 else "> "
    shown, cursor = terminal_escape.clean(text), len(terminal_escape.clean(text[:cursor]))
    rows, at, used = [Text(mark, "bold")], 0, cell_len(mark)
    cursor_row = 0
    for place, sign in enumerate(f"{shown}\n"):
        under = place == cursor
        cells = 1 if sign == "\n" else cell_len(sign)
        if used + cells > width:
            rows.append(Text(" " * cell_len(mark)))
            used, at = cell_len(mark), at + 1
        if under:
            cursor_row = at
        if sign == "\n":
            if under:
                rows[-1].append(" ", "reverse")
            if place < len(shown):
                rows.append(Text(" " * cell_len(mark)))
                used, at = cell_len(mark), at + 1
            continue
        rows[-1].append(sign, "reverse" if under else "")
        used += cells
    first = max(0, min(cursor_row - limit // 2, len(rows) - limit))
    return rows[first : first + limit]


def menu_rows(paths: list[str], picked: int) -> list[Text]:
    """The files that may be mentioned, with the one that is taken."""
    return [
        Text(f"  @{terminal_escape.line(each, 300)}", "reverse" if number == picked else "dim")
        for number, each in enumerate(paths)
    ]
