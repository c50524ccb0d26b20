"""A conversation that outgrows any window goes on, at the same cost per turn, on stable prompts."""

import asyncio
import gc
import itertools
import tracemalloc
from typing import Any

import msgspec
import pytest

from antiphon import Agent, Limits, ModelOptions, Usage, open_run, tool
from antiphon.models.script import call
from antiphon.values.agent import Compaction
from antiphon.values.limits import OutputLimits
from antiphon.values.model import Delta, ModelRequest, Reply
from bench.prefix import conversation

WINDOW = 16_000
encode = msgspec.json.Encoder().encode


class Bounded:
    """A model that refuses what exceeds its window, bills by size, and sums up when it is asked to."""

    name, window = "bounded", WINDOW

    def __init__(self, steps: int = 3) -> None:
        self.asked = self.compactions = self.largest = 0
        self.sizes: list[int] = []
        self._steps = steps
        self._cost = 0
        self._known: dict[int, int] = {}

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        self.asked += 1
        size = sum(len(encode(each)) for each in request.messages) // 4 + len(request.system) // 4
        assert size <= WINDOW, f"{size} tokens were sent"
        self.sizes.append(size)
        self.largest = max(self.largest, size)
        emit(Delta("text", "…"))
        usage = Usage(size, 50)
        if request.tool_choice == "none":
            self.compactions += 1
            summary = f"<retain>fact {self.compactions % 5}</retain><summary>{'so far ' * 40}</summary>"
            return Reply(summary, usage=usage, model=self.name)
        last = request.messages[-1]
        if last.role == "user" and self._steps:
            return Reply("", (call("look", n=self.asked),), "calls", usage, model=self.name)
        return Reply("It is done. " + "word " * 40, usage=usage, model=self.name)


@tool(effect="read")
async def look(n: int) -> str:
    """Look at something of about a thousand characters."""
    return f"seen {n}: " + "detail " * 140


async def talk(model: Bounded, turns: int, every: int) -> list[int]:
    """Have a conversation of so many requests; the records written up to every N-th."""
    agent = Agent(
        "a",
        "You talk.",
        tools=[look],
        context="continue",
        asking=ModelOptions(max_output_tokens=500),
        standalone=True,
    )
    marks = []
    async with open_run(
        [agent],
        model=model,
        limits=Limits(tokens=None),
        output_limits=OutputLimits(message=4_000, kept=100_000),
    ) as run:
        for turn in range(1, turns + 1):
            result = await run.result(await run.post("a", f"question {turn}?"))
            assert result.outcome == "completed"
            if turn % every == 0:
                marks.append(run.seq)
    return marks


def test_two_hundred_turns_stay_inside_the_window() -> None:
    model = Bounded()
    marks = asyncio.run(talk(model, 200, 50))
    assert model.compactions >= 5
    assert model.largest <= WINDOW
    written = [later - earlier for earlier, later in itertools.pairwise(marks)]
    assert max(written) - min(written) <= 10


@pytest.mark.deep
@pytest.mark.unwatched  # a witness would fold the run a second time and hold it in memory
def test_a_thousand_turns_with_stable_memory_and_cost() -> None:
    """Held memory and size of what is sent do not grow: the last quarter is like the second."""
    model = Bounded()
    tracemalloc.start()
    sizes: list[int] = []

    async def playing() -> None:
        agent = Agent(
            "a",
            "You talk.",
            tools=[look],
            context="continue",
            asking=ModelOptions(max_output_tokens=500),
            standalone=True,
        )
        outputs = OutputLimits(message=4_000, kept=100_000)
        async with open_run([agent], model=model, limits=Limits(tokens=None), output_limits=outputs) as run:
            journal = run._journal
            for turn in range(1, 1_001):
                result = await run.result(await run.post("a", f"question {turn}?"))
                assert result.outcome == "completed"
                if turn % 250 == 0:
                    # What is written down may grow; it is what a durable journal has on disk.
                    gc.collect()
                    stored = sum(len(row.body) for row in await journal.read(run.run_id))
                    sizes.append(tracemalloc.get_traced_memory()[0] - 3 * stored)

    asyncio.run(playing())
    tracemalloc.stop()
    per_turn = [sum(model.sizes[first : first + 500]) for first in range(0, len(model.sizes) - 500, 500)]
    assert max(per_turn[1:]) <= 1.1 * min(per_turn[1:])
    assert model.largest <= WINDOW
    assert sizes[3] - sizes[1] <= 4_000_000


@pytest.mark.slow
def test_prompts_are_stable_between_compactions() -> None:
    """In a session of 200 turns each prompt begins with all of the one before it, but for compactions."""
    model = asyncio.run(conversation(200))
    assert len(model.prompts) >= 200
    assert model.breaks
    assert min(model.calm()) == 1.0
    assert len(model.calm()) / (len(model.prompts) - 1) >= 0.95


def test_directives_are_said_and_retain_can_be_left_out() -> None:
    seen: list[str] = []

    class Asked(Bounded):
        async def complete(self, request: ModelRequest, emit: Any) -> Reply:
            if request.tool_choice == "none":
                seen.append(request.messages[-1].content)
            return await super().complete(request, emit)

    async def playing() -> None:
        compaction = Compaction(retain=False, directives=("In French.",))
        agent = Agent("a", context="continue", asking=ModelOptions(compaction=compaction))
        async with open_run([agent], model=Asked(0)) as run:
            await run.result(await run.post("a", "hello"))
            await run.result(await run.post("a", "", intent="compact"))

    asyncio.run(playing())
    assert "In French." in seen[0]
    assert "<retain>" not in seen[0]
