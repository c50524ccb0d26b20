"""What is left on the table: the same work in bare Python, without any framework.

No target: it validates, records and isolates nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec

from bench import workloads
from bench.cell import Cell, Go, Marks, Metrics, main
from bench.workloads import CALLS, DELAY, PAUSE, WORD

ROW_BYTES = 560
"""Bytes of the record of one turn."""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def prepare_turns(n: int, marks: Marks | None, delay: float = 0.0) -> Go:
    """A tool loop: dict messages, an async model, decoded arguments, tools by name."""
    tools = {"add": add}

    async def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        if marks is not None:
            marks.mark()
        if delay:
            await asyncio.sleep(delay)
        turn = len(messages) // 2
        if turn < n:
            return {"calls": [{"id": f"c{turn}", "name": "add", "arguments": '{"a":1,"b":2}'}]}
        return {"content": "done"}

    async def go() -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        while True:
            reply = await model(messages)
            messages.append(reply)
            if "calls" not in reply:
                return
            for call in reply["calls"]:
                result = await tools[call["name"]](**json.loads(call["arguments"]))
                messages.append({"role": "tool", "id": call["id"], "content": str(result)})

    return go


def imports() -> Metrics:
    """W1: asyncio alone."""
    return workloads.imported("import asyncio") | {"dists": 0}


async def tool_turns(n: int) -> Metrics:
    """W2."""
    return await workloads.tool_turns(prepare_turns, n)


async def parallel_tools(n: int) -> Metrics:
    """W3."""

    async def go() -> None:
        await asyncio.gather(*(asyncio.sleep(PAUSE) for _ in range(n)))

    return await workloads.parallel_tools(lambda: go, n)


async def depth(depth: int) -> Metrics:
    """W4: a task per agent, each awaits the next."""

    async def agent(left: int) -> str:
        return await asyncio.create_task(agent(left - 1)) if left else "leaf"

    return await workloads.agent_calls(lambda: lambda: agent(depth), depth)


async def fan_out(n: int) -> Metrics:
    """W4: a task per agent."""

    async def agent() -> str:
        return "leaf"

    async def go() -> None:
        await asyncio.gather(*(agent() for _ in range(n)))

    return await workloads.agent_calls(lambda: go, n)


async def ring(agents: int, hops: int) -> Metrics:
    """W5.ring: queues and a list of who is next."""

    def prepare(hops: int) -> Go:
        queues: list[deque[str]] = [deque() for _ in range(agents)]
        queues[0].append("x")

        async def node(number: int) -> None:
            queues[(number + 1) % agents].append(queues[number].popleft())

        async def go() -> None:
            for hop in range(hops):
                await node(hop % agents)

        return go

    return await workloads.ring(prepare, hops)


async def fan(subs: int, msgs: int) -> Metrics:
    """W5.fanout: a queue for each, emptied by a coroutine."""

    def prepare(msgs: int) -> Go:
        queues: list[deque[str]] = [deque() for _ in range(subs)]

        async def reader(queue: deque[str]) -> int:
            heard = 0
            while queue:
                queue.popleft()
                heard += 1
            return heard

        async def go() -> None:
            for _ in range(msgs):
                for queue in queues:
                    queue.append("x")
            heard = sum([await reader(queue) for queue in queues])
            if heard != subs * msgs:
                raise RuntimeError(f"{heard} of {subs * msgs} messages were heard")

        return go

    return await workloads.deliveries(prepare, subs, msgs)


async def many_runs(n: int, gc: str) -> Metrics:
    """W6."""

    def prepare(n: int) -> Go:
        return lambda: workloads.together(lambda: prepare_turns(CALLS - 1, None, DELAY), n)

    return await workloads.many_runs(prepare, n, gc)


@contextmanager
def committer(folder: Path, sync: str) -> Iterator[Callable[[], float]]:
    """A function that commits one row of a turn's size and returns the seconds it took."""
    connection = apsw.Connection(str(folder / "bare.db"))
    connection.execute("pragma journal_mode = wal").fetchall()
    statement = "pragma synchronous = full" if sync == "FULL" else "pragma synchronous = normal"
    connection.execute(statement)
    connection.execute("create table if not exists rows(n integer primary key, body blob not null)")
    body = b"x" * ROW_BYTES

    def commit() -> float:
        start = time.perf_counter()
        connection.execute("insert into rows(body) values(?)", (body,))
        return time.perf_counter() - start

    try:
        yield commit
    finally:
        connection.close()


def commits(n: int, sync: str) -> Metrics:
    """W7: one row per commit, on the caller's thread."""
    with TemporaryDirectory(dir=workloads.scratch()) as folder, committer(Path(folder), sync) as commit:
        cpu = time.thread_time()
        taken = sorted(commit() for _ in range(n))
        cpu = time.thread_time() - cpu
    return {
        "us_per_turn": sum(taken) / n * 1e6,
        "commit_us": taken[n // 2] * 1e6,
        "cpu_us_per_turn": cpu / n * 1e6,
    }


def batches(runs: int, turns: int, sync: str) -> Metrics:
    """W7: a row per turn, the rows of all runs in one transaction per turn."""
    with TemporaryDirectory(dir=workloads.scratch()) as folder, committer(Path(folder), sync):
        connection = apsw.Connection(str(Path(folder) / "bare.db"))
        statement = "pragma synchronous = full" if sync == "FULL" else "pragma synchronous = normal"
        connection.execute(statement)
        rows = [(b"x" * ROW_BYTES,)] * runs
        start = time.perf_counter()
        for _ in range(turns):
            with connection:
                connection.executemany("insert into rows(body) values(?)", rows)
        wall = time.perf_counter() - start
        connection.close()
    return {"wall_s": wall, "turns_per_s": runs * turns / wall}


def decoded(bodies: Sequence[bytes]) -> int:
    """Parse stored bodies into plain values; how many values there are."""
    decode = msgspec.json.Decoder().decode
    return sum(len(decode(body)) for body in bodies)


def parse(events: int) -> Metrics:
    """W7: parse so many events of a usual size, twelve rows of the journal per 24 events."""
    body = b'[{"type":"finished","id":"1/17.c1","content":"a text of 20 letters"},'
    body += b'{"type":"started","id":"1/18.c1","detail":{"kind":"tool","name":"look"}}]'
    start = time.perf_counter()
    count = decoded([body] * (events // 2))
    wall = time.perf_counter() - start
    return {"wall_s": wall, "s_per_million_events": wall / count * 1e6, "us_per_event": wall / count * 1e6}


async def deltas(n: int, burst: int) -> Metrics:
    """W8: a chain of generators."""

    async def model(n: int) -> AsyncIterator[str]:
        for said in range(1, n + 1):
            yield WORD
            if said % burst == 0:
                await asyncio.sleep(0)

    async def agent(n: int) -> AsyncIterator[str]:
        async for text in model(n):
            yield text

    def prepare(n: int) -> Go:
        async def go() -> None:
            heard = 0
            async for text in agent(n):
                heard += len(text)

        return go

    return await workloads.deltas(prepare, n)


@dataclass(slots=True)
class PlainAgent:
    """An agent as a plain object."""

    name: str
    instructions: str
    tools: list[object] = field(default_factory=list)


def agents() -> Metrics:
    """W9."""
    return workloads.objects(lambda: PlainAgent("a", "You add.", [add]))


CROWDS = [{"n": n, "gc": gc} for n in (1000, 10000) for gc in ("tuned", "default")]
FANS = [{"subs": 100, "msgs": msgs} for msgs in (20, 200, 2000)]
CELLS = (
    Cell("W1", imports),
    Cell("W2", tool_turns, [{"n": n} for n in (10, 50, 200, 1000, 5000)]),
    Cell("W3", parallel_tools, [{"n": 100}]),
    Cell("W4.depth", depth, [{"depth": 50}, {"depth": 200}]),
    Cell("W4.fanout", fan_out, [{"n": 100}]),
    Cell("W5.ring", ring, [{"agents": 100, "hops": 10_000}]),
    Cell("W5.fanout", fan, FANS, FANS[:2]),
    Cell("W6", many_runs, CROWDS, CROWDS[:3]),
    Cell("W7.turn", commits, [{"n": 1000, "sync": sync} for sync in ("NORMAL", "FULL")]),
    Cell("W7.many", batches, [{"runs": 1000, "turns": 20, "sync": "FULL"}]),
    Cell("W7.fold", parse, [{"events": 1_000_000}], [{"events": 60_000}]),
    Cell("W8", deltas, [{"n": 100_000, "burst": burst} for burst in (100, 1)]),
    Cell("W9", agents),
)

if __name__ == "__main__":
    main(CELLS)
