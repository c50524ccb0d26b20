"""Limits.seconds: a request's time, without the time that people were waited for."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Limits, Record, ToolContext, open_journal, open_run, tool
from antiphon.kernel.facts.events import EffectStarted, QuestionEffect
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_run
from tests.transcript import effects, recorded, shown


@tool
async def endless(ctx: ToolContext) -> str:
    """Never end."""
    await asyncio.Event().wait()
    return "never"


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def test_a_request_ends_when_its_time_is_over() -> None:
    async def never(request: Any) -> str:
        await asyncio.Event().wait()
        return "late"

    clock = VirtualClock()
    result, records = recorded(
        Agent("a", tools=[look]),
        "go",
        model=Script([call("look"), never]),
        clock=clock,
        limits=Limits(timeout_seconds=10),
    )
    assert (result.outcome, result.reason) == ("limit", "the limit of 10 s is used up")
    assert clock.now() == pytest.approx(1_700_000_010.0)
    assert "1/2.m1 cancelled: the caller ended" in effects(records, "m")


def test_in_the_middle_of_its_calls_every_call_gets_a_result() -> None:
    """Sequential: one runs, one has not begun; both are told of, and the turn ends in order."""
    calls = [call("look"), call("endless"), call("look")]
    agent = Agent("a", tools=[look, endless], tool_execution="sequential")
    result, records = recorded(
        agent, "go", model=Script([calls]), clock=VirtualClock(), limits=Limits(timeout_seconds=10)
    )
    assert result.outcome == "limit"
    assert effects(records, "c")[1:-1] == [
        "1/1.c1 tool look started",
        "1/1.c1 completed: seen",
        "1/1.c2 tool endless started",
        "1/1.c2 cancelled: the caller ended; it may or may not have taken effect",
        "1/1.c3 cancelled: the limit of 10 s is used up",
    ]


def test_a_callee_has_its_own_time_and_the_caller_goes_on() -> None:
    slow = Agent("slow", tools=[endless], limits=Limits(timeout_seconds=5))
    lead = Agent("lead")
    model = Script(
        {"lead": [call("call_agent", agent_name="slow", message="m"), "done"], "slow": [call("endless")]}
    )
    result, records = recorded(lead, "go", agents=[lead, slow], model=model, clock=VirtualClock())
    assert result.output == "done"
    assert "1/1.c1 limit: the limit of 5 s is used up" in effects(records, "c")


@pytest.mark.parametrize("nested", [False, True])
def test_waiting_for_people_counts_as_no_time_and_costs_no_records(nested: bool) -> None:
    async def playing() -> None:
        clock, journal = VirtualClock(autojump=False), open_journal()
        question = call("call_agent", agent_name="user", message="Which?")
        asker = Agent("asker")
        lead = Agent("lead") if nested else asker
        script: dict[str, Any] = {"asker": [question, "thanks", "more"]}
        if nested:
            script["lead"] = [call("call_agent", agent_name="asker", message="m"), "thanks"]
        async with open_run(
            {lead.name: lead, "asker": asker}.values(),
            journal=journal,
            model=Script(script),
            clock=clock,
            limits=Limits(timeout_seconds=10),
        ) as run:
            request = await run.post(lead, "go")
            events = run.events(deltas=False)
            async for item in events:
                if isinstance(item.event, EffectStarted) and isinstance(item.event.detail, QuestionEffect):
                    break
            before = run.seq
            for _ in range(100):
                clock.advance(864.0)
                for _ in range(3):
                    await asyncio.sleep(0)
            assert run.seq - before <= 1, "only that the timer went off"
            await run.answer(item.event.id, "this")
            result = await run.result(request)
            assert (result.outcome, result.output) == ("completed", "thanks")
            events.close()
        await check_run(journal, run.run_id)

    asyncio.run(playing())


@pytest.mark.parametrize("nested", [False, True])
def test_after_the_answer_the_rest_of_the_time_runs_on(nested: bool) -> None:
    async def playing() -> None:
        clock = VirtualClock(autojump=False)

        async def never(request: Any) -> str:
            await asyncio.Event().wait()
            return "late"

        question = call("call_agent", agent_name="user", message="Which?")
        lead = call("call_agent", agent_name="a", message="m")
        model = Script({"a": [question, never], "lead": [lead, "thanks"]})
        async with open_run(
            [Agent("a"), Agent("lead")], model=model, clock=clock, limits=Limits(timeout_seconds=10)
        ) as run:
            request = await run.post("lead" if nested else "a", "go")
            clock.advance(4.0)
            for item in await until(run, QuestionEffect):
                question_id = item.event.id
            clock.advance(1_000.0)
            await asyncio.sleep(0)
            await run.answer(question_id, "this")
            await asyncio.sleep(0)
            assert request in await run.open_requests()
            clock.advance(5.0)
            for _ in range(5):
                await asyncio.sleep(0)
            assert request in await run.open_requests()
            clock.advance(2.0)
            result = await run.result(request)
            assert result.outcome == "limit"

    asyncio.run(playing())


async def until(run: Any, kind: type) -> list[Record]:
    """The first effect of a kind."""
    events = run.events(deltas=False)
    async for item in events:
        if isinstance(item.event, EffectStarted) and isinstance(item.event.detail, kind):
            events.close()
            return [item]
    return []


def test_a_deadline_survives_the_process(tmp_path: Any) -> None:
    async def playing() -> None:
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        clock = VirtualClock(autojump=False)

        async def never(request: Any) -> str:
            await asyncio.Event().wait()
            return "late"

        agent = Agent("a")
        async with open_run(
            [agent], journal=journal, model=Script([never]), clock=clock, limits=Limits(timeout_seconds=10)
        ) as run:
            request = await run.post("a", "go")
            await run.records()
        clock.advance(11.0)
        async with open_run(
            [agent], journal=journal, run_id=run.run_id, model=Script([never]), clock=clock
        ) as run:
            result = await run.result(request)
        assert (result.outcome, result.reason) == ("limit", "the limit of 10 s is used up")
        await check_run(journal, run.run_id)
        await journal.close()

    asyncio.run(playing())


def test_a_continued_agent_gets_its_time_anew() -> None:
    async def playing() -> None:
        clock = VirtualClock(autojump=False)
        model = Script(["one", "two", "three"])
        async with open_run(
            [Agent("a", context="continue")],
            model=model,
            clock=clock,
            limits=Limits(timeout_seconds=10, turns=1),
        ) as run:
            for text in ("one", "two", "three"):
                assert str(await run.result(await run.post("a", "go"))) == text
                clock.advance(9.0)
        assert len(shown(model.requests[2])) == 5

    asyncio.run(playing())


def test_an_agent_that_goes_on_with_its_conversation_does_so_after_its_time_was_over() -> None:
    async def never(request: Any) -> str:
        await asyncio.Event().wait()
        return "late"

    async def main() -> tuple[str, str]:
        clock = VirtualClock()
        agent = Agent(
            "a", context="continue", model=Script([never, "again"]), limits=Limits(timeout_seconds=10)
        )
        async with open_run([agent], create=True, clock=clock) as run:
            ended = await run.result(await run.post("a", "go"))
            return ended.outcome, (await run.result(await run.post("a", "more"))).output

    assert asyncio.run(main()) == ("limit", "again")
