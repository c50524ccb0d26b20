"""Limits that all requests of a run share: what a batch may use as a whole."""

import asyncio
from decimal import Decimal

import pytest

from antiphon import (
    UNLIMITED,
    Agent,
    Limits,
    ModelOptions,
    RunFailed,
    Usage,
    UserError,
    open_journal,
    open_run,
    run_sync,
    tool,
)
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, ModelEffect, RoomEffect
from antiphon.kernel.run.rows import fold
from antiphon.models.catalog import Prices
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.values.limits import RunLimits
from antiphon.values.model import Reply

CAP = ModelOptions(max_output_tokens=1_000)
WORKER = Agent("worker", asking=CAP)
EACH = Usage(800, 200)


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def works(usage=EACH, prices=None):
    """A model that says `done` to everyone, for so much."""
    model = Script(lambda request: Reply("done", usage=usage), name="worker")
    model.prices = prices
    return model


async def batch(count, model=None, *, agent=WORKER, journal=None, **options):
    """Requests of one run, all at once: how each ended, and the journal."""
    journal = journal or open_journal()
    async with open_run([agent], model=model or works(), journal=journal, **options) as run:
        asked = [await run.post(agent, f"item {number}") for number in range(count)]
        async with asyncio.timeout(20):
            results = [await ended(run, each) for each in asked]
        records = await run.records()
    await check_run(journal, run.run_id)
    return results, records, await fold(journal, run.run_id)


async def ended(run, request):
    try:
        return await run.result(request)
    except RunFailed as failed:
        return failed.result


def outcomes(results):
    return [each.outcome for each in results]


def test_a_limit_of_tokens_holds_for_the_whole_batch():
    results, _, state = asyncio.run(batch(50, run_limits=RunLimits(tokens=20_000)))
    done = outcomes(results).count("completed")
    assert outcomes(results) == ["completed"] * done + ["budget"] * (50 - done)
    assert sum(each.usage.total for each in results) == done * 1_000 == state.totals.scopes[0].tokens
    assert 15 < done <= 20
    assert "of 20,000 tokens are spent" in results[-1].reason


def test_so_does_one_of_money():
    dollar = Prices(input=Decimal(1_000), output=Decimal(1_000))
    results, _, state = asyncio.run(batch(20, works(prices=dollar), run_limits=RunLimits(usd=10)))
    done = outcomes(results).count("completed")
    assert 5 < done <= 10
    assert state.totals.scopes[0].nano_usd == done * 10**9
    assert "of $10.0000 are spent" in results[-1].reason


def test_without_one_each_request_has_its_own():
    results, _, state = asyncio.run(batch(50, limits=Limits(tokens=5_000)))
    assert outcomes(results) == ["completed"] * 50
    assert state.totals.scopes == ()


def test_the_limits_of_a_request_hold_within_those_of_the_run():
    results, _, _ = asyncio.run(batch(3, limits=Limits(tokens=500), run_limits=RunLimits(tokens=1_000_000)))
    assert outcomes(results) == ["budget"] * 3
    assert "0 of 500 tokens are spent" in results[0].reason


def test_a_request_waits_for_room_that_another_one_holds():
    """There is room for one hold at a time: all are served, in the order of waiting."""
    results, records, _ = asyncio.run(batch(6, run_limits=RunLimits(tokens=8_000)))
    assert outcomes(results) == ["completed"] * 6
    waits = [each.event.id for each in records if has(each, EffectStarted, RoomEffect)]
    asked = [each.activation for each in records if has(each, EffectStarted, ModelEffect)]
    assert waits
    assert asked == sorted(asked)
    held = most = 0
    holds = {}
    for record in records:
        event = record.event
        if has(record, EffectStarted, ModelEffect):
            holds[event.id] = event.detail.held_tokens
        elif type(event) is EffectFinished:
            holds.pop(event.id, None)
        held = sum(holds.values())
        most = max(most, held)
    assert most <= 8_000


def has(record, kind, detail):
    return type(record.event) is kind and type(record.event.detail) is detail


def test_room_that_a_cancelled_request_held_is_given_to_another():
    async def playing():
        begun = asyncio.Event()

        async def first(request):
            begun.set()
            await asyncio.Event().wait()

        model = Script([first, Reply("done", usage=EACH)])
        agent = Agent("worker", asking=ModelOptions(max_output_tokens=3_000))
        async with open_run([agent], model=model, run_limits=RunLimits(tokens=8_000)) as run:
            one, other = await run.post(agent, "one"), await run.post(agent, "other")
            await begun.wait()
            await run.cancel(one)
            return (await run.result(one)).outcome, (await run.result(other)).outcome

    assert asyncio.run(playing()) == ("cancelled", "completed")


def test_calls_and_activations_count_over_all_requests():
    agent = Agent("worker", tools=[look], asking=CAP)
    looks = Script(lambda request: "done" if len(request.messages) > 1 else call("look"))
    results, _, _ = asyncio.run(batch(6, looks, agent=agent, run_limits=RunLimits(calls=2)))
    assert set(outcomes(results)) == {"completed", "limit"}
    assert outcomes(results).count("completed") == 2
    results, _, _ = asyncio.run(batch(6, run_limits=RunLimits(activations=4)))
    assert outcomes(results) == ["completed"] * 4 + ["limit"] * 2
    assert results[-1].reason == "of all requests of the run, the limit of 4 agent calls is reached"


def test_several_entries_of_one_run_share_them():
    team = [Agent(name, asking=CAP) for name in "abcdef"]
    apart = run_sync(team, "go", model=works(), limits=Limits(tokens=4_000))
    assert (apart.outcome, apart.usage.total) == ("completed", 6_000)
    together = run_sync(team, "go", model=works(), run_limits=RunLimits(tokens=4_000))
    assert together.outcome == "budget"
    assert 0 < together.usage.total <= 4_000


def test_they_are_kept_with_the_run():
    async def playing():
        journal = open_journal()
        limits = RunLimits(tokens=6_000)
        async with open_run([WORKER], model=works(), journal=journal, run_limits=limits) as run:
            before = [await ended(run, await run.post(WORKER, "x")) for _ in range(3)]
        async with open_run([WORKER], model=works(), journal=journal, run_id=run.run_id) as again:
            after = [await ended(again, await again.post(WORKER, "x")) for _ in range(5)]
        await check_run(journal, run.run_id)
        return outcomes(before), outcomes(after)

    before, after = asyncio.run(playing())
    assert before == ["completed"] * 3
    assert after[-1] == "budget"


def test_a_person_may_allow_the_run_as_much_again():
    async def playing():
        limits = RunLimits(tokens=4_000, on_breach="ask")
        async with open_run([WORKER], model=works(), run_limits=limits) as run:

            async def person(message):
                return "yes"

            run.on_input(person)
            asked = [await run.post(WORKER, "x") for _ in range(6)]
            return outcomes([await ended(run, each) for each in asked])

    assert asyncio.run(playing()) == ["completed"] * 6


def test_a_request_is_not_handed_over_to_the_run():
    """What a request may spend is used up: no agent goes on for it on the books of all requests."""
    limits = Limits(tokens=500, on_breach="handoff", breach_target="worker")
    results, _, _ = asyncio.run(batch(1, limits=limits, run_limits=RunLimits(tokens=10**6)))
    assert outcomes(results) == ["budget"]


def test_an_overrun_of_one_request_lets_no_other_begin():
    model = works(Usage(900_000, 1))
    results, _, state = asyncio.run(batch(3, model, limits=UNLIMITED, run_limits=RunLimits(tokens=2_100)))
    assert outcomes(results) == ["budget"] * 3
    assert model.asked == 1
    assert state.totals.scopes[0].tokens == 900_001


@pytest.mark.parametrize("wrong", [{"tokens": "many"}, {"usd": float("nan")}, {"calls": 1.5}])
def test_what_is_no_limit_is_refused(wrong):
    with pytest.raises(UserError, match="RunLimits"):
        RunLimits(**wrong)


def test_whole_numbers_are_read_back_as_they_are_kept():
    assert RunLimits(tokens=1e6, usd=2) == RunLimits(tokens=1_000_000, usd=2.0)


# -- other limits when a run is opened again -----------------------------------------------------


def opened_with(*limits, model=None, count=3):
    """A run opened once with each of these limits: how requests ended each time, and the last state."""

    async def playing():
        journal, found = open_journal(), []
        for each in limits:
            async with open_run(
                [WORKER], model=model or works(), journal=journal, run_id="r", create=True, run_limits=each
            ) as run:
                found.append([(await ended(run, await run.post(WORKER, "x"))).outcome for _ in range(count)])
        await check_run(journal, "r")
        return found, await fold(journal, "r")

    return asyncio.run(playing())


def test_new_limits_of_a_run_take_the_place_of_the_old_ones():
    found, state = opened_with(RunLimits(tokens=2_500), RunLimits(tokens=60_000))
    assert found == [["completed", "budget", "budget"], ["completed"] * 3]
    assert state.options.run_limits == RunLimits(tokens=60_000)
    assert state.totals.scopes[0].tokens == 4_000


def test_of_each_limit_the_new_one_where_one_is_named():
    _, state = opened_with(RunLimits(tokens=50_000, usd=9), RunLimits(calls=50, on_breach="ask"))
    assert state.options.run_limits == RunLimits(tokens=50_000, usd=9, calls=50, on_breach="ask")


def test_a_lower_one_lets_nothing_more_begin():
    found, state = opened_with(RunLimits(tokens=60_000), RunLimits(tokens=1_000), RunLimits(tokens=60_000))
    assert found == [["completed"] * 3, ["budget"] * 3, ["completed"] * 3]
    assert state.totals.scopes[0].tokens == 6_000


def test_requests_in_flight_stand_on_the_new_ones():
    async def playing():
        journal, begun = open_journal(), asyncio.Event()

        async def hangs(request):
            begun.set()
            await asyncio.Event().wait()

        options = {"journal": journal, "run_id": "r", "create": True}
        async with open_run(
            [WORKER], model=Script([hangs]), run_limits=RunLimits(tokens=9_000), **options
        ) as run:
            asked = await run.post(WORKER, "x")
            await begun.wait()
        async with open_run([WORKER], model=works(), run_limits=RunLimits(tokens=500), **options) as again:
            result = await ended(again, asked)
        await check_run(journal, "r")
        return result

    result = asyncio.run(playing())
    assert result.outcome == "budget"
    assert "500 tokens" in result.reason


def test_the_same_ones_and_none_leave_the_run_as_it_is():
    same = RunLimits(tokens=60_000)
    found, state = opened_with(same, same, RunLimits(), None)
    assert found == [["completed"] * 3] * 4
    assert state.options.run_limits == same


def test_a_run_that_was_started_without_them_takes_none():
    with pytest.raises(UserError, match="Run r was started without run_limits"):
        opened_with(None, RunLimits(tokens=5))
