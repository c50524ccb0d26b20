"""A stream goes on from any record, also across a restart: nothing is missing, nothing comes twice."""

import asyncio
import sys
from contextlib import aclosing

import pytest

from antiphon import Agent, Record, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.sqlite import SqliteJournal
from antiphon.models.script import Script, call, finish


@tool(effect="read")
async def add(a: int, b: int) -> int:
    "Add."
    return a + b


A, B = Agent("a", tools=[add]), Agent("b", tools=[add])
LINES = {
    "a": [[call("add", a=1, b=2), call("call_agent", agent_name="b", message="x")], finish("done")],
    "b": [call("add", a=3, b=4), "b says so"],
}


def script():
    return Script(LINES, by="turn")


async def records(run, after=0, until=None, upto=None):
    """What a subscriber is shown until `until` has ended, or record `upto` has come."""
    found = []
    async with aclosing(run.events(after).__aiter__()) as items:
        async for item in items:
            if isinstance(item, Record):
                found.append(item)
                if item.seq == upto or (item.type == "EffectFinished" and item.event.id == until):
                    return found
    return found


async def whole(journal):
    """Run to the end, watched; every record, and the run's id."""
    async with open_run([A, B], journal=journal, model=script(), env={}) as run:
        call_id = await run.post("a", "go")
        found = await records(run, until=call_id)
    return run.run_id, found


def test_disconnected_at_every_record_while_it_runs(tmp_path):
    async def main():
        _, expected = await whole(MemoryJournal())
        shape = [
            (record.seq, record.type, record.activation, record.agent, record.parent) for record in expected
        ]
        assert [each[0] for each in shape] == list(range(1, len(shape) + 1))
        for cut in range(1, len(shape)):
            async with open_run([A, B], journal=MemoryJournal(), model=script(), env={}) as run:
                call_id = await run.post("a", "go")
                first = await records(run, upto=cut)
                rest = await records(run, after=cut, until=call_id)
                found = first + rest
                assert shape == [
                    (each.seq, each.type, each.activation, each.agent, each.parent) for each in found
                ]

    asyncio.run(main())


def test_across_a_reopening_from_every_record(tmp_path):
    async def main():
        journal = SqliteJournal(tmp_path / "runs.db", "process")
        run_id, before = await whole(journal)
        await journal.close()
        journal = SqliteJournal(tmp_path / "runs.db", "process")
        async with open_run([A, B], journal=journal, run_id=run_id, model=script(), env={}) as run:
            last = before[-1].seq + 1
            everything = await records(run, upto=last)
            assert everything[: len(before)] == before
            assert [each.seq for each in everything] == list(range(1, last + 1))
            for cut in range(last):
                assert await records(run, after=cut, upto=last) == everything[cut:]
        await journal.close()

    asyncio.run(main())


def test_two_readers_see_the_same_and_take_nothing_from_each_other():
    async def main():
        async with open_run([A, B], journal=MemoryJournal(), model=script(), env={}) as run:
            call_id = await run.post("a", "go")
            readers = [records(run, until=call_id), records(run, after=3, until=call_id)]
            one, other = await asyncio.gather(*readers)
            assert one[3:] == other
            late = await records(run, until=call_id)
            assert late == one

    asyncio.run(main())


@pytest.mark.parametrize("recent", [1, 4, 10_000])
def test_who_is_slower_than_the_memory_reads_from_the_journal(recent, monkeypatch):
    monkeypatch.setattr(sys.modules["antiphon.kernel.run.live.feed"], "RECENT", recent)

    async def main():
        journal = MemoryJournal()
        async with open_run([A, B], journal=journal, model=script(), env={}) as run:
            found = []
            async with aclosing(run.events().__aiter__()) as items:
                call_id = await run.post("a", "go")
                async for item in items:
                    if isinstance(item, Record):
                        found.append(item)
                        if item.type == "EffectFinished" and item.event.id == call_id:
                            break
                        # The run gets far ahead between two records.
                        for _ in range(20):
                            await asyncio.sleep(0)
            assert [each.seq for each in found] == list(range(1, found[-1].seq + 1))
            assert found == (await run.records())[: len(found)]

    asyncio.run(main())
