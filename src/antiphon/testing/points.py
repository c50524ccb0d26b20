"""Where a process can die: points that are counted, and a journal that passes them in a fixed order."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw
from msgspec.structs import replace

from antiphon.journal.listing import NO_LABELS, Labels
from antiphon.journal.port import Done, Lease, Row, RunSnapshot, StoredRule, StoredRun
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite.writer import WriteJob
from antiphon.kernel.run import actions, perform, runtime
from antiphon.kernel.run.actions import ActionExecutor
from antiphon.testing.world import World
from antiphon.values.tool import Tool

T = TypeVar("T")


class Points:
    """Counts the points that are passed; at the one numbered `fatal` the process kills itself."""

    def __init__(self, fatal: int = 0) -> None:
        self.names: list[str] = []
        self._fatal = fatal

    def __call__(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class SynchronousJournal(SqliteJournal):
    """A SQLite journal whose every operation is over when its call returns: runs become repeatable.

    point: called with a name wherever a process could die. acknowledged: called with each row that
    is durable, before the runtime is told. deferred: rows wait, not durable, until the event loop's
    next lap, as they do when a disk is slow; without it they are durable at once. hurries: they wait so until
    somebody waits for them.
    """

    def __init__(
        self,
        path: str | Path,
        durability: str = "process",
        *,
        point: Callable[[str], None],
        acknowledged: Callable[[Row], None],
        deferred: bool = False,
        hurries: bool = False,
    ) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., None], tuple[object, ...]]] = SimpleQueue()
        self._point, self._acknowledged, self._deferred = point, acknowledged, deferred or hurries
        self._hurries = hurries
        self._held: list[tuple[Lease, Row, Mapping[str, bytes], Done]] = []
        super().__init__(path, durability)

    def append(self, lease: Lease, row: Row, blobs: Mapping[str, bytes], done: Done) -> None:
        """See `port.Journal.append`."""
        self._point("append")
        self._held.append((lease, row, blobs, done))
        if not self._deferred:
            self._flush()
            return
        self._point("queued")
        if len(self._held) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def hurry(self) -> None:
        """See `port.Journal.hurry`."""
        if self._hurries:
            self._flush()

    async def claim(
        self, run_id: str, *, create: bool = False, origin: str = "", labels: Labels = NO_LABELS
    ) -> Lease:
        """See `port.Journal.claim`."""
        self._point("claim")
        lease = await super().claim(run_id, create=create, origin=origin, labels=labels)
        self._point("claimed")
        return lease

    async def release(self, lease: Lease, summary: bytes = b"") -> None:
        """See `port.Journal.release`."""
        self._point("release")
        await super().release(lease, summary)
        self._point("released")

    async def post(self, run_id: str, key: str, body: bytes) -> bool:
        """See `port.Journal.post`."""
        self._point("post")
        new = await super().post(run_id, key, body)
        self._point("posted")
        return new

    async def fork(self, of: str, run: StoredRun, rules: Sequence[StoredRule] = ()) -> None:
        """See `port.Journal.fork`; a process can die before each of its statements."""
        self._point("fork")
        connection = self._writer.connection
        connection.exec_trace = self._statement
        await super().fork(of, run, rules)
        connection.exec_trace = None
        self._point("forked")

    def _statement(self, cursor: object, statement: str, bindings: object) -> bool:
        self._point("statement")
        return True

    def describe(self, lease: Lease, summary: bytes) -> None:
        """See `port.Journal.describe`."""
        if self._closing is None:
            super().describe(lease, summary)
            self._now()

    def keep_snapshot(self, lease: Lease, snapshot: RunSnapshot | None) -> None:
        """See `port.Journal.keep_snapshot`."""
        self._flush()
        if self._closing is None:
            super().keep_snapshot(lease, snapshot)
            self._now()

    def _flush(self) -> None:
        while self._held:
            lease, row, blobs, done = self._held.pop(0)
            told: Done = self._telling(row, done)
            if self._closing is not None:
                super().append(lease, row, blobs, told)
                return
            super().append(lease, row, blobs, told)
            self._rounds.pass_on()
            self._now()

    def _telling(self, row: Row, done: Done) -> Done:
        def told(error: BaseException | None) -> None:
            if error is None:
                self._point("durable")
                self._acknowledged(row)
            done(error)

        return told

    def _now(self) -> None:
        """Do, on this thread, what the other thread has just asked the event loop to do."""
        function, arguments = self._calls.get()
        function(*arguments)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if function in (self._waiters.wake, self._waiters.fail, self._gone):
            super()._call(function, *arguments)
        else:
            self._calls.put((function, arguments))

    def _write(self, work: Callable[[WriteJob], T], of: str = "") -> asyncio.Future[T]:
        self._flush()
        closing = self._closing is not None
        future = super()._write(work, of)
        if not closing:
            self._now()
        return future

    def _read(self, work: Callable[[apsw.Connection], T]) -> asyncio.Future[T]:
        closing = self._closing is not None
        future = super()._read(work)
        if not closing:
            self._now()
        return future


def mark_effects(point: Callable[[str], None]) -> None:
    """From now on, in this process, models, tools, steps and functions that write instructions pass a point
    before and after."""

    def marked(name: str, performed: Callable[..., Any]) -> Callable[..., Any]:
        async def performing(*arguments: Any, **named: Any) -> Any:
            point(name)
            end = await performed(*arguments, **named)
            point(name + " done")
            return end

        return performing

    places = (
        ("model", runtime, "ask_model"),
        ("instructions", runtime, "write_instructions"),
        ("tool", perform, "use_tool"),
        ("step", actions, "perform"),
    )
    for name, module, attribute in places:
        setattr(module, attribute, marked(name, getattr(module, attribute)))


def count_effects(world: World) -> None:
    """From now on, in this process, each execution of a tool and of a step leaves its line in the world.

    Tools run in the event loop, also those for a thread or a process of their own: a clock that nobody waits
    for would take them for hanging, and no two runs would be alike.
    """
    use_tool, take = perform.use_tool, ActionExecutor._take

    async def using(tool: Any, arguments: Any, opened: Any, *rest: Any, **named: Any) -> Any:
        def note() -> None:
            world.note(opened.id, f"{opened.run_id}:{opened.id}", opened.crashes + 1)

        counted = None if tool is None else _counted(tool, note)
        return await use_tool(counted, arguments, opened, *rest, **named)

    async def taking(executor: Any, effect_id: str, step: Any) -> Any:
        def counted(*given: Any) -> Any:
            world.note(effect_id, effect_id, 1)
            return step.function(*given)

        return await take(executor, effect_id, replace(step, function=counted))

    perform.use_tool = using
    ActionExecutor._take = taking  # type: ignore[method-assign,assignment]


def _counted(tool: Tool[Any, Any], note: Callable[[], None]) -> Tool[Any, Any]:
    """The tool with a function that notes each of its calls where it begins."""
    function: Any = tool.function

    async def counted(*given: Any, **named: Any) -> Any:
        note()
        found = function(*given, **named)
        return await found if tool.is_async else found

    return replace(tool, function=counted, is_async=True, isolated=False)
