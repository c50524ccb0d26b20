"""A machine's clock that is set while a run goes on, or between two owners, stretches no limit."""

import asyncio
import time

import pytest

from antiphon import Agent, Limits, RunFailed, open_journal, open_run, tool
from antiphon.kernel.run.open import system_clock
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run

HOUR = 3600.0
LIMIT = 0.2
PATIENCE = 20.0
"""Seconds after which a limit of `LIMIT` has been stretched."""


class Wall:
    """The machine's clock, which somebody sets."""

    def __init__(self):
        self.set = 0.0
        self._real = time.time

    def __call__(self):
        return self._real() + self.set


@pytest.fixture
def wall(monkeypatch):
    found = Wall()
    monkeypatch.setattr(time, "time", found)
    return found


class Steady:
    """A clock that nobody sets; it moves when the test says so."""

    def __init__(self):
        self.at = 5.0

    def __call__(self):
        return self.at


async def ended(run, request):
    async with asyncio.timeout(PATIENCE):
        try:
            return await run.result(request)
        except RunFailed as failed:
            return failed.result


def hanging(wall, step):
    @tool(effect="read")
    async def hang() -> str:
        "Never end, while the clock is set."
        wall.set += step
        await asyncio.Event().wait()
        return "never"

    return Agent("a", tools=[hang], model=Script([call("hang"), "late"], by="turn"))


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_clock_that_is_set_does_not_stretch_a_limit(wall, step):
    async def main():
        journal = open_journal(None)
        limits = Limits(timeout_seconds=LIMIT)
        async with open_run([hanging(wall, step)], journal=journal, limits=limits) as run:
            result = await ended(run, await run.post("a", "go"))
            times = [each.at for each in await run.records()]
        await check_run(journal, run.run_id)
        return result, times

    result, times = asyncio.run(main())
    assert (result.outcome, result.reason) == ("limit", f"the limit of {LIMIT:g} s is used up")
    assert times == sorted(times)
    assert times[-1] - times[0] < PATIENCE


def test_an_owner_whose_clock_is_behind_goes_on_from_the_last_record(wall):
    async def main():
        journal, limits = open_journal(None), Limits(timeout_seconds=LIMIT)
        wall.set = HOUR
        async with open_run([hanging(wall, 0.0)], journal=journal, limits=limits) as run:
            request = await run.post("a", "go")
            before = [each.at for each in await run.records()]
        wall.set = 0.0
        async with open_run([hanging(wall, 0.0)], journal=journal, run_id=run.run_id) as run:
            result = await ended(run, request)
            times = [each.at for each in await run.records()]
        return before, times, result

    before, times, result = asyncio.run(main())
    assert result.outcome == "limit"
    assert times == sorted(times)
    assert 0 <= times[-1] - before[-1] < PATIENCE


def test_time_passes_at_a_steady_pace_and_begins_with_the_machine_s(wall):
    steady, now = Steady(), wall()
    clock = system_clock(steady=steady)
    assert now <= clock.now() < now + PATIENCE
    begun = clock.now()
    wall.set, steady.at = -HOUR, steady.at + 2.5
    assert clock.now() == pytest.approx(begun + 2.5)
    assert system_clock(begun, steady).now() == pytest.approx(begun)
    wall.set = HOUR
    assert system_clock(begun, steady).now() > begun + HOUR / 2


def test_a_sleeper_wakes_by_the_steady_clock():
    steady = Steady()
    clock = system_clock(steady=steady)

    async def main():
        async with asyncio.timeout(PATIENCE):
            sleeping = asyncio.ensure_future(clock.sleep_until(clock.now() + 0.001))
            await asyncio.sleep(0)
            assert not sleeping.done()
            steady.at += 1.0
            await sleeping

    asyncio.run(main())
