"""What a model was asked, read from the journal: it is what the model's adapter was given, to the letter."""

import asyncio
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from antiphon import Agent, Hooks, open_journal, open_run, tool
from antiphon.errors import UnknownName, UserError
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import chain, genesis
from antiphon.journal.row_writer import put
from antiphon.journal.transfer import named_blobs
from antiphon.models.script import Script, call
from antiphon.values.agent import ModelOptions
from antiphon.values.hooks import ModelInput
from antiphon.values.model import ChatMessage
from antiphon.view import RunTree, connect, request_of
from tests.oracle import play
from tests.oracle.stage import SCENARIOS, Stage

GOLDEN = Path(__file__).parents[2] / "golden"


@tool(effect="read")
async def look(where: str) -> str:
    """Look somewhere."""
    return f"seen {where}"


def asked_in(tree):
    return [each.id for each in tree.effects.values() if each.model is not None]


# -- every run there is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_model_call_of_every_scenario_is_verified_and_is_what_the_model_got(name, tmp_path):
    async def talk():
        stage, count = Stage(tmp_path), 0
        await SCENARIOS[name](stage)
        given = {
            (each.session, each.effect_id): each for model in stage.kept_models for each in model.requests
        }
        for entry in await stage.journal.runs():
            async with connect(stage.journal, entry.run_id) as run:
                tree = await run.tree()
                for effect_id in asked_in(tree):
                    stored = await run.request_of(effect_id)
                    node = tree.effects[effect_id]
                    assert stored.verified, effect_id
                    assert (stored.digest, stored.at) == (node.model.digest, node.started_at)
                    # A model that is not the scenario's own kept nothing of what it was asked.
                    assert given.get((entry.run_id, effect_id), stored.request) == stored.request
                    count += (entry.run_id, effect_id) in given
        assert count == len(given)
        await stage.journal.close()

    assert play.FILES
    asyncio.run(talk())


# -- one run ------------------------------------------------------------------------------------------


def shown(context):
    if context.turn > 1:
        return None
    return ModelInput([ChatMessage("user", f"turn {context.turn}")], suffix="now", offered_tools=("look",))


async def two_turns(journal, **options):
    """A run of an agent that looks once; its id."""
    model = Script([call("look", where="here"), "done"])
    asking = ModelOptions(settings={"temperature": 0.5}, max_output_tokens=100)
    agent = Agent("a", "Be brief.", tools=[look], model=model, asking=asking, **options)
    async with open_run([agent], journal=journal, run_id="r", create=True) as run:
        await run.result(await run.post("a", "go"))


def test_it_holds_all_that_was_asked_and_says_what_is_new():
    async def talk():
        journal = MemoryJournal()
        await two_turns(journal, hooks=Hooks(prepare_input=shown))
        return await request_of(journal, "r", "1/1.m1"), await request_of(journal, "r", "1/2.m1")

    first, second = asyncio.run(talk())
    assert (first.shared, second.shared) == (0, 1)
    assert (first.previous, second.previous) == ("", first.effect_id)
    assert (first.removed, second.removed) == ([], [])
    assert [each.role for each in second.request.messages[second.shared :]] == ["assistant", "tool"]
    assert "Be brief." in first.request.system
    assert (first.request.tail, second.request.tail) == ("now", "")
    assert [each.name for each in first.request.tools] == ["look"]
    assert len(second.request.tools) > 1
    assert first.request.settings == {"temperature": 0.5}
    assert first.request.max_output == 100
    assert (first.agent, first.purpose, first.request.session) == ("a", "", "r")
    assert first.seq < second.seq


def test_what_is_not_the_recorded_request_is_not_verified():
    async def talk():
        journal, other = MemoryJournal(), MemoryJournal()
        await two_turns(journal)
        lease, digest = await other.claim("r", create=True, origin="r"), genesis("r", "r")
        for row in await journal.read("r"):
            # As somebody would who can write the file: the digests of the rows are right.
            body = row.body.replace(b"seen here", b"seen HERE")
            digest = chain(digest, row.seq, row.count, 1, row.at, body, row.refs, row.blobs, row.given)
            blobs = {name: await journal.blob("r", name) for name in named_blobs([row])}
            await put(other, lease, replace(row, epoch=1, body=body, digest=digest), blobs)
        return await request_of(other, "r", "1/1.m1"), await request_of(other, "r", "1/2.m1")

    first, second = asyncio.run(talk())
    assert first.verified
    assert not second.verified
    assert second.request.messages[-1].content == "seen HERE"


def test_a_run_of_an_older_format_is_shown_and_not_verified(tmp_path):
    shutil.copy(GOLDEN / "run_format_2.db", tmp_path / "old.db")

    async def talk():
        journal = open_journal(f"sqlite:///{tmp_path}/old.db")
        try:
            (entry,) = await journal.runs()
            return await request_of(journal, entry.run_id, "2/2.m1")
        finally:
            await journal.close()

    found = asyncio.run(talk())
    assert found.request.system
    assert (found.verified, found.shared, len(found.request.messages)) == (False, 1, 3)


def test_what_compaction_took_away_is_told():
    async def talk():
        journal = MemoryJournal()
        said = ["one", "two", "<summary>short</summary><next_steps>go on</next_steps>", "three"]
        agent = Agent("a", model=Script(said), context="continue")
        async with open_run([agent], journal=journal, run_id="r", create=True) as run:
            for text, intent in (("first", ""), ("second", ""), ("", "compact"), ("third", "")):
                await run.result(await run.post("a", text, intent=intent))
            tree = RunTree.of(await run.records())
        return [await request_of(journal, "r", each) for each in asked_in(tree)]

    *_, before, summary, after = asyncio.run(talk())
    assert summary.purpose == "compact"
    assert (summary.previous, after.previous) == (before.effect_id, summary.effect_id)
    taken = [each.content for each in after.removed]
    assert "first" in taken
    assert "one" in taken
    assert not {each.content for each in after.request.messages} & set(taken)


def test_an_id_that_is_no_model_call_is_refused_by_name():
    async def talk():
        journal = MemoryJournal()
        await two_turns(journal)
        for wrong in ("1/1.c1", "9/9.m9", "", "nothing", "\x1b[2J"):
            with pytest.raises(UnknownName, match=r"Known: 1/1\.m1, 1/2\.m1$"):
                await request_of(journal, "r", wrong)
        with pytest.raises(UserError, match="effect_id"):
            await request_of(journal, "r", 7)
        with pytest.raises(UnknownName):
            await request_of(journal, "nobody", "1/1.m1")

    asyncio.run(talk())


def test_a_request_that_goes_on_is_read_too_and_stays_as_it_was():
    async def talk():
        journal = MemoryJournal()
        model = Script([call("look", where="here"), "done", "again"])
        agent = Agent("a", tools=[look], model=model, context="continue")
        async with open_run([agent], journal=journal) as run, connect(journal, run.run_id) as seen:
            await run.result(await run.post("a", "one"))
            before = await seen.request_of("1/1.m1")
            await run.result(await run.post("a", "two"))
            tree = RunTree.of(await seen.records())
            after = [await seen.request_of(each) for each in asked_in(tree)]
        assert after[0] == before
        assert [each.shared for each in after] == [0, 1, 3]
        assert [len(each.request.messages) for each in after] == [1, 3, 5]

    asyncio.run(talk())
