"""Every released format is read for ever; a newer one is refused and left alone."""

import asyncio
import json
import shutil
from pathlib import Path

import apsw
import pytest

from antiphon import Agent, Hooks, Limits, open_run, tool
from antiphon.errors import JournalError, JournalTooNew
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite.file import MIGRATIONS
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnPlan
from tests.golden.write_journal import ANSWERS, QUESTIONS, TALK, contents, team
from tests.transcript import lines
from tests.unit.journal.writing import opened

GOLDEN = Path(__file__).parent.parent / "golden"
FORMATS = range(1, len(MIGRATIONS) + 1)


@pytest.mark.parametrize("number", FORMATS)
def test_a_golden_journal_is_read_as_it_was_written(number, tmp_path):
    path = tmp_path / "journal.db"
    shutil.copy(GOLDEN / f"journal_format_{number}.db", path)

    async def reading():
        async with opened(path) as journal:
            assert await contents(journal) == json.loads(
                (GOLDEN / f"journal_format_{number}.json").read_text()
            )
            pen = RowWriter(journal, await journal.claim("run 0"))
            assert pen.lease.epoch == 2
            await pen.write(b"it goes on")
            assert len(await journal.read("run 0")) == 9
        with apsw.Connection(str(path)) as file:
            assert file.execute("select value from meta where name = 'format'").fetchall() == [
                (len(MIGRATIONS),)
            ]
            assert file.pragma("integrity_check") == "ok"

    asyncio.run(reading())


@pytest.mark.parametrize("number", FORMATS[2:])
def test_a_golden_run_is_folded_and_gone_on_with(number, tmp_path):
    path = tmp_path / "journal.db"
    shutil.copy(GOLDEN / f"journal_format_{number}.db", path)

    async def going_on():
        async with opened(path) as journal:
            async with open_run(team(), journal=journal, run_id=TALK, model=Script(["More."])) as talk:
                said = [
                    each.content for each in talk.transcript("guide") if each.content and not each.call_id
                ]
                assert said == [QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1]]
                assert str(await talk.result(await talk.post("guide", "And then?"))) == "More."
            await check_run(journal, TALK)

    asyncio.run(going_on())


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


def desk():
    """The team of the stored run: a plan that hands on, a clerk that asks a colleague and a person."""

    def plan_turn(context):
        return TurnPlan([PlannedCall("clerk", each.content) for each in context.new_messages])

    def end_turn(context):
        ended = context.background_results
        return Return(output=ended[0].content) if ended else Continue(wait_for_messages=True)

    hooks = Hooks(plan_turn=plan_turn, end_turn=end_turn)
    limits = Limits(turns=50, on_breach="handoff", breach_target="clerk")
    asks = call("call_agent", agent_name="user", message="May I?")
    return [
        Agent("desk", context="continue", hooks=hooks, limits=limits),
        Agent("clerk", "You ask.", tools=[look], model=Script([asks, "So be it."])),
        Agent("writer", "You write.", model=Script(["Written."])),
    ]


def test_a_run_of_format_2_is_folded_and_gone_on_with(tmp_path):
    """It was left in a model call, after a tool, a failed attempt and a call of a colleague."""
    path = tmp_path / "journal.db"
    shutil.copy(GOLDEN / "run_format_2.db", path)

    async def going_on():
        async with opened(path) as journal:
            async with open_run(desk(), journal=journal, run_id="desk") as run:
                (request,) = await run.open_requests()
                async for item in run.events(deltas=False):
                    if item.asks:
                        break
                await run.answer(item.event.id, "yes")
                result = await run.result(request)
                records = await run.records()
            await check_run(journal, "desk")
        return result, lines(records)

    result, told = asyncio.run(going_on())
    assert (result.outcome, result.output) == ("completed", "So be it.")
    assert told[10:13] == ["2/1.m1 completed: [look]", "2/1.c1 tool look started", "2/1.c1 completed: page 1"]
    assert told[16:18] == ["2/2.m1 failed: rate_limit: slow down", "2/2.w1 wait retry started"]
    resumed = told.index("run resumed")
    assert told[resumed + 1 : resumed + 3] == [
        "2/3.m1 interrupted: the process stopped during the call", "2/3.m2 model started",
    ]  # fmt: skip


@pytest.mark.parametrize("in_the_log", [True, False])
def test_a_newer_format_is_refused_and_left_as_it_is(in_the_log, tmp_path):
    path, there = tmp_path / "there.db", tmp_path / "here"
    shutil.copy(GOLDEN / "journal_format_1.db", path)
    newer = apsw.Connection(str(path))
    newer.execute("update meta set value = ? where name = 'format'", (len(MIGRATIONS) + 1,))
    if not in_the_log:
        newer.close()
    there.mkdir()
    for file in tmp_path.glob("there.db*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, there)
    newer.close()
    before = {file.name: file.read_bytes() for file in there.iterdir()}
    assert len(before) == (2 if in_the_log else 1)
    with pytest.raises(JournalTooNew, match=rf"format {len(MIGRATIONS) + 1}.*upgrade"):
        SqliteJournal(there / "there.db")
    after = {file.name: file.read_bytes() for file in there.iterdir() if not file.name.endswith("-shm")}
    assert after == before


def test_what_is_no_journal_is_refused_and_left_as_it_is(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("These are my notes, longer than the header of a file of SQLite would be. " * 20)
    foreign = tmp_path / "foreign.db"
    with apsw.Connection(str(foreign)) as file:
        file.execute("create table mine(x)")
    file.close()
    for path, why in ((text, "not an SQLite file"), (foreign, "not written by Antiphon")):
        before = path.read_bytes()
        with pytest.raises(JournalError, match=why):
            SqliteJournal(path)
        assert path.read_bytes() == before


def test_an_upgrade_that_is_interrupted_leaves_the_old_format(tmp_path, monkeypatch):
    path = tmp_path / "journal.db"
    shutil.copy(GOLDEN / "journal_format_1.db", path)
    newer = f"update meta set value = {len(MIGRATIONS) + 1} where name = 'format'"
    broken = ("create table extra(x)", newer, "no such statement")
    monkeypatch.setattr("antiphon.journal.sqlite.file.MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(JournalError):
        SqliteJournal(path)
    monkeypatch.undo()

    async def reading():
        async with opened(path) as journal:
            assert await contents(journal) == json.loads((GOLDEN / "journal_format_1.json").read_text())

    asyncio.run(reading())
    with apsw.Connection(str(path)) as file:
        assert not file.table_exists("main", "extra")
