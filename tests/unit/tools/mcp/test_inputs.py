"""What a server asks in the middle of a call: a person, a model, its roots; on record, and found again."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from antiphon import Agent, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.tools.mcp import McpServer, mcp_toolset
from tests.unit.tools.mcp.conftest import FREE, HERE, PATIENCE, peer

ORDERS = [call("desk_order", item="tea"), "done"]


def says(lines):
    """A model that names a price to whoever asks for it, and else says its lines by turn."""

    def answer(request):
        if "What does it cost?" in request.messages[-1].content:
            assert request.tools == (), "whoever wrote the question is not whoever made the agent"
            return "5 EUR"
        return lines[sum(each.role == "assistant" for each in request.messages)]

    return Script(answer)


def desk(folder, **fields):
    return McpServer(
        "desk", sys.executable, (str(HERE / "asking_server.py"), str(folder / "notes")), **fields
    )


async def question(run):
    """The first question of a run, once it is there."""
    async for record in run.events(0, deltas=False):
        if record.asks:
            return record.event
    raise AssertionError("the run ended")


def bounded(work):
    async def within():
        try:
            async with asyncio.timeout(PATIENCE):
                return await work
        finally:
            await close_unused()

    return asyncio.run(within())


async def told(run):
    """What the call came to."""
    (end,) = [each.event for each in await run.records() if getattr(each.event, "id", "") == "1/1.c1"
              and each.type == "EffectFinished"]  # fmt: skip
    return end


async def asked(server, reply, *lines, **options):
    """A run in which a person answers what the server asks; how its call ended, and the question."""
    agent = Agent("a", tools=[mcp_toolset(server)], model=says(lines))
    async with open_run([agent], policy=FREE, **options) as run:
        request, found = await run.post("a", "go"), None
        if reply is not None:
            found = await question(run)
            await run.answer(found.id, reply, by="ann")
        await run.result(request)
        return await told(run), found


@pytest.mark.slow
def test_a_server_asks_and_goes_on_with_the_answers(tmp_path):
    end, question = bounded(asked(desk(tmp_path, cwd=str(tmp_path)), '{"region": "north"}', *ORDERS))
    assert end.content == "tea north 5 EUR 1"
    assert "The MCP server desk asks: Which region?" in question.detail.text
    assert question.detail.schema["properties"]["region"]["enum"] == ["north", "south"]
    assert (tmp_path / "notes").read_text() == "asks about tea\norders tea with state of tea\n"


@pytest.mark.slow
def test_where_nobody_is_there_to_answer_the_server_is_told(tmp_path):
    end, _ = bounded(asked(desk(tmp_path), None, *ORDERS, interactive=False))
    assert end.content == "not ordered: cancel"


@pytest.mark.slow
def test_a_question_outlives_the_process_and_the_server_is_not_called_twice(tmp_path):
    async def go():
        journal = MemoryJournal()
        agent = Agent("a", tools=[mcp_toolset(desk(tmp_path))], model=says(ORDERS))
        options = {"journal": journal, "run_id": "r", "policy": FREE}
        async with open_run([agent], create=True, **options) as run:
            await run.post("a", "go")
            first = await question(run)
        await close_unused()
        async with open_run([agent], **options) as run:
            await run.answer(first.id, '{"region": "south"}', by="ann")
            await run.result("0/1.c1")
            end = await told(run)
        await check_run(journal, "r", reading=set())
        return end

    end = bounded(go())
    assert (end.outcome, end.content) == ("completed", "tea south 5 EUR 0")
    assert (tmp_path / "notes").read_text() == "asks about tea\norders tea with state of tea\n"


def kill_children(name):
    """Kill the programs of this process that have this in their command line."""
    for pid in Path("/proc/self/task", str(os.getpid()), "children").read_text().split():
        if name in Path("/proc", pid, "cmdline").read_text():
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.slow
def test_a_server_that_dies_while_a_person_is_asked_is_given_the_answer_when_it_is_back(tmp_path):
    async def go():
        from antiphon.tools.mcp.session import sessions_here

        agent = Agent("a", tools=[mcp_toolset(desk(tmp_path))], model=says(ORDERS))
        async with open_run([agent], policy=FREE) as run:
            request = await run.post("a", "go")
            asked = await question(run)
            (before,) = sessions_here().values()
            kill_children("asking_server")
            while before in sessions_here().values():  # noqa: ASYNC110 - it notices by itself
                await asyncio.sleep(0)
            await run.answer(asked.id, '{"region": "south"}', by="ann")
            await run.result(request)
            return await told(run)

    end = bounded(go())
    assert (end.outcome, end.content) == ("completed", "tea south 5 EUR 0")
    assert (tmp_path / "notes").read_text() == "asks about tea\norders tea with state of tea\n"


CALLS = [call("p_echo", text="x"), "done"]


@pytest.mark.parametrize(
    ("how", "reply", "said"),
    [
        ("asks a person", '{"x": "red"}', {"action": "accept", "content": {"x": "red"}}),
        ("asks yes or no", "yes", {"action": "accept", "content": {}}),
        ("asks yes or no", "no", {"action": "decline"}),
        ("asks to open", "done", {"action": "accept"}),
        ("asks to open", "no", {"action": "decline"}),
        ("asks for roots", None, {"roots": []}),
    ],
)
def test_an_older_server_asks_by_itself(how, reply, said):
    end, _ = bounded(asked(peer(how), reply, *CALLS))
    assert json.loads(end.content) == said


def test_an_older_server_asks_a_model():
    end, _ = bounded(asked(peer("asks a model"), None, *CALLS))
    found = json.loads(end.content)
    assert (found["role"], found["content"]["text"]) == ("assistant", "5 EUR")


def test_a_form_with_a_regular_expression_is_refused():
    end, _ = bounded(asked(peer("asks with a pattern"), None, *CALLS))
    assert "may not hold `pattern`" in json.loads(end.content)["message"]


def test_a_call_of_an_older_server_that_is_cut_off_while_it_asks_is_not_made_again(tmp_path):
    async def go():
        journal, lives = MemoryJournal(), tmp_path / "lives"
        server = peer("asks a person", lives, effects={"echo": "once"})
        agent = Agent("a", tools=[mcp_toolset(server)], model=says(CALLS))
        options = {"journal": journal, "run_id": "r", "policy": FREE}
        async with open_run([agent], create=True, **options) as run:
            await run.post("a", "go")
            await question(run)
        await close_unused()
        async with open_run([agent], **options) as run:
            await run.result("0/1.c1")
            return await told(run)

    end = bounded(go())
    assert end.outcome == "unknown"
    assert "the process stopped while it was asking; it may or may not have taken effect" in end.reason


def test_fields_that_a_person_leaves_out_are_as_the_form_says():
    from mcp_types import ElicitRequest, ElicitRequestFormParams

    from antiphon.tools.mcp.inputs import answer

    class Door:
        async def ask_user(self, text, schema):
            return {"cups": 2}

    fields = {
        "cups": {"type": "integer", "default": 1}, "hot": {"type": "boolean", "default": True},
        "note": {"type": "string"},
    }  # fmt: skip
    form = ElicitRequestFormParams(message="?", requested_schema={"type": "object", "properties": fields})
    said = asyncio.run(answer(Door(), peer("honest"), ElicitRequest(params=form)))
    assert (said.action, said.content) == ("accept", {"cups": 2, "hot": True})
