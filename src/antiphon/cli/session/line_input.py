"""What a person types in a conversation: lines become messages, and a line can ask for something else."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable

from antiphon.cli.screen.given import Given, Sent
from antiphon.cli.session.questions import Keyboard

TOGETHER = 0.03
"""Seconds within which lines belong together: nobody types that fast, so they were pasted."""


class Typed:
    """Messages from the standard input, at a terminal or piped, without a thread.

    At a terminal lines that come at once are one message; everywhere one that ends with a backslash
    goes on in the next. `heard` is called when there is something in `messages`; None is the end.
    """

    def __init__(self, heard: Callable[[], None]) -> None:
        self.messages: deque[str | Given | Sent | None] = deque()
        self.raw = False
        self.terminal = sys.stdin is not None and sys.stdin.isatty()
        self._heard = heard
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._keyboard = Keyboard(self._on_line) if sys.stdin is not None else None
        self._over = False

    @property
    def unfinished(self) -> bool:
        """Whether a message has begun that goes on in the next line."""
        return bool(self._lines)

    def listen(self) -> None:
        """From now on."""
        if self._keyboard is None:
            self._on_line(None)
        elif not self._over:
            self._keyboard.listen(forget=False)

    def forget(self) -> None:
        """Forget what was typed before, so that nothing is allowed by accident; an end stays an end."""
        self.drop()
        self.messages = deque(each for each in self.messages if each is None)
        if self._keyboard is not None and not self._over:
            self._keyboard.listen(forget=True)

    def close(self) -> None:
        """Listen no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._keyboard is not None:
            self._keyboard.close()

    def drop(self) -> None:
        """Forget the lines of a message that was not finished."""
        self._lines.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_line(self, line: str | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if line is None:
            self._over = True
            self._send()
            self.messages.append(None)
            self._heard()
        elif self.raw:
            self.messages.append(line)
            self._heard()
        elif line.endswith("\\"):
            self._lines.append(line[:-1])
            self._heard()
        else:
            self._lines.append(line)
            if self.terminal:
                self._timer = asyncio.get_running_loop().call_later(TOGETHER, self._send)
            else:
                self._send()

    def _send(self) -> None:
        if self._lines:
            self.messages.append("\n".join(self._lines))
            self._lines.clear()
            self._heard()
