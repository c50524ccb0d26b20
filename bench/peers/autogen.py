"""AutoGen's AssistantAgent, through its `ChatCompletionClient`.

Packages: autogen-core autogen-agentchat autogen-ext

Its agents hold their conversation, so that every pass has new ones, built outside the timing.
It has no durable turns: the whole state is saved by hand.
"""

# Its packages are in an environment of their own.
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench import workloads
from bench.cell import Cell, Go, Marks, Metrics, main, timed
from bench.distributions import installed, versions
from bench.workloads import CALLS, DELAY, PAUSE, WORD

PACKAGES = ("autogen-core", "autogen-agentchat", "autogen-ext")
ADD = '{"a":1,"b":2}'
KINDS: Mapping[str, Any] = {
    "vision": False, "function_calling": True, "json_output": False, "family": "unknown",
    "structured_output": False, "multiple_system_messages": True,
}  # fmt: skip


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fake(
    answer: Callable[[int], Any], delay: float = 0.0, marks: Marks | None = None, deltas: int = 0
) -> Any:
    """A model that answers from the number of messages; streamed, in so many deltas."""
    from autogen_core.models import ChatCompletionClient, RequestUsage

    class Fake(ChatCompletionClient):
        async def create(self, messages: Any, **named: Any) -> Any:
            if marks is not None:
                marks.mark()
            if delay:
                await asyncio.sleep(delay)
            return answer(len(messages))

        async def create_stream(self, messages: Any, **named: Any) -> AsyncIterator[Any]:
            for _ in range(deltas):
                yield WORD
            yield text("done")

        async def close(self) -> None: ...

        def actual_usage(self) -> Any:
            return RequestUsage(0, 0)

        def total_usage(self) -> Any:
            return RequestUsage(0, 0)

        def count_tokens(self, *rest: Any, **named: Any) -> int:
            return 0

        def remaining_tokens(self, *rest: Any, **named: Any) -> int:
            return 10**6

        @property
        def model_info(self) -> Any:
            return KINDS

        @property
        def capabilities(self) -> Any:
            return KINDS

    return Fake()


def text(content: str) -> Any:
    """A reply without calls."""
    from autogen_core.models import CreateResult, RequestUsage

    return CreateResult(finish_reason="stop", content=content, usage=RequestUsage(0, 0), cached=False)


def call(name: str, arguments: str, count: int = 1, turn: int = 0) -> Any:
    """A reply with `count` calls."""
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage

    calls = [FunctionCall(id=f"c{turn}_{number}", name=name, arguments=arguments) for number in range(count)]
    return CreateResult(finish_reason="function_calls", content=calls, usage=RequestUsage(0, 0), cached=False)


def agent(model: Any, name: str = "a", **options: Any) -> Any:
    """An agent without a system message."""
    from autogen_agentchat.agents import AssistantAgent

    return AssistantAgent(name, model, system_message=None, description="d", **options)


def looping(n: int, marks: Marks | None = None, delay: float = 0.0) -> Any:
    """An agent of `n` tool turns."""

    def answer(messages: int) -> Any:
        turn = (messages - 1) // 2
        return call("add", ADD, turn=turn) if turn < n else text("done")

    return agent(
        fake(answer, delay, marks), tools=[add], max_tool_iterations=n + 10, reflect_on_tool_use=False
    )


def imports() -> Metrics:
    """W1."""
    found = workloads.imported("from autogen_agentchat.agents import AssistantAgent")
    return found | {"dists": len(installed()), "versions": versions(PACKAGES)}


def running(made: Any) -> Go:
    """A run of an agent that was made for it."""
    return lambda: made.run(task="go")


async def tool_turns(n: int) -> Metrics:
    """W2."""
    return await workloads.tool_turns(lambda n, marks: running(looping(n, marks)), n)


async def parallel_tools(n: int) -> Metrics:
    """W3."""

    async def slow(a: int) -> int:
        """Sleep."""
        await asyncio.sleep(PAUSE)
        return a

    def answer(messages: int) -> Any:
        return call("slow", '{"a":1}', n) if messages == 1 else text("done")

    def prepare() -> Go:
        return running(agent(fake(answer), tools=[slow], max_tool_iterations=5))

    return await workloads.parallel_tools(prepare, n)


async def depth(depth: int) -> Metrics:
    """W4: each agent calls the next, which is a tool of its own kind."""
    from autogen_agentchat.tools import AgentTool

    def answer(messages: int) -> Any:
        return call("call_agent", '{"task":"x"}') if messages == 1 else text("up")

    def prepare() -> Go:
        made = agent(fake(lambda messages: text("leaf")), "call_agent")
        for _ in range(depth):
            tools = [AgentTool(made, return_value_as_last_message=True)]
            made = agent(fake(answer), "call_agent", tools=tools, max_tool_iterations=5)
        return running(made)

    return await workloads.agent_calls(prepare, depth)


async def fan_out(n: int) -> Metrics:
    """W4: one turn calls `n` agents, a new one per call."""
    leaf = fake(lambda messages: text("leaf"))

    async def call_agent(task: str) -> str:
        """Delegate."""
        return str((await agent(leaf, "c").run(task=task)).messages[-1].content)

    def answer(messages: int) -> Any:
        return call("call_agent", '{"task":"x"}', n) if messages == 1 else text("up")

    def prepare() -> Go:
        return running(agent(fake(answer), tools=[call_agent], max_tool_iterations=5))

    return await workloads.agent_calls(prepare, n)


async def many_runs(n: int, gc: str) -> Metrics:
    """W6: one agent per run; building them is part of memory, not of the time."""

    def prepare(n: int) -> Go:
        made = iter([looping(CALLS - 1, delay=DELAY) for _ in range(n)])
        return lambda: workloads.together(lambda: running(next(made)), n)

    return await workloads.many_runs(prepare, n, gc)


async def saved(n: int) -> Metrics:
    """W7: saving and loading the state of a run by hand, once."""
    made, other = looping(n), looping(n)
    await made.run(task="go")
    texts: list[str] = []

    async def save() -> None:
        texts.append(json.dumps(await made.save_state()))

    save_s = (await timed(save)).wall
    load = await timed(lambda: other.load_state(json.loads(texts[0])))
    return {"save_ms": save_s * 1e3, "file_bytes_per_turn": len(texts[0]) / n, "load_ms": load.wall * 1e3}


@dataclass
class Token:
    """What goes round: how many hops are left."""

    left: int


async def ring(agents: int, hops: int) -> Metrics:
    """W5.ring: its core, an agent type and a subscription for each member."""
    from autogen_core import (
        MessageContext,
        RoutedAgent,
        SingleThreadedAgentRuntime,
        TopicId,
        TypeSubscription,
        message_handler,
    )  # fmt: skip

    # Its decorator looks annotations up in the module.
    globals()["MessageContext"] = MessageContext

    class Node(RoutedAgent):
        @message_handler
        async def on_token(self, message: Token, ctx: MessageContext) -> None:
            if message.left:
                following = f"t{(int(self.id.type[1:]) + 1) % agents}"
                await self.publish_message(Token(message.left - 1), TopicId(following, "x"))

    def prepare(hops: int) -> Go:
        async def go() -> None:
            runtime.start()
            await runtime.publish_message(Token(hops), TopicId("t0", "x"))
            await runtime.stop_when_idle()

        return go

    runtime = SingleThreadedAgentRuntime()
    for number in range(agents):
        await Node.register(runtime, f"n{number}", lambda: Node("a node"))
        await runtime.add_subscription(TypeSubscription(f"t{number}", f"n{number}"))
    return await workloads.ring(prepare, hops)


async def fan(subs: int, msgs: int) -> Metrics:
    """W5.fanout: its core."""
    from autogen_core import (
        MessageContext,
        RoutedAgent,
        SingleThreadedAgentRuntime,
        TopicId,
        TypeSubscription,
        message_handler,
    )  # fmt: skip

    heard = 0
    globals()["MessageContext"] = MessageContext

    class Reader(RoutedAgent):
        @message_handler
        async def on_token(self, message: Token, ctx: MessageContext) -> None:
            nonlocal heard
            heard += 1

    def prepare(msgs: int) -> Go:
        async def go() -> None:
            nonlocal heard
            heard = 0
            runtime.start()
            for number in range(msgs):
                await runtime.publish_message(Token(number), TopicId("news", "x"))
            await runtime.stop_when_idle()
            if heard != subs * msgs:
                raise RuntimeError(f"{heard} of {subs * msgs} messages were heard")

        return go

    runtime = SingleThreadedAgentRuntime()
    for number in range(subs):
        await Reader.register(runtime, f"s{number}", lambda: Reader("a reader"))
        await runtime.add_subscription(TypeSubscription("news", f"s{number}"))
    return await workloads.deliveries(prepare, subs, msgs)


async def deltas(n: int) -> Metrics:
    """W8."""
    from autogen_agentchat.messages import ModelClientStreamingChunkEvent as Chunk

    def prepare(n: int) -> Go:
        made = agent(fake(lambda messages: text("done"), deltas=n), model_client_stream=True)

        async def go() -> None:
            events = made.run_stream(task="go")
            heard = sum([len(event.content) async for event in events if isinstance(event, Chunk)])
            if heard != n * len(WORD):
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
    Cell("W5.ring", ring, [{"agents": 100, "hops": 10_000}]),
    Cell("W5.fanout", fan, [{"subs": 100, "msgs": msgs} for msgs in (20, 200)]),
    Cell("W6", many_runs, CROWDS, CROWDS[:1], timeout=100),
    Cell("W7.load", saved, [{"n": 1000}]),
    Cell("W8", deltas, [{"n": 100_000}]),
    Cell("W9", agents),
)

if __name__ == "__main__":
    main(CELLS)
