"""A run forked wherever nothing is at work ends as it did: nothing is lost, and nothing done twice."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon import Record, open_run
from antiphon.journal import Journal, MemoryJournal
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, StepEffect, ToolEffect
from antiphon.kernel.run.commands import AskAgent, encode
from antiphon.kernel.run.forks.fork import fork
from antiphon.kernel.run.rows import RecordReader
from antiphon.testing.clock import VirtualClock
from antiphon.testing.crash import Scenario, enumerate_crashes
from antiphon.testing.invariants import check_journal
from antiphon.testing.replay import check_recorded, save_run
from antiphon.testing.verdict import account_of
from antiphon.testing.world import World
from tests.promises.crash_scenarios import ALL, APPROVAL, CONVERSATION, LOOP

DAY = 86_400.0
START = VirtualClock().now()


async def played(
    scenario: Scenario, journal: Journal, world: World, run_id: str, start: float, *, create: bool
) -> None:
    """Play a scenario, from its beginning or from where a fork of it begins."""
    options: dict[str, Any] = {"model": scenario.model(), "clock": VirtualClock(start), "env": {}}
    async with open_run(
        scenario.agents(world), journal=journal, run_id=run_id, create=create, **options, **scenario.options
    ) as run:
        before = await RecordReader(journal, run_id).read()
        asked = sum(type(each.event) is EffectStarted and each.event.id.startswith("0/") for each in before)
        for number, ask in list(enumerate(scenario.requests))[asked:]:
            wanted = ask if isinstance(ask, AskAgent) else AskAgent(*ask)
            await journal.post(run_id, f"request {number}", encode(wanted))
        over = {each.event.id for each in before if type(each.event) is EffectFinished}
        ended = 0
        async with aclosing(run.events(deltas=False)) as records:
            async for record in records:
                assert isinstance(record, Record)
                if record.seq > len(before) or getattr(record.event, "id", "") not in over:
                    for key, command in scenario.outside(record):
                        await journal.post(run_id, key, encode(command))
                ended += type(record.event) is EffectFinished and record.event.id.startswith("0/")
                if ended == len(scenario.requests):
                    break
        await run.close()


async def forked(
    scenario: Scenario, journal: Journal, place: Path, seq: int, number: int
) -> tuple[str, World]:
    """A fork of the run `whole` a day after its record `seq`, seen through."""
    made = await fork(journal, "whole", seq, clock=VirtualClock(START + DAY))
    world = World(place / f"world {number}")
    await played(scenario, journal, world, made.run_id, START + DAY, create=False)
    return made.run_id, world


def deeds_of(records: list[Record], kinds: tuple[type, ...] = (ToolEffect, StepEffect)) -> set[str]:
    """Tools and steps that have ended."""
    begun = {each.event.id for each in records
             if type(each.event) is EffectStarted and type(each.event.detail) in kinds}  # fmt: skip
    return {
        each.event.id for each in records if type(each.event) is EffectFinished and each.event.id in begun
    }


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_a_fork_anywhere_ends_as_the_run_did(scenario: Scenario, tmp_path: Path) -> None:
    async def main() -> int:
        journal = MemoryJournal()
        world = World(tmp_path / "world")
        await played(scenario, journal, world, "whole", START, create=True)
        account, rows = await account_of(journal, "whole"), await journal.read("whole")
        records = await RecordReader(journal, "whole").read()
        places = dict.fromkeys([(await fork(journal, "whole", row.seq)).seq for row in rows])
        for number, seq in enumerate(places):
            run_id, world = await forked(scenario, journal, tmp_path, seq, number)
            assert await account_of(journal, run_id) == account, seq
            ended = deeds_of([each for each in records if each.seq <= seq])
            again = {
                each for each in ended if world.known_as(each) in {deed.effect_id for deed in world.deeds()}
            }
            assert not again, seq
            await save_run(journal, run_id, tmp_path / f"{number}.json")
            check_recorded(tmp_path / f"{number}.json", scenario.agents(World(tmp_path / "nothing")))
        await check_journal(journal)
        return len(places)

    # Before the first request, and when all have ended, at least; and wherever people are asked in between.
    assert asyncio.run(main()) >= 2


FORKED = [replace(each, forks=True) for each in (APPROVAL, CONVERSATION, LOOP)]


@pytest.mark.slow
def test_a_fork_that_is_killed_anywhere_is_none_or_whole(tmp_path: Path) -> None:
    report = enumerate_crashes(FORKED[0], tmp_path, commit="deferred", every=3)
    assert not report.bad, str(report)
    assert {"fork", "statement", "forked"} <= set(report.names)


@pytest.mark.deep
@pytest.mark.parametrize("commit", ["at once", "deferred"])
@pytest.mark.parametrize("scenario", FORKED, ids=lambda each: each.name)
def test_every_scenario_forked_and_killed_at_every_point(
    scenario: Scenario, commit: Any, tmp_path: Path
) -> None:
    report = enumerate_crashes(scenario, tmp_path, commit=commit)
    assert not report.bad, str(report)
