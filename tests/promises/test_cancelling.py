"""Cancelled at any record or any await: nothing is left running, every effect ends once."""

import asyncio
import threading

import pytest

from antiphon import Agent, Hooks, Message, open_run, run, tool
from antiphon.errors import RunSuspended
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import CancelRequested, EffectFinished, EffectStarted
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call, finish
from antiphon.testing.invariants import check_journal
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnPlan


@tool(effect="read")
async def peek(n: int) -> int:
    "Takes a few laps of the loop."
    for _ in range(n):
        await asyncio.sleep(0)
    return n


@tool
async def act(n: int) -> int:
    "The same, and acts."
    for _ in range(n):
        await asyncio.sleep(0)
    return n


async def do(ctx):
    "An action that does a bit of everything."
    await ctx.step("pause", asyncio.sleep, 0)
    await asyncio.gather(ctx.ask_model("Well?"), ctx.call("b", "x"), ctx.step("pause", asyncio.sleep, 0))
    ctx.set("attempt", ctx.attempt)
    ctx.publish(Message("forward", "c", "", "news"))
    return "acted"


def plan(context):
    "One round of two actors, then one for what they published."
    everything = tuple(range(len(context.new_messages)))
    return TurnPlan(
        [PlannedCall("c", forward=everything), PlannedCall("d", "x")]
        if context.turn == 1
        else [PlannedCall("b", "y")]
    )


def decide(context):
    return Continue() if context.turn == 1 else Return(output="done")


A = Agent("a", tools=[peek, act])
B = Agent("b", tools=[peek])
ROUNDS = Agent("rounds", hooks=Hooks(plan_turn=plan, end_turn=decide))
TEAM = [A, B, Agent("c", hooks=Hooks(act=do), context="continue"), Agent("d", hooks=Hooks(act=do)), ROUNDS]
ENTRIES = pytest.mark.parametrize("entry", [A, ROUNDS], ids=lambda agent: agent.name)
LINES = {
    "a": [
        [call("peek", n=2), call("act", n=1), call("call_agent", agent_name="b", message="x")],
        call("act", n=2),
        finish("done"),
    ],
    "b": [call("peek", n=3), "b says so"],
    "c": ["so"],
    "d": ["so"],
}


class Patient:
    """A scripted model that lets the loop turn once before it answers."""

    name = "patient"

    def __init__(self):
        self.script = Script(LINES, by="turn")

    async def complete(self, request, emit):
        await asyncio.sleep(0)
        return await self.script.complete(request, emit)


def ends(records):
    """How often each effect started and ended."""
    started = [each.event.id for each in records if type(each.event) is EffectStarted]
    finished = [each.event.id for each in records if type(each.event) is EffectFinished]
    return started, finished


async def cancelled_after(journal, entry, laps=None, seq=None):
    """Cancel by a record after `laps` of the loop, or when record `seq` shows; what the run came to."""
    async with open_run(TEAM, journal=journal, model=Patient(), env={}) as opened:
        call_id = await opened.post(entry, "go")
        if seq is not None:
            async for item in opened.events(deltas=False):
                if item.seq >= seq:
                    break
        for _ in range(laps or 0):
            await asyncio.sleep(0)
        over = not await opened.open_requests()
        await opened.cancel(reason="enough")
        result = await opened.result(call_id)
        records = await opened.records()
        started, finished = ends(records)
        assert set(started) <= set(finished)
        assert len(finished) == len(set(finished))
        assert result.outcome == ("completed" if over else "cancelled")
        if not over:
            assert result.reason == "enough"
        await opened.close()
    await check_journal(journal, reading={"peek"})
    return over, len(records)


@ENTRIES
def test_cancelled_at_every_record(entry):
    async def main():
        over, length = await cancelled_after(MemoryJournal(), entry, laps=400)
        assert over
        for seq in range(1, length - 3):
            await cancelled_after(MemoryJournal(), entry, seq=seq)

    asyncio.run(main())


@ENTRIES
def test_cancelled_at_every_lap_of_the_loop(entry):
    async def main():
        laps, over = 0, False
        while not over:
            over, _ = await cancelled_after(MemoryJournal(), entry, laps=laps)
            laps += 1
        assert laps > 10, laps

    asyncio.run(main())


@ENTRIES
def test_the_caller_is_cancelled_at_every_await_and_the_run_can_go_on(entry):
    """Cancelling the coroutine is leaving: nothing is recorded, and the run is resumed."""

    async def main():
        # A journal without a thread: how far a run comes in so many laps is the same every time.
        journal, resumed, known = MemoryJournal(), 0, set()
        for laps in range(400):
            task = asyncio.ensure_future(
                run(entry, "go", agents=TEAM, journal=journal, model=Patient(), env={})
            )
            for _ in range(laps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                break
            fresh = [each for each in await journal.runs() if each.run_id not in known]
            known.update(each.run_id for each in fresh)
            if not fresh or (await fold(journal, fresh[0].run_id)).closed:
                continue
            run_id = fresh[0].run_id
            async with open_run(TEAM, journal=journal, run_id=run_id, model=Patient(), env={}) as again:
                for call_id in await again.open_requests():
                    assert (await again.result(call_id)).output == "done"
                await again.close()
            resumed += 1
        assert resumed
        assert await check_journal(journal, reading={"peek"})
        await journal.close()

    asyncio.run(main())


def test_tools_that_swallow_cancellation_do_not_hold_the_run():
    stubborn, let_go = [], None

    @tool(effect="read")
    async def swallow() -> str:
        "Does not let itself be cancelled."
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            stubborn.append("swallowed")
        return "too late"

    @tool
    async def deaf() -> str:
        "Goes on after it was cancelled."
        for _ in range(3):
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                stubborn.append("deaf")
        return "too late"

    async def main():
        nonlocal let_go
        let_go = asyncio.Event()
        model = Script([[call("swallow"), call("deaf"), call("peek", n=1)], "never"])
        journal = MemoryJournal()
        agent = Agent("a", tools=[swallow, deaf, peek])
        async with open_run([agent], journal=journal, model=model, env={}) as opened:
            call_id = await opened.post("a", "go")
            for _ in range(20):
                await asyncio.sleep(0)
            await opened.cancel(call_id, "enough")
            result = await opened.result(call_id)
            assert (result.outcome, result.reason) == ("cancelled", "enough")
            for _ in range(5):
                await asyncio.sleep(0)
            let_go.set()
            for _ in range(5):
                await asyncio.sleep(0)
            started, finished = ends(await opened.records())
            assert sorted(started) == sorted(set(finished) & set(started))
            assert "too late" not in str(await opened.records())
            await opened.close()
        assert set(stubborn) == {"swallowed", "deaf"}
        await check_journal(journal, reading={"swallow", "peek"})

    asyncio.run(main())


def test_a_function_in_a_thread_is_abandoned_and_its_result_dropped():
    release, entered = threading.Event(), threading.Event()

    @tool
    def block() -> str:
        "Blocks a thread."
        entered.set()
        release.wait(10)
        return "too late"

    async def main():
        model = Script([call("block"), "never"])
        async with open_run(
            [Agent("a", tools=[block])], journal=MemoryJournal(), model=model, env={}
        ) as opened:
            call_id = await opened.post("a", "go")
            await asyncio.to_thread(entered.wait, 10)
            await opened.cancel(call_id)
            assert (await opened.result(call_id)).outcome == "cancelled"
            release.set()
            for _ in range(50):
                await asyncio.sleep(0)
            assert "too late" not in str(await opened.records())

    asyncio.run(main())


def test_a_cancelled_part_leaves_the_rest_alone():
    async def main():
        forever = asyncio.Event()

        @tool(effect="read")
        async def hang() -> str:
            "Never ends."
            await forever.wait()
            return ""

        lines = {
            "a": [[call("call_agent", agent_name="b", message="x"), call("peek", n=1)], "went on"],
            "b": [call("hang"), "never"],
        }
        team = [Agent("a", tools=[peek]), Agent("b", tools=[hang])]
        async with open_run(team, journal=MemoryJournal(), model=Script(lines), env={}) as opened:
            call_id = await opened.post("a", "go")
            async for item in opened.events(deltas=False):
                if type(item.event) is EffectStarted and getattr(item.event.detail, "name", "") == "hang":
                    break
            await opened.cancel("1/1.c1", "not needed")
            result = await opened.result(call_id)
            assert (result.outcome, result.output) == ("completed", "went on")
            told = [each.content for each in result.messages if each.type == "return" and each.sender == "b"]
            assert told == ["Error: not needed"]
            assert sum(type(each.event) is CancelRequested for each in await opened.records()) == 1

    asyncio.run(main())


def test_left_while_it_runs_it_is_parked_not_ended():
    async def main():
        journal = MemoryJournal()
        async with open_run([A, B], journal=journal, model=Patient(), env={}) as opened:
            call_id = await opened.post("a", "go")
            waiting = asyncio.ensure_future(opened.result(call_id))
            await asyncio.sleep(0)
        with pytest.raises(RunSuspended):
            await waiting
        async with open_run([A, B], journal=journal, run_id=opened.run_id, model=Patient(), env={}) as again:
            assert (await again.result(call_id)).output == "done"

    asyncio.run(main())
