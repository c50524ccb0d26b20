"""R11. Runaway teams end by the default limits, soon, with a readable reason and what they had so far."""

import time

import pytest

from antiphon import Agent, Limits, run_sync, tool
from antiphon.message import ToolCall
from antiphon.model import Reply
from antiphon.models.script import Script, call

SECOND = 40_000_000
"""Laps of an empty loop that take about a second of CPU: the bar moves with the machine."""


@tool(effect="read")
async def poke() -> str:
    "Poke."
    return "nothing new"


def to(name, text="again"):
    return call("call_agent", agent_name=name, message=text)


def lines(make):
    """A model that says `partial` and calls, for ever."""

    def always(request):
        calls = make(request)
        place = len(request.messages)
        unique = [
            ToolCall(f"c{place}_{index}", each.name, each.arguments) for index, each in enumerate(calls)
        ]
        return Reply("so far: partial", tuple(unique), "calls")

    return Script(always)


def measured(work):
    """CPU seconds of `work`, in units of this machine's second."""
    start = time.process_time()
    for _ in range(SECOND // 40):
        pass
    second = (time.process_time() - start) * 40
    start = time.process_time()
    found = work()
    return found, (time.process_time() - start) / second


A, B = Agent("a", tools=[poke]), Agent("b", tools=[poke])
STORMS = {
    "a calls itself": lambda request: [to("a")],
    "a and b call each other": lambda request: [to("b" if 'You are "a"' in request.system else "a")],
    "a calls itself a hundred times at once": lambda request: [to("a")] * 100,
    "a calls a tool for ever": lambda request: [call("poke")],
    "a calls a tool that does not exist": lambda request: [call("nothing")] * 10,
    "a calls a thousand tools at once": lambda request: [call("poke")] * 1_000,
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if "hundred" in name else ()) for name in STORMS],
)
def test_default_limits_end_it(name):
    model = lines(STORMS[name])
    result, seconds = measured(lambda: run_sync(A, "go", agents=[A, B], model=model, env={}))
    assert result.outcome == "limit"
    assert result.output == "so far: partial"
    assert result.why.startswith("the limit of ")
    assert model.asked < 6_000
    # About a second of CPU, and as much again for the second fold that watches every test.
    assert seconds < 4, seconds


def test_the_token_budget_ends_it():
    model = lines(lambda request: [call("poke")])
    result = run_sync(A, "go", model=model, limits=Limits(tokens=50_000, turns=None, calls=None), env={})
    assert result.outcome == "budget"
    assert "50,000 tokens" in result.why
    assert result.output == "so far: partial"


@pytest.mark.slow
def test_a_hundred_thousand_wishes_in_one_reply_end_it_too():
    model = Script(
        [Reply("so far", tuple(ToolCall(str(n), "poke") for n in range(100_000)), "calls"), "done"]
    )
    result, seconds = measured(lambda: run_sync(A, "go", model=model, env={}))
    assert result.outcome == "limit"
    assert result.output == "so far"
    assert model.asked == 1
    assert seconds < 6, seconds
