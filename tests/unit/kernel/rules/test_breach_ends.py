"""What follows a breach: what is said of it, who is asked again, and how a handoff ends."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Limits, open_run
from antiphon.kernel.facts.ledger import LedgerScope
from antiphon.kernel.rules.models import _spent
from antiphon.models.script import Script, call
from antiphon.values.model import Reply
from tests.transcript import effects, until
from tests.unit.kernel.rules.test_breaches import ASKED_TURNS, DONE, answered, heir, working


@pytest.mark.parametrize(
    ("limits", "needed", "said"),
    [
        (Limits(tokens=100, usd=2.0), 60, "$1.5000 of $2.0000 are spent"),
        (Limits(tokens=100, usd=2.0), 61, "40 of 100 tokens are spent, up to 61 needed"),
        (Limits(tokens=None, usd=2.0), 61, "$1.5000 of $2.0000 are spent"),
        (Limits(tokens=1_040), 2_000, "40 of 1,040 tokens are spent, up to 2,000 needed"),
    ],
)
def test_what_is_used_up_is_what_there_is_no_room_in(limits: Limits, needed: int, said: str) -> None:
    scope = LedgerScope(limits, tokens=40, nano_usd=1_500_000_000)
    assert _spent(scope, needed) == f"the budget is used up: {said}"


def test_who_called_others_before_is_still_asked() -> None:
    """Only a handoff at a limit, not any call, means that nobody is asked again."""
    calls = [
        call("call_agent", agent_name="b", message="go"),
        call("call_agent", agent_name="b", message="on"),
    ]
    agent = Agent("a", model=Script([*calls, "done"]), limits=Limits(turns=1, on_breach="ask"))
    helper = Agent("b", model=Script(["one", "two"]))
    result, questions = answered(agent, "yes", "yes", agents=[helper])
    assert (result.outcome, result.output) == ("completed", "done")
    assert questions == [ASKED_TURNS.format(each) for each in (1, 2)]


def test_a_handoff_that_is_cancelled_is_the_agents_own_end() -> None:
    agent = working(Limits(turns=1, on_breach="handoff", breach_target="heir"))

    async def never(request: Any) -> Reply:
        await asyncio.Event().wait()
        return DONE

    async def main() -> None:
        async with open_run([agent, heir(never)], env={}) as opened:
            request = await opened.post("a", "go")
            async with asyncio.timeout(30):
                await until(opened, "2/1.m1 model started")
                await opened.cancel("1/3.c1")
                result = await opened.result(request)
            assert (result.outcome, result.output) == ("cancelled", "so far")
            calls = effects(await opened.records(), "c")
            assert [each for each in calls if "heir started" in each] == ["1/3.c1 call limit heir started"]

    asyncio.run(main())
