"""What differs between two teams, and what that means for a run that was opened with the first one."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon import ALL, Agent, Hooks, RetryPolicy, tool
from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import ActionEffect, ApprovalEffect, Detail, ToolEffect
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.team.compile import make_team
from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.kernel.rules.team.differences import differences
from antiphon.kernel.rules.team.manifest import manifest_of
from antiphon.models.script import Script
from antiphon.values.policy import Grant


@tool
def pay(to: str) -> str:
    """Pay."""
    return to


@tool(name="pay")
def pay_more(to: str, amount: int) -> str:
    """Pay."""
    return f"{to} {amount}"


@tool(name="pay")
def pay_otherwise(to: str) -> str:
    """Pay."""
    return to.upper()


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


class Other(Script):
    """Another adapter."""


SMALL = ModelOption(Script([], name="small"), 1_000, 1.0, 2.0)
LARGE = ModelOption(Script([], name="large"), 9_000, 3.0, 4.0)
CLERK = Agent("clerk", "You help.", tools=[pay])


def team(*agents: Agent, models: tuple[ModelOption, ...] = (SMALL,)) -> Any:
    return json.loads(manifest_of(make_team(agents, Options(), lambda agent: models)).data)


def run_of(*agents: str, resting: bool = False, **in_flight: Detail) -> RunState:
    """A run with these agents at work, or at rest, and effects of the first one in flight, by id."""
    run = RunState()
    run.activations[0] = Activation(0, "user")
    for number, name in enumerate(agents, 1):
        run.activations[number] = Activation(number, name, call="" if resting else f"0/1.c{number}")
        if resting:
            run.dormant[0, name] = number
    for place, detail in enumerate(in_flight.values()):
        effect_id = f"1/1.c{place + 1}"
        run.activations[1].open[effect_id] = OpenEffect(effect_id, detail, 1, 1, place)
    return run


def found(before: Any, after: Any, run: RunState | None = None) -> list[tuple[str, str, str, str, str, bool]]:
    said = differences(run_of("clerk") if run is None else run, before, after)
    return [(each.agent, each.what, each.name, each.change, each.means, each.blocks) for each in said]


def only(before: Any, after: Any, run: RunState | None = None) -> tuple[str, str, str, str, str, bool]:
    """The one difference beside that of the prompt, which follows from it."""
    (one,) = [each for each in found(before, after, run) if each[1] != "prompt"]
    return one


def test_the_same_team_has_no_differences() -> None:
    assert found(team(CLERK), team(CLERK)) == []


@pytest.mark.parametrize("name", ["format", "rules"])
def test_other_rules(name: str) -> None:
    before = team(CLERK)
    assert found(before, {**before, name: 99}) == [
        ("", "rules", name, "changed",
         f"{before[name]} became 99: the same facts may be answered by other events", False),
    ]  # fmt: skip


# -- agents --------------------------------------------------------------------------------------


def test_an_agent_that_is_gone_from_its_work() -> None:
    other = Agent("other")
    assert found(team(CLERK, other), team(other), run_of("clerk"))[0] == (
        "clerk", "agent", "clerk", "gone", "what it does ends failed with its name: 0/1.c1", True
    )  # fmt: skip


def test_an_agent_that_is_gone_and_was_at_rest() -> None:
    other = Agent("other")
    assert found(team(CLERK, other), team(other), run_of("clerk", resting=True))[0] == (
        "clerk", "agent", "clerk", "gone",
        "its conversation stays at rest, and whoever calls it is told that it is gone", True,
    )  # fmt: skip


def test_an_agent_that_is_gone_and_did_nothing() -> None:
    other = Agent("other", can_call=())
    before, after = team(CLERK, other), team(other)
    assert found(before, after, run_of("other")) == [
        ("clerk", "agent", "clerk", "gone", "nothing of it is in flight or at rest", False)
    ]


def test_an_agent_that_is_new() -> None:
    other = Agent("other", can_call=())
    assert only(team(other), team(other, CLERK), run_of("other")) == (
        "clerk", "agent", "clerk", "new", "it can be asked and called", False
    )  # fmt: skip


def test_an_agent_of_the_run_that_is_known_again() -> None:
    other = Agent("other", can_call=())
    assert only(team(other), team(other, CLERK), run_of("clerk")) == (
        "clerk", "agent", "clerk", "new", "it is known again, and so is what it said", False
    )  # fmt: skip


# -- tools ---------------------------------------------------------------------------------------


def test_a_tool_that_is_new() -> None:
    assert only(team(CLERK), team(replace(CLERK, tools=[pay, look]))) == (
        "clerk", "tool", "look", "new", "it is offered from the next request on", False
    )  # fmt: skip


GONE = replace(CLERK, tools=())
CHANGED = replace(CLERK, tools=[pay_more])
REWRITTEN = replace(CLERK, tools=[pay_otherwise])
RUNS = {"pay": ToolEffect("pay")}
LOOKS = {"look": ToolEffect("look")}
ASKS = {"pay": ApprovalEffect("pay", "{}", pay.digest)}


@pytest.mark.parametrize(
    ("after", "in_flight", "change", "means", "blocks"),
    [
        (GONE, {}, "gone", "calls of it are told that there is no such tool", False),
        (GONE, RUNS, "gone", "its calls in flight fail: 1/1.c1", True),
        (GONE, ASKS, "gone",
         "the permission that is waited for was asked for the tool as it was: 1/1.c1", True),
        (GONE, LOOKS, "gone", "calls of it are told that there is no such tool", False),
        (CHANGED, {}, "changed", "models see another schema or contract from the next request on", False),
        (CHANGED, RUNS, "changed", "its calls in flight may be run again, by other code: 1/1.c1", True),
        (REWRITTEN, {}, "changed", "other code keeps the same contract", False),
        (REWRITTEN, RUNS, "changed", "its calls in flight may be run again, by other code: 1/1.c1", True),
    ],
)  # fmt: skip
def test_a_tool_that_is_not_what_it_was(
    after: Agent, in_flight: Mapping[str, Any], change: str, means: str, blocks: bool
) -> None:
    run = run_of("clerk", **in_flight)
    assert only(team(CLERK), team(after), run) == ("clerk", "tool", "pay", change, means, blocks)


def test_a_tool_that_was_allowed_for_good() -> None:
    run = run_of("clerk")
    run.grants[pay.digest] = (Grant(),)
    assert only(team(CLERK), team(CHANGED), run) == (
        "clerk", "tool", "pay", "changed", "it was allowed for good as it was; now it is asked again", True
    )  # fmt: skip


# -- hooks ---------------------------------------------------------------------------------------


async def one(context: Any) -> str:
    return "one"


async def two(context: Any) -> str:
    return "two and more"


ONE, TWO = replace(CLERK, hooks=Hooks(act=one)), replace(CLERK, hooks=Hooks(act=two))


@pytest.mark.parametrize(
    ("before", "after", "acts", "change", "means"),
    [
        (CLERK, ONE, False, "new", "it decides from the next turn on"),
        (ONE, TWO, False, "changed", "it decides from the next turn on"),
        (ONE, CLERK, False, "gone", "it decides from the next turn on"),
        (ONE, TWO, True, "changed", "the action in flight is run again by other code: 1/1.c1"),
        (ONE, CLERK, True, "gone", "the action in flight fails: 1/1.c1"),
    ],
)
def test_another_hook(before: Agent, after: Agent, acts: bool, change: str, means: str) -> None:
    run = run_of("clerk", **({"act": ActionEffect("clerk")} if acts else {}))
    assert only(team(before), team(after), run) == ("clerk", "hook", "act", change, means, acts)


def test_another_hook_beside_an_action_in_flight() -> None:
    judges = replace(ONE, hooks=replace(ONE.hooks, end_turn=lambda context: None))
    run = run_of("clerk", act=ActionEffect("clerk"))
    assert only(team(ONE), team(judges), run) == (
        "clerk", "hook", "end_turn", "new", "it decides from the next turn on", False
    )  # fmt: skip


# -- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "name", "change", "means"),
    [
        ([SMALL], [SMALL, LARGE], "large", "new", "it is asked when those before it fail"),
        ([SMALL, LARGE], [SMALL], "large", "gone", "small is asked in its place"),
        ([SMALL], [], "small", "gone", "the agent has no model to ask and fails"),
        ([SMALL], [LARGE], "small", "changed", "large is asked in its place"),
        ([SMALL], [replace(SMALL, window=500)], "small", "changed",
         "its window was 1000 and is 500 tokens; a conversation of 700 tokens is compacted first"),
        ([SMALL], [replace(SMALL, window=700)], "small", "changed", "its window was 1000 and is 700 tokens"),
        ([SMALL], [replace(SMALL, window=None)], "small", "changed",
         "its window was 1000 and is unknown tokens"),
        ([replace(SMALL, window=None)], [SMALL], "small", "changed",
         "its window was unknown and is 1000 tokens"),
        ([SMALL], [replace(SMALL, max_input_price=9.0)], "small", "changed",
         "its price is another, and so is what its calls hold"),
        ([SMALL], [replace(SMALL, max_output_price=9.0)], "small", "changed",
         "its price is another, and so is what its calls hold"),
        ([SMALL], [replace(SMALL, model=Other([], name="small"))], "small", "changed", "another adapter"),
        ([SMALL], [replace(SMALL, retry=RetryPolicy(max_attempts=9))], "small", "changed",
         "its endpoint is retried in another way"),
    ],
)  # fmt: skip
def test_another_model(
    before: list[ModelOption], after: list[ModelOption], name: str, change: str, means: str
) -> None:
    run = run_of("clerk")
    run.activations[1].conversation.window_tokens = 700
    known, given = team(CLERK, models=tuple(before)), team(CLERK, models=tuple(after))
    assert found(known, given, run) == [("clerk", "model", name, change, means, False)]


# -- what is declared ----------------------------------------------------------------------------


def test_other_instructions() -> None:
    means = "its instructions changed: its next request has another prefix, which no provider has cached"
    assert found(team(CLERK), team(replace(CLERK, instructions="You hinder."))) == [
        ("clerk", "prompt", "clerk", "changed", means, False)
    ]


def test_another_option_and_the_prompt_that_follows_from_it() -> None:
    other = Agent("other", can_call=())
    alone = replace(CLERK, can_call=())
    assert sorted(found(team(CLERK, other), team(alone, other))) == [
        ("clerk", "option", "can_call", "changed", "it holds from the next turn on", False),
        ("clerk", "prompt", "clerk", "changed",
         "its colleagues, tools or settings changed: its next request has another prefix, which no provider "
         "has cached", False),
    ]  # fmt: skip
    assert CLERK.can_call == ALL


def test_what_stands_in_the_way_comes_first() -> None:
    other = Agent("a first", can_call=())
    before, after = team(CLERK, other), team(replace(other, completion="finish"))
    said = found(before, after, run_of("clerk"))
    assert (said[0][0], said[0][5]) == ("clerk", True)
    assert not any(each[5] for each in said[1:])
