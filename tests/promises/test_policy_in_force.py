"""What was allowed once is not allowed for ever: the policy in force now, and the tool as it was allowed."""

import asyncio

import pytest

from antiphon import Agent, Policy, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call

PAID = "1/1.c1"


def payer(said, *replies, version=""):
    @tool(version=version)
    async def pay(amount: int) -> str:
        """Pay."""
        said.append(f"{amount}{version}")
        return "paid"

    return Agent("payer", model=Script([*replies]), tools=[pay], context="continue")


async def asked(journal, agent, **options):
    """One request in a run that is opened for it; what the agent answered."""
    async with open_run([agent], journal=journal, run_id="run", create=True, **options) as run:
        return (await run.result(await run.post("payer", "Pay"))).output


def once():
    return call("pay", amount=5), "done"


def test_a_policy_given_on_opening_again_rules_beside_the_first_one_and_for_this_time_only():
    async def three_times():
        journal, done = MemoryJournal(), []
        await asked(journal, payer(done, *once()), policy=Policy("open"))
        await asked(journal, payer(done, *once()), policy=Policy("strict"))
        assert done == ["5"]
        await asked(journal, payer(done, *once()))
        assert done == ["5", "5"]

    asyncio.run(three_times())


@pytest.mark.parametrize("given", [Policy("open"), Policy("open", allow=("pay",)), None])
def test_no_policy_given_later_allows_what_the_first_one_refuses(given):
    async def twice():
        journal, done = MemoryJournal(), []
        await asked(journal, payer(done, "nothing to pay"), policy=Policy(deny=("pay",)))
        await asked(journal, payer(done, *once()), policy=given)
        assert done == []

    asyncio.run(twice())


@pytest.mark.parametrize("changed", [True, False])
def test_an_approval_of_a_tool_that_has_changed_since_allows_nothing(changed):
    async def allowed_later():
        journal, done = MemoryJournal(), []
        first = payer(done, *once(), version="1")
        async with open_run(
            [first], journal=journal, run_id="run", create=True, policy=Policy("guarded")
        ) as run:
            request = await run.post("payer", "Pay")
            async for record in run.events(deltas=False):
                if record.asks:
                    break
        later = payer(done, "done", version="2" if changed else "1")
        async with open_run([later], journal=journal, run_id="run") as run:
            await run.answer(f"{PAID}?", "yes")
            await run.result(request)
            shown = run.transcript("payer")[-2].content
        return done, shown

    done, shown = asyncio.run(allowed_later())
    assert done == ([] if changed else ["51"])
    assert ("pay has changed since it was asked for" in shown) is changed
