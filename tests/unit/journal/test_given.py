"""A row says how many of its events were given; what an older file says is read as it was meant."""

import asyncio

import pytest

from antiphon import Agent, Hooks, UserError, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import StoredRun, chain, genesis
from antiphon.journal.row_writer import RowWriter
from antiphon.kernel.run.rows import events_of
from antiphon.models.script import Script


def test_without_given_events_a_digest_is_that_of_format_2():
    old = bytes.fromhex("37abca3142f01ad46ac4fe5d6356d17c")
    assert chain(genesis("r"), 7, 3, 2, 1.5, b"body", (("/0/x", "ab"),), ("cd",)) == old
    assert chain(genesis("r"), 7, 3, 2, 1.5, b"body", (("/0/x", "ab"),), ("cd",), 0) == old
    others = [chain(genesis("r"), 7, 3, 2, 1.5, b"body", (("/0/x", "ab"),), ("cd",), n) for n in (1, 2, 3)]
    assert len({old, *others}) == 4


def test_only_what_came_from_outside_is_given():
    async def acts(ctx):
        ctx.set("seen", await ctx.step("look", lambda: 1))
        return "done"

    async def main():
        journal = MemoryJournal()
        async with open_run([Agent("a", hooks=Hooks(act=acts))], journal=journal, model=Script([])) as run:
            await run.result(await run.post("a", "go"))
        found = []
        for row in await journal.read(run.run_id):
            names = [type(event).__name__ for event in await events_of(journal, run.run_id, row)]
            found.append((names[: row.given], names[row.given :]))
        return found

    assert asyncio.run(main()) == [
        (["RunStarted"], []),
        (["MessagePosted"], ["TurnStarted", "EffectStarted", "TurnFinished", "TurnStarted", "EffectStarted"]),
        (["EffectStarted"], []),
        (["EffectFinished"], []),
        (["StateChanged", "EffectFinished"], ["TurnFinished", "EffectFinished"]),
    ]


def test_a_run_restored_with_its_origin_has_it():
    async def main():
        here, there = MemoryJournal(), MemoryJournal()
        rows = await RowWriter(there, await there.claim("fork", create=True, origin="run")).write(b"a", b"b")
        await here.restore(StoredRun("fork", rows, {}, origin="run"))
        assert await here.read("fork") == rows
        assert [entry.origin for entry in await here.runs()] == ["run"]
        await here.claim("another", create=True)
        with pytest.raises(UserError, match="has its origin in itself, not in run"):
            await here.claim("another", origin="run")

    asyncio.run(main())
