"""A run has one owner: who was replaced is refused, suspended, and does not act any more."""

import asyncio

import pytest

from antiphon import Agent, ToolContext, open_run, tool
from antiphon.errors import LeaseLost, RunInUse, RunSuspended
from antiphon.journal.sqlite import SqliteJournal
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.testing.world import World


class Gate:
    """A model that waits to be let through."""

    name = "gate"

    def __init__(self, lines):
        self.open, self.script = asyncio.Event(), Script(lines, by="turn")

    async def complete(self, request, emit):
        await self.open.wait()
        return await self.script.complete(request, emit)


def owners(path):
    """Two stores on one file, the second of which takes the first one's lease for lapsed."""
    first = SqliteJournal(path, "process", steady=lambda: 0.0, wall=lambda: 0.0)
    second = SqliteJournal(path, "process", steady=lambda: 1e9, wall=lambda: 1e9)
    return first, second


def test_a_fenced_owner_is_refused_and_parks(tmp_path):
    world = World(tmp_path / "world")

    @tool
    async def pay(ctx: ToolContext) -> str:
        "Pay."
        world.did(ctx)
        return "paid"

    agent, lines = Agent("a", tools=[pay]), [call("pay"), "done"]

    async def main():
        first, second = owners(tmp_path / "runs.db")
        slow, quick = Gate(lines), Gate(lines)
        quick.open.set()
        async with open_run([agent], journal=first, model=slow, env={}) as zombie:
            call_id = await zombie.post("a", "go")
            waiting = asyncio.ensure_future(zombie.result(call_id))
            await zombie.records()
            async with open_run([agent], journal=second, run_id=zombie.run_id, model=quick, env={}) as owner:
                assert (await owner.result(call_id)).output == "done"
                # The pause ends: the old owner hears its model's answer and would go on.
                slow.open.set()
                with pytest.raises(RunSuspended) as suspended:
                    await waiting
                assert isinstance(suspended.value.__cause__, LeaseLost)
                with pytest.raises(RunSuspended):
                    await zombie.post("a", "more")
                records = await owner.records()
        assert len(world.deeds()) == 1
        assert [each.seq for each in records] == list(range(1, len(records) + 1))
        assert await check_journal(second) == 1
        await first.close()
        await second.close()

    asyncio.run(main())


def test_a_living_owner_is_not_replaced(tmp_path):
    async def main():
        first, second = (SqliteJournal(tmp_path / "runs.db", "process") for _ in range(2))
        model = Gate(["done"])
        async with open_run([Agent("a")], journal=first, model=model, env={}) as owner:
            call_id = await owner.post("a", "go")
            with pytest.raises(RunInUse):
                async with open_run([Agent("a")], journal=second, run_id=owner.run_id, model=model, env={}):
                    raise AssertionError("two owners")
            model.open.set()
            assert (await owner.result(call_id)).output == "done"
        await first.close()
        await second.close()

    asyncio.run(main())
