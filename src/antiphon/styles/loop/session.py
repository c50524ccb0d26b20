"""Sessions of the loop: the run of each, the line in which its requests wait, and what was read of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import count
from typing import Protocol

from msgspec import Struct, field

from antiphon import Agent, Record, Run, RunFailed, Usage, UserError
from antiphon.errors import RunSuspended
from antiphon.styles.loop.events import request_of
from antiphon.styles.loop.options import ModelUsage, UsageSummary
from antiphon.values.result import Result
from antiphon.view import RunTree
from antiphon.view.changes import Change, EffectEnd
from antiphon.view.nodes import ModelUse


class StopSignal(Protocol):
    """What may stop a request: an `asyncio.Event`, for one."""

    def is_set(self) -> bool: ...

    async def wait(self) -> object:
        """Return once it is set."""
        ...


class Reader(Protocol):
    """Whoever hands out the events of one request."""

    def take(self, change: Change, at: float) -> None:
        """Take note of a change of its request."""
        ...


class OpenSession(Struct, eq=False):
    """The open run of a session, with the agent that it was opened for."""

    run: Run
    agent: Agent
    interactive: bool
    stack: AsyncExitStack
    loop: asyncio.AbstractEventLoop
    left: tuple[str, ...] = ()
    """Requests that a stopped process had left open."""
    users: int = 0
    """Who works with it now."""
    kept: bool = False
    """It stays open when nobody does."""


class Place:
    """The place of one request in the line of its session.

    It moves on when the request before it has ended, whether or not anybody has read its events.
    """

    def __init__(self, before: Place | None) -> None:
        self._before = before
        self._loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()
        self._run: Run | None = None
        self._call = ""
        self._ended: Result | RunFailed | None = None
        self.came = False
        """Every request before it has ended."""

    async def come(self, signal: StopSignal | None = None) -> bool:
        """Return once every request before this one has ended; False as soon as `signal` is set."""
        before = self._before
        while before is not None and before._loop is self._loop:
            await before._settled.wait()
            if before._run is not None:
                if not await before._wait(before._run, signal):
                    return False
                break
            # It gave up: whoever was before it is waited for in its stead.
            before = before._before
        self._before, self.came = None, True
        return signal is None or not signal.is_set()

    async def _wait(self, run: Run, signal: StopSignal | None) -> bool:
        try:
            async with asyncio.timeout(None) as patience:
                stop = None
                if signal is not None:
                    stop = run.when(signal, lambda: patience.reschedule(self._loop.time()))
                try:
                    await self.outcome()
                finally:
                    if stop is not None:
                        stop()
        except TimeoutError:
            return False
        except RunSuspended:
            # It has no outcome, and says so itself.
            return True
        return True

    def begin(self, run: Run, call: str) -> None:
        """The request was made: it is `call` of `run`."""
        self._run, self._call = run, call
        self._settled.set()

    def leave(self) -> None:
        """It has ended, or will never be made."""
        self._run = None
        self._settled.set()

    async def outcome(self) -> Result | RunFailed:
        """How the request ended. Raises RunSuspended."""
        if self._ended is None:
            if self._run is None:
                raise RuntimeError("the request was never made")
            try:
                self._ended = await self._run.result(self._call)
            except RunFailed as failed:
                self._ended = failed
        return self._ended


class Session(Struct, eq=False):
    """What is known of one session.

    tracked: whether its usage is counted. used: tokens of the last call, None when unknown.
    readers: of the events of requests, by the request's id. numbers: of model calls that a store hears of.
    """

    run_id: str
    tracked: bool = True
    tree: RunTree = field(default_factory=lambda: RunTree(recent=True))
    summary: UsageSummary = UsageSummary()
    used: int | None = None
    model: str = ""
    open: OpenSession | None = None
    last: Place | None = None
    readers: dict[str, Reader] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    def queue(self) -> Place:
        """The place behind all others.

        Raises UserError for a tool of the session's own request, which would wait for itself.
        """
        if self.open is not None and self.open.run.performs(asyncio.current_task()):
            raise UserError(
                f"a tool asks session {self.run_id!r}, whose request waits for it;"
                " give it a session of its own"
            )
        self.last = Place(self.last)
        return self.last

    def leave(self, place: Place) -> None:
        """The request of this place is over, or will never be made."""
        place.leave()
        if self.last is place and place.came:
            self.last = None

    def lock(self) -> asyncio.Lock:
        """Held while the session's run is opened or closed. A loop that has ended takes its own with it."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = loop, asyncio.Lock()
        return self._lock[1]

    def read(self, record: Record) -> None:
        """Take note of a record, once, and tell whoever hands out the events of its request."""
        if record.seq <= self.tree.seq:
            return
        for change in self.tree.add(record):
            if isinstance(change, EffectEnd) and change.effect.model is not None and self.tracked:
                self._count(change.effect.purpose, change.effect.model)
            reader = self.readers.get(request_of(change)) if self.readers else None
            if reader is not None:
                reader.take(change, record.at)

    def read_all(self, records: Sequence[Record]) -> None:
        """`read` each."""
        for record in records:
            self.read(record)

    def _count(self, purpose: str, use: ModelUse) -> None:
        usage, model = use.usage or Usage(), use.reply.model if use.reply is not None else ""
        if purpose != "compact" and use.reply is not None:
            # A provider that says nothing of tokens leaves it unknown how full the window is.
            self.used, self.model = (usage.total or None), model
        if usage.total:
            self.summary = _added(self.summary, usage, model or "unknown")


def _added(summary: UsageSummary, usage: Usage, model: str) -> UsageSummary:
    known = summary.by_model.get(model, ModelUsage())
    return UsageSummary(
        summary.total_calls + 1,
        summary.total_tokens + usage.total,
        summary.input + usage.input_tokens,
        summary.output + usage.output_tokens,
        summary.cached_input + usage.cache_read_tokens,
        summary.reasoning + usage.reasoning_tokens,
        {**summary.by_model, model: ModelUsage(known.calls + 1, known.total_tokens + usage.total)},
    )
