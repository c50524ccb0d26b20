"""How a conversation looks: what an agent says as it says it, and quiet lines for what it does."""

from __future__ import annotations

import json
import re
import sys

from rich.text import Text

from antiphon import ReplyDelta
from antiphon.cli.display import output
from antiphon.view.wording import CUT

_MESSAGE = re.compile(r'\s*\{\s*"message"\s*:\s*"')
_WHOLE = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')


class Screen:
    """Answers go to the standard output, everything else to the error output.

    live: both are a terminal, and text is shown while it is being written.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.console = output.terminal()
        self.live = sys.stdout.isatty() and self.console.is_terminal
        self._moves = self.live and not self.console.is_dumb_terminal
        self.quiet = quiet
        self._line_open = self._prompted = False
        self._status = ""

    def entered(self) -> None:
        """The person has ended the line of the prompt, or of what was said of what goes on."""
        self._prompted, self._status = False, ""

    def say(self, text: str) -> None:
        """A part of an answer."""
        if text:
            self._clear()
            output.say(text, end="")
            self._line_open = not text.endswith("\n")

    def status(self, text: str) -> None:
        """A word on what goes on, which the next thing shown replaces.

        One that is as long as the last is written over it, and what was typed after it stays.
        """
        if not self._moves or self._line_open or self._prompted or text == self._status:
            return
        if text and self._status and len(text) == len(self._status):
            with self.console.at_line_start():
                self.console.print(Text(text, "dim"), end="")
        else:
            self._clear()
            self.console.print(Text(text, "dim"), end="")
        self._status = text

    def note(self, text: str, style: str = "dim", *, wrap: bool = False) -> None:
        """A line of its own that is no answer; `wrap` breaks it between words, not fit to be copied."""
        self.end_line()
        if not self.quiet:
            self.console.print(Text(text, style), soft_wrap=not wrap)

    def end_line(self) -> None:
        """Whatever follows begins a line."""
        self._clear()
        if self._line_open:
            output.say()
        if self._prompted:
            self.console.print()
        self._line_open = self._prompted = False

    def prompt(self, text: str) -> None:
        """Ask for input, at a terminal."""
        self.end_line()
        if self.console.is_terminal:
            self.console.print(Text(text, "bold"), end="")
            self._prompted = True

    def asked(self) -> None:
        """Something was asked on a line that has not ended."""
        self._prompted = True

    def _clear(self) -> None:
        if self._status:
            self.console.erase_line()
            self._status = ""


class ReplyPrinter:
    """The text of one reply, from its pieces: what is said, or handed to `finish` as the result."""

    def __init__(self) -> None:
        self.said = ""
        self._finishing: int | None = None
        self._rest = ""
        self._begun = self._over = False

    def take(self, piece: ReplyDelta) -> str:
        """The text that a piece adds."""
        found = ""
        if piece.kind == "text":
            found = f"{CUT}{piece.text}" if piece.cut else piece.text
        elif piece.kind == "call_name":
            self._finishing = piece.index if piece.text == "finish" and not self.said else self._finishing
        elif piece.kind == "call_arguments" and piece.index == self._finishing:
            found = self._argument(piece.text)
        self.said += found
        return found

    def _argument(self, text: str) -> str:
        """What more of the `message` can be read from JSON that is not complete yet."""
        self._rest += text
        if not self._begun:
            start = _MESSAGE.match(self._rest)
            if start is None:
                return ""
            self._begun, self._rest = True, self._rest[start.end() :]
        if self._over:
            return ""
        match = _WHOLE.match(self._rest)
        whole = match[0] if match is not None else ""
        self._over = self._rest[len(whole) : len(whole) + 1] == '"'
        try:
            found = str(json.loads(f'"{whole}"', strict=False))
        except ValueError:
            # An escape that JSON does not have: what is made of it is shown when the reply is whole.
            self._over, self._rest = True, ""
            return ""
        if found and "\ud800" <= found[-1] <= "\udbff" and not self._over:
            # Half of a pair: its other half comes with the next piece.
            whole, found = whole[:-6], found[:-1]
        self._rest = self._rest[len(whole) :]
        return found
