"""`crash_test(team)`: one line that kills a team everywhere and says what was wrong."""

import asyncio

import pytest

from antiphon import Agent, Hooks, UserError, tool
from antiphon.kernel.run import perform as performers
from antiphon.models.script import Script, call
from antiphon.testing.crash import CrashTestFailed, crash_test

PAYS = [call("pay", amount=7), "Paid."]


@tool(effect="once")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


CLERK = Agent("clerk", "You pay.", tools=[pay, look])


@pytest.mark.slow
def test_a_team_that_loses_nothing_passes_and_is_killed_everywhere():
    report = crash_test(CLERK, "Pay 7.", replies=[[call("pay", amount=7), call("look")], "Paid."], every=3)
    assert report.points > 8
    assert {"append", "durable", "model", "tool", "tool done"} <= set(report.names)
    assert report.bad == []


@pytest.mark.slow
def test_agents_with_scripts_of_their_own_call_each_other():
    asks = [call("call_agent", agent_name="clerk", message="Pay."), "Done."]
    chief = Agent("chief", "You ask.", model=Script(asks, by="turn"))
    clerk = Agent("clerk", "You pay.", tools=[pay], model=Script(PAYS, by="turn"))
    assert crash_test([chief, clerk], every=7).bad == []


@pytest.mark.slow
def test_steps_of_one_name_are_told_apart():
    async def act(ctx):
        for number in range(2):
            await ctx.step("add", lambda each: each, number)
        return "done"

    assert crash_test(Agent("adds", hooks=Hooks(act=act)), replies=[], every=5).bad == []


@pytest.mark.slow
def test_a_tool_that_is_run_again_is_found(monkeypatch):
    use_tool = performers.use_tool

    async def forgetful(tool, arguments, opened, *rest, **named):
        opened.crashes = 0
        return await use_tool(tool, arguments, opened, *rest, **named)

    monkeypatch.setattr(performers, "use_tool", forgetful)
    with pytest.raises(CrashTestFailed, match=r"\(pay, once\) ran 2 times"):
        crash_test(CLERK, "Pay 7.", replies=PAYS, every=3)


def test_what_cannot_be_killed_is_refused_with_the_reason():
    with pytest.raises(UserError, match="script of clerk counts calls"):
        crash_test(Agent("clerk", model=Script(["hello"])))
    for nobody in ([], ["clerk"], 7):
        with pytest.raises(UserError, match="takes an agent, or a list of agents"):
            crash_test(nobody, replies=["hello"])

    async def inside():
        crash_test(CLERK, replies=["hello"])

    with pytest.raises(UserError, match="call it from a plain function"):
        asyncio.run(inside())


def test_a_team_that_does_not_even_end_says_so():
    with pytest.raises(RuntimeError, match="does not work without a crash"):
        crash_test(Agent("a"), replies=["hello"], limits="none")
