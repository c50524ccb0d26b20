"""LangGraph's `create_agent`, through LangChain's `BaseChatModel`.

Packages: langgraph langchain langgraph-checkpoint-sqlite
"""

# Its packages are in an environment of their own.
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

from bench import workloads
from bench.cell import Cell, Go, Marks, Metrics, main, passes, per_unit, timed
from bench.distributions import installed, versions
from bench.workloads import CALLS, DELAY, PAUSE, WORD

PACKAGES = ("langgraph", "langchain", "langgraph-checkpoint-sqlite")
GO = {"messages": [{"role": "user", "content": "go"}]}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fake(answer: Callable[[int], Any], delay: float = 0.0, marks: Marks | None = None) -> Any:
    """A model that answers from the number of messages."""
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Fake(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "fake"

        def bind_tools(self, tools: Any, **named: Any) -> Any:
            return self

        def _generate(self, *rest: Any, **named: Any) -> Any:
            raise NotImplementedError

        async def _agenerate(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **named: Any
        ) -> Any:
            if marks is not None:
                marks.mark()
            if delay:
                await asyncio.sleep(delay)
            return ChatResult(generations=[ChatGeneration(message=answer(len(messages)))])

    return Fake()


def talking(n: int) -> Any:
    """A model that streams `n` deltas."""
    from langchain_core.messages import AIMessageChunk
    from langchain_core.outputs import ChatGenerationChunk

    class Talking(type(fake(text))):
        async def _astream(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **named: Any
        ) -> AsyncIterator[Any]:
            for _ in range(n):
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=WORD))
                if run_manager:
                    await run_manager.on_llm_new_token(WORD, chunk=chunk)
                yield chunk

    return Talking()


def text(content: str) -> Any:
    """A reply without calls."""
    from langchain_core.messages import AIMessage

    return AIMessage(content=content)


def call(name: str, arguments: dict[str, Any], count: int = 1, turn: int = 0) -> Any:
    """A reply with `count` calls."""
    from langchain_core.messages import AIMessage

    calls = [{"name": name, "args": arguments, "id": f"c{turn}_{number}"} for number in range(count)]
    return AIMessage(content="", tool_calls=calls)


def agent(model: Any, tools: list[Any], **options: Any) -> Any:
    """A compiled agent."""
    from langchain.agents import create_agent

    return create_agent(model, tools, **options)


def looping(n: int, marks: Marks | None = None, delay: float = 0.0, **options: Any) -> Any:
    """An agent of `n` tool turns."""

    def answer(messages: int) -> Any:
        turn = (messages - 1) // 2
        return call("add", {"a": 1, "b": 2}, turn=turn) if turn < n else text("done")

    return agent(fake(answer, delay, marks), [add], **options)


def config(n: int, **configurable: Any) -> Any:
    """Room for `n` turns."""
    return {"recursion_limit": 4 * n + 50, "configurable": configurable}


def imports() -> Metrics:
    """W1."""
    found = workloads.imported("from langchain.agents import create_agent")
    return found | {"dists": len(installed()), "versions": versions(PACKAGES)}


async def tool_turns(n: int) -> Metrics:
    """W2."""

    def prepare(n: int, marks: Marks | None) -> Go:
        made = looping(n, marks)
        return lambda: made.ainvoke(GO, config(n))

    return await workloads.tool_turns(prepare, n)


async def parallel_tools(n: int) -> Metrics:
    """W3."""

    async def slow(a: int) -> int:
        """Sleep."""
        await asyncio.sleep(PAUSE)
        return a

    def answer(messages: int) -> Any:
        return call("slow", {"a": 1}, n) if messages == 1 else text("done")

    made = agent(fake(answer), [slow])
    return await workloads.parallel_tools(lambda: lambda: made.ainvoke(GO), n)


def calling(child: Any, count: int = 1) -> Any:
    """An agent that calls another one `count` times in its first turn."""

    async def call_agent(task: str) -> str:
        """Delegate."""
        found = await child.ainvoke({"messages": [{"role": "user", "content": task}]})
        return str(found["messages"][-1].content)

    def answer(messages: int) -> Any:
        return call("call_agent", {"task": "x"}, count) if messages == 1 else text("up")

    return agent(fake(answer), [call_agent])


async def depth(depth: int) -> Metrics:
    """W4: each agent calls the next."""
    made = agent(fake(lambda messages: text("leaf")), [])
    for _ in range(depth):
        made = calling(made)
    return await workloads.agent_calls(lambda: lambda: made.ainvoke(GO), depth)


async def fan_out(n: int) -> Metrics:
    """W4: one turn calls `n` agents."""
    made = calling(agent(fake(lambda messages: text("leaf")), []), n)
    return await workloads.agent_calls(lambda: lambda: made.ainvoke(GO), n)


class Token(TypedDict):
    """What a graph's state holds: the hops or messages still to come, and how many were heard."""

    left: int
    heard: Annotated[int, operator.add]


async def ring(agents: int, hops: int) -> Metrics:
    """W5.ring: a node for each member, and an edge to the next."""
    from langgraph.graph import END, START, StateGraph

    async def node(state: Token) -> dict[str, int]:
        return {"left": state["left"] - 1}

    graph = StateGraph(Token)
    for number in range(agents):
        following = f"n{(number + 1) % agents}"
        graph.add_node(f"n{number}", node)
        graph.add_conditional_edges(
            f"n{number}", lambda state, name=following: name if state["left"] else END, [following, END]
        )
    graph.add_edge(START, "n0")
    made = graph.compile()

    def prepare(hops: int) -> Go:
        return lambda: made.ainvoke({"left": hops, "heard": 0}, {"recursion_limit": hops + 10})

    return await workloads.ring(prepare, hops)


async def fan(subs: int, msgs: int) -> Metrics:
    """W5.fanout: a node is sent each message, once for each member."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    async def publish(state: Token) -> dict[str, int]:
        return {"left": state["left"] - 1}

    async def reader(state: Token) -> dict[str, int]:
        return {"heard": 1}

    def following(state: Token) -> Any:
        return [Send("reader", state) for _ in range(subs)] if state["left"] >= 0 else END

    graph = StateGraph(Token)
    graph.add_node("publish", publish)
    graph.add_node("reader", reader)
    graph.add_edge(START, "publish")
    graph.add_conditional_edges("publish", following, ["reader", END])
    graph.add_edge("reader", "publish")
    made = graph.compile()

    def prepare(msgs: int) -> Go:
        async def go() -> None:
            found = await made.ainvoke({"left": msgs, "heard": 0}, {"recursion_limit": 2 * msgs + 10})
            if found["heard"] != subs * msgs:
                raise RuntimeError(f"{found['heard']} of {subs * msgs} messages were heard")

        return go

    return await workloads.deliveries(prepare, subs, msgs)


async def many_runs(n: int, gc: str) -> Metrics:
    """W6."""
    made = looping(CALLS - 1, delay=DELAY)

    def prepare(n: int) -> Go:
        return lambda: workloads.together(lambda: lambda: made.ainvoke(GO), n)

    return await workloads.many_runs(prepare, n, gc)


async def durable(n: int, sync: str) -> Metrics:
    """W7: a checkpoint at every step, in SQLite."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    bare = looping(n)
    plain = per_unit(await passes(lambda: lambda: bare.ainvoke(GO, config(n)), 3, 1.0), n, "turn")
    with TemporaryDirectory(dir=workloads.scratch()) as folder:
        path = str(Path(folder) / "langgraph.db")
        async with AsyncSqliteSaver.from_conn_string(path) as store:
            made, before = looping(n, checkpointer=store), workloads.written()
            sample = await timed(lambda: made.ainvoke(GO, config(n, thread_id="t"), durability="async"))
            wrote = workloads.written() - before
            await store.conn.execute("pragma wal_checkpoint(truncate)")
            size = workloads.file_bytes(path)
            load = await timed(lambda: made.aget_state(config(n, thread_id="t")))
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
        made = agent(talking(n), [])

        async def go() -> None:
            pieces = made.astream(GO, stream_mode="messages")
            heard = sum([len(piece.content) async for piece, _ in pieces])
            if heard < n * len(WORD):
                raise RuntimeError(f"{heard} characters of {n * len(WORD)}")

        return go

    return await workloads.deltas(prepare, n)


def agents() -> Metrics:
    """W9."""
    model = fake(lambda messages: text("done"))
    return workloads.objects(lambda: agent(model, [add]))


CROWDS = [{"n": n, "gc": gc} for n in (1000, 10000) for gc in ("tuned", "default")]
CELLS = (
    Cell("W1", imports),
    Cell("W2", tool_turns, [{"n": n} for n in (10, 50, 200, 1000)], timeout=100),
    Cell("W3", parallel_tools, [{"n": 100}]),
    Cell("W4.depth", depth, [{"depth": 50}]),
    Cell("W4.fanout", fan_out, [{"n": 100}]),
    Cell("W5.ring", ring, [{"agents": 100, "hops": 10_000}], timeout=100),
    Cell("W5.fanout", fan, [{"subs": 100, "msgs": 20}]),
    Cell("W6", many_runs, CROWDS, CROWDS[:1], timeout=100),
    Cell("W7.turn", durable, [{"n": n, "sync": "own"} for n in (50, 200, 1000)], timeout=120),
    Cell("W8", deltas, [{"n": 100_000}]),
    Cell("W9", agents),
)

if __name__ == "__main__":
    main(CELLS)
