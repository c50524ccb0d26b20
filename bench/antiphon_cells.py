"""Antiphon's cells: the public face, with a model that answers at once (W6: after 50 ms)."""

from __future__ import annotations

import asyncio
import json
from itertools import count, pairwise

from antiphon import Agent, ReplyDelta, open_run, run, stream, tool
from antiphon.styles.loop import LoopAgent
from antiphon.values.model import Reply
from bench import durable, prefix, profile_teams, rounds, start_token, watchers, workloads
from bench.cell import Cell, Go, Marks, Metrics, main, passes, per_unit
from bench.distributions import needed
from bench.fake import AMPLE, Fake, Talker, call, turns
from bench.workloads import CALLS, DELAY, PAUSE, WORD


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def prepare_turns(n: int, marks: Marks | None, delay: float = 0.0) -> Go:
    """One run of `n` tool turns and an answer."""
    agent = Agent("a", "You add.", tools=[add], model=Fake(turns(n, "add", '{"a":1,"b":2}'), delay, marks))

    async def go() -> None:
        result = await run(agent, "go", limits=AMPLE)
        if result.output != "done":
            raise RuntimeError(result.reason)

    return go


def imports() -> Metrics:
    """W1."""
    found = workloads.imported("import antiphon")
    names = needed()
    return found | {"dists": len(names), "distributions": " ".join(names)}


async def tool_turns(n: int) -> Metrics:
    """W2."""
    return await workloads.tool_turns(prepare_turns, n)


async def parallel_tools(n: int) -> Metrics:
    """W3."""

    @tool
    async def slow(a: int) -> int:
        """Sleep."""
        await asyncio.sleep(PAUSE)
        return a

    def answer(messages: int) -> Reply:
        return Reply("done") if messages > 1 else Reply(calls=call("slow", '{"a":1}', n), stop="calls")

    agent = Agent("a", "You wait.", tools=[slow], model=Fake(answer))

    def prepare() -> Go:
        return lambda: run(agent, "go", limits=AMPLE)

    return await workloads.parallel_tools(prepare, n)


def chain(depth: int) -> list[Agent]:
    """Agents that each call the next one; the last one answers."""

    def model(child: str) -> Fake:
        arguments = json.dumps({"agent_name": child, "message": "x"})

        def answer(messages: int) -> Reply:
            if messages > 1 or not child:
                return Reply("up")
            return Reply(calls=call("call_agent", arguments), stop="calls")

        return Fake(answer)

    names = [f"a{number}" for number in range(depth + 1)] + [""]
    return [
        Agent(name, "You pass it on.", model=model(child), can_call=[child] if child else [])
        for name, child in pairwise(names)
    ]


async def depth(depth: int) -> Metrics:
    """W4: a chain of agents, each of which calls the next."""
    return await _requests(chain(depth), depth)


async def fan_out(n: int) -> Metrics:
    """W4: one turn that calls `n` agents at once."""
    arguments = '{"agent_name":"leaf","message":"x"}'

    def answer(messages: int) -> Reply:
        return Reply("up") if messages > 1 else Reply(calls=call("call_agent", arguments, n), stop="calls")

    leaf = Agent("leaf", "You answer.", model=Fake(lambda messages: Reply("leaf")))
    return await _requests([Agent("a", "You ask.", model=Fake(answer)), leaf], n)


async def _requests(agents: list[Agent], calls: int) -> Metrics:
    """A request to the first agent, its team compiled before; beside it a whole `run`, all included."""

    async def whole() -> None:
        await run(agents[0], "go", agents=agents, limits=AMPLE)

    await whole()
    async with open_run(agents, limits=AMPLE) as conversation:

        async def request() -> None:
            result = await conversation.result(await conversation.post(agents[0], "go"))
            if result.output != "up" or len(result.messages) != 2 * (calls + 1):
                raise RuntimeError(f"{result.output}: {len(result.messages)} messages")

        found = await workloads.agent_calls(lambda: request, calls)
    all_in = per_unit(await passes(lambda: whole), calls, "agent_call")
    return found | {"run_us_per_agent_call": all_in["us_per_agent_call"]}


async def many_runs(n: int, gc: str) -> Metrics:
    """W6."""
    one = prepare_turns(CALLS - 1, None, DELAY)
    return await workloads.many_runs(lambda n: lambda: workloads.together(lambda: one, n), n, gc)


async def many_loops(n: int, gc: str) -> Metrics:
    """W6: sessions of one LoopAgent, all at once."""

    def prepare(n: int) -> Go:
        model = Fake(turns(CALLS - 1, "add", '{"a":1,"b":2}'), DELAY)
        agent, numbers = LoopAgent(llm=model, tools=[add], system_prompt="You add."), count()

        async def one() -> None:
            if await agent.run("go", session=f"session {next(numbers)}") != "done":
                raise RuntimeError("a session gave another answer")

        return lambda: workloads.together(lambda: one, n)

    return await workloads.many_runs(prepare, n, gc)


async def deltas(n: int, burst: int) -> Metrics:
    """W8: through `stream`; nothing of it may be missed."""

    def prepare(n: int) -> Go:
        agent = Agent("a", "You talk.", model=Talker(n, burst))

        async def go() -> None:
            async with stream(agent, "go", limits=AMPLE) as items:
                heard = sum([len(item.text) async for item in items if isinstance(item, ReplyDelta)])
            if heard != n * len(WORD):
                raise RuntimeError(f"{heard} characters of {n * len(WORD)}")

        return go

    return await workloads.deltas(prepare, n)


async def prompt_prefix(turns: int) -> Metrics:
    """W10."""
    model = await prefix.conversation(turns)
    calm = model.calm()
    return {
        "prompts": len(model.prompts),
        "compactions": len(model.breaks),
        "least_kept_percent": min(calm) * 100,
        "calm_percent": len(calm) / (len(model.prompts) - 1) * 100,
    }


def agents() -> Metrics:
    """W9."""
    return workloads.objects(lambda: Agent("a", "You add.", tools=[add]))


DURABLE = [{"n": n, "sync": sync} for sync in ("NORMAL", "FULL") for n in (50, 200, 1000)]
CROWDS = [{"n": n, "gc": gc} for n in (1000, 10000) for gc in ("tuned", "default")]
FANS = [{"subs": 100, "msgs": msgs} for msgs in (20, 200, 2000)]
CELLS = (
    Cell("W1", imports),
    Cell("W2", tool_turns, [{"n": n} for n in (10, 50, 200, 1000, 5000)]),
    Cell("W3", parallel_tools, [{"n": 100}]),
    Cell("W4.depth", depth, [{"depth": 50}, {"depth": 200}]),
    Cell("W4.fanout", fan_out, [{"n": 100}]),
    Cell("W5.ring", rounds.ring, [{"agents": 100, "hops": 10_000}]),
    Cell("W5.fanout", rounds.fan_out, FANS, FANS[:2]),
    Cell("W6", many_runs, CROWDS, CROWDS[:3]),
    Cell("W6.loop", many_loops, CROWDS[::2], CROWDS[:1]),
    Cell("W7.turn", durable.turns_of_one_run, DURABLE, [each for each in DURABLE if each["n"] != 50]),
    Cell("W7.many", durable.turns_of_many_runs, [{"runs": 1000, "turns": 20, "sync": "FULL"}]),
    Cell("W7.bytes", durable.bytes_per_turn, [{"n": 50}, {"n": 1000}]),
    Cell("W7.journal", durable.journal_alone, [{"sync": "NORMAL"}, {"sync": "FULL"}], [{"sync": "FULL"}]),
    Cell("W7.load", durable.load, [{"n": 1000}]),
    Cell("W7.fold", durable.fold_events, [{"events": 1_000_000}], [{"events": 60_000}], timeout=300),
    Cell("W8", deltas, [{"n": 100_000, "burst": burst} for burst in (100, 1)]),
    Cell("W9", agents),
    Cell("W10", prompt_prefix, [{"turns": 200}]),
    Cell("W11.load", profile_teams.load, [{"profiles": 200}]),
    Cell("W11.turn", profile_teams.turn, [{"observers": 10, "n": 200}]),
    Cell("W12", start_token.token, [{"acts": False}, {"acts": True}]),
    Cell("W13.delta", watchers.delta, [{"readers": many, "n": 50_000} for many in (0, 1, 100, 1000)]),
    Cell("W13.run", watchers.watched, [{"readers": many, "turns": 40} for many in (1, 100, 1000)]),
)

if __name__ == "__main__":
    main(CELLS)
