"""Door: what one call of a tool asks of its run, from the event loop or from a thread."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Coroutine
from functools import partial
from threading import get_ident
from typing import Any, TypeVar

from antiphon.errors import EffectFailed, UserError
from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.rules.actions import goes_on
from antiphon.kernel.run.actions import ActionExecutor, RunAccess
from antiphon.kernel.run.tools.own_time import OwnTime
from antiphon.values.actions import Operation, OperationIds, Perform, StepOperation
from antiphon.values.tool import Tool

MOST = 10_000
"""Operations that one call of a tool may begin; what is beyond is refused and leaves no record."""
LOOK_SECONDS = 1.0
"""How often a thread that waits looks whether its event loop is still there."""

_Found = TypeVar("_Found")
_Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Door:
    """The door of one call of a tool. `own_time`: what the call has left; it stands still while others are
    waited for. Closed when the call is over."""

    def __init__(self, run: RunAccess, activation: Activation, opened: OpenEffect, tool: Tool) -> None:
        self.own_time = OwnTime(tool.timeout)
        self._run, self._opened = run, opened
        self._ids = OperationIds(opened.id)
        self._loop, self._thread, self._begun = asyncio.get_running_loop(), get_ident(), 0
        self._waiting: list[_Waiting] = []
        self._executor = ActionExecutor(
            run, activation, opened, elsewhere=self._elsewhere, acts=tool.has_side_effects,
            again=goes_on(tool),
        )  # fmt: skip

    @property
    def waits(self) -> bool:
        """See `ToolDoor.waits`."""
        return self.own_time.stands_still

    async def execute(self, operation: Operation, content: Any) -> Any:
        """See `ToolDoor.execute`."""
        if get_ident() != self._thread or asyncio.get_running_loop() is not self._loop:
            what = f"a {operation.name} is awaited on the run's event loop"
            raise UserError(f"{what}; elsewhere use ctx.wait(...)")
        self._begun += 1
        if self._begun > MOST:
            # A tool that tries for ever must not hold up the event loop.
            await asyncio.sleep(0)
            raise EffectFailed("limit", f"one call of a tool may ask {MOST:,} times")
        effect_id = self._ids.next(operation.name, content)
        if isinstance(operation, StepOperation):
            return await self._executor.execute(effect_id, operation)
        with self.own_time.stopped():
            return await self._executor.execute(effect_id, operation)

    def wait(self, asking: Coroutine[Any, Any, _Found]) -> _Found:
        """See `ToolDoor.wait`."""
        if not asyncio.iscoroutine(asking):
            raise UserError("ctx.wait takes what a method of ctx gives to be awaited, as ctx.ask_user(...)")
        if get_ident() == self._thread:
            asking.close()
            raise UserError("ctx.wait would hold up the event loop; await it")
        waiting = _Waiting(self._loop)
        try:
            self._loop.call_soon_threadsafe(self._begin, asking, waiting)
        except RuntimeError:
            asking.close()
            raise _left() from None
        return waiting.result()  # type: ignore[no-any-return]

    def _begin(self, asking: Coroutine[Any, Any, Any], waiting: _Waiting) -> None:
        if self._opened.ended:
            asking.close()
            waiting.error = EffectFailed("cancelled", f"the tool {self._opened.id} has ended")
            waiting.over()
            return
        self._waiting.append(waiting)
        waiting.task = self._run.spawn(self._carry(asking, waiting))
        waiting.task.add_done_callback(partial(self._over, asking, waiting))

    async def _carry(self, asking: Coroutine[Any, Any, Any], waiting: _Waiting) -> None:
        try:
            waiting.found = await asking
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            waiting.error = error
        else:
            waiting.error = None

    def _over(self, asking: Coroutine[Any, Any, Any], waiting: _Waiting, task: object) -> None:
        self._waiting.remove(waiting)
        asking.close()
        waiting.over()

    def close(self) -> None:
        """Nothing is waited for any more; a thread that does is told."""
        for each in self._waiting:
            if each.task is not None:
                each.task.cancel()

    def _elsewhere(self) -> Perform | None:
        """Where a step of a plain function runs: in its own thread, which waits here."""
        return self._waiting[-1].perform if self._waiting else None


class _Waiting:
    """A thread that waits for the event loop, and does for it meanwhile what may take time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.task: asyncio.Task[None] | None = None
        self.found: Any = None
        self.error: BaseException | None = _left()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def over(self) -> None:
        """`found` or `error` is there; called on the event loop, last."""
        self._jobs.put(None)

    def result(self) -> Any:
        """What is waited for; called in the thread."""
        while True:
            try:
                job = self._jobs.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if self._loop.is_closed():
                    raise _left() from None
                continue
            if job is None:
                break
            self._do(*job)
        if self.error is not None:
            raise self.error
        return self.found

    def _do(self, function: Callable[[], Any], answer: asyncio.Future[Any]) -> None:
        found, error = None, None
        try:
            found = function()
        except BaseException as raised:  # noqa: BLE001 - it is the step's
            error = raised
        try:
            self._loop.call_soon_threadsafe(_settle, answer, found, error)
        except RuntimeError:
            raise _left() from None

    async def perform(self, function: Callable[[], Any]) -> Any:
        """Have the thread call a function; called on the event loop."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((function, answer))
        return await answer


def _settle(answer: asyncio.Future[Any], found: Any, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    elif isinstance(error, StopIteration):
        answer.set_exception(RuntimeError(f"StopIteration: {error}"))
    else:
        answer.set_exception(error)


def _left() -> EffectFailed:
    return EffectFailed("interrupted", "the run was left while the tool waited; no more can be asked in it")
