"""Runaway teams end by the default limits, soon, with a readable reason and what they had so far."""

import asyncio

import pytest

from antiphon import Agent, Limits, run, run_sync, tool
from antiphon.errors import RunFailed
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.values.message import ToolCall
from antiphon.values.model import MAX_CALLS, Reply


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


def counted(model, **options):
    """The result of a storm, and how many records it left: each costs the same, so they are its time."""

    async def scenario():
        journal = MemoryJournal()
        result = await run(A, "go", agents=[A, B], model=model, journal=journal, env={}, **options)
        (entry,) = await journal.runs()
        return result, entry.seq

    return asyncio.run(scenario())


A, B = Agent("a", tools=[poke]), Agent("b", tools=[poke])
ENDS = {
    "a calls itself": ("no_progress", "call_agent was called 4 times in a row"),
    "a and b call each other": ("no_progress", "call_agent was called 4 times in a row"),
    "a calls a tool that does not exist": ("no_progress", "nothing was called 4 times in a row"),
}
"""How those end whose calls are refused in the end; the others use a limit up."""
STORMS = {
    "a calls itself": lambda request: [to("a")],
    "a and b call each other": lambda request: [to("b" if 'You are "a"' in request.system else "a")],
    "a calls itself a hundred times at once": lambda request: [to("a")] * 100,
    "a calls a tool for ever": lambda request: [call("poke")],
    "a calls a tool that does not exist": lambda request: [call("nothing")] * 10,
    "a calls as many tools at once as it may": lambda request: [call("poke")] * MAX_CALLS,
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=() if "a tool" in name else pytest.mark.deep if "hundred" in name else pytest.mark.slow,
        )
        for name in STORMS
    ],
)
def test_default_limits_end_it(name):
    model = lines(STORMS[name])
    result, records = counted(model)
    outcome, reason = ENDS.get(name, ("limit", "the limit of "))
    assert result.outcome == outcome
    assert result.output == "so far: partial"
    assert result.reason.startswith(reason)
    assert model.asked < 6_000
    # The most: a thousand agents, each refused the hundred calls of its last reply.
    assert records < 150_000


def test_the_token_budget_ends_it():
    model = lines(lambda request: [call("poke")])
    result = run_sync(A, "go", model=model, limits=Limits(tokens=50_000, turns=None, calls=None), env={})
    assert result.outcome == "budget"
    assert "50,000 tokens" in result.reason
    assert result.output == "so far: partial"


@pytest.mark.slow
def test_of_a_hundred_thousand_wishes_in_one_reply_none_is_done():
    wishes = tuple(ToolCall(str(n), "poke") for n in range(100_000))
    model = Script([Reply("so far", wishes, "calls"), "done"])
    with pytest.raises(
        RunFailed, match="asked for 100,000 calls or more in one reply; at most 256 are taken"
    ):
        counted(model)
    assert model.asked == 1
