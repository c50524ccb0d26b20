"""What the list of runs says of a run while somebody drives it."""

import asyncio
import itertools

from msgspec.structs import replace

from antiphon import Agent, open_run, tool
from antiphon.journal import Labels, RunFilter
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.summary import decode, summary_of
from antiphon.kernel.run.log import listing
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call


@tool(requires_approval=True)
def book(date: str) -> str:
    """Book one.

    Args:
        date: The day.
    """
    return f"booked for {date}"


class ToldJournal(MemoryJournal):
    """Says when a summary was written, and of which state."""

    def __init__(self):
        super().__init__()
        self.told, self.more = [], asyncio.Event()

    def describe(self, lease, summary):
        super().describe(lease, summary)
        self.told.append((asyncio.get_running_loop().time(), decode(summary)))
        self.more.set()

    async def next(self):
        """The next summary that is told."""
        async with asyncio.timeout(10):
            self.more.clear()
            await self.more.wait()
        return self.told[-1][1]


def clerk():
    return Agent("clerk", "You book.", tools=[book])


def test_a_run_that_asks_somebody_is_listed_as_waiting_with_what_it_asks(monkeypatch):
    monkeypatch.setattr(listing, "PAUSE_S", 0.01)

    async def asking():
        journal = ToldJournal()
        model = Script([call("book", date="June 3"), "Booked."])
        async with open_run([clerk()], journal=journal, model=model, labels=Labels("tides", "Ada")) as run:
            request = await run.post("clerk", "Book June 3")
            told = await journal.next()
            while not told.asked:
                told = await journal.next()
            (entry,) = await journal.runs(RunFilter(project="tides", states=("waiting",), driven=True))
            assert (entry.run_id, entry.labels, decode(entry.summary)) == (
                run.run_id,
                Labels("tides", "Ada"),
                told,
            )
            (question,) = told.questions
            assert (question.kind, question.agent, question.tool) == ("approval", "clerk", "book")
            assert (told.state, told.asked, told.asked_since) == ("waiting", 1, question.since)
            assert told == summary_of(await fold(journal, run.run_id, upto=told.seq), told.seq)
            await run.answer(question.id, "yes")
            await run.result(request)
            while told.state != "idle":
                told = await journal.next()
            assert (told.asked, told.questions, told.outcome) == (0, (), "completed")
        (entry,) = await journal.runs(RunFilter(states=("idle",), driven=False))
        assert decode(entry.summary) == replace(told, seq=entry.seq)

    asyncio.run(asking())


def test_a_run_is_described_at_most_once_in_a_pause_however_much_happens(monkeypatch):
    monkeypatch.setattr(listing, "SOON_S", 0.0)
    monkeypatch.setattr(listing, "PAUSE_S", 0.05)

    async def busy():
        journal = ToldJournal()
        async with open_run([Agent("a", "You talk.")], journal=journal, model=Script(["So."] * 5_000)) as run:
            while len(journal.told) < 4:
                await run.result(await run.post("a", "Well?"))
        times = [at for at, _ in journal.told]
        # A timer may ring a little early.
        assert min(after - before for before, after in itertools.pairwise(times)) >= 0.04

    asyncio.run(busy())


def test_what_an_earlier_owner_asked_is_known_when_it_is_answered(monkeypatch):
    monkeypatch.setattr(listing, "PAUSE_S", 0.01)

    async def resumed():
        journal = ToldJournal()
        model = Script([call("book", date="June 3"), "Booked."])
        async with open_run([clerk()], journal=journal, model=model) as run:
            await run.post("clerk", "Book June 3")
            while not (await journal.next()).asked:
                pass
            run_id = run.run_id
        (entry,) = await journal.runs(RunFilter(states=("waiting",), driven=False))
        (question,) = decode(entry.summary).questions
        async with open_run([clerk()], journal=journal, model=model, run_id=run_id) as run:
            assert (await journal.next()).state == "waiting"
            await run.answer(question.id, "yes")
            assert not (await journal.next()).asked

    asyncio.run(resumed())


def test_nothing_is_told_of_a_run_that_was_left():
    async def left():
        journal = ToldJournal()
        async with open_run([Agent("a", "You talk.")], journal=journal, model=Script(["So."])) as run:
            await run.result(await run.post("a", "Well?"))
        handles = [each for each in asyncio.get_running_loop()._scheduled if not each.cancelled()]
        assert (journal.told, handles) == ([], [])

    asyncio.run(left())
