"""The threads in which synchronous tools run.

They belong to the event loop: all runs of a loop share them, and they end with its last run. The loop
alone starts them, counts them and hears from them, so that none of this needs a lock; its pool is
kept on the loop itself, whose lifetime it has. Nothing can stop a thread, so a call that is given up
keeps the one it has: that is written off and another takes its place. How many are written off is
read from the process's own list of threads, because all loops pay for them.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from antiphon.errors import ToolError
from antiphon.kernel.run.tools.timeouts import Timeout

WORKING = 32
"""Synchronous calls that run at once in one event loop; further ones wait their turn."""
MAX_PROCESSES = 8
"""Calls of isolated tools that run at once in one event loop, each in a process of its own."""
MAX_WRITTEN_OFF = 256
"""Threads of a process that may be written off before no new one is started."""
THREAD_NAME = "antiphon-tool"


class NoResult(Exception):
    """A call that had begun has no result, and may or may not have done what it is for."""


class Threads:
    """What one run sees of its event loop's threads. Closed when the run is left.

    abandoned: is told the tool of each call that is given up while nothing can stop it.
    """

    def __init__(self, abandoned: Callable[[str], object] = str) -> None:
        self._abandoned = abandoned
        self._pools: dict[str, _Pool] = {}
        self._given_up: list[_Job] = []

    async def run(
        self, function: Callable[[], Any], tool: str, timeout: float, stop: Callable[[], None] | None = None,
        limit: AbstractAsyncContextManager[Any] | None = None,
    ) -> Any:  # fmt: skip
        """What `function` returns or raises; `tool` is whose it is, `timeout` in seconds.

        stop: ends a call that is given up, from the event loop; None: nothing can. limit: stands for the
        timeout, and raises as `asyncio.timeout` does. Raises NoResult
        for a call that took too long, and ToolError for one that did not begin: what is given up before
        a thread has taken it never runs.
        """
        job = _Job(function, tool, asyncio.get_running_loop().create_future())
        pool = self._pool("threads", WORKING) if stop is None else self._pool("processes", MAX_PROCESSES)
        pool.submit(job)
        try:
            if limit is not None:
                async with limit:
                    return await job.future
            with Timeout(timeout):
                return await job.future
        except (TimeoutError, asyncio.CancelledError) as error:
            if not job.future.cancelled():
                # It is the function's own.
                raise
            reason = self._give_up(pool, job, stop)
            if isinstance(error, TimeoutError):
                if job.thread is None:
                    raise ToolError(f"not run, no thread was free for {timeout:g} s: {reason}") from None
                raise NoResult(f"no result after {timeout:g} s; {reason}".rstrip("; ")) from None
            raise

    def close(self) -> list[str]:
        """Let go of the threads; the names of the tools whose functions still run."""
        for kind, pool in self._pools.items():
            pool.users -= 1
            if not pool.users:
                pool.close()
                delattr(asyncio.get_running_loop(), _kept_as(kind))
        self._pools.clear()
        return [job.tool for job in self._given_up if not job.ended]

    def _pool(self, kind: str, limit: int) -> _Pool:
        pool = self._pools.get(kind)
        if pool is None:
            loop = asyncio.get_running_loop()
            pool = getattr(loop, _kept_as(kind), None) or _Pool(limit)
            setattr(loop, _kept_as(kind), pool)
            pool.users += 1
            self._pools[kind] = pool
        return pool

    def _give_up(self, pool: _Pool, job: _Job, stop: Callable[[], None] | None) -> str:
        """Nobody waits for a call any more; what becomes of it, in words."""
        if job.thread is None:
            return f"at work are {_named(pool.at_work())}"
        if job.ended:
            return ""
        pool.write_off(job)
        if stop is not None:
            stop()
            return "its process was stopped"
        self._given_up = [each for each in self._given_up if not each.ended]
        self._given_up.append(job)
        self._abandoned(job.tool)
        return "it still runs in a thread that cannot be stopped"


class _Job:
    """One call. `thread`: who has taken it, for good. `ended`: the function has returned or raised."""

    __slots__ = ("ended", "function", "future", "thread", "tool", "written_off")

    def __init__(self, function: Callable[[], Any], tool: str, future: asyncio.Future[Any]) -> None:
        self.function, self.tool, self.future = function, tool, future
        self.thread: _ToolThread | None = None
        self.ended = self.written_off = False


class _ToolThread(threading.Thread):
    """Does one job after another. A daemon: no process waits at its end for a tool that hangs."""

    def __init__(self, pool: _Pool, jobs: queue.SimpleQueue[_Job | None]) -> None:
        super().__init__(name=THREAD_NAME, daemon=True)
        self.pool, self._jobs = pool, jobs
        self.job: _Job | None = None

    def run(self) -> None:
        while (job := self._jobs.get()) is not None:
            outcome: Any = None
            failed = False
            # In this order: who gives the job up and finds no thread can be sure that it never runs.
            job.thread, self.job = self, job
            if not job.future.done():
                try:
                    outcome = job.function()
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits the future
                    outcome, failed = error, True
            job.ended = True
            self.job = None
            try:
                job.future.get_loop().call_soon_threadsafe(self.pool.done, job, outcome, failed)
            except RuntimeError:
                # The loop is gone, and with it everybody who could give or await a job.
                return
            if job.written_off and self.pool.closed:
                # The loop may be at its end and never hear of it; nobody else tells this thread to end.
                return
            del job, outcome


class _Pool:
    """Threads of one event loop, started when there is work, `limit` at most.

    Always: idle = threads - jobs that are queued or run, both without those that are written off.
    """

    def __init__(self, limit: int) -> None:
        self.users = 0
        self._limit = limit
        self._threads = self._idle = 0
        self.closed = False
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def submit(self, job: _Job) -> None:
        """Queue a job. Raises ToolError when there is no thread that could ever take it."""
        self._idle -= 1
        if self._idle < 0 and not self._grow() and not self._threads:
            self._idle += 1
            raise ToolError(_nobody_left())
        self._jobs.put(job)

    def write_off(self, job: _Job) -> None:
        """Do without the thread of a job that nobody waits for; another one takes its place."""
        job.written_off = True
        self._threads -= 1
        if self._idle < 0 and not self.closed and not self._grow() and not self._threads:
            self._refuse_queued()

    def done(self, job: _Job, outcome: Any, failed: bool) -> None:
        """A thread is free again: the job's end, or it was not run because nobody waits for it."""
        self._idle += 1
        if job.written_off:
            self._threads += 1
            if self.closed or self._threads > self._limit:
                self._threads -= 1
                self._idle -= 1
                self._jobs.put(None)
        if job.future.done():
            return
        if not failed:
            job.future.set_result(outcome)
        elif isinstance(outcome, StopIteration):
            # No future can hold one.
            job.future.set_exception(RuntimeError(f"StopIteration: {outcome}"))
        else:
            job.future.set_exception(outcome)

    def close(self) -> None:
        """Every thread ends once its function has returned."""
        self.closed = True
        for _ in range(self._threads):
            self._jobs.put(None)

    def at_work(self) -> list[str]:
        """The tools whose functions run in these threads now."""
        jobs = [each.job for each in _tool_threads() if each.pool is self]
        return [job.tool for job in jobs if job is not None]

    def _grow(self) -> bool:
        if self._threads >= self._limit or len(_written_off()) >= MAX_WRITTEN_OFF:
            return False
        try:
            _ToolThread(self, self._jobs).start()
        except RuntimeError:
            # The system has no more threads for this process.
            return False
        self._threads += 1
        self._idle += 1
        return True

    def _refuse_queued(self) -> None:
        queued = [self._jobs.get_nowait() for _ in range(self._jobs.qsize())]
        for job in queued:
            if job is None:
                self._jobs.put(None)
                continue
            self._idle += 1
            if not job.future.done():
                job.future.set_exception(ToolError(_nobody_left()))


def _kept_as(kind: str) -> str:
    return f"_antiphon_{kind}"


def _tool_threads() -> list[_ToolThread]:
    return [each for each in threading.enumerate() if isinstance(each, _ToolThread)]


def _written_off() -> list[str]:
    """The tools whose functions run on although nobody waits for them, one for each thread."""
    jobs = [each.job for each in _tool_threads()]
    return [job.tool for job in jobs if job is not None and job.written_off]


def _nobody_left() -> str:
    left = _written_off()
    if len(left) < MAX_WRITTEN_OFF:
        return "not run: the system gives this process no more threads"
    return (
        "not run: no thread is left and no more are started, because too many tools did not return: "
        f"{_named(left)}. Restart the process; have these tools end in time, or use @tool(isolated=True)"
    )


def _named(tools: Iterable[str]) -> str:
    """Names with how often each occurs, the most frequent first."""
    return ", ".join(
        f"{name} ({count})" if count > 1 else name for name, count in Counter(tools).most_common()
    )
