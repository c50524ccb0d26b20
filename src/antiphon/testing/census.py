"""What a piece of work left behind: tasks, child processes, open files and sockets, threads.

with census() as orphans:
    asyncio.run(main())
assert not orphans
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from antiphon.kernel.run.toolsets.provider import unused_tasks

GRACE = 1.0
"""Seconds that threads and children which are about to end get to do so."""
_FILES = Path("/proc/self/fd")


class Census(Struct, frozen=True):
    """Who is there now. `files`: open descriptors and what they are; empty where the system hides it."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]
    files: dict[int, str]


def take() -> Census:
    """Count what this process has."""
    return Census(frozenset(threading.enumerate()), frozenset(_children()), _files())


def orphans(before: Census) -> list[str]:
    """What is there beyond `before`, one line each, after those that are leaving have left."""
    end = time.monotonic() + GRACE
    left = []
    for thread in threading.enumerate():
        if thread not in before.threads and thread is not threading.current_thread():
            thread.join(max(end - time.monotonic(), 0.0))
            if thread.is_alive():
                left.append(f"thread {thread.name}")
    children = [child for child in _children() if child not in before.children]
    left += [f"child process {child}" for child in children]
    new = _new_files(before)
    if new:
        # What only waits for the collector is closed by it; whoever holds a reference is not.
        gc.collect()
        new = _new_files(before)
    return left + [f"open file {number}: {what}" for number, what in new]


def _new_files(before: Census) -> list[tuple[int, str]]:
    return [(number, what) for number, what in _files().items() if before.files.get(number) != what]


def _files() -> dict[int, str]:
    found = {}
    try:
        for entry in os.scandir(_FILES):
            try:
                what = os.readlink(entry.path)
            except FileNotFoundError:
                # The descriptor that lists the folder is closed by now.
                continue
            if not what.startswith(("/proc/", "/dev/pts", "/dev/null", "/dev/urandom")):
                found[int(entry.name)] = what
    except FileNotFoundError:
        return {}
    return found


def _children() -> list[int]:
    """Living and unreaped children of this process, where the system tells."""
    found: list[int] = []
    for thread in Path("/proc/self/task").glob("*/children"):
        try:
            found += map(int, thread.read_text(encoding="ascii").split())
        except OSError:
            # A thread that has just ended, or a kernel that does not list children.
            continue
    return found


@contextmanager
def census() -> Iterator[list[str]]:
    """A list that holds, once the block is left, everything it left behind.

    Tasks count as left behind when they are still pending where `asyncio.run` begins to cancel.
    """
    found: list[str] = []
    before = take()
    close = asyncio.Runner.close

    def closing(runner: asyncio.Runner) -> None:
        if getattr(runner, "_loop", None) is not None:
            loop = runner.get_loop()
            if not loop.is_closed():
                # Providers of tools outlive their runs on purpose, and end with the loop.
                left = asyncio.all_tasks(loop) - unused_tasks(loop)
                pending = [task for task in left if not task.done()]
                found.extend(f"task {task.get_coro()!r:.120}" for task in pending)
        close(runner)

    asyncio.Runner.close = closing  # type: ignore[method-assign,assignment]
    try:
        yield found
    finally:
        asyncio.Runner.close = close  # type: ignore[method-assign]
        found += orphans(before)
