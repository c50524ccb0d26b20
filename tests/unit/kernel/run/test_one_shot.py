"""A run that nobody can read or open again keeps nothing of what it records."""

import asyncio

import pytest

from antiphon import Agent, open_run, run, stream, tool
from antiphon.errors import JournalError
from antiphon.journal import ONE_SHOT, open_journal
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call


@tool
async def note(text: str) -> str:
    """Note it."""
    return f"noted {text}"


AGENT = Agent("ann", "You talk.", tools=[note])


def replies():
    return Script([call("note", text="x" * 5_000), "Done."])


@pytest.fixture
def journals(monkeypatch):
    """Every journal in memory that was made."""
    made, init = [], MemoryJournal.__init__

    def noting(self, **options):
        made.append(self)
        init(self, **options)

    monkeypatch.setattr(MemoryJournal, "__init__", noting)
    return made


def stored(journal):
    return [row for run in journal._runs.values() for row in run.rows], journal._blobs


def test_a_request_without_a_journal_keeps_no_rows(journals):
    found = asyncio.run(run(AGENT, "go", model=replies(), env={}))
    assert found.output == "Done."
    assert [each.content for each in found.messages] == ["go", "Done."]
    (journal,) = journals
    assert stored(journal) == ([], {})
    (kept,) = journal._runs.values()
    assert kept.seq > 5
    assert kept.summary == b""


def test_whoever_can_look_finds_them(journals):
    async def looking():
        journal = MemoryJournal()
        await run(AGENT, "go", model=replies(), journal=journal)
        async with stream(AGENT, "go", model=replies(), env={}) as items:
            shown = [item async for item in items]
        async with open_run([AGENT], model=replies(), env={}) as opened:
            await opened.result(await opened.post("ann", "go"))
            assert len(await opened.records()) == opened.seq
        await run(AGENT, "go", model=replies(), env={}, on_input=lambda asked: "yes")
        return shown

    assert asyncio.run(looking())
    assert len(journals) == 4
    assert all(stored(journal)[0] for journal in journals)


def test_where_runs_are_kept_a_request_is_too(journals, tmp_path):
    asyncio.run(run(AGENT, "go", model=replies(), env={"ANTIPHON_HOME": str(tmp_path)}))
    assert journals == []
    assert (tmp_path / "antiphon.db").exists()


def test_what_is_not_kept_cannot_be_read():
    async def reading():
        journal = open_journal(ONE_SHOT)
        await run(AGENT, "go", model=replies(), journal=journal)
        (entry,) = await journal.runs()
        await journal.read(entry.run_id)

    with pytest.raises(JournalError, match="keeps no rows"):
        asyncio.run(reading())


def test_nothing_is_told_for_lists_that_nobody_reads(monkeypatch):
    told = []
    monkeypatch.setattr(MemoryJournal, "describe", lambda *given: told.append(given))
    monkeypatch.setattr("antiphon.kernel.run.runtime.SOON_S", 0)

    @tool
    async def wait() -> str:
        """Let everybody else work."""
        for _ in range(5):
            await asyncio.sleep(0)
        return "so"

    async def running(journal):
        model = Script([call("wait"), "Done."])
        await run(Agent("ann", tools=[wait]), "go", model=model, journal=journal, env={})

    asyncio.run(running(None))
    assert told == []
    asyncio.run(running(MemoryJournal()))
    assert told
