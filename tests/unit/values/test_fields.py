"""What a program writes into an agent's options is checked where it is written, never ignored later."""

import asyncio

import pytest

from antiphon import (
    Agent,
    Hooks,
    Limits,
    LoopOptions,
    ModelOptions,
    Policy,
    RetryPolicy,
    Topics,
    UserError,
    open_run,
)
from antiphon.models.script import Script

WRONG = {
    "Agent(loop=...) takes a LoopOptions; got {'max_reminders': 1}": lambda: Agent(
        "a", loop={"max_reminders": 1}
    ),
    "Agent(policy=...) takes a Policy or None; got {'deny': ['rm']}": lambda: Agent(
        "a", policy={"deny": ["rm"]}
    ),
    "Agent(context=...) takes 'fresh' or 'continue'; got 'kept'": lambda: Agent("a", context="kept"),
    "Agent(can_call=...) takes a list, each item a text; got 'b'": lambda: Agent("a", can_call="b"),
    "Agent(can_call=...) takes a list, each item a text; got [3]": lambda: Agent("a", can_call=[3]),
    "Agent(name=...) takes a text; got 3": lambda: Agent(3),
    "Agent(standalone=...) takes True or False; got 'no'": lambda: Agent("a", standalone="no"),
    "Agent(model=...) takes a text, an object with name and complete or None; got 3": lambda: Agent(
        "a", model=3
    ),
    # A text would be read letter by letter: nothing called `rm` was denied, nothing heard of `draft`.
    "Policy(deny=...) takes a list, each item a text; got 'rm'": lambda: Policy(deny="rm"),
    "Topics(watch=...) takes a list, each item a text; got 'draft'": lambda: Topics(watch="draft"),
    "Hooks(act=...) takes a function or None; got 3": lambda: Hooks(act=3),
    "LoopOptions(batch=...) takes 'one' or 'all'; got 'few'": lambda: LoopOptions(batch="few"),
    "LoopOptions(max_parallel_calls=...) takes a whole number or None; got '3'": lambda: LoopOptions(
        max_parallel_calls="3"
    ),
    "LoopOptions(max_parallel_calls=...) is at least 1; got 0": lambda: LoopOptions(max_parallel_calls=0),
    "ModelOptions(max_output_tokens=...) is at least 1; got -1": lambda: ModelOptions(max_output_tokens=-1),
    "ModelOptions(settings=...) takes a dict; got 3": lambda: ModelOptions(settings=3),
    "RetryPolicy(initial_delay=...) takes a finite number; got inf": lambda: RetryPolicy(
        initial_delay=float("inf")
    ),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_field_of_the_wrong_kind_is_refused_with_its_name(said):
    with pytest.raises(UserError) as refused:
        WRONG[said]()
    assert str(refused.value) == said


def test_what_is_declared_is_taken():
    agent = Agent(
        "a", "b", Script([]), can_call={"c"}, policy=Policy(deny=["rm"]), limits=Limits(),
        topics=Topics(watch=("d",)), asking=ModelOptions(max_output_tokens=800.0, fallback_models=["x"]),
        loop=LoopOptions(max_parallel_calls=2), hooks=Hooks(authorize=lambda *_: None),
    )  # fmt: skip
    assert (agent.asking.max_output_tokens, agent.policy.deny) == (800, ["rm"])


def test_one_name_in_place_of_a_list_of_names_is_refused():
    async def opened():
        async with open_run([Agent("a")], model=Script([]), disabled_tools="finish"):
            pass

    said = r"open_run\(disabled_tools=...\) takes a list of names; got 'finish'"
    with pytest.raises(UserError, match=said):
        asyncio.run(opened())
