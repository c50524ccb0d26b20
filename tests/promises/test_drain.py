"""Leaving without harm: what runs may end, nothing new starts, and the next owner goes on there."""

import asyncio
import threading
from copy import deepcopy
from functools import wraps

import pytest

from antiphon import Agent, Hooks, open_run, tool
from antiphon.errors import RunSuspended, UserError
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import DrainStarted, RunResumed
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.state import RunState
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from tests.promises.test_invariants import ASKED
from tests.promises.test_invariants import tool as started


def in_a_loop(test):
    """A test that is a coroutine."""

    @wraps(test)
    def run(*args, **more):
        return asyncio.run(test(*args, **more))

    return run


async def began_to_drain(run):
    """A drain that goes on in a task, and that the run has on record."""
    draining = asyncio.create_task(run.drain(60))
    async for record in run.events(run.seq, deltas=False):
        if record.type == "DrainStarted":
            return draining
    raise AssertionError("the run ended")


class Gate:
    """A once tool `pay` that stands until it is let go, and counts what it did."""

    def __init__(self):
        self.began, self.open, self.paid = asyncio.Event(), asyncio.Event(), []

        @tool(effect="once")
        async def pay(who: str) -> str:
            "Pay somebody."
            self.began.set()
            await self.open.wait()
            self.paid.append(who)
            return f"paid {who}"

        self.tool = pay


async def outcomes(run):
    return {
        record.event.id: record.event.outcome
        for record in await run.records()
        if record.type == "EffectFinished"
    }


def payer(gate, *lines):
    return Agent("payer", "You pay.", tools=[gate.tool], model=Script(list(lines), by="turn"))


@in_a_loop
async def test_a_once_tool_in_flight_ends_and_is_not_done_again():
    gate, journal = Gate(), MemoryJournal()
    agent = payer(gate, call("pay", who="ann"), "done")
    async with open_run([agent], journal=journal) as run:
        await run.post("payer", "Pay Ann")
        await gate.began.wait()
        draining = await began_to_drain(run)
        gate.open.set()
        assert await draining == ()
        assert (await outcomes(run))["1/1.c1"] == "completed"
        assert "1/2.m1" not in str(await run.records())
    async with open_run([agent], journal=journal, run_id=run.run_id) as again:
        assert (await again.result("0/1.c1")).output == "done"
    assert gate.paid == ["ann"]


@in_a_loop
async def test_a_reply_that_comes_starts_no_tool_and_the_next_owner_makes_exactly_those_calls():
    began, answer, asked, journal = asyncio.Event(), asyncio.Event(), [], MemoryJournal()
    done = []

    @tool(effect="once")
    async def pay(who: str) -> str:
        "Pay somebody."
        done.append(who)
        return "paid"

    class Slow(Script):
        async def complete(self, request, emit):
            asked.append(request.effect_id)
            if len(asked) == 1:
                began.set()
                await answer.wait()
            return await super().complete(request, emit)

    lines = [[call("pay", who="ann"), call("pay", who="bob")], "done"]
    agent = Agent("payer", tools=[pay], model=Slow(lines, by="turn"))
    async with open_run([agent], journal=journal) as run:
        await run.post("payer", "Pay both")
        await began.wait()
        draining = await began_to_drain(run)
        answer.set()
        assert await draining == ()
        assert (await outcomes(run))["1/1.m1"] == "completed"
        assert done == []
    async with open_run([agent], journal=journal, run_id=run.run_id) as again:
        assert (await again.result("0/1.c1")).output == "done"
    assert (sorted(done), asked) == (["ann", "bob"], ["1/1.m1", "1/2.m1"])


@in_a_loop
async def test_a_last_reply_that_comes_ends_the_request():
    began, answer = asyncio.Event(), asyncio.Event()

    class Slow(Script):
        async def complete(self, request, emit):
            began.set()
            await answer.wait()
            return await super().complete(request, emit)

    async with open_run([Agent("a", model=Slow(["hello"]))]) as run:
        waiting = asyncio.create_task(run.result(await run.post("a", "Hi")))
        await began.wait()
        draining = await began_to_drain(run)
        answer.set()
        assert await draining == ()
        assert (await waiting).output == "hello"


@in_a_loop
async def test_a_tool_that_hangs_is_left_after_the_bound_and_in_doubt_by_its_contract():
    gate, journal, clock = Gate(), MemoryJournal(), VirtualClock()
    agent = payer(gate, call("pay", who="ann"), "done")
    async with open_run([agent], journal=journal, clock=clock) as run:
        waiting = asyncio.create_task(run.result(await run.post("payer", "Pay Ann")))
        await gate.began.wait()
        started = clock.now()
        assert await run.drain(5) == ("1/1.c1",)
        assert clock.now() == started + 5
        with pytest.raises(RunSuspended, match="drained"):
            await waiting
        with pytest.raises(RunSuspended, match="drained"):
            await run.result("0/1.c1")
    async with open_run([agent], journal=journal, run_id=run.run_id) as again:
        await again.result("0/1.c1")
        assert (await outcomes(again))["1/1.c1"] == "unknown"
    assert gate.paid == []


@pytest.mark.parametrize("policy", [None, "strict"])
@in_a_loop
async def test_an_act_that_has_not_begun_is_the_next_owners_to_begin_if_it_may(policy):
    busy, let_go, began = threading.Semaphore(0), threading.Event(), []

    @tool(effect="once")
    def charge(card: int) -> str:
        "Charge a card."
        began.append(card)
        busy.release()
        let_go.wait()
        return "charged"

    journal = MemoryJournal()
    lines = [[call("charge", card=card) for card in range(40)], "done"]
    agent = Agent("payer", model=Script(lines, by="turn"), tools=[charge])
    async with open_run([agent], journal=journal) as run:
        await run.post("payer", "Charge them all")
        for _ in range(32):
            await asyncio.get_running_loop().run_in_executor(None, busy.acquire)
        draining = await began_to_drain(run)
        let_go.set()
        assert await draining == ()
        assert len(began) == 32
    async with open_run([agent], journal=journal, run_id=run.run_id, policy=policy) as again:
        await again.result("0/1.c1")
        ends = [each.event for each in await again.records() if each.type == "EffectFinished"]
    if policy is None:
        assert sorted(began) == list(range(40))
        assert {each.outcome for each in ends} == {"completed"}
        return
    failed = [each.reason for each in ends if each.outcome != "completed"]
    assert len(began) == 32
    assert len(failed) == 8
    assert all("it was not done" in reason for reason in failed)


@in_a_loop
async def test_who_waits_for_a_person_or_a_timer_holds_nothing_up():
    asks = call("call_agent", agent_name="user", message="Which?")
    agent = Agent("a", model=Script([asks, "done"], by="turn"), can_call=["user"])
    journal = MemoryJournal()
    async with open_run([agent], journal=journal, interactive=True) as run:
        await run.post("a", "Go")
        async for record in run.events(deltas=False):
            if getattr(record, "asks", None):
                break
        assert await run.drain(60) == ()
        await run.answer(record.event.id, "the blue one")
    async with open_run([agent], journal=journal, run_id=run.run_id) as again:
        assert (await again.result("0/1.c1")).output == "done"


@in_a_loop
async def test_a_run_with_nothing_in_flight_drains_at_once_and_twice_and_can_be_closed():
    async with open_run([Agent("a", model=Script(["hello"]))]) as run:
        await run.result(await run.post("a", "Hi"))
        assert await run.drain(60) == await run.drain(0) == ()
        with pytest.raises(UserError, match="drained"):
            await run.post("a", "And now?")
        await run.close()
        assert await run.drain(1) == ()


@in_a_loop
async def test_what_is_in_flight_after_a_drain_is_cancelled_by_close():
    gate = Gate()
    async with open_run([payer(gate, call("pay", who="ann"), "done")]) as run:
        await run.post("payer", "Pay Ann")
        await gate.began.wait()
        assert await run.drain(0) == ("1/1.c1",)
        await run.close("enough")
        assert (await outcomes(run))["0/1.c1"] == "cancelled"


@in_a_loop
async def test_an_action_ends_its_step_and_begins_no_other():
    began, go_on, steps, journal = asyncio.Event(), asyncio.Event(), [], MemoryJournal()

    async def first():
        steps.append(1)
        began.set()
        await go_on.wait()
        return "one"

    async def second():
        steps.append(2)
        return "two"

    async def act(ctx):
        return await ctx.step("first", first) + await ctx.step("second", second)

    agent = Agent("worker", hooks=Hooks(act=act))
    async with open_run([agent], journal=journal) as run:
        await run.post("worker", "Work")
        await began.wait()
        draining = await began_to_drain(run)
        go_on.set()
        assert await draining == ()
        assert steps == [1]
    async with open_run([agent], journal=journal, run_id=run.run_id) as again:
        assert (await again.result("0/1.c1")).output == "onetwo"
    assert steps == [1, 2]


@in_a_loop
async def test_what_others_post_meanwhile_stays_in_the_queue():
    gate, journal = Gate(), MemoryJournal()
    agent = payer(gate, call("pay", who="ann"), "done", "and hello")
    from antiphon.kernel.run.commands import AskAgent, encode

    async with open_run([agent], journal=journal) as run:
        await run.post("payer", "Pay Ann")
        await gate.began.wait()
        draining = await began_to_drain(run)
        await journal.post(run.run_id, "key", encode(AskAgent("payer", "Say hello")))
        gate.open.set()
        await draining
        assert "Say hello" not in str(await run.records())
    async with open_run([agent], journal=journal, run_id=run.run_id) as again:
        async for record in again.events(deltas=False):
            if "0/2.c1" in str(record) and record.type == "EffectFinished":
                break


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan"), "soon", None, True])
@in_a_loop
async def test_what_is_no_number_of_seconds_is_refused(seconds):
    async with open_run([Agent("a", model=Script(["hello"]))]) as run:
        with pytest.raises(UserError, match="seconds"):
            await run.drain(seconds)


def test_for_the_next_owner_an_act_that_had_not_begun_was_not_cut_off():
    run = RunState()
    for event in (
        *ASKED,
        started("1/1.c1", "act"),
        started("1/1.c2", "look"),
        DrainStarted(("1/1.c1",)),
        RunResumed(),
    ):
        apply(run, event)
    opened = run.open["1/1.c1"]
    assert (opened.carried_over, opened.crashes, run.owner.draining) == (True, 0, None)
    assert run.open["1/1.c2"].crashes == 1
    apply(run, RunResumed())
    assert opened.crashes == 1


@in_a_loop
async def test_a_kill_anywhere_in_a_drain_loses_nothing():
    gate, journal = Gate(), MemoryJournal()
    agent = payer(gate, call("pay", who="ann"), "done")
    async with open_run([agent], journal=journal) as run:
        await run.post("payer", "Pay Ann")
        await gate.began.wait()
        draining = await began_to_drain(run)
        gate.open.set()
        await draining
        records = await run.records()
    rows = await journal.read(run.run_id)
    first = next(each.seq for each in records if each.type == "DrainStarted")
    for end in [row.seq for row in rows if row.seq >= first]:
        cut = deepcopy(journal)
        kept = [row for row in rows if row.seq <= end]
        cut._runs[run.run_id].rows[:] = kept
        async with open_run([agent], journal=cut, run_id=run.run_id) as again:
            assert (await again.result("0/1.c1")).output == "done"
            known = any(
                each.seq <= end
                and getattr(each.event, "id", "") == "1/1.c1"
                and each.type == "EffectFinished"
                for each in records
            )
            assert (await outcomes(again))["1/1.c1"] == ("completed" if known else "unknown")
    assert gate.paid == ["ann"]
