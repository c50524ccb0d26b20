"""Everything a command writes, it writes here: cleaned, whoever the text is from.

A journal, an exported file, a model or a tool may have put anything into any text: ids, names, errors. So
nobody asks where a text comes from: what reaches the terminal holds no control character but line feeds (see
`terminal_escape`), and what rich itself adds to it. `tests/taste` refuses any other way out.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from antiphon.cli.display import terminal_escape


def say(text: str = "", *, end: str = "\n") -> None:
    """Write to the standard output: what was asked for."""
    _write(sys.stdout, terminal_escape.clean(text) + end)


def tell(text: str = "", *, end: str = "\n") -> None:
    """Write to the error output: whatever else is worth knowing."""
    _write(sys.stderr, terminal_escape.clean(text) + end)


class _Lines(io.TextIOBase):
    """A stream whose lines a screen shows."""

    def __init__(self, shown: Callable[[str], object]) -> None:
        self._shown, self._rest = shown, ""

    def write(self, text: str) -> int:
        """See io."""
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._shown(terminal_escape.clean("\n".join(lines)))
        return len(text)

    def isatty(self) -> bool:
        """See io."""
        return True


def drawing_on(stream: TextIO | None) -> Callable[[str], None]:
    """What writes the frames of a painter, each at once: rows that were cleaned when they were drawn."""

    def draw(frame: str) -> None:
        if stream is not None:
            stream.write(frame)
            stream.flush()

    return draw


@contextmanager
def taken_over(shown: Callable[[str], object]) -> Iterator[None]:
    """In the block a screen draws: what anybody writes to the terminal is given to it, line by line."""
    lines = _Lines(shown)
    with redirect_stdout(lines), redirect_stderr(lines):
        yield


def usage_error(error: click.ClickException) -> None:
    """Tell what was wrong with the command line, as click words it."""
    told = io.StringIO()
    error.show(file=told)
    tell(told.getvalue(), end="")


def fault(error: BaseException) -> None:
    """Tell where a fault happened."""
    tell("".join(traceback.format_exception(error)), end="")


def confirm(question: str) -> bool:
    """Ask the person for a yes; the default is no."""
    return click.confirm(terminal_escape.clean(question), default=False, err=True)


class CleanConsole(Console):
    """The error output as rich draws on it: every text is cleaned; only rich itself moves and colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `rich.console.Console.render`."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(terminal_escape.clean(segment.text), segment.style)

    def erase_line(self) -> None:
        """Begin the line anew, without what stands on it."""
        self.file.write("\r\x1b[2K")
        self.file.flush()

    @contextmanager
    def at_line_start(self) -> Iterator[None]:
        """Write at the beginning of the line, then go on where the cursor was."""
        self.file.write("\x1b7\r")
        try:
            yield
        finally:
            self.file.write("\x1b8")
            self.file.flush()


def terminal() -> CleanConsole:
    """The error output as rich knows it: no colour under NO_COLOR, none where nobody looks."""
    return CleanConsole(stderr=True, highlight=False, emoji=False, markup=False)


def drawing(file: TextIO, width: int, *, plain: bool = False) -> CleanConsole:
    """What rich draws as text with the colours of this terminal, `width` columns wide; plain: without any."""
    colours = None if plain else terminal().color_system
    system: Any = colours if colours in ("standard", "256", "truecolor") else None
    return CleanConsole(
        file=file, width=width, force_terminal=system is not None, color_system=system, highlight=False,
        emoji=False, markup=False, legacy_windows=False,
    )  # fmt: skip


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        # A program without a console.
        return
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
