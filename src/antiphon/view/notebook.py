"""A run in a notebook: its agents, their tools and what they write, shown in the cell while it goes on.

    from antiphon.view.notebook import live

    result = await live(researcher, "Report on README.md", agents=[writer])

`live` is `run` and `live_sync` is `run_sync`, with the same arguments and the same result; beside it the cell
shows agents under agents, tool calls with their progress, replies as they come, tokens and cost, and at the
end the result. Where nothing shows HTML, in a terminal or a script, it writes a line to standard error for
each thing that begins or ends instead.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from html import escape
from typing import Any, Protocol, Unpack, overload

from msgspec.structs import replace

from antiphon.errors import RunFailed
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.kernel.run.api import Entry, Stream, stream
from antiphon.kernel.run.blocking import run_here
from antiphon.kernel.run.options import RunOptions
from antiphon.values.agent import Agent, AgentSource, AnyAgent
from antiphon.values.generic import Deps, Out
from antiphon.values.message import new_id
from antiphon.values.result import Result
from antiphon.view.picture import Picture
from antiphon.view.wording import CUT, line, seconds

PERIOD = 0.2
"""Seconds between two updates of a cell, at least."""
MAX_RESULT = 20_000
"""Characters of the output that a cell shows; the result has all of them."""
MAX_REASON = 1_000
"""Characters of why it ended so."""


class Publisher(Protocol):
    """What puts data under a cell: IPython's `display_pub`."""

    def publish(self, data: dict[str, str], *, transient: dict[str, str], update: bool) -> object:
        """Show the data, in place of what was shown with the same `display_id` if `update` is set."""
        ...


@overload
async def live(
    entry: Agent[Deps, Out], message: str, *, deps: Deps = ..., **options: Unpack[RunOptions]
) -> Result[Out]: ...


@overload
async def live(
    entry: str | AgentSource | Sequence[AnyAgent | str],
    message: str,
    *,
    deps: object = ...,
    **options: Unpack[RunOptions],
) -> Result: ...


async def live(entry: Entry, message: str, *, deps: Any = None, **options: Unpack[RunOptions]) -> Result[Any]:
    """`run`, shown in the notebook's cell while it goes on; for cells, which may `await`.

    The cell is updated at most five times a second, and what it shows stays small however long the run is.
    Interrupting it stops the run as cancelling `run` does: one with a durable journal can be opened again.
    Raises what `run` raises, with the last state left in the cell; an `on_input` that raises refuses instead.
    """
    on_input = options.pop("on_input", None)
    asked: Any = stream
    shown = _Shown(publisher())
    try:
        async with asked(entry, message, interactive=on_input is not None, deps=deps, **options) as events:
            shown.start()
            result = await _follow(events, shown, on_input)
    except RunFailed as failed:
        shown.stop(failed.result)
        raise
    except BaseException as error:
        interrupted = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        shown.stop(None, "interrupted" if interrupted else type(error).__name__)
        raise
    shown.stop(result)
    return result


@overload
def live_sync(
    entry: Agent[Deps, Out], message: str, *, deps: Deps = ..., **options: Unpack[RunOptions]
) -> Result[Out]: ...


@overload
def live_sync(
    entry: str | AgentSource | Sequence[AnyAgent | str],
    message: str,
    *,
    deps: object = ...,
    **options: Unpack[RunOptions],
) -> Result: ...


def live_sync(entry: Entry, message: str, *, deps: Any = None, **options: Unpack[RunOptions]) -> Result[Any]:
    """`live` for code without `await`; it works in a cell too, beside the notebook's event loop.

    An interrupt ends the run before KeyboardInterrupt is raised.
    """
    asked: Any = live
    return run_here(asked(entry, message, deps=deps, **options))


async def _follow(events: Stream[Any], shown: _Shown, on_input: Any) -> Result[Any]:
    unbind = events.run.on_input(on_input) if on_input is not None else None
    try:
        async for item in events:
            shown.take(item)
        return await events.result()
    finally:
        if unbind is not None:
            unbind()


def publisher() -> Publisher | None:
    """Where a cell shows HTML; None outside of notebooks. IPython is never imported for it."""
    found = sys.modules.get("IPython")
    shell = getattr(found, "get_ipython", lambda: None)()
    formats = getattr(getattr(shell, "display_formatter", None), "active_types", ())
    return shell.display_pub if shell is not None and "text/html" in formats else None


class _Shown:
    """A run under its cell; timed by the event loop, no thread and no task. Without a publisher: lines."""

    def __init__(self, publisher: Publisher | None) -> None:
        self._publisher, self._picture = publisher, Picture()
        self._display = {"display_id": new_id()}
        self._timer: asyncio.TimerHandle | None = None
        self._begun = self._last = time.monotonic()
        self._started = self._changed = self._published = False

    def start(self) -> None:
        """The run has begun; from now on it is shown."""
        self._started = True
        if self._publisher is not None:
            self._publish(self._publisher)
            self._wait(self._publisher)

    def take(self, item: Record | ReplyDelta) -> None:
        """Something happened."""
        self._picture.take(item)
        self._changed = True
        self._news()

    def stop(self, result: Result[Any] | None, how: str = "") -> None:
        """The run has ended, or was left: show that, unless it never began."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._started:
            return
        if self._publisher is not None:
            self._publish(self._publisher, result, how)
        mark = "✓" if result is not None and result.outcome == "completed" else "✗"
        self._picture.news.append(f"{mark} {self._status(how)}")
        self._news()

    def _news(self) -> None:
        if self._publisher is None:
            sys.stderr.writelines(f"{each}\n" for each in self._picture.news)
        self._picture.news.clear()

    def _wait(self, publisher: Publisher) -> None:
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._tick, publisher)

    def _tick(self, publisher: Publisher) -> None:
        # The time that passes is shown by the second.
        if self._changed or time.monotonic() - self._last >= 1:
            self._publish(publisher)
        self._wait(publisher)

    def _status(self, how: str) -> str:
        said = (how, seconds(time.monotonic() - self._begun), self._picture.status())
        return " · ".join(each for each in said if each)

    def _publish(self, publisher: Publisher, result: Result[Any] | None = None, how: str = "") -> None:
        self._changed, self._last = False, time.monotonic()
        status = self._status(how)
        html, plain = (
            f"{self._picture.html()}<small>{escape(status)}</small>",
            [*self._picture.lines(), status],
        )
        if result is not None:
            html += _cut(result)._repr_html_()
            plain.append(repr(result))
        data = {
            "text/html": f'<div style="font-family:monospace">{html}</div>',
            "text/plain": "\n".join(plain),
        }
        publisher.publish(data, transient=self._display, update=self._published)
        self._published = True


def _cut(result: Result[Any]) -> Result[Any]:
    """A result that is not too long to be shown."""
    output = result.output
    if len(output) > MAX_RESULT:
        output = f"{output[:MAX_RESULT]}{CUT} ({len(output):,} characters)"
    return replace(result, output=output, reason=line(result.reason, MAX_REASON))
