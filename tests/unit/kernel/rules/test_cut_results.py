"""Whoever was shown a result in part only is offered what reads the rest, from the next turn on."""

import asyncio

from antiphon import Agent, Policy, open_run, run_sync, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.tools import grep_output, read_output
from antiphon.values.hooks import Hooks, ModelInput
from antiphon.values.limits import OutputLimits
from antiphon.view.stored_request import request_of

CUT = OutputLimits(message=60)
READERS = ["read_output", "grep_output"]


@tool(effect="read")
def much(lines: int = 20) -> str:
    """Many lines."""
    return "\n".join(f"line {number}" for number in range(lines))


def offered(model):
    return [[each.name for each in request.tools] for request in model.requests]


def test_a_cut_result_offers_its_readers_from_the_next_turn_on_after_all_else():
    model = Script([call("much"), call("grep_output", handle="1/1.c1", pattern="line 7"), "seven"])
    result = run_sync(Agent("a", "You are a.", tools=[much], model=model), "go", output_limits=CUT)
    assert result.output == "seven"
    first, second, third = offered(model)
    assert first == ["much", "call_agent", "finish"]
    assert second == third == [*first, *READERS]
    assert model.requests[0].system == model.requests[1].system
    assert "line 7" in model.requests[2].messages[-1].content


def test_who_had_nothing_cut_is_asked_as_ever():
    small, large = Script([call("much", lines=2), "two"]), Script([call("much"), "many"])
    limits = OutputLimits(message=60)
    run_sync(Agent("a", "You are a.", tools=[much], model=small), "go", output_limits=limits)
    run_sync(Agent("a", "You are a.", tools=[much], model=large), "go", output_limits=limits)
    assert offered(small)[1] == offered(small)[0] == offered(large)[0] != offered(large)[1]


def test_a_removed_result_offers_them_too():
    model = Script([call("much"), call("much"), "done"])
    limits = OutputLimits(message=None, total=60)
    run_sync(Agent("a", "You are a.", tools=[much], model=model), "go", output_limits=limits)
    assert [READERS[0] in each for each in offered(model)] == [False, False, True]


def test_they_are_offered_as_long_as_the_conversation_lasts_and_to_nobody_else():
    agents = [Agent("a", "You are a.", tools=[much], context="continue"), Agent("b", "You are b.")]
    model = Script(
        {"a": [call("much"), "one", call("call_agent", agent_name="b", message="x"), "two"], "b": "b"}
    )

    async def talk():
        async with open_run(agents, model=model, output_limits=CUT) as opened:
            await opened.result(await opened.post("a", "go"))
            await opened.result(await opened.post("a", "on"))

    asyncio.run(talk())
    told = {request.effect_id: [each.name for each in request.tools] for request in model.requests}
    with_them = [effect for effect, names in told.items() if READERS[0] in names]
    assert with_them == ["1/2.m1", "1/3.m1", "1/4.m1"]


def test_own_tools_of_that_name_stay_and_one_that_is_given_is_not_told_of_twice():
    @tool(name="read_output", effect="read")
    def own(handle: str) -> str:
        """Its own."""
        return "own"

    model = Script([call("much"), call("read_output", handle="1/1.c1"), "done"])
    run_sync(Agent("a", tools=[much, own], model=model), "go", output_limits=CUT)
    assert offered(model)[1] == ["much", "read_output", "call_agent", "finish", "grep_output"]
    assert model.requests[2].messages[-1].content == "own"


def test_a_run_that_is_taken_up_offers_them_and_every_request_is_found_again():
    journal, first = MemoryJournal(), Script([call("much"), "cut"])
    agent = Agent("a", "You are a.", tools=[much], context="continue")
    second = Script([call("read_output", handle="1/1.c1", offset=19), "done"])

    async def talk():
        async with open_run(
            [agent], journal=journal, run_id="r", create=True, model=first, output_limits=CUT
        ) as opened:
            await opened.result(await opened.post("a", "go"))
        async with open_run([agent], journal=journal, run_id="r", model=second) as opened:
            await opened.result(await opened.post("a", "on"))
        return [await request_of(journal, "r", each.effect_id) for each in second.requests]

    stored = asyncio.run(talk())
    assert all(names[-2:] == READERS for names in offered(second))
    assert "line 18" in second.requests[-1].messages[-1].content
    for request, found in zip(second.requests, stored, strict=True):
        assert found.verified
        assert list(found.request.tools) == list(request.tools)


def test_a_hook_that_says_what_is_offered_says_all_of_it():
    only = Hooks(prepare_input=lambda context: ModelInput([], offered_tools=("much",)))
    model = Script([call("much"), call("read_output", handle="1/1.c1"), "done"])
    run_sync(Agent("a", tools=[much], hooks=only, model=model), "go", output_limits=CUT)
    assert offered(model)[1] == ["much"]
    assert "not offered" in model.requests[2].messages[-1].content


def test_a_policy_holds_for_them():
    model = Script([call("much"), call("read_output", handle="1/1.c1"), "done"])
    agent = Agent("a", tools=[much], model=model)
    run_sync(agent, "go", output_limits=CUT, policy=Policy(deny=("read_output",)))
    assert "denied" in model.requests[2].messages[-1].content


def test_what_another_was_shown_is_not_read():
    """A handle is easily guessed, and its reader has none of the labels of what it would read."""
    tools = [much, read_output, grep_output]
    agents = [Agent(name, f"You are {name}.", tools=tools) for name in "ab"]
    peeks = [call("read_output", handle="1/1.c1"), call("grep_output", handle="1/1.c1", pattern="line 7")]
    ask = call("call_agent", agent_name="b", message="x")
    model = Script({"a": [call("much"), ask, peeks[1], "done"], "b": [peeks, "b"]})
    run_sync(agents[0], "go", agents=agents, model=model, output_limits=CUT)
    of_b = [each for each in model.requests if "You are b." in each.system.splitlines()[0]][-1]
    assert all("No output is kept under the handle" in each.content for each in of_b.messages[-2:])
    assert "line 7" in model.requests[-1].messages[-1].content
