"""What holds for one request alone: tools, settings, output, instructions, a stricter policy."""

import asyncio
import json
import re

import pytest
from msgspec import Struct

from antiphon import Agent, Hooks, ModelOptions, Policy, RunFailed, UserError, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run.commands import AskAgent, encode
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.values.agent import MAX_OUTSIDE_TOOLS, OutsideTool, RequestOptions
from antiphon.values.hooks import TurnPlan
from antiphon.values.tool import tool_from
from antiphon.view import connect, request_of
from tests.transcript import until

PAGE = {"type": "object", "properties": {"page": {"type": "integer"}}}
SEE = OutsideTool("see", "See a page.", PAGE, {"type": "integer"})
AGE = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


@tool
async def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def clerk(*replies, name="clerk", **options):
    options.setdefault("tools", [send, look])
    options.setdefault("instructions", "You are short.")
    return Agent(name, model=Script([*replies]), **options)


def bounded(talk):
    async def in_time():
        async with asyncio.timeout(20):
            return await talk()

    return asyncio.run(in_time())


def asked(agent, options, *, then=None, agents=(), **kept):
    """One request with options, and `then` one without: their results."""

    async def talk():
        journal = MemoryJournal()
        kept.setdefault("interactive", True)
        async with open_run([agent, *agents], journal=journal, run_id="r", create=True, **kept) as opened:
            found = []
            for each in (options, then) if then is not None else (options,):
                extra = {} if each == "plain" else {"options": each}
                found.append(await opened.result(await opened.post(agent.name, "go", **extra)))
        await check_journal(journal)
        for effect in ("1/1.m1", "2/1.m1"):
            if effect[0] == "1" or (then is not None and agent.context == "fresh"):
                assert (await request_of(journal, "r", effect)).verified
        return found

    return bounded(talk)


def names(request):
    return [each.name for each in request.tools]


def test_instructions_and_settings_hold_for_one_request():
    agent = clerk("one", "one", asking=ModelOptions(settings={"temperature": 1.0, "seed": 7}))
    options = RequestOptions(
        instructions="Answer in French.", settings={"temperature": 0.1}, max_output_tokens=100
    )
    asked(agent, options, then="plain")
    first, second = agent.model.requests
    assert first.system.endswith("Answer in French.")
    assert first.system.startswith(second.system)
    assert (first.settings, first.max_output) == ({"temperature": 0.1, "seed": 7}, 100)
    assert (second.settings, second.max_output) == ({"temperature": 1.0, "seed": 7}, 4096)
    assert "French" not in second.system


def test_a_reply_is_never_longer_than_the_agents_own():
    agent = clerk("one", asking=ModelOptions(max_output_tokens=50))
    asked(agent, RequestOptions(max_output_tokens=10_000))
    assert agent.model.requests[0].max_output == 50


def test_a_request_leaves_some_of_the_agents_tools_out():
    agent = clerk([call("send", to="ann"), call("look")], "end", "end")
    asked(agent, RequestOptions(own_tools=("look",)), then="plain")
    first, second, later = agent.model.requests
    assert [each for each in names(first) if each in ("send", "look")] == ["look"]
    told = [each.content for each in second.messages if each.role == "tool"]
    assert told[0].startswith("Error: Unknown tool: send")
    assert told[1] == "seen"
    assert {"send", "look"} <= set(names(later))


def test_a_request_brings_tools_that_whoever_runs_it_does():
    async def talk():
        agent = clerk(call("see", page=2), "end", "end")
        journal = MemoryJournal()
        async with open_run([agent], journal=journal, run_id="r", create=True) as opened:
            request = await opened.post("clerk", "go", options=RequestOptions(tools=(SEE,)))
            await until(opened, "1/1.c1 wait question user started")
        # Another process, that has the same team and nothing of the request.
        async with open_run([agent], journal=journal, run_id="r") as opened:
            async with connect(journal, "r") as connection:
                (question,) = await connection.open_questions()
                assert (question.tool, question.arguments) == ("see", '{"page":2}')
                await connection.answer("1/1.c1", "12")
            assert (await opened.result(request)).output == "end"
            await opened.result(await opened.post("clerk", "again"))
        await check_journal(journal)
        first, second, later = agent.model.requests
        assert names(first)[-1] == "see"
        assert second.messages[-1].content == "12"
        assert "see" not in names(later)
        assert (await request_of(journal, "r", "1/2.m1")).verified

    bounded(talk)


@pytest.mark.parametrize("how", ["a schema", "a type"])
def test_an_answer_has_the_form_that_the_request_wants(how):
    class Age(Struct):
        age: int

    agent = clerk("old", '{"age": "very"}', '{"age": 90}', "plain")
    first, second = asked(agent, RequestOptions(output=AGE if how == "a schema" else Age), then="plain")
    assert (json.loads(first.output), first.value) == ({"age": 90}, {"age": 90})
    assert (second.output, second.value) == ("plain", None)
    asked_first, _, asked_third, plain = agent.model.requests
    assert asked_first.output_schema["required"] == ["age"]
    assert "does not fit the schema" in asked_third.messages[-1].content
    assert plain.output_schema is None


def test_results_of_such_a_request_are_read_again_from_the_journal():
    async def talk():
        journal, agent = MemoryJournal(), clerk('{"age": 1}')
        async with open_run([agent], journal=journal, run_id="r", create=True) as opened:
            await opened.result(await opened.post("clerk", "go", options=RequestOptions(output=AGE)))
        async with open_run([agent], journal=journal, run_id="r") as opened:
            assert [each.value async for each in opened.results()] == [{"age": 1}]

    bounded(talk)


def test_a_conversation_goes_on_from_one_request_to_another_with_other_options():
    agent = clerk("one", "two", "three", context="continue")

    async def talk():
        async with open_run([agent]) as opened:
            for word in ("First.", "", "Third."):
                options = RequestOptions(instructions=word) if word else None
                await opened.result(await opened.post("clerk", "go", options=options))

    bounded(talk)
    ends = [each.system.rpartition("\n\n")[2] for each in agent.model.requests]
    assert (ends[0], ends[2]) == ("First.", "Third.")
    assert "First." not in agent.model.requests[1].system
    assert [each.content for each in agent.model.requests[2].messages] == ["go", "one", "go", "two", "go"]


def test_requests_of_one_conversation_that_wait_keep_their_own():
    agent = clerk("one", "two", context="continue")

    async def talk():
        async with open_run([agent]) as opened:
            calls = [
                await opened.post("clerk", "go", options=RequestOptions(instructions=word))
                for word in ("First.", "Second.")
            ]
            for each in calls:
                await opened.result(each)

    bounded(talk)
    assert [each.system.rpartition("\n\n")[2] for each in agent.model.requests] == ["First.", "Second."]


def test_a_stricter_policy_binds_the_whole_tree_of_the_request():
    below = clerk(call("send", to="bob"), "below", name="below")
    team = clerk(
        [call("send", to="ann"), call("call_agent", agent_name="below", message="go")],
        *("end", call("send", to="eve"), "end"),
    )
    asked(team, RequestOptions(policy="strict"), then="plain", agents=[below], policy="open")
    told = [each.content for each in team.model.requests[1].messages if each.role == "tool"]
    assert told[0] == "Error: permission denied: send was not granted"
    refused = [each.content for each in below.model.requests[1].messages if each.role == "tool"]
    assert refused == told[:1]
    assert team.model.requests[3].messages[-1].content == "sent to eve"


def test_a_looser_policy_changes_nothing():
    agent = clerk(call("send", to="ann"), "end")
    asked(agent, RequestOptions(policy="open"), policy=Policy(deny=("send",)))
    assert agent.model.requests[1].messages[-1].content.startswith("Error: permission denied")


def test_a_policy_binds_a_tool_that_the_request_brings():
    agent = clerk(call("see", page=1), "end")
    asked(agent, RequestOptions(tools=(SEE,)), policy=Policy(deny=("see",)))
    assert agent.model.requests[1].messages[-1].content.startswith("Error: permission denied")


def _planning(context):
    return TurnPlan(())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"own_tools": ("fly",)}, "own_tools: clerk has no tool 'fly'; it has send, look"),
        ({"tools": (OutsideTool("send"),)}, "tools: clerk has send itself; give yours another name"),
        ({"tools": (OutsideTool("finish"),)}, "tools: clerk has finish itself"),
        ({"tools": (OutsideTool("read_output"),)}, "tools: clerk has read_output itself"),
        ({"tools": (SEE, SEE)}, "tools: two are called 'see'"),
        ({"tools": (OutsideTool("a b"),)}, "tools: 'a b' cannot be a tool's name"),
        ({"tools": (OutsideTool("a", parameters={"type": "string"}),)}, "tools: a: parameters must be"),
        ({"tools": (OutsideTool("a", result={"pattern": "(a+)+$"}),)}, "may not hold `pattern`"),
        ({"tools": (OutsideTool("a", parameters={"properties": {"b": {"pattern": "x"}}}),)}, "may not hold"),
        (
            {"tools": tuple(OutsideTool(f"t{number}") for number in range(MAX_OUTSIDE_TOOLS + 1))},
            "a request brings at most 128 tools; got 129",
        ),
        (
            {"settings": {"extra_headers": {"a": "b"}}},
            "a request cannot choose 'extra_headers'; it can choose",
        ),
        ({"settings": {"max_tokens": 9}}, "a request cannot choose 'max_tokens'"),
        ({"max_output_tokens": 0}, "max_output_tokens is at least 1; got 0"),
        ({"output": {"type": "integr"}}, "output: the schema of the answer cannot be used"),
        ({"output": {"pattern": "(a+)+$"}}, "output: the schema of the answer may not hold `pattern`"),
        ({"instructions": "x" * 262_144}, "the options of a request are at most 262,144 bytes of JSON"),
    ],
)
def test_what_cannot_be_asked_is_refused_wherever_it_comes_from(options, said):
    """By the one who drives the run before anything is recorded; by letter as the end of the request."""

    async def talk():
        given, agent, journal = RequestOptions(**options), clerk("end"), MemoryJournal()
        async with open_run([agent], journal=journal, run_id="r", create=True) as opened:
            before = opened.seq
            with pytest.raises(UserError, match=re.escape(said)):
                await opened.post("clerk", "go", options=given)
            assert opened.seq == before
            await journal.post("r", "k", encode(AskAgent("clerk", "go", options=given)))
            async for record in opened.events(deltas=False):
                if type(record.event) is EffectFinished:
                    break
            with pytest.raises(RunFailed, match=re.escape(said)):
                await opened.result("0/1.c1")
        await check_journal(journal)
        assert not agent.model.requests

    bounded(talk)


def test_an_agent_that_works_by_its_own_code_takes_a_policy_only():
    agent = Agent("clerk", hooks=Hooks(plan_turn=_planning))
    assert "works by its own code" in RequestOptions(instructions="x").wrong_for(agent)
    assert RequestOptions(policy="strict").wrong_for(agent) == ""


def test_only_a_tool_without_a_function_can_be_brought():
    made = tool_from("see", "See a page.", PAGE, result={"type": "integer"}, kind="read", title="Look at it")
    known = OutsideTool.of(made)
    assert known == OutsideTool("see", "See a page.", PAGE, {"type": "integer"}, "Look at it", "read")
    assert (known.made().digest, known.made().title) == (made.digest, "Look at it")
    with pytest.raises(UserError, match="send has a function; a request brings tools that others do"):
        OutsideTool.of(send)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tools": [send]}, "RequestOptions(tools=...) takes"),
        ({"policy": "loose"}, "RequestOptions(policy=...) takes 'open', 'guarded' or 'strict'"),
        ({"instructions": 3}, "RequestOptions(instructions=...) takes a text"),
        ({"own_tools": "send"}, "RequestOptions(own_tools=...) takes"),
    ],
)
def test_what_is_no_option(given, said):
    with pytest.raises(UserError, match=re.escape(said)):
        RequestOptions(**given)


def test_a_text_is_no_type_and_nothing_is_evaluated():
    """What comes as data stays data, whoever wrote it."""
    for given in ('__import__("os").abort()', 3, True, ["int"]):
        assert "output is a JSON Schema, an object" in RequestOptions(output=given).wrong()
    assert RequestOptions(output=int).output == {"type": "integer"}


def test_an_agent_can_be_left_without_tools_of_its_own():
    agent = clerk("one")
    asked(agent, RequestOptions(own_tools=()))
    assert not {"send", "look"} & set(names(agent.model.requests[0]))


def test_a_run_goes_on_though_its_team_has_the_requests_tool_itself_by_now():
    """The agent's own tool counts then."""

    async def talk():
        journal, model = MemoryJournal(), Script([call("see", page=1), call("see", page=2), "end"])
        kept = {"journal": journal, "run_id": "r"}
        options = RequestOptions(tools=(SEE,))
        async with open_run([Agent("clerk", tools=[send, look], model=model)], create=True, **kept) as opened:
            request = await opened.post("clerk", "go", options=options)
            await until(opened, "1/1.c1 wait question user started")
        own = tool_from("see", "See.", PAGE, lambda arguments: "seen by itself", effect="read")
        async with open_run([Agent("clerk", tools=[own], model=model)], **kept) as opened:
            await opened.answer("1/1.c1", "1")
            await opened.result(request)
        await check_journal(journal)
        told = [each.content for each in model.requests[-1].messages if each.role == "tool"]
        assert told == ["1", "seen by itself"]

    bounded(talk)


def test_options_are_an_object_of_their_kind():
    async def talk():
        async with open_run([clerk("one")]) as opened:
            with pytest.raises(UserError, match="options takes a RequestOptions"):
                await opened.post("clerk", "go", options={"instructions": "x"})

    bounded(talk)
