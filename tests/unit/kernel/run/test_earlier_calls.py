"""What a tool sees of the calls that its agent made before, and beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antiphon import Agent, ToolContext, open_run, run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.values.limits import OutputLimits
from antiphon.values.tool import EarlierCall
from tests.promises.test_drain import in_a_loop


@tool(effect="read")
def look(what: str) -> str:
    """Look at something."""
    if what == "nothing":
        raise ValueError(what)
    return f"{what} looks fine"


def asked(seen: list[list[EarlierCall]]) -> Any:
    @tool(effect="read")
    def recall(ctx: ToolContext) -> str:
        """Say how many calls there were."""
        seen.append(ctx.earlier_calls())
        return str(len(seen[-1]))

    return recall


def agent(seen: list[list[EarlierCall]], *lines: Any) -> Agent:
    tools = [look, asked(seen)]
    return Agent("a", tools=tools, context="continue", model=Script(list(lines), by="turn"))


@in_a_loop
async def test_they_are_those_of_the_conversation_and_of_the_reply_oldest_first() -> None:
    seen: list[list[EarlierCall]] = []
    once = [call("look", what="tea"), call("look", what="nothing")]
    await run(agent(seen, once, [call("look", what="rum"), call("recall")], "done"), "go")
    (found,) = seen
    assert found[:2] == [
        EarlierCall("1/1.c1", "look", "tea looks fine"),
        EarlierCall("1/1.c2", "look", "Error: [look] nothing", is_error=True),
    ]
    # The one beside it has ended, or runs.
    assert [(each.effect_id, each.tool) for each in found[2:]] == [("1/2.c1", "look")]


@in_a_loop
async def test_a_call_beside_it_that_still_runs_is_there_with_what_its_steps_gave() -> None:
    noted, over = asyncio.Event(), asyncio.Event()
    seen: list[list[EarlierCall]] = []

    @tool(effect="idempotent")
    async def work(ctx: ToolContext) -> str:
        """Work."""
        await ctx.step("plan", lambda: {"one": 1})
        noted.set()
        await over.wait()
        return "worked"

    @tool(effect="read")
    async def recall(ctx: ToolContext) -> str:
        """Say what there was."""
        await noted.wait()
        seen.append(ctx.earlier_calls())
        over.set()
        return "recalled"

    both = [call("work"), call("recall")]
    await run(Agent("a", tools=[work, recall], model=Script([both, "done"], by="turn")), "go")
    assert seen == [[EarlierCall("1/1.c1", "work", running=True, steps=('{"one":1}',))]]


@in_a_loop
async def test_a_result_that_was_cut_is_whole_and_the_same_after_a_restart(tmp_path: Path) -> None:
    seen: list[list[EarlierCall]] = []
    journal = f"sqlite:///{tmp_path / 'runs.db'}"
    team = agent(seen, call("look", what="x" * 500), call("recall"), "done", call("recall"), "again")
    options = {"journal": journal, "output_limits": OutputLimits(message=100)}
    async with open_run([team], **options) as first:  # type: ignore[arg-type]
        await first.result(await first.post("a", "go"))
        run_id = first.run_id
    async with open_run([team], run_id=run_id, **options) as second:  # type: ignore[arg-type]
        await second.result(await second.post("a", "go on"))
    assert seen[0] == [EarlierCall("1/1.c1", "look", "x" * 500 + " looks fine")]
    assert seen[1] == [*seen[0], EarlierCall("1/2.c1", "recall", "1")]


def test_without_a_run_there_are_none() -> None:
    assert ToolContext().earlier_calls() == []


class Late(MemoryJournal):
    """Says that rows are durable when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.late, self.held, self.waiting = False, asyncio.Event(), list[Callable[[], None]]()

    def append(self, lease: Any, row: Any, blobs: Any, done: Any) -> None:
        if self.late:
            self.held.set()
            super().append(lease, row, blobs, lambda error: self.waiting.append(lambda: done(error)))
        else:
            super().append(lease, row, blobs, done)


@in_a_loop
async def test_an_act_rests_on_a_step_only_when_that_cannot_be_lost_any_more() -> None:
    journal, acted = Late(), list[str]()

    @tool(effect="idempotent")
    async def act(ctx: ToolContext) -> str:
        """Act."""

        def choose() -> str:
            journal.late = True
            return "north"

        acted.append(await ctx.step("choose", choose))
        return "done"

    member = Agent("a", tools=[act], model=Script([call("act"), "done"], by="turn"))
    async with open_run([member], journal=journal) as opened:
        request = await opened.post("a", "go")
        await journal.held.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert acted == []
        journal.late = False
        for each in journal.waiting:
            each()
        assert (await opened.result(request)).output == "done"
    assert acted == ["north"]
