"""Agno, through its `Model` class.

Packages: agno sqlalchemy aiosqlite greenlet openai
"""

# Its packages are in an environment of their own.
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import workloads
from bench.cell import Cell, Go, Marks, Metrics, main, passes, per_unit, timed
from bench.distributions import installed, versions
from bench.workloads import CALLS, DELAY, PAUSE, WORD

PACKAGES = ("agno", "sqlalchemy", "aiosqlite", "greenlet", "openai")
ADD = '{"a":1,"b":2}'


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fake(
    answer: Callable[[int], Any], delay: float = 0.0, marks: Marks | None = None, deltas: int = 0
) -> Any:
    """A model that answers from the number of messages; streamed, in so many deltas."""
    from agno.models.base import Model

    class Fake(Model):
        async def ainvoke(self, messages: list[Any], *rest: Any, **named: Any) -> Any:
            if marks is not None:
                marks.mark()
            if delay:
                await asyncio.sleep(delay)
            return answer(len(messages))

        async def ainvoke_stream(self, *rest: Any, **named: Any) -> AsyncIterator[Any]:
            from agno.models.response import ModelResponse

            for _ in range(deltas):
                yield ModelResponse(content=WORD)

        def invoke(self, *rest: Any, **named: Any) -> Any:
            raise NotImplementedError

        def invoke_stream(self, *rest: Any, **named: Any) -> Any:
            raise NotImplementedError

        def _parse_provider_response(self, response: Any, **named: Any) -> Any:
            return response

        def _parse_provider_response_delta(self, response: Any) -> Any:
            return response

        def __deepcopy__(self, memo: Any) -> Any:
            return self

    return Fake(id="fake")


def text(content: str) -> Any:
    """A reply without calls."""
    from agno.models.response import ModelResponse

    return ModelResponse(role="assistant", content=content)


def call(name: str, arguments: str, count: int = 1, turn: int = 0) -> Any:
    """A reply with `count` calls."""
    from agno.models.response import ModelResponse

    calls = [
        {"id": f"c{turn}_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number in range(count)
    ]
    return ModelResponse(role="assistant", tool_calls=calls)


def agent(model: Any, **options: Any) -> Any:
    """An agent without telemetry."""
    from agno.agent import Agent

    return Agent(model=model, telemetry=False, **options)


def looping(n: int, marks: Marks | None = None, delay: float = 0.0, **options: Any) -> Any:
    """An agent of `n` tool turns."""

    def answer(messages: int) -> Any:
        turn = (messages - 1) // 2
        return call("add", ADD, turn=turn) if turn < n else text("done")

    return agent(fake(answer, delay, marks), tools=[add], **options)


def imports() -> Metrics:
    """W1."""
    names = installed()
    return workloads.imported("from agno.agent import Agent") | {
        "dists": len(names),
        "versions": versions(PACKAGES),
    }


async def tool_turns(n: int) -> Metrics:
    """W2."""

    def prepare(n: int, marks: Marks | None) -> Go:
        made = looping(n, marks)
        return lambda: made.arun("go")

    return await workloads.tool_turns(prepare, n)


async def parallel_tools(n: int) -> Metrics:
    """W3."""

    async def slow(a: int) -> int:
        """Sleep."""
        await asyncio.sleep(PAUSE)
        return a

    def answer(messages: int) -> Any:
        return call("slow", '{"a":1}', n) if messages == 1 else text("done")

    made = agent(fake(answer), tools=[slow])
    return await workloads.parallel_tools(lambda: lambda: made.arun("go"), n)


def calling(child: Any, count: int = 1) -> Any:
    """An agent that calls another one `count` times in its first turn."""

    async def call_agent(task: str) -> str:
        """Delegate."""
        return str((await child.arun(task)).content)

    def answer(messages: int) -> Any:
        return call("call_agent", '{"task":"x"}', count) if messages == 1 else text("up")

    return agent(fake(answer), tools=[call_agent])


async def depth(depth: int) -> Metrics:
    """W4: each agent calls the next."""
    made = agent(fake(lambda messages: text("leaf")))
    for _ in range(depth):
        made = calling(made)
    return await workloads.agent_calls(lambda: lambda: made.arun("go"), depth)


async def fan_out(n: int) -> Metrics:
    """W4: one turn calls `n` agents."""
    made = calling(agent(fake(lambda messages: text("leaf"))), n)
    return await workloads.agent_calls(lambda: lambda: made.arun("go"), n)


async def many_runs(n: int, gc: str) -> Metrics:
    """W6."""
    made = looping(CALLS - 1, delay=DELAY)

    def prepare(n: int) -> Go:
        return lambda: workloads.together(lambda: lambda: made.arun("go"), n)

    return await workloads.many_runs(prepare, n, gc)


async def durable(n: int, sync: str) -> Metrics:
    """W7: the session stored after every batch of tools."""
    from agno.db.sqlite import AsyncSqliteDb

    plain = per_unit(await passes(lambda: lambda: looping(n).arun("go"), 3, 1.0), n, "turn")
    with TemporaryDirectory(dir=workloads.scratch()) as folder:
        path = str(Path(folder) / "agno.db")
        store = AsyncSqliteDb(db_file=path)
        stored = {"db": store, "checkpoint": "tool-batch"}
        await looping(1, session_id="warm", **stored).arun("go")
        before = workloads.written()
        made = looping(n, session_id="measured", **stored)
        sample = await timed(lambda: made.arun("go"))
        wrote, size = workloads.written() - before, workloads.file_bytes(path)
        reader = looping(0, session_id="measured", **stored)
        load = await timed(lambda: reader.aget_session(session_id="measured"))
    found = per_unit([sample], n, "turn")
    return found | {
        "added_us_per_turn": found["us_per_turn"] - plain["us_per_turn"],
        "file_bytes_per_turn": size / n,
        "written_bytes_per_turn": wrote / n,
        "load_ms": load.wall * 1e3,
    }


async def deltas(n: int) -> Metrics:
    """W8."""

    def prepare(n: int) -> Go:
        made = agent(fake(lambda messages: text("done"), deltas=n))

        async def go() -> None:
            heard = sum([len(event.content or "") async for event in made.arun("go", stream=True)])
            if heard < n * len(WORD):
                raise RuntimeError(f"{heard} characters of {n * len(WORD)}")

        return go

    return await workloads.deltas(prepare, n)


def agents() -> Metrics:
    """W9."""
    model = fake(lambda messages: text("done"))
    return workloads.objects(lambda: agent(model, tools=[add]))


CROWDS = [{"n": n, "gc": gc} for n in (1000, 10000) for gc in ("tuned", "default")]
CELLS = (
    Cell("W1", imports),
    Cell("W2", tool_turns, [{"n": n} for n in (10, 50, 200, 1000)], timeout=100),
    Cell("W3", parallel_tools, [{"n": 100}]),
    Cell("W4.depth", depth, [{"depth": 50}]),
    Cell("W4.fanout", fan_out, [{"n": 100}]),
    Cell("W6", many_runs, CROWDS, CROWDS[:1], timeout=100),
    Cell("W7.turn", durable, [{"n": n, "sync": "own"} for n in (50, 200)], timeout=120),
    Cell("W8", deltas, [{"n": 100_000}]),
    Cell("W9", agents),
)

if __name__ == "__main__":
    main(CELLS)
