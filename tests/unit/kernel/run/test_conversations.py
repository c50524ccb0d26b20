"""Requests of one conversation are answered one after the other, whatever becomes of them."""

import asyncio
from contextlib import aclosing

import pytest

from antiphon import Agent, Limits, RunFailed, UserError, open_run, tool
from antiphon.errors import ModelError
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import CallEffect, EffectStarted, MessagePosted
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_run
from antiphon.view import Dialogue, RunTree, connect


class Gate:
    """A model's answer that comes when it is let through."""

    def __init__(self, answer):
        self.answer, self.asked, self.open = answer, asyncio.Event(), asyncio.Event()

    async def __call__(self, request):
        self.asked.set()
        await self.open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def clerk(*replies, **options):
    return Agent("clerk", context="continue", model=Script(list(replies)), **options)


def opened(journal, *agents, **options):
    return open_run(list(agents), journal=journal, run_id="run", **options)


def said(run):
    return [(each.role, each.content) for each in run.transcript("clerk")]


async def audited(journal):
    """The run holds what every run must, and its rules say the same again."""
    await check_run(journal, "run")
    return await read(journal, "run")


def test_a_second_request_waits_and_goes_on_with_the_same_conversation():
    async def main():
        journal, first = MemoryJournal(), Gate("one done")
        async with opened(journal, clerk(first, "two done", "three done"), create=True) as run:
            calls = [await run.post("clerk", each) for each in ("one", "two", "three")]
            await first.asked.wait()
            assert await run.open_requests() == tuple(calls)
            assert len(run.activations()) == 1
            first.open.set()
            found = [(await run.result(each)).output for each in calls]
            transcript = said(run)
        return calls, found, transcript, await audited(journal)

    calls, found, transcript, records = asyncio.run(main())
    assert calls == ["0/1.c1", "0/2.c1", "0/3.c1"]
    assert found == ["one done", "two done", "three done"]
    assert transcript == [
        ("user", "one"), ("assistant", "one done"), ("user", "two"), ("assistant", "two done"),
        ("user", "three"), ("assistant", "three done"),
    ]  # fmt: skip
    details = [each.event.detail for each in records if isinstance(each.event, EffectStarted)]
    waits = [each.queued for each in details if isinstance(each, CallEffect)]
    assert waits == [False, True, True]
    assert {each.callee for each in records if each.callee} == {1}


def test_another_agent_and_one_that_begins_anew_do_not_wait():
    async def main():
        journal, first = MemoryJournal(), Gate("one done")
        other = Agent("other", context="continue", model=Script(["other done"]))
        fresh = Agent("fresh", model=Script(["fresh done", "fresh again"], by="turn"))
        async with opened(journal, clerk(first), other, fresh, create=True) as run:
            waits = await run.post("clerk", "one")
            await first.asked.wait()
            for each in (other, fresh, fresh):
                assert (await run.result(await run.post(each, "now"))).outcome == "completed"
            first.open.set()
            await run.result(waits)
        await audited(journal)

    asyncio.run(main())


def test_requests_from_elsewhere_wait_too_and_their_receipt_does_not():
    async def main():
        journal, first = MemoryJournal(), Gate("one done")
        async with opened(journal, clerk(first, "two done", "three done"), create=True) as run:
            one = await run.post("clerk", "one")
            await first.asked.wait()
            async with connect(journal, "run") as outside:
                two = await outside.taken(await outside.ask("clerk", "two"))
                three = await run.post("clerk", "three")
                assert (two, three) == ("0/2.c1", "0/3.c1")
                late = await outside.post(two, "and hurry")
                with pytest.raises(UserError, match="waits for the requests before it"):
                    await outside.taken(late)
                with pytest.raises(UserError, match="waits for the requests before it"):
                    await run.post(three, "and hurry")
            first.open.set()
            found = [(await run.result(each)).output for each in (one, two, three)]
            assert found == ["one done", "two done", "three done"]
            assert [text for role, text in said(run) if role == "user"] == ["one", "two", "three"]
        await audited(journal)

    asyncio.run(main())


@pytest.mark.parametrize("waits", [1, 2])
def test_one_that_is_cancelled_while_it_waits_leaves_no_trace_in_the_conversation(waits):
    async def main():
        journal, first = MemoryJournal(), Gate("one done")
        async with opened(journal, clerk(first, "next done"), create=True) as run:
            calls = [await run.post("clerk", each) for each in ("one", "two", "three")]
            await first.asked.wait()
            assert await run.cancel(calls[waits], "not needed")
            ended = await run.result(calls[waits])
            assert (ended.outcome, ended.reason) == ("cancelled", "not needed")
            first.open.set()
            left = calls[3 - waits]
            assert [(await run.result(each)).output for each in (calls[0], left)] == ["one done", "next done"]
            asked = [text for role, text in said(run) if role == "user"]
            assert asked == ["one", ("two", "three")[2 - waits]]
        await audited(journal)

    asyncio.run(main())


def test_all_are_cancelled_at_once_and_none_begins():
    async def main():
        journal, first = MemoryJournal(), Gate("one done")
        async with opened(journal, clerk(first, "new"), create=True) as run:
            calls = [await run.post("clerk", each) for each in ("one", "two", "three")]
            await first.asked.wait()
            await run.cancel()
            assert {(await run.result(each)).outcome for each in calls} == {"cancelled"}
            assert (await run.result(await run.post("clerk", "again"))).output == "new"
        records = await audited(journal)
        assert not [each for each in records if isinstance(each.event, MessagePosted) and each.event.begins]

    asyncio.run(main())


@pytest.mark.parametrize("end", [ModelError("validation", "no"), "cancel"])
def test_the_next_one_begins_when_the_first_fails_or_is_cancelled(end):
    async def main():
        journal, first = MemoryJournal(), Gate(end)
        async with opened(journal, clerk(first, "two done"), create=True) as run:
            one, two = [await run.post("clerk", each) for each in ("one", "two")]
            await first.asked.wait()
            if end == "cancel":
                await run.cancel(one)
                assert (await run.result(one)).outcome == "cancelled"
            else:
                first.open.set()
                with pytest.raises(RunFailed):
                    await run.result(one)
            assert (await run.result(two)).output == "two done"
            assert said(run)[-2:] == [("user", "two"), ("assistant", "two done")]
            assert said(run)[0] == ("user", "one")
        await audited(journal)

    asyncio.run(main())


def test_it_waits_while_the_first_asks_a_person_and_begins_with_the_answer():
    @tool(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    async def main():
        journal = MemoryJournal()
        agent = clerk(call("pay"), "one done", "two done", tools=[pay])
        async with opened(journal, agent, create=True, interactive=True) as run:
            one, two = [await run.post("clerk", each) for each in ("one", "two")]
            async with aclosing(run.events(deltas=False)) as events:
                async for record in events:
                    if record.asks is not None:
                        break
            assert len(run.activations()) == 1
            await run.answer("1/1.c1?", "yes")
            assert [(await run.result(each)).output for each in (one, two)] == ["one done", "two done"]
            assert [text for _, text in said(run)] == ["one", "", "paid", "one done", "two", "two done"]
        await audited(journal)

    asyncio.run(main())


def test_time_spent_waiting_counts_for_no_limit_of_the_one_that_waits():
    async def main():
        journal, clock = MemoryJournal(), VirtualClock()
        first, second = Gate("one done"), Gate("two done")
        async with opened(journal, clerk(first, second), create=True, clock=clock) as run:
            one = await run.post("clerk", "one")
            two = await run.post("clerk", "two", limits=Limits(timeout_seconds=10))
            await first.asked.wait()
            clock.advance(1_000)
            first.open.set()
            assert (await run.result(one)).output == "one done"
            await second.asked.wait()
            clock.advance(9)
            assert await run.open_requests() == (two,)
            clock.advance(2)
            ended = await run.result(two)
            assert (ended.outcome, ended.reason) == ("limit", "the limit of 10 s is used up")
        await audited(journal)

    asyncio.run(main())


def test_who_takes_the_run_up_keeps_the_order(tmp_path):
    journal = MemoryJournal()

    async def first_owner():
        first = Gate("never")
        async with opened(journal, clerk(first), create=True) as run:
            for each in ("one", "two", "three"):
                await run.post("clerk", each)
            await first.asked.wait()

    async def second_owner():
        async with opened(journal, clerk("one done", "two done", "three done")) as run:
            found = [(await run.result(f"0/{number}.c1")).output for number in (1, 2, 3)]
            assert found == ["one done", "two done", "three done"]
            assert [text for role, text in said(run) if role == "user"] == ["one", "two", "three"]
        await audited(journal)

    asyncio.run(first_owner())
    asyncio.run(second_owner())


def test_those_who_wait_for_an_agent_that_is_gone_are_told_so():
    journal = MemoryJournal()

    async def main():
        first = Gate("never")
        async with opened(journal, clerk(first), create=True) as run:
            for each in ("one", "two"):
                await run.post("clerk", each)
            await first.asked.wait()
        async with opened(journal, Agent("other", model=Script(["x"]))) as run:
            for number in (1, 2):
                with pytest.raises(RunFailed, match="the team has no agent clerk any more"):
                    await run.result(f"0/{number}.c1")
        await audited(journal)

    asyncio.run(main())


def test_readers_see_that_it_waits_and_when_it_begins():
    async def main():
        journal, first = MemoryJournal(), Gate("one done")
        async with opened(journal, clerk(first, "two done"), create=True) as run:
            one, two = [await run.post("clerk", each) for each in ("one", "two")]
            await first.asked.wait()
            waiting = await run.records()
            first.open.set()
            await run.result(two)
            await run.result(one)
        return waiting, await read(journal, "run")

    waiting, records = asyncio.run(main())
    tree = RunTree.of(waiting)
    assert list(tree.requests) == ["0/1.c1", "0/2.c1"]
    assert tree.requests["0/2.c1"].callee is None
    assert tree.activations[1].call == "0/1.c1"
    whole = RunTree.of(records)
    assert whole.effects["0/2.c1"].callee is whole.activations[1]
    assert whole.activations[1].reactivated
    dialogue = Dialogue()
    for record in waiting:
        dialogue.add(record)
    assert [(each.text, each.outcome) for each in dialogue.requests.values()] == [("one", ""), ("two", "")]
    for record in records[len(waiting) :]:
        dialogue.add(record)
    told = [(each.text, each.content) for each in dialogue.requests.values()]
    assert told == [("one", "one done"), ("two", "two done")]
    assert [len(each.parts) for each in dialogue.requests.values()] == [1, 1]


def test_a_tool_that_would_wait_for_its_own_request_is_told_so():
    async def main():
        journal, runs = MemoryJournal(), []

        @tool
        async def ask_again() -> str:
            """Ask again."""
            (run,) = runs
            return (await run.result(await run.post("clerk", "two"))).output

        agent = clerk(call("ask_again"), "one done", "two done", tools=[ask_again])
        async with opened(journal, agent, create=True, policy="open") as run:
            runs.append(run)
            assert (await run.result(await run.post("clerk", "one"))).output == "one done"
            assert (await run.result("0/2.c1")).output == "two done"
            assert any(
                "1/1.c1 waits for 0/2.c1, which waits until 0/1.c1 has ended" in text for _, text in said(run)
            )
        await audited(journal)

    asyncio.run(main())
