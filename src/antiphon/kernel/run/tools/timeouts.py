"""Timeout: the time that one call may take. Calls that may take equally long share a timer of the event loop.

A hundred tools of one reply ask the loop for one timer and not for a hundred. Who may take equally long is
overdue in the order of beginning, so the oldest is all that a timer has to be for.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

MAX_IDLE = 64
"""How many lengths of time a loop remembers while nobody waits for so long."""
_KEPT_AS = "_antiphon_timeouts"


class Timeout:
    """`asyncio.timeout(seconds)` as a plain `with`, in a task. Raises TimeoutError where it is left."""

    __slots__ = ("_cancelling", "_line", "_seconds", "_task", "due", "expired")

    def __init__(self, seconds: float) -> None:
        self._seconds, self.due, self.expired = seconds, 0.0, False

    def __enter__(self) -> Timeout:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("a timeout is of a task")
        self._task, self._cancelling = task, task.cancelling()
        lines: dict[float, _TimeoutLine] | None = getattr(loop, _KEPT_AS, None)
        if lines is None:
            lines = {}
            setattr(loop, _KEPT_AS, lines)
        line = lines.get(self._seconds)
        if line is None:
            if len(lines) >= MAX_IDLE:
                for seconds in [seconds for seconds, each in lines.items() if each.idle]:
                    del lines[seconds]
            line = lines[self._seconds] = _TimeoutLine(loop)
        self._line, self.due = line, loop.time() + self._seconds
        line.join(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.expired:
            self._line.leave(self)
        # Who was cancelled by somebody else as well is cancelled.
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """It is overdue."""
        self.expired = True
        self._task.cancel()


class _TimeoutLine:
    """Who may take equally long, the oldest first. There is a timer while somebody waits, for one of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Timeout, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether nobody waits."""
        return not self._waiting

    def join(self, one: Timeout) -> None:
        self._waiting[one] = None
        if self._timer is None:
            self._timer = self._loop.call_at(one.due, self._tell, one.due)

    def leave(self, one: Timeout) -> None:
        self._waiting.pop(one, None)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self, due: float) -> None:
        """Have those go who are overdue. The loop may be early, by less than it can tell: `due` is past."""
        now = max(self._loop.time(), due)
        overdue = [each for each in self._waiting if each.due <= now]
        for each in overdue:
            del self._waiting[each]
            each.expire()
        oldest = next(iter(self._waiting), None)
        self._timer = None
        if oldest is not None:
            self._timer = self._loop.call_at(oldest.due, self._tell, oldest.due)
