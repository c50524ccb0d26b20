"""Prose: what an agent writes, as rows of a terminal while it comes: finished blocks, and the last one.

Everything is Markdown as people write it in plain text. A paragraph, list or table is finished by the blank
line after it; of a block of code each line is, as it ends.
"""

from __future__ import annotations

import io
import re
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text

from antiphon.cli.display import output, terminal_escape

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
CODE = "cyan"
LONGEST = 20_000
"""Characters of a block that is laid out as Markdown; a longer one is shown as it is."""


class _Heading(Heading):
    """A heading where text begins; rich would centre it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """See rich."""
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    """Markdown as it is read in a terminal."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = Markdown.elements | {"heading_open": _Heading}


def rows_of(renderable: RenderableType, width: int, *, plain: bool = False) -> list[str]:
    """Something that rich draws, as rows with colours, no wider than `width`; every text is cleaned."""
    console = output.drawing(io.StringIO(), width, plain=plain)
    console.print(renderable)
    return _lines(console)


def _lines(console: Console) -> list[str]:
    drawn = console.file
    text = drawn.getvalue() if isinstance(drawn, io.StringIO) else ""
    rows = [each.rstrip() for each in text.split("\n")]
    while rows and not rows[-1]:
        rows.pop()
    # rich begins a list with a blank row.
    first = next((number for number, each in enumerate(rows) if each), 0)
    return rows[first:]


class Prose:
    """One text as it is being written: `take` and `end` give rows once, `unfinished` what may change."""

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._rest = ""
        self._fence = ""
        self._any = False

    def take(self, text: str, width: int) -> list[str]:
        """More of it; the rows of what that finishes."""
        self._rest += terminal_escape.clean(text)
        rows: list[str] = []
        while (block := self._finished_block()) is not None:
            rows += self._laid_out(block, width)
        return rows

    def end(self, width: int) -> list[str]:
        """It is over: the rows of the rest."""
        block, self._rest = self._rest, ""
        rows = self._laid_out(block, width) if block.strip() or self._fence else []
        self._fence = ""
        return rows

    def unfinished(self, width: int) -> list[str]:
        """The rows of the rest as it is now; nothing of it is finished by that."""
        if self._fence:
            return rows_of(Text(self._rest, CODE), width, plain=self._plain) if self._rest else []
        shown = Prose(plain=self._plain)
        shown._any = self._any
        return shown._laid_out(self._rest, width) if self._rest.strip() else []

    def _finished_block(self) -> str | None:
        """Take the first block off that nothing more can change; None where there is none."""
        if not self._fence:
            # Blank lines before a block; each but the first has one of its own.
            blank = re.match(r"(?:[ \t]*\n)+", self._rest)
            self._rest = self._rest[blank.end() :] if blank is not None else self._rest
        if self._fence or _FENCE.match(self._rest.partition("\n")[0]):
            line, end, rest = self._rest.partition("\n")
            if not end:
                return None
            self._rest = rest
            return line + end
        at = 0
        for line in self._rest.splitlines(keepends=True):
            ends = line.endswith("\n")
            if at and ends and _FENCE.match(line.rstrip("\n")):
                break
            at += len(line)
            # What follows a blank line may still be part of a list.
            if ends and not line.strip() and self._rest[at : at + 1] not in ("", " ", "\t", "\n"):
                break
        else:
            return None
        block, self._rest = self._rest[:at], self._rest[at:]
        return block

    def _laid_out(self, block: str, width: int) -> list[str]:
        fence = _FENCE.match(block.rstrip("\n"))
        if self._fence:
            if fence is not None and fence[1].startswith(self._fence) and not fence[2].strip():
                self._fence = ""
                return []
            return rows_of(Text(block.rstrip("\n"), CODE), width, plain=self._plain) or [""]
        gap = [""] if self._any else []
        self._any = True
        if fence is not None and block.count("\n") <= 1:
            self._fence = fence[1]
            return gap
        drawn: RenderableType = _Markdown(block) if len(block) <= LONGEST and not self._plain else Text(block)
        return gap + rows_of(drawn, width, plain=self._plain)
