"""What a person sees while a run goes on: a live tree, plain lines, JSON lines, or nothing.

Progress goes to the error output, so that the answer alone is on the standard output; only JSON
lines go there instead of it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from antiphon import Record, ReplyDelta
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.draw import Drawing, tokens
from antiphon.cli.display.record_line import progress, spoken
from antiphon.cli.display.tree import CallTree
from antiphon.view.wording import seconds

PERIOD = 0.12
"""Seconds between two drawings at most; often enough for text, rare enough for slow lines."""

DOWN = 3
"""Toolsets that cannot be reached, of which so many have a line."""


class Watcher(Protocol):
    """Shows a run. `take` may be called before `start`: what happened earlier is not shown again."""

    def start(self) -> None:
        """Everything from now on is new."""
        ...

    def take(self, found: Record | ReplyDelta) -> None:
        """Something happened."""
        ...

    def pause(self) -> None:
        """Leave the terminal alone until `start`."""
        ...

    def stop(self) -> None:
        """The run is over or left; the last state stays on the screen."""
        ...


def interactive() -> bool:
    """Whether somebody can answer: a terminal to read from, and one to ask on."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def watcher(tree: CallTree, *, as_json: bool, quiet: bool) -> Watcher:
    """The watcher that fits the options and the output."""
    if as_json:
        return JsonLines()
    if quiet:
        return Silent()
    if sys.stderr.isatty() and not (console := output.terminal()).is_dumb_terminal:
        return LiveTree(tree, console)
    return PlainLines(tree)


class Silent:
    """Shows nothing."""

    def start(self) -> None: ...

    def take(self, found: Record | ReplyDelta) -> None: ...

    def pause(self) -> None: ...

    def stop(self) -> None: ...


class JsonLines(Silent):
    """One JSON object per record on the standard output."""

    def __init__(self) -> None:
        self._started = False

    def start(self) -> None:
        """See Watcher."""
        self._started = True

    def take(self, found: Record | ReplyDelta) -> None:
        """See Watcher."""
        if self._started and isinstance(found, Record):
            output.say(terminal_escape.json_line(found))


class PlainLines(Silent):
    """One line per noteworthy record on the error output."""

    def __init__(self, tree: CallTree) -> None:
        self._tree, self._started = tree, False

    def start(self) -> None:
        """See Watcher."""
        self._started = True

    def take(self, found: Record | ReplyDelta) -> None:
        """See Watcher."""
        if self._started and isinstance(found, Record):
            for text in filter(None, (spoken(self._tree), progress(found, self._tree))):
                output.tell(text)


class LiveTree:
    """The call tree, drawn again where it stands; timed by the event loop, no thread and no task."""

    def __init__(self, tree: CallTree, console: Console) -> None:
        self._tree, self._console = tree, console
        self._live: Live | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ascii = not (console.encoding or "").lower().startswith("utf")
        self._changed = True
        self._second = 0

    def start(self) -> None:
        """See Watcher."""
        if self._live is not None:
            return
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()
        self._tick()

    def take(self, found: Record | ReplyDelta) -> None:
        """See Watcher."""
        self._changed = True

    def pause(self) -> None:
        """See Watcher."""
        if self._live is not None:
            self._live.transient = True
        self.stop()

    def stop(self) -> None:
        """See Watcher."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            self._live.update(self._picture(), refresh=False)
            self._live.stop()
            self._live = None

    def _tick(self) -> None:
        if self._live is None:
            return
        second = int(time.monotonic())
        if self._changed or second != self._second:
            self._changed, self._second = False, second
            self._live.update(self._picture(), refresh=True)
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._tick)

    def _picture(self) -> Group:
        size, now = self._console.size, time.time()
        # One column stays free: some terminals break the line when the last one is filled.
        width = max(size.width - 1, 10)
        down = [
            f"{each.name} is down: {each.reason}" for each in self._tree.run.toolsets.values() if each.reason
        ]
        told = [_line(terminal_escape.line(each), "yellow", width) for each in down[:DOWN]]
        height = max(size.height - 3 - len(told), 1)
        lines = Drawing(self._tree, width, ascii_only=self._ascii).screen(now, height)
        spent = seconds(now - self._tree.run.started_at) if self._tree.run.started_at else "starting"
        return Group(*lines, *told, _line(f"{spent}, {tokens(self._tree)}", "dim", width))


def _line(text: str, style: str, width: int) -> Text:
    found = Text(text, style, no_wrap=True)
    found.truncate(width, overflow="ellipsis")
    return found
