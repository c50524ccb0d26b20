"""What was read of a run is read on, and is what somebody finds who reads all of it anew."""

import asyncio
from contextlib import aclosing

import pytest

from antiphon import Agent, open_run
from antiphon.errors import JournalCorrupt, UnknownName
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.run.rows import fold, fold_next
from antiphon.models.script import Script
from antiphon.view import RunTree, connect
from antiphon.view.frames import FrameReader, encode
from antiphon.view.reading import chain
from antiphon.view.reading.folded import FoldedRun
from antiphon.view.reading.kept import KeptReadings
from antiphon.view.reading.projection import RecordProjection
from tests.oracle import play
from tests.oracle.stage import Stage
from tests.unit.kernel.run.test_record_pages import on_a_loop, said
from tests.unit.view.test_every_cursor import owners


def frames():
    """A projection's maker: frames as JSON."""
    reader = FrameReader()
    return lambda record: (made := encode(reader.add(record)), len(made))


async def kept_frames(source):
    await source.reach(chain.MAX_SEQ)
    return [source.of(seq) for seq in range(1, source.seq + 1)]


class Growing:
    """The rows of a stored run, as if only so many had been written yet."""

    def __init__(self, journal, rows):
        self.journal, self.rows = journal, rows

    async def read(self, run_id, after=0, limit=None, size=chain.LARGE_PAGE):
        found = await self.journal.read(run_id, after, limit, size)
        return [row for row in found if row.seq <= self.rows[-1].seq]

    async def blob(self, run_id, digest):
        return await self.journal.blob(run_id, digest)


@pytest.mark.parametrize("name", ["approvals", "nested_calls", "an_action", "profiles_with_a_dispatch"])
@on_a_loop
async def test_a_run_that_is_read_row_by_row_is_the_run_that_is_read_at_once(name, tmp_path):
    stage = Stage(tmp_path)
    await play.SCENARIOS[name](stage)
    for entry in await stage.journal.runs():
        rows = await stage.journal.read(entry.run_id)
        growing = Growing(stage.journal, rows)
        folded = FoldedRun(growing, entry.run_id, recent=False)
        made = RecordProjection(growing, entry.run_id, frames)
        async with connect(stage.journal, entry.run_id) as run:
            records = await run.records()
        reader = FrameReader()
        wanted = [encode(reader.add(record)) for record in records]
        for number in range(1, len(rows) + 1):
            growing.rows = rows[:number]
            await folded.read_on()
            seq = rows[number - 1].seq
            assert (folded.seq, folded.tree.seq) == (seq, seq)
            assert owners(folded.tree) == owners(RunTree.of(records[:seq]))
            assert folded.state == await fold(stage.journal, entry.run_id, upto=seq)
            assert await kept_frames(made) == wanted[:seq]
        assert made.made == len(records), "each record was shown once"
    await stage.journal.close()


@on_a_loop
async def test_another_run_under_the_same_id_is_not_taken_for_the_one_that_was_read():
    journal = MemoryJournal()
    folded, made = FoldedRun(journal, "run", recent=False), RecordProjection(journal, "run", frames)
    # As long as the one before, longer, shorter.
    for names in (("ann",), ("bob",), ("bob", "cid"), ("dan",)):
        last = await said(journal, "run", names, close=True)
        await folded.read_on()
        assert folded.seq == last
        assert {each.agent for each in folded.tree.activations.values()} == {"user", *names}
        assert folded.state == await fold(journal, "run")
        assert len(await kept_frames(made)) == last
        assert encode(names[-1]) in b"".join(await kept_frames(made))
        await journal.delete("run")
        for read in (folded.read_on(), made.reach(chain.MAX_SEQ)):
            with pytest.raises(UnknownName):
                await read


@on_a_loop
async def test_what_another_process_writes_is_read(tmp_path):
    path = tmp_path / "runs.db"
    ours, theirs = SqliteJournal(path, "process"), SqliteJournal(path, "process")
    folded = FoldedRun(ours, "run", recent=True)
    await said(theirs, "run", ["ann"])
    await folded.read_on()
    known = folded.seq
    async with open_run(
        [Agent("ann", "You talk.")], journal=theirs, model=Script(["So."]), run_id="run"
    ) as run:
        await run.result(await run.post("ann", "And?"))
        waiting = asyncio.ensure_future(folded.wait())
        await run.until_durable()
    await waiting
    await folded.read_on()
    assert folded.seq > known
    assert folded.state == await fold(ours, "run")
    for each in (ours, theirs):
        await each.close()


@on_a_loop
async def test_who_is_cancelled_while_he_reads_leaves_what_the_next_one_reads_on(monkeypatch):
    monkeypatch.setattr(chain, "EVENTS_PER_YIELD", 2)
    journal = MemoryJournal()
    await said(journal, "run", ["ann", "bob"], many=3)
    folded, made = FoldedRun(journal, "run", recent=False), RecordProjection(journal, "run", frames)
    wanted = await kept_frames(RecordProjection(journal, "run", frames))
    for steps in range(1, 40):
        for read in (folded.read_on(), made.reach(chain.MAX_SEQ)):
            reading = asyncio.ensure_future(read)
            for _ in range(steps % 5 + 1):
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait((reading,))
    await folded.read_on()
    assert folded.state == await fold(journal, "run")
    assert await kept_frames(made) == wanted


@on_a_loop
async def test_what_was_half_read_when_something_failed_is_read_anew(monkeypatch):
    journal = MemoryJournal()
    await said(journal, "run", ["ann"])
    folded = FoldedRun(journal, "run", recent=False)

    def fails(run_id, state, row, events):
        fold_next("run", state, row, events)
        if row.seq > 3:
            raise JournalCorrupt(run_id, row.seq, "it is told so here")

    with monkeypatch.context() as broken:
        broken.setattr("antiphon.view.reading.folded.fold_next", fails)
        for _ in range(2):
            with pytest.raises(JournalCorrupt):
                await folded.read_on()
            assert folded.seq == 0
    await folded.read_on()
    assert folded.state == await fold(journal, "run")


@on_a_loop
async def test_a_projection_keeps_the_newest_or_all_from_a_record_on(monkeypatch):
    journal = MemoryJournal()
    last = await said(journal, "run", ["ann", "bob"])
    every = await kept_frames(RecordProjection(journal, "run", frames))
    monkeypatch.setattr("antiphon.view.reading.projection.WINDOW", 1_000)
    newest = await kept_frames(RecordProjection(journal, "run", frames))
    kept = [each for each in newest if each is not None]
    assert 0 < sum(map(len, kept)) <= 1_000
    assert newest == [None] * (last - len(kept)) + every[-len(kept) :]
    mine = RecordProjection(journal, "run", frames, 4)
    assert await kept_frames(mine) == [None] * 3 + every[3:]
    assert mine.of(last + 1) is mine.of(0) is None


class Sized:
    def __init__(self, size):
        self.size = size


def test_what_is_kept_of_runs_is_bounded():
    kept = KeptReadings(count=3, size=100)
    one = kept.of("one", Sized, lambda: Sized(10))
    assert kept.of("one", Sized, lambda: Sized(1)) is one
    for name in ("two", "three", "four"):
        kept.of(name, Sized, lambda: Sized(10))
    assert len(kept) == 3
    assert kept.of("one", Sized, lambda: Sized(90)) is not one, "the one used longest ago was dropped"
    assert kept.size <= 130
    kept.of("five", Sized, lambda: Sized(1))
    assert kept.size <= 101
    grown = kept.of("six", Sized, lambda: Sized(1))
    grown.size = 1_000
    assert kept.of("six", Sized, lambda: Sized(1)) is not grown, "it had grown too large for all of it"


@on_a_loop
async def test_a_reader_that_waits_for_a_run_that_nobody_drives_is_woken(tmp_path):
    for journal in (MemoryJournal(), SqliteJournal(tmp_path / "runs.db", "process")):
        last = await said(journal, "run", ["ann"])
        async with connect(journal, "run") as run, aclosing(run.events(last)) as events:
            for _ in range(3):
                reading = asyncio.ensure_future(events.batch())
                for _ in range(5):
                    await asyncio.sleep(0)
                events.wake()
                assert await reading == []
            events.wake()
            assert await events.batch() == [], "it was woken before it waited"
            reading = asyncio.ensure_future(events.batch())
            async with open_run([Agent("ann")], journal=journal, model=Script([]), run_id="run"):
                assert [each.seq for each in await reading] == [last + 1]
        await journal.close()


class WakingJournal(MemoryJournal):
    """Wakes a reader while he reads."""

    woken = None

    async def read(self, *where):
        if self.woken is not None:
            self.woken.wake()
        return await super().read(*where)


@on_a_loop
async def test_a_reader_that_is_woken_while_he_reads_is_told_so_afterwards():
    journal = WakingJournal()
    await said(journal, "run", ["ann"])
    async with connect(journal, "run") as run, aclosing(run.events()) as events:
        journal.woken = events
        assert (await events.batch())[0].seq == 1
        journal.woken = None
        assert await events.batch() == []
