"""What a style is told beside its own words passes the same door as in a plain run."""

import asyncio

import pytest

from antiphon import Agent, Topics, UserError, tool
from antiphon.models.script import Script, call
from antiphon.styles.environment import Environment, Message
from antiphon.styles.loop import AgentOptions, LoopAgent, ToolPermission
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.tasks import Controller, StructuredMessage, Worker

RAN: list[str] = []


@tool
def shell(command: str) -> str:
    """Run a command."""
    RAN.append(command)
    return "done"


def model() -> Script:
    return Script([call("shell", command="rm -rf /"), "over"])


async def environment(policy: str) -> None:
    agent = Agent("a", tools=[shell], model=model(), topics=Topics(watch=("draft",)))
    async with Environment(roles=[agent], policy=policy) as env:
        env.publish_message(Message("go", send_to={"a"}))
        await env.run(2)


async def tasks(policy: str) -> None:
    controller = Controller([Worker(Agent("a", tools=[shell], model=model()))], policy=policy)
    task = StructuredMessage("go")
    task.target_agent = "a"
    await controller.run_tasks([task])


@pytest.mark.parametrize("style", [environment, tasks])
@pytest.mark.parametrize("policy", ["guarded", "strict"])
def test_the_name_of_a_preset_is_a_policy(style, policy):
    RAN.clear()
    asyncio.run(style(policy))
    assert not RAN
    asyncio.run(style("open"))
    assert RAN == ["rm -rf /"]


@pytest.mark.parametrize("style", [environment, tasks])
def test_a_name_of_no_preset_is_refused(style):
    with pytest.raises(UserError, match="did you mean 'guarded'"):
        asyncio.run(style("gaurded"))


WRONG = {
    "AgentOptions(system_prompt=...) takes a text or a function; got 5": lambda: LoopAgent(system_prompt=5),
    "AgentOptions(max_iterations=...) takes a whole number; got '9'; did you mean 9?": lambda: AgentOptions(
        max_iterations="9"
    ),
    "AgentOptions has no 'max_iteration'; did you mean max_iterations=9?": lambda: LoopAgent(max_iteration=9),
    "ToolPermission(decision=...) takes 'allow', 'deny' or 'ask'; got 'alow'; did you mean 'allow'?": (
        lambda: ToolPermission("alow")
    ),
    "ProfileLimits(fan_out=...) is at least 0, or None for no limit; got -1": lambda: ProfileLimits(
        fan_out=-1
    ),
    "Environment(laps=...) takes a whole number or None; got '3'; did you mean 3?": lambda: Environment(
        laps="3"
    ),
    "Environment(name=...) takes a text; got 5": lambda: Environment(name=5),
    "Environment(limits=...) takes a Limits or None; got {'turns': 3}; did you mean Limits(turns=3)?": (
        lambda: Environment(limits={"turns": 3})
    ),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_option_of_a_style_is_refused_where_it_is_written(said):
    with pytest.raises(UserError) as refused:
        WRONG[said]()
    assert str(refused.value) == said
