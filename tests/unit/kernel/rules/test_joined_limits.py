"""Agents held by the same limit: one question, whose answer is for all of them."""

import asyncio

import pytest

from antiphon import Agent, Limits, UserError, open_run, run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectStarted, LimitEffect
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_journal
from antiphon.values.limits import RunLimits
from antiphon.view import connect
from tests.transcript import until

ONE_TURN = Limits(turns=1, on_breach="ask")


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def team(turns=2, **options):
    """`lead` has three at work at once; each needs so many turns."""
    lead = Agent(
        "lead", model=Script([[call("call_agent", agent_name=n, message="go") for n in "bcd"], "end"])
    )
    work = [
        Agent(n, tools=[look], model=Script([*[call("look")] * (turns - 1), f"{n} done"]), **options)
        for n in "bcd"
    ]
    return [lead, *work]


def bounded(talk):
    async def in_time():
        async with asyncio.timeout(20):
            return await talk()

    return asyncio.run(in_time())


def limits_of(records):
    starts = [each.event for each in records if isinstance(each.event, EffectStarted)]
    return [(each.id, each.detail.joins) for each in starts if type(each.detail) is LimitEffect]


def told(agents):
    return [each.content for each in agents[0].model.requests[-1].messages if each.role == "tool"]


def test_one_answer_frees_all():
    asked, journal, agents = [], MemoryJournal(), team()

    async def on_input(message):
        asked.append((message.sender, message.intent))
        return "yes"

    result = asyncio.run(
        run(agents[0], "go", agents=agents, limits=ONE_TURN, on_input=on_input, journal=journal)
    )
    assert (result.output, told(agents)) == ("end", ["b done", "c done", "d done"])
    assert asked == [("b", "limit")]
    asyncio.run(check_journal(journal))


def test_what_is_allowed_is_allowed_once():
    """Three who wait for as much again do not get it three times."""

    async def talk():
        agents = team(turns=3)
        async with open_run(agents, limits=ONE_TURN) as opened:
            request = await opened.post("lead", "go")
            await until(opened, "4/2.l1 wait limit user started")
            await opened.answer("2/2.l1", "yes")
            await until(opened, "2/3.l2 wait limit user started")
            asked = dict(limits_of(await opened.records()))
            (first,) = {joins for place, joins in asked.items() if place.endswith("l2") and joins}
            await opened.answer(first, "no")
            await opened.result(request)
            return asked, first, told(agents)

    asked, first, shown = bounded(talk)
    assert asked.pop(first) == ""
    assert asked == {
        "2/2.l1": "", "3/2.l1": "2/2.l1", "4/2.l1": "2/2.l1",
        **dict.fromkeys({"2/3.l2", "3/3.l2", "4/3.l2"} - {first}, first),
    }  # fmt: skip
    assert all("the limit of 2 turns of one activation is used up" in each for each in shown)


def test_whoever_is_connected_sees_one_question():
    journal = MemoryJournal()

    async def talk():
        async with (
            open_run(team(), limits=ONE_TURN, journal=journal) as opened,
            connect(journal, opened.run_id) as seen,
        ):
            request = await opened.post("lead", "go")
            await until(opened, "4/2.l1 wait limit user started")
            (question,) = await seen.open_questions()
            assert (question.id, question.kind, question.agent) == ("2/2.l1", "limit", "b")
            assert question.also == ("c", "d")
            with pytest.raises(UserError, match=r"3/2\.l1 joins the question 2/2\.l1; answer that"):
                await opened.answer("3/2.l1", "yes")
            with pytest.raises(UserError, match=r"3/2\.l1 is not an open question"):
                await seen.answer("3/2.l1", "yes")
            await seen.taken(await seen.answer(question.id, "yes"))
            return (await opened.result(request)).output

    assert bounded(talk) == "end"


def test_who_joined_asks_when_the_question_is_taken_back():
    journal, agents = MemoryJournal(), team()

    async def talk():
        async with open_run(agents, limits=ONE_TURN, journal=journal) as opened:
            request = await opened.post("lead", "go")
            await until(opened, "4/2.l1 wait limit user started")
            await opened.cancel("1/1.c1")
            await until(opened, "4/2.l2 wait limit user started")
            await opened.answer("3/2.l2", "yes")
            await opened.result(request)
            return limits_of(await opened.records())[3:]

    assert bounded(talk) == [("3/2.l2", ""), ("4/2.l2", "3/2.l2")]
    assert [each[:9] for each in told(agents)] == ["Error: ca", "c done", "d done"]
    asyncio.run(check_journal(journal))


def test_nobody_answers_any_of_them():
    agents = team()

    async def talk():
        clock = VirtualClock()
        limits = Limits(turns=1, on_breach="ask", answer_seconds=60)
        async with open_run(agents, limits=limits, clock=clock) as opened:
            result = await opened.result(await opened.post("lead", "go"))
            return result.outcome, [round(each - 1_700_000_000) for each in clock.jumps]

    # Then the lead itself is held, and asks.
    assert bounded(talk) == ("limit", [60, 120])


@pytest.mark.parametrize("drained", [True, False])
def test_the_next_owner_goes_on_with_the_one_question(drained):
    journal, agents = MemoryJournal(), team()

    async def talk():
        async with open_run(agents, limits=ONE_TURN, journal=journal) as opened:
            await opened.post("lead", "go")
            await until(opened, "4/2.l1 wait limit user started")
            if drained:
                await opened.drain(1)
                await opened.answer("2/2.l1", "yes")
        async with open_run(agents, journal=journal, run_id=opened.run_id) as again:
            if not drained:
                await again.answer("2/2.l1", "yes")
            return (await again.result("0/1.c1")).output

    assert bounded(talk) == "end"
    asyncio.run(check_journal(journal))


def test_limits_of_their_own_are_questions_of_their_own():
    async def talk():
        async with open_run(team(limits=ONE_TURN)) as opened:
            await opened.post("lead", "go")
            await until(opened, "4/2.l1 wait limit user started")
            return limits_of(await opened.records())

    assert bounded(talk) == [("2/2.l1", ""), ("3/2.l1", ""), ("4/2.l1", "")]


def test_two_requests_under_the_limits_of_the_run_ask_once():
    journal = MemoryJournal()

    async def talk():
        one, two = (Agent(n, model=Script([f"{n} done"])) for n in "xy")
        limits = RunLimits(tokens=100, on_breach="ask")
        async with open_run([one, two], run_limits=limits, journal=journal) as opened:
            requests = [await opened.post(n, "go") for n in "xy"]
            await until(opened, "2/1.l1 wait limit user started")
            found = limits_of(await opened.records())
            await opened.answer("1/1.l1", "no")
            ends = [(await opened.result(each)).outcome for each in requests]
            return found, ends

    assert bounded(talk) == ([("1/1.l1", ""), ("2/1.l1", "1/1.l1")], ["budget", "budget"])
    asyncio.run(check_journal(journal))
