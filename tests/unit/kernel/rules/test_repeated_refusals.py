"""A model that makes the same call again and again, though it is refused each time, is stopped."""

import asyncio

import pytest

from antiphon import Agent, LoopOptions, Policy, open_run, run_sync, tool
from antiphon.models.script import Script, call
from antiphon.values.hooks import Continue, Hooks
from antiphon.values.model import Reply


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return "paid"


READER = Agent("a", tools=[look, pay], policy=Policy(deny=("pay",)))
BAD, UNKNOWN, DENIED = call("look", page="many"), call("fly"), call("pay", amount=1)


def asked(agent, lines, **options):
    model = Script([*lines, *["done"] * 3])
    result = run_sync(agent, "go", model=model, **options)
    return result, model.asked


@pytest.mark.parametrize(
    ("wrong", "name", "error"),
    [
        (BAD, "look", "page"),
        (UNKNOWN, "fly", "Unknown tool: fly"),
        (DENIED, "pay", "permission denied"),
        ([BAD, UNKNOWN], "look", "page"),
    ],
)
def test_the_same_refused_turn_ends_after_as_many_repeats_as_reminders(wrong, name, error):
    result, count = asked(READER, [wrong] * 200)
    assert (result.outcome, count) == ("no_progress", 4)
    assert result.reason.startswith(f"{name} was called 4 times in a row in the same way, and refused: ")
    assert error in result.reason
    impatient = Agent("a", tools=[look], loop=LoopOptions(max_reminders=0))
    assert asked(impatient, [UNKNOWN] * 200)[1] == 2


def test_the_best_text_is_its_result():
    again = [Reply("so far", (each,), "calls") for each in [UNKNOWN] * 200]
    assert asked(READER, again)[0].output == "so far"


@pytest.mark.parametrize(
    "lines",
    [
        [BAD, BAD, BAD, call("look", page=1), BAD, BAD, BAD],
        [BAD, BAD, BAD, call("look", page="more"), BAD, BAD, BAD],
        [[BAD, call("look", page=1)]] * 9,
        [call("look", page=1)] * 9,
    ],
    ids=["it went right once", "another way was tried", "something was done", "nothing was refused"],
)
def test_whoever_gets_on_goes_on(lines):
    result, count = asked(READER, lines)
    assert (result.outcome, count) == ("completed", len(lines) + 1)


def test_a_reminder_between_the_repeats_is_no_progress():
    stubborn = Agent("a", completion="finish", tools=[look])
    result, count = asked(stubborn, [UNKNOWN, "I cannot"] * 100)
    assert (result.outcome, count) == ("no_progress", 7)
    assert "fly was called 4 times" in result.reason


def test_an_agents_own_rule_comes_first():
    patient = Agent(
        "a", tools=[look], hooks=Hooks(end_turn=lambda context: Continue() if context.called_tools else None)
    )
    assert asked(patient, [UNKNOWN] * 9)[0].outcome == "completed"


def test_a_message_that_came_meanwhile_is_read_first():
    async def playing():
        async def tells(request):
            await run.post(asked, "try page 1")
            return UNKNOWN

        async with open_run([READER], model=Script([UNKNOWN, UNKNOWN, UNKNOWN, tells, "done"])) as run:
            asked = await run.post("a", "go")
            return await run.result(asked)

    assert asyncio.run(playing()).outcome == "completed"
