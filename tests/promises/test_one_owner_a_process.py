"""A run has one owner, also among those who open it in one process."""

import asyncio

import pytest

from antiphon import Agent, open_run, tool
from antiphon.errors import JournalError, RunInUse, RunSuspended
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.sqlite import SqliteJournal
from antiphon.models.script import Script, call


def in_memory(path):
    return MemoryJournal()


def in_a_file(path):
    return SqliteJournal(path / "journal.db")


@pytest.mark.parametrize("made", [in_memory, in_a_file])
def test_a_run_that_is_open_here_is_not_opened_twice(made, tmp_path):
    charged = []

    @tool
    async def charge(card: str) -> str:
        """Charge a card."""
        charged.append(card)
        return "done"

    def payer():
        return Agent("payer", model=Script([call("charge", card="visa"), "paid"]), tools=[charge])

    async def twice():
        journal = made(tmp_path)
        async with open_run([payer()], journal=journal) as run:
            asked = await run.post("payer", "Pay")
            with pytest.raises(RunInUse, match="this"):
                async with open_run([payer()], journal=journal, run_id=run.run_id):
                    pass
            assert (await run.result(asked)).output == "paid"
        async with open_run([payer()], journal=journal, run_id=run.run_id) as again:
            assert (await again.result(asked)).output == "paid"
        await journal.close()

    asyncio.run(twice())
    assert charged == ["visa"]


@pytest.mark.parametrize("kind", [MemoryJournal, SqliteJournal])
def test_a_run_that_a_failed_write_suspended_can_be_opened_again_here(kind, tmp_path):
    class Full(kind):
        """Has no room for one row."""

        full = True

        def append(self, lease, row, blobs, done):
            if self.full and row.seq > 1:
                self.full = False
                done(JournalError("no room"))
            else:
                super().append(lease, row, blobs, done)

    async def again():
        journal = Full(tmp_path / "journal.db") if kind is SqliteJournal else Full()
        agent = Agent("a", model=Script(["one", "two"]))
        with pytest.raises(RunSuspended, match="no room"):
            async with open_run([agent], journal=journal, run_id="run", create=True) as run:
                await run.result(await run.post("a", "Go"))
        async with open_run([agent], journal=journal, run_id="run") as run:
            assert (await run.result(await run.post("a", "Go"))).output == "one"
        await journal.close()

    asyncio.run(again())
