"""How what was cancelled is stopped, also when it ignores that; and whether a run rests, and may be left."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Generator, Mapping
from contextlib import suppress
from typing import Any

from antiphon.kernel.facts.activation import inside, only_waits
from antiphon.kernel.facts.events import (
    HUMAN_INPUTS,
    ActionEffect,
    CallEffect,
    ResultEffect,
    RoomEffect,
    TimerEffect,
    ToolEffect,
)
from antiphon.kernel.facts.state import RunState

GRACE = 1.0
"""Seconds that what was cancelled gets to clean up."""
DRAINED = "the run was drained, and takes nothing more; open_run(run_id=...) goes on with it"


_RESTFUL = HUMAN_INPUTS | {CallEffect, ResultEffect, RoomEffect, TimerEffect}


class Stoppable:
    """The rest of a coroutine that has been started and waits for something; await it, once.

    One that goes on although it was cancelled is closed after GRACE, so that nobody waits for it for
    ever; `closed` says so. What a timeout of its own cancelled is not: that took it back.
    """

    __slots__ = ("_coroutine", "_waits_for", "closed")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._coroutine, self._waits_for = coroutine, waits_for
        self.closed = False

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, waits_for = self._coroutine, self._waits_for
        timer: asyncio.TimerHandle | None = None
        try:
            while True:
                try:
                    value = yield waits_for
                except BaseException as error:
                    # A cancellation above all: it is the coroutine's to handle.
                    if self.closed:
                        self._close()
                        raise
                    if timer is None and isinstance(error, asyncio.CancelledError):
                        timer = self._close_later()
                    waits_for = coroutine.throw(error)
                else:
                    waits_for = coroutine.send(value)
                if timer is not None and not _is_cancelled():
                    timer.cancel()
                    timer = None
        except StopIteration as finished:
            return finished.value
        finally:
            if timer is not None:
                timer.cancel()

    def _close_later(self) -> asyncio.TimerHandle:
        task = asyncio.current_task()

        def overdue() -> None:
            self.closed = True
            if task is not None:
                task.cancel()

        return asyncio.get_running_loop().call_later(GRACE, overdue)

    def _close(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            # Taken back, so that whoever cancelled first is who is heard: a timeout, or the run.
            task.uncancel()
        with suppress(RuntimeError):
            # It is raised by a coroutine that ignores even this; there is nothing harder.
            self._coroutine.close()


def _is_cancelled() -> bool:
    """Whether this task is, and nobody has taken it back."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Drain:
    """The orderly stop of a run: what is in flight in it, and what is held back until it is resumed.

    performing: the tasks that perform effects, by effect. inner: the effects that actions and tools wait for.
    over: nobody waits for the rest.
    """

    def __init__(
        self, state: RunState, performing: Mapping[str, asyncio.Task[None]], inner: Collection[str]
    ) -> None:
        self._state, self._performing, self._inner = state, performing, inner
        self._held: set[str] = set()
        self._changed: asyncio.Event | None = None
        self.over = False

    async def may_start(self, effect_id: str) -> None:
        """Return at once, or never while the run is drained: an action's next operation does not start."""
        if self._state.owner.draining is not None:
            self._held.add(effect_id)
            self._note()
            await asyncio.get_running_loop().create_future()

    def timers(self) -> list[str]:
        """Timers and deadlines that are waited for: nobody does so in a run that is drained."""
        waits = HUMAN_INPUTS | {TimerEffect}
        return [each for each, _ in self._effects() if type(self._state.open[each].detail) in waits]

    def in_flight(self) -> tuple[str, ...]:
        """What is being performed, but for the caller, and for what only waits itself."""
        caller = asyncio.current_task()
        return tuple(
            each for each, task in self._effects() if task is not caller and not self._only_waits(each)
        )

    def _effects(self) -> list[tuple[str, asyncio.Task[None]]]:
        return [(each, task) for each, task in self._performing.items() if each in self._state.open]

    def _only_waits(self, effect_id: str) -> bool:
        """Whether an effect is an action or a tool that waits for other effects, none of them a step of its
        own, and will do so again."""
        opened, within = self._state.open[effect_id], f"{effect_id}:"
        if type(opened.detail) not in (ActionEffect, ToolEffect):
            return False
        activation = self._state.activations[opened.activation]
        if inside(activation, opened) and not only_waits(activation, opened):
            return False
        return any(each.startswith(within) for waits in (self._inner, self._held) for each in waits)

    async def until_still(self, bound: asyncio.Task[None]) -> tuple[str, ...]:
        """Return once nothing is in flight, or `bound` is over; what still is then."""
        changed = self._changed = self._changed or asyncio.Event()
        for task in (bound, *(task for _, task in self._effects())):
            task.add_done_callback(self._note)
        try:
            while self.in_flight() and not bound.done():
                changed.clear()
                await changed.wait()
        finally:
            bound.cancel()
        self.over = True
        return self.in_flight()

    def _note(self, task: object = None) -> None:
        if self._changed is not None:
            self._changed.set()


async def stop(tasks: Collection[asyncio.Task[None]], names: Mapping[asyncio.Task[None], str]) -> list[str]:
    """Cancel tasks; the names of those that go on all the same."""
    for task in tasks:
        task.cancel()
    _, pending = await asyncio.wait(tasks, timeout=2 * GRACE) if tasks else ((), ())
    return [names.get(task, "what was cancelled before") for task in pending]


def rests(state: RunState) -> bool:
    """Whether all that is open waits for people, for timers, or for what does: calls, ends, room, and the
    actions and tools that wait for such things."""
    return not at_work(state)


def at_work(state: RunState) -> tuple[str, ...]:
    """What is open and waits for nothing of that kind: effects that somebody performs, by id."""
    return tuple(
        each.id
        for each in state.open.values()
        if type(each.detail) not in _RESTFUL and not only_waits(state.activations[each.activation], each)
    )


def next_due(state: RunState) -> float | None:
    """When the next timer ends; None without one."""
    details = (each.detail for each in state.open.values())
    return min((each.due_at for each in details if type(each) is TimerEffect), default=None)
