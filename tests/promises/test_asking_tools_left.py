"""A tool that asks, and whose process dies or is left meanwhile: what it asked is found again."""

import asyncio
import threading

import pytest

from antiphon import ToolContext, open_run, tool
from antiphon.errors import EffectFailed
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import call
from tests.promises.test_asking_tools import agent, asked, order, team
from tests.promises.test_drain import began_to_drain, in_a_loop, outcomes


@pytest.mark.parametrize("kind", ["async", "plain"])
@in_a_loop
async def test_a_tool_that_waits_for_a_person_goes_on_in_another_process(kind):
    (made, stepped), journal = order(kind), MemoryJournal()
    async with open_run(team(made), journal=journal) as run:
        await run.post("a", "go")
        (question,) = await asked(run)
    async with open_run(team(made), journal=journal, run_id=run.run_id) as again:
        await again.answer(question, "south", by="ann")
        assert (await again.result("0/1.c1")).output == "ordered"
        records = await again.records()
    starts = [each.event.id for each in records if each.type == "EffectStarted" and ":" in each.event.id]
    assert len(starts) == len(set(starts)) == 4
    assert len(stepped) == 1
    assert "tea south 5 EUR plenty tea" in str(records)


@in_a_loop
async def test_steps_that_ended_are_not_done_again_and_the_answer_is_the_one_on_record():
    did, journal, stands = [], MemoryJournal(), asyncio.Event()

    def send(to):
        did.append(to)
        return to

    @tool(effect="idempotent")
    async def order(ctx: ToolContext, what: str) -> str:
        "Order."
        region = await ctx.ask_user("Which region?")
        sent = await ctx.step("send", send, region)
        stands.set()
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return f"{sent} at attempt {ctx.attempt}"

    made = [agent([order], call("order", what="tea"), "done")]
    async with open_run(made, journal=journal) as run:
        await run.post("a", "go")
        (question,) = await asked(run)
        await run.answer(question, "north", by="ann")
        await stands.wait()
    async with open_run(made, journal=journal, run_id=run.run_id) as again:
        assert (await again.result("0/1.c1")).output == "done"
        assert "north at attempt 2" in str(await again.records())
    assert did == ["north"]


def waiter(effect, reconcile=None):
    acted = []

    @tool(effect=effect, reconcile=reconcile)
    async def order(ctx: ToolContext, what: str) -> str:
        "Order."
        acted.append("began")
        region = await ctx.ask_user("Which region?")
        acted.append(region)
        return f"ordered {what} {region}"

    return [agent([order], call("order", what="tea"), "done")], acted


async def died_while_it_waited(made):
    journal = MemoryJournal()
    async with open_run(made, journal=journal) as run:
        await run.post("a", "go")
        (question,) = await asked(run)
    return journal, run.run_id, question


@in_a_loop
async def test_a_once_tool_that_died_while_it_waited_ends_unknown_and_so_does_its_question():
    made, acted = waiter("once")
    journal, run_id, question = await died_while_it_waited(made)
    async with open_run(made, journal=journal, run_id=run_id) as again:
        assert (await again.result("0/1.c1")).output == "done"
        found = await outcomes(again)
    assert (found["1/1.c1"], found[question]) == ("unknown", "cancelled")
    assert acted == ["began"]


@in_a_loop
async def test_a_once_tool_that_says_resume_goes_on_waiting():
    made, acted = waiter("once", "resume")
    journal, run_id, question = await died_while_it_waited(made)
    async with open_run(made, journal=journal, run_id=run_id) as again:
        await again.answer(question, "north", by="ann")
        assert (await again.result("0/1.c1")).output == "done"
        found = await outcomes(again)
    assert (found["1/1.c1"], acted) == ("completed", ["began", "began", "north"])


@in_a_loop
async def test_a_once_tool_that_says_resume_ends_unknown_when_it_died_with_its_answer():
    acted, journal, stands = [], MemoryJournal(), asyncio.Event()

    @tool(effect="once", reconcile="resume")
    async def order(ctx: ToolContext, what: str) -> str:
        "Order."
        acted.append(await ctx.ask_user("Which region?"))
        stands.set()
        await asyncio.Event().wait()
        return ""

    made = [agent([order], call("order", what="tea"), "done")]
    async with open_run(made, journal=journal) as run:
        await run.post("a", "go")
        (question,) = await asked(run)
        await run.answer(question, "north", by="ann")
        await stands.wait()
    async with open_run(made, journal=journal, run_id=run.run_id) as again:
        assert (await again.result("0/1.c1")).output == "done"
        assert (await outcomes(again))["1/1.c1"] == "unknown"
    assert acted == ["north"]


@in_a_loop
async def test_what_reconciles_a_once_tool_reads_what_that_had_asked():
    journal, stands, read = MemoryJournal(), asyncio.Event(), []

    async def reconcile(ctx):
        read.append(await ctx.ask_user("Which region?"))
        return f"it was sent to {read[0]}"

    @tool(effect="once", reconcile=reconcile)
    async def order(ctx: ToolContext) -> str:
        "Order."
        await ctx.ask_user("Which region?")
        stands.set()
        await asyncio.Event().wait()
        return ""

    made = [agent([order], call("order"), "done")]
    async with open_run(made, journal=journal) as run:
        await run.post("a", "go")
        (question,) = await asked(run)
        await run.answer(question, "north", by="ann")
        await stands.wait()
    async with open_run(made, journal=journal, run_id=run.run_id) as again:
        assert (await again.result("0/1.c1")).output == "done"
        assert "it was sent to north" in str(await again.records())
    assert read == ["north"]


@in_a_loop
async def test_a_drained_run_is_left_while_its_tool_waits_and_the_answer_comes_later():
    made, _ = waiter("idempotent")
    journal = MemoryJournal()
    async with open_run(made, journal=journal) as run:
        await run.post("a", "go")
        (question,) = await asked(run)
        assert await (await began_to_drain(run)) == ()
    async with open_run(made, journal=journal, run_id=run.run_id) as again:
        await again.answer(question, "north", by="ann")
        assert (await again.result("0/1.c1")).output == "done"
        assert (await outcomes(again))["1/1.c1"] == "completed"


@in_a_loop
async def test_a_thread_that_waits_when_its_run_is_left_is_let_go():
    over, outcome = threading.Event(), []

    @tool(effect="read")
    def order(ctx: ToolContext) -> str:
        "Order."
        try:
            return ctx.wait(ctx.ask_user("Which?"))
        except EffectFailed as error:
            outcome.append(error.outcome)
            raise
        finally:
            over.set()

    async with open_run([agent([order], call("order"), "done")]) as run:
        await run.post("a", "go")
        await asked(run)
    assert await asyncio.get_running_loop().run_in_executor(None, over.wait, 5)
    assert outcome == ["interrupted"]
