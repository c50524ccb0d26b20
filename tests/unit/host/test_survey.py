"""What a host reads of its journal when it looks for runs that nobody drives: what it finds, and no more."""

import asyncio

import pytest

import antiphon.host.host as watching
from antiphon.host import Host
from antiphon.host.host import SURVEY_SECONDS
from antiphon.journal.listing import RunFilter, listed
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.sqlite import SqliteJournal
from antiphon.testing.clock import VirtualClock
from antiphon.view import connect
from tests.unit.host.hosts import answer_of, desk, in_time, pay, until
from tests.unit.journal.children import start

RESTING = 40


class ListedJournal(MemoryJournal):
    """Counts the runs that were listed."""

    listed = 0

    async def runs(self, *asked, **named):
        found = await super().runs(*asked, **named)
        self.listed += len(found)
        return found


async def resting(journal, count):
    """So many runs of a team that rest, one after the other."""
    async with Host(journal, {"desk": desk("Hello.")}) as host:
        for _ in range(count):
            await answer_of(host, (await host.start("desk", "Hi")).run_id)


def test_a_survey_lists_nothing_of_what_rests():
    async def work():
        journal, clock = ListedJournal(), VirtualClock(autojump=False)
        await resting(journal, RESTING)
        journal.listed = 0
        async with Host(journal, {"desk": desk("Hello.")}, clock=clock):
            assert journal.listed == RESTING, "the first one knows of all, so that they are watched"
            journal.listed = 0
            for _ in range(3):
                clock.advance(SURVEY_SECONDS)
                for _ in range(50):
                    await asyncio.sleep(0)
            assert journal.listed == 0

    in_time(work)


@pytest.mark.parametrize("at", ["start", "survey"])
def test_what_is_posted_in_a_run_that_is_not_watched_is_heard(at, monkeypatch):
    """As one of many, of which the newest only are watched."""
    monkeypatch.setattr(watching, "WATCHED", 0)

    async def work():
        journal, clock = MemoryJournal(), VirtualClock(autojump=False)
        await resting(journal, 3)
        (*_, first) = await journal.runs()

        async def ask():
            async with connect(journal, first.run_id) as run:
                await run.ask("desk", "Again")

        if at == "start":
            await ask()
        async with Host(journal, {"desk": desk("Hello again.")}, clock=clock) as host:
            if at == "survey":
                assert host.runs == {}
                await ask()
                for _ in range(50):
                    await asyncio.sleep(0)
                assert host.runs == {}, "nobody listens"
                clock.advance(SURVEY_SECONDS)
                await until(lambda: host.runs)
            assert list(host.runs) == [first.run_id], "the others rest"
            assert await answer_of(host, first.run_id, 2) == "Hello again."
        assert not await journal.runs(RunFilter(posted=True)), "so that no survey looks at it again"

    in_time(work)


@pytest.mark.slow
def test_a_run_whose_owner_died_is_listed_as_such_until_somebody_has_it(tmp_path):
    path, run_id = tmp_path / "runs.db", "left"

    async def work():
        child = start("hold", path, run_id)
        journal = SqliteJournal(path, "process")
        try:
            assert await asyncio.to_thread(child.stdout.readline) == "holding\n"
            assert not await journal.runs(RunFilter(interrupted=True)), "it is held"
            child.kill()
            await asyncio.to_thread(child.wait)
            (info,) = await journal.runs(RunFilter(interrupted=True))
            assert (info.run_id, info.owner, info.interrupted) == (run_id, "", True)
            assert await journal.runs(RunFilter(interrupted=True, driven=True)) == []
            assert await journal.runs(RunFilter(interrupted=False)) == []
            lease = await journal.claim(run_id)
            assert not (await journal.info(run_id)).interrupted
            await journal.release(lease)
            assert await journal.runs(RunFilter(interrupted=True)) == []
        finally:
            child.kill()
            child.communicate()
            await journal.close()

    in_time(work)


@pytest.mark.slow
def test_a_survey_takes_up_what_was_said_to_rest_by_somebody_who_died(tmp_path):
    path, clock = tmp_path / "runs.db", VirtualClock(autojump=False)

    async def work():
        journal, team = SqliteJournal(path, "process"), {"desk": desk("Hello.", tools=[pay])}
        await resting(journal, 1)
        (info,) = await journal.runs()
        async with Host(journal, team, clock=clock) as host:
            # As one of many, of which the newest only are watched.
            await host._end(host.runs[info.run_id])
            child = start("ask_and_die", path, info.run_id)
            await asyncio.to_thread(child.communicate)
            assert child.returncode == 0
            (left,) = await journal.runs()
            assert left.interrupted
            assert (listed(left.summary).state, left.seq > info.seq) == ("idle", True)
            assert info.run_id not in host.runs
            clock.advance(SURVEY_SECONDS)
            await until(lambda: info.run_id in host.runs)
        await journal.close()

    in_time(work)
