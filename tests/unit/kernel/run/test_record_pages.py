"""A long run is read in pages, and who it is about is learned once for all who read it."""

import asyncio
import functools

import pytest

from antiphon import Agent, open_run
from antiphon.errors import JournalCorrupt
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import PAGE_BYTES
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.facts.events import RunStarted, StateChanged, encode
from antiphon.kernel.run.rows import PAGE_ROWS, RecordPages, pack, read
from antiphon.models.script import Script
from antiphon.view.connection import connect
from antiphon.view.reading.events import RunEvents


def on_a_loop(test):
    """The test, a coroutine, on an event loop of its own."""

    @functools.wraps(test)
    def run(*given, **named):
        asyncio.run(test(*given, **named))

    return run


async def rest_of(pages):
    """Its pages to the end."""
    while page := await pages.read():
        yield page


class CountingJournal(MemoryJournal):
    """Counts the rows that were read from it."""

    rows = 0

    async def read(self, *where):
        found = await super().read(*where)
        self.rows += len(found)
        return found


async def said(journal, run_id, names, *, many=1, close=False):
    """A run in which each agent is asked so often; its last record."""
    agents = [Agent(name, "You talk.", context="continue") for name in names]
    seq = 0
    for _ in range(many):
        model = Script(["So."] * len(names))
        known = run_id if seq else None
        async with open_run(
            agents, journal=journal, model=model, run_id=known or run_id, create=not known
        ) as run:
            for name in names:
                await run.result(await run.post(name, "Well?"))
            seq = run.seq
            if close and _ == many - 1:
                await run.close()
                seq = run.seq
    return seq


@on_a_loop
async def test_a_page_in_the_middle_costs_what_it_holds_once_the_run_was_read():
    journal = CountingJournal()
    seq = await said(journal, "run", ["a", "b"], many=20)
    everything = await read(journal, "run")
    journal.rows = 0
    for after in (seq - 3, seq // 2, 0):
        pages = RecordPages(journal, "run", after)
        assert await pages.read() == everything[after : pages.position]
    # The first row of the run, by which it is known again, and the page; each time.
    assert journal.rows <= 3 * (1 + PAGE_ROWS)


@on_a_loop
async def test_a_thousand_readers_learn_the_run_once():
    journal = CountingJournal()
    seq = await said(journal, "run", ["a", "b"], many=20)
    rows = len(await journal.read("run"))
    journal.rows = 0
    firsts = await asyncio.gather(*(anext(RunEvents(journal, "run", seq - 1, False)) for _ in range(1_000)))
    assert {record.seq for record in firsts} == {seq}
    assert journal.rows <= rows + 1_000 * 2


@on_a_loop
async def test_records_before_a_renaming_name_the_agent_as_it_was_called():
    journal = MemoryJournal()
    await said(journal, "run", ["old"])
    async with open_run(
        [Agent("new", "You talk.", context="continue")],
        journal=journal,
        run_id="run",
        model=Script(["So."]),
        renamed={"old": "new"},
    ) as run:
        before = run.seq - 1
        await run.result(await run.post("new", "Well?"))
        records = await run.records()
        events = run.events(0, deltas=False)
        watched = [await anext(events) for _ in records]
        await events.aclose()
    for found in (records, watched, await read(journal, "run"), await read(journal, "run", before // 2)):
        assert {each.agent for each in found if each.seq < before} - {"user"} == {"old"}
        assert {each.agent for each in found if each.seq > before + 1} - {"user"} == {"new"}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@on_a_loop
async def test_a_run_that_took_the_place_of_another_is_not_read_with_its_names(kind, tmp_path):
    journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "journal.db", "process")
    await said(journal, "run", ["first", "second"], many=3)
    assert {each.agent for each in await read(journal, "run")} == {"first", "second", "user"}
    halfway = RecordPages(journal, "run")
    await halfway.read()
    await journal.delete("run")
    await said(journal, "run", ["other"], many=9)
    assert {each.agent for each in await read(journal, "run", 3)} == {"other", "user"}
    with pytest.raises(JournalCorrupt, match="does not follow the record that was read before it"):
        assert not [page async for page in rest_of(halfway)]
    await journal.close()


@on_a_loop
async def test_watching_a_closed_run_from_its_end_or_beyond_ends_at_once():
    journal = MemoryJournal()
    seq = await said(journal, "run", ["a"], close=True)
    async with connect(journal, "run") as run:
        assert run.seq == seq
        for after in (seq, seq + 1, 2**40):
            assert [item async for item in run.events(after)] == []
        assert [item.seq async for item in run.events(seq - 2)] == [seq - 1, seq]


@on_a_loop
async def test_a_page_of_large_payloads_ends_with_the_one_that_fills_it():
    journal = MemoryJournal()
    pen = RowWriter(journal, await journal.claim("run", create=True))
    await pen.write(encode([RunStarted("run")]))
    for _ in range(5):
        body, refs, blobs = pack([StateChanged(0, {"kept": "x" * PAGE_BYTES})])
        await pen.put(pen.row(body, refs=refs), blobs)
    pages, sizes = RecordPages(journal, "run"), []
    while page := await pages.read():
        sizes.append(len(page))
    assert sizes == [2, 1, 1, 1, 1]
