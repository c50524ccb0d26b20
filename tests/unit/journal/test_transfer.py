"""A run that moves from one journal to another is the same run, and goes on there."""

import asyncio
import signal
import subprocess
import sys

import apsw
import pytest

from antiphon import Agent, UserError, open_run
from antiphon.errors import JournalError
from antiphon.journal import transfer
from antiphon.journal.check.whole_runs import story
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import Row, StoredRun, chain, genesis
from antiphon.journal.transfer import MAX_EPOCH
from antiphon.models.script import Script
from tests.unit.journal.writing import opened

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
    await target.restore(StoredRun(run_id, rows, await blobs_of(journal, run_id, rows)))
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
            await here.restore(StoredRun(run_id, [first, *rest], blobs))
        assert await here.runs() == []

    asyncio.run(main())


KILLED_AT = """
import asyncio, os, signal, sys
from antiphon.journal.sqlite import runs as sqlite_runs
from antiphon.journal import transfer
from antiphon.journal.check.whole_runs import story
from antiphon.journal.sqlite import SqliteJournal

pack, left = sqlite_runs.pack, int(sys.argv[2])

class Connection:
    "The writer's connection, up to its fatal statement."

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(self.inner, name)

restore = sqlite_runs.restore
sqlite_runs.restore = lambda connection, *rest, **named: restore(Connection(connection), *rest, **named)

async def main():
    journal = SqliteJournal(sys.argv[1])
    await journal.restore(story("moved"))
    await journal.close()

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_killed_anywhere_in_it_leaves_nothing_of_the_run(tmp_path):
    """At each statement in turn; afterwards the run is not there, and the file as it was takes it in."""
    path, killed = tmp_path / "journal.db", 0
    for statement in range(1, 20):
        done = subprocess.run(
            [sys.executable, "-c", KILLED_AT, path, str(statement)], timeout=60, check=False
        )

        async def look():
            async with opened(path) as journal:
                return await journal.runs()

        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        killed += 1
        assert asyncio.run(look()) == []
        with apsw.Connection(str(path)) as file:
            for table in ("rows", "blobs", "run_blobs"):
                assert file.execute(f"select count(*) from {table}").fetchall() == [(0,)]
    assert killed >= 5
    assert [entry.run_id for entry in asyncio.run(look())] == ["moved"]


@pytest.mark.slow
def test_nothing_is_stored_of_a_run_for_which_the_disk_has_no_room(tmp_path):
    """The store refuses in the middle of it, and takes it in when there is room."""

    async def main():
        async with opened(tmp_path / "journal.db") as journal:
            await journal.claim("here", create=True)
            with apsw.Connection(str(tmp_path / "journal.db")) as file:
                file.execute(
                    "create trigger full before insert on blobs begin select raise(abort, 'no room'); end"
                )
            run = story("moved")
            with pytest.raises(JournalError, match="no room"):
                await journal.restore(run)
            assert [entry.run_id for entry in await journal.runs()] == ["here"]
            with apsw.Connection(str(tmp_path / "journal.db")) as file:
                file.execute("drop trigger full")
            await journal.restore(run)
            assert await journal.read("moved") == run.rows

    asyncio.run(main())


def test_an_epoch_is_set_and_not_counted_up_to():
    """The highest that is taken in: a claim a second would have taken a lifetime."""

    async def main():
        digest = chain(genesis("moved"), 1, 1, MAX_EPOCH, 1.0, b"x", ())
        run = StoredRun("moved", [Row(1, 1, MAX_EPOCH, 1.0, b"x", (), digest)], {})
        journal = MemoryJournal()
        await journal.restore(run)
        assert (await journal.claim("moved")).epoch == MAX_EPOCH + 1

    asyncio.run(main())


@pytest.mark.parametrize(("bound", "most"), [("MAX_ROWS", 2), ("MAX_BYTES", 1_000)])
def test_a_run_larger_than_its_bounds_is_refused(bound, most, monkeypatch):
    monkeypatch.setattr(transfer, bound, most)

    async def main():
        journal = MemoryJournal()
        with pytest.raises(UserError, match=f"at most {most:,} are taken in"):
            await journal.restore(story("moved"))
        assert await journal.runs() == []

    asyncio.run(main())
