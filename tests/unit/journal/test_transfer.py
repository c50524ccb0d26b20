"""A run that moves from one journal to another is the same run, and goes on there."""

import asyncio

import pytest

from antiphon import Agent, UserError, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.transfer import restore
from antiphon.models.script import Script

AGENT = Agent("a", context="continue")


async def talked(journal, *texts, run_id=None):
    """Each text in an ownership of its own; the run's id."""
    for text in texts:
        model = Script([f"heard {text}"])
        async with open_run([AGENT], journal=journal, run_id=run_id, model=model) as run:
            await run.result(await run.post("a", text))
            run_id = run.run_id
    return run_id


async def blobs_of(journal, run_id, rows):
    names = {name for row in rows for name in (*row.blobs, *(each for _, each in row.refs))}
    return {name: await journal.blob(run_id, name) for name in names}


async def moved(journal, run_id, target):
    rows = await journal.read(run_id)
    await restore(target, run_id, rows, await blobs_of(journal, run_id, rows))
    return rows


def test_rows_of_several_owners_are_stored_as_they_were_and_it_goes_on():
    async def main():
        here, there = MemoryJournal(), MemoryJournal()
        run_id = await talked(there, "one", "x" * 10_000)
        rows = await moved(there, run_id, here)
        assert await here.read(run_id) == rows
        assert rows[0].epoch < rows[-1].epoch
        await talked(here, "three", run_id=run_id)
        async with open_run([AGENT], journal=here, run_id=run_id, model=Script([])) as run:
            said = [each.content for each in run.transcript("a") if each.role == "assistant"]
        assert said == ["heard one", "heard " + "x" * 10_000, "heard three"]

    asyncio.run(main())


def test_a_run_that_is_there_already_is_left_alone():
    async def main():
        here, there = MemoryJournal(), MemoryJournal()
        run_id = await talked(there, "one")
        rows = await moved(there, run_id, here)
        with pytest.raises(UserError, match="is in this journal already"):
            await moved(there, run_id, here)
        assert await here.read(run_id) == rows

    asyncio.run(main())


def test_rows_that_do_not_follow_are_refused():
    async def main():
        here, there = MemoryJournal(), MemoryJournal()
        run_id = await talked(there, "one")
        first, _, *rest = await there.read(run_id)
        blobs = await blobs_of(there, run_id, [first, *rest])
        with pytest.raises(Exception, match="cannot follow"):
            await restore(here, run_id, [first, *rest], blobs)

    asyncio.run(main())
