"""Definitions on demand: what a prompt has no room for is found by a search, and called by what it found."""

import asyncio

import pytest

from antiphon import Agent, Hooks, ModelOptions, Policy, UserError, open_run, run_sync, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import ApprovalEffect, EffectStarted, ToolEffect
from antiphon.models.script import Script, call
from antiphon.testing.provider import ScriptedProvider
from antiphon.testing.witness import watching
from antiphon.values.agent import RequestOptions
from antiphon.values.hooks import ModelInput
from antiphon.values.model import ChatMessage
from antiphon.values.tool import tool_from
from antiphon.view import connect
from antiphon.view.stored_request import request_of
from tests.unit.kernel.run.toolsets.test_toolsets import fetch, find

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "A town."}},
    "required": ["city"],
}


def made(name, description, effect="read", parameters=CITY):
    async def use(ctx, arguments):
        return f"{name} {arguments}"

    return tool_from(name, description, parameters, use, effect=effect)


WEATHER = made("get_forecast", "How warm it will be.")
BOOK = made("book_room", "Book a room in a hotel.", "once")
MANY = [made(f"thing_{number}", "Does one thing of a great many.") for number in range(50)]


def clerk(provider, *lines, budget=0, **fields):
    model = Script([*lines, "done"])
    toolset = provider.toolset("town")
    agent = Agent(
        "a", tools=[toolset, fetch], model=model, asking=ModelOptions(toolset_tokens=budget), **fields
    )
    return agent, model


def told(model):
    return [each.content for each in model.requests[-1].messages if each.role == "tool"]


def listed(model):
    return [[each.name for each in request.tools if each.name != "finish"] for request in model.requests]


def found(name, **arguments):
    return call("call_tool", name=name, arguments=arguments)


def test_a_tool_is_found_and_called_and_the_prompt_stays_as_it_was():
    agent, model = clerk(
        ScriptedProvider(WEATHER, BOOK, *MANY),
        call("search_tools", query="hotel rooms"), found("book_room", city="Rome"), found("fetch"),
        policy=Policy("open"),
    )  # fmt: skip
    run_sync(agent, "go")
    first, second, third = told(model)
    assert first.splitlines()[0].startswith('{"name":"book_room","description":"Book a room in a hotel."')
    assert "call_tool" in first
    assert (second, third) == ("book_room {'city': 'Rome'}", "fetched")
    assert [each[-2:] for each in listed(model)] == [["search_tools", "call_tool"]] * 4
    assert len({(request.system, str(request.tools)) for request in model.requests}) == 1
    (search,) = [each for each in model.requests[0].tools if each.name == "search_tools"]
    assert "there are 52 more, of: town (52)" in search.description


def test_what_fits_stands_in_the_prompt_toolset_after_toolset():
    near, far = ScriptedProvider(find), ScriptedProvider(*MANY)
    model = Script(["done"])
    agent = Agent(
        "a",
        tools=[far.toolset("far"), near.toolset("near")],
        model=model,
        asking=ModelOptions(toolset_tokens=200),
    )
    run_sync(agent, "go")
    known = ("find", "search_tools", "call_tool", "thing_1")
    assert [each for each in listed(model)[0] if each in known] == ["find", "search_tools", "call_tool"]


@pytest.mark.parametrize("budget", [None, 10_000])
def test_there_is_no_search_where_all_fits(budget):
    agent, model = clerk(ScriptedProvider(WEATHER), budget=budget)
    run_sync(agent, "go")
    assert "get_forecast" in listed(model)[0]
    assert "search_tools" not in listed(model)[0]


@pytest.mark.parametrize("name", ["search_tools", "call_tool"])
def test_an_agent_that_has_a_tool_of_that_name_has_no_other(name):
    own = made(name, "My own.")
    model = Script(["done"])
    provider = ScriptedProvider(WEATHER)
    agent = Agent(
        "a", tools=[own, provider.toolset("town")], model=model, asking=ModelOptions(toolset_tokens=0)
    )
    run_sync(agent, "go")
    assert [each.description for each in model.requests[0].tools if each.name == name] == ["My own."]
    assert "get_forecast" in listed(model)[0]


def test_a_change_of_a_definition_is_found_from_the_next_turn_on():
    provider = ScriptedProvider(WEATHER)

    @tool(effect="read")
    def change() -> str:
        """Another release."""
        provider.offer(BOOK)
        return "changed"

    provider.tools = (WEATHER, change)
    agent, model = clerk(
        provider, [found("change"), call("search_tools", query="hotel")], call("search_tools", query="hotel"),
        found("get_forecast", city="Rome"), tool_execution="sequential",
    )  # fmt: skip
    run_sync(agent, "go")
    _, before, after, gone = told(model)
    assert before == "No tool fits 'hotel'. There are: get_forecast, change"
    assert "book_room" in after
    assert "Unknown tool: get_forecast" in gone
    assert "search_tools finds others" in gone


def test_rules_and_people_are_asked_about_the_tool_that_is_meant():
    async def work():
        agent, model = clerk(
            ScriptedProvider(BOOK), found("book_room", city="Rome"), found("book_room", city="Oslo")
        )
        async with open_run([agent], interactive=True, policy="guarded") as run:
            request = await run.post("a", "go")
            asked = []
            async for item in run.events():
                event = getattr(item, "event", None)
                if type(event) is EffectStarted and type(event.detail) is ApprovalEffect:
                    asked.append((event.detail.name, event.detail.arguments))
                    edited = '{"city":"Bern"}' if len(asked) == 1 else ""
                    await run.answer(event.id, "yes" if edited else "no", arguments=edited)
                if len(asked) == 2:
                    break
            await run.result(request)
            records = await run.records()
        assert asked == [("book_room", '{"city":"Rome"}'), ("book_room", '{"city":"Oslo"}')]
        first, second = told(model)
        assert first == "book_room {'city': 'Bern'}"
        assert "permission denied" in second
        details = [each.event.detail for each in records if type(each.event) is EffectStarted]
        (used,) = [each for each in details if type(each) is ToolEffect]
        assert (used.name, used.arguments, bool(used.digest)) == ("book_room", '{"city":"Bern"}', True)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "name"), ({"name": 3}, "name"), ({"name": "book_room", "arguments": [1]}, "arguments"),
        ({"name": "book_room", "args": {}}, "args"),
        ({"name": "book_room", "arguments": {"town": "Rome"}}, "city"),
        ({"name": "bok_room"}, "Unknown tool: bok_room"), ({"name": "call_tool"}, "Unknown tool: call_tool"),
        ({"name": "finish", "arguments": {"result": "x"}}, "Unknown tool: finish"),
        ({"name": "call_agent", "arguments": {"message": "x"}}, "Unknown tool: call_agent"),
        ({"name": "book_room", "arguments": "not json"}, "arguments"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_so_is_said(arguments, expected):
    agent, model = clerk(ScriptedProvider(BOOK), call("call_tool", **arguments), policy=Policy("open"))
    run_sync(agent, "go")
    (said,) = told(model)
    assert expected in said


def test_arguments_that_are_written_as_a_text_are_taken():
    agent, model = clerk(
        ScriptedProvider(WEATHER), call("call_tool", name="get_forecast", arguments='{"city": "Rome"}'),
        call("get_forecast", city="Oslo"),
    )  # fmt: skip
    run_sync(agent, "go")
    assert told(model) == ["get_forecast {'city': 'Rome'}", "get_forecast {'city': 'Oslo'}"]


def test_a_turn_that_offers_some_tools_offers_the_search_for_them():
    said = [ChatMessage("user", "go")]
    agent, model = clerk(
        ScriptedProvider(WEATHER, BOOK),
        [found("get_forecast", city="Rome"), found("book_room", city="Rome"), call("fetch")],
        hooks=Hooks(prepare_input=lambda context: ModelInput(said, offered_tools=("get_forecast",))),
    )
    run_sync(agent, "go")
    assert listed(model)[0] == ["search_tools", "call_tool"]
    told_of = told(model)
    assert told_of[0] == "get_forecast {'city': 'Rome'}"
    assert "book_room is not offered in this turn" in told_of[1]
    assert "fetch is not offered in this turn" in told_of[2]


def test_a_tool_that_must_be_called_stands_in_the_prompt():
    provider, model = ScriptedProvider(WEATHER, BOOK), Script([call("get_forecast", city="Rome"), "done"])
    asking = ModelOptions(toolset_tokens=0, tool_choice="get_forecast")
    run_sync(Agent("a", tools=[provider.toolset("town")], model=model, asking=asking), "go")
    assert "get_forecast" in listed(model)[0]
    assert "book_room" not in listed(model)[0]


def test_it_is_recorded_and_audited_and_read_again():
    journal = MemoryJournal()

    async def work():
        agent, _ = clerk(
            ScriptedProvider(WEATHER, *MANY),
            call("search_tools", query="warm"),
            found("get_forecast", city="Rome"),
        )
        with watching() as witness:
            async with open_run([agent], journal=journal) as run:
                await run.result(await run.post("a", "go"))
                run_id = run.run_id
        witness.verdict()
        stored = await request_of(journal, run_id, "1/2.m1")
        assert stored.verified
        assert [each.name for each in stored.request.tools][-2:] == ["search_tools", "call_tool"]
        async with connect(journal, run_id) as run:
            tree = await run.tree()
        node = tree.effects["1/2.c1"]
        assert (node.name, node.arguments, node.call.name) == ("get_forecast", '{"city":"Rome"}', "call_tool")

    asyncio.run(work())


def test_a_model_that_finds_nothing_is_told_what_there_is():
    agent, model = clerk(
        ScriptedProvider(*MANY), call("search_tools", query="xyzzy"),
        call("search_tools", query="thing_7 thing_9"),
        call("search_tools", query="one thing", limit=2), call("search_tools", query="x", limit=0),
    )  # fmt: skip
    run_sync(agent, "go")
    nothing, named, some, wrong = told(model)
    assert nothing.startswith("No tool fits 'xyzzy'. There are: thing_0, thing_1,")
    assert [line[:18] for line in named.splitlines()[:2]] == ['{"name":"thing_7",', '{"name":"thing_9",']
    assert len([line for line in some.splitlines() if line.startswith("{")]) == 2
    assert "Others that may fit: thing_2, thing_3" in some
    assert "limit" in wrong


def test_long_definitions_are_shown_one_at_a_time():
    huge = [made(f"huge_{number}", "Huge. " * 5_000) for number in range(3)]
    agent, model = clerk(ScriptedProvider(*huge), call("search_tools", query="huge"))
    run_sync(agent, "go")
    (said,) = told(model)
    assert said.count("its definition is too long; search for it alone") == 2


def test_a_request_may_leave_toolsets_out():
    agent, model = clerk(ScriptedProvider(WEATHER, BOOK))

    async def work():
        async with open_run([agent]) as run:
            await run.result(await run.post("a", "go", options=RequestOptions(own_tools=("fetch",))))

    asyncio.run(work())
    assert "search_tools" not in listed(model)[0]


def test_a_budget_is_a_number_of_tokens():
    for wrong in (-1, "many", 1.5):
        with pytest.raises(UserError, match="toolset_tokens"):
            ModelOptions(toolset_tokens=wrong)
