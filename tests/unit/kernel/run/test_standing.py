"""Rules of a journal: kept, found for a run, a project and an owner; what cannot be read is refused."""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon import Agent, UserError, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import StoredRule
from antiphon.models.script import Script, call
from antiphon.values.policy import Grant, StandingRule
from antiphon.view import keep_rule, standing_rules

SHOP = StandingRule(
    "r1", "project", "shop", "se*", "allow", Grant((("to", "x"),), "a", 4e9), author="ann", created_at=1.0
)
ANN = StandingRule("r2", "owner", "ann", "*", "ask", created_at=2.0)
RUN = StandingRule("r3", "run", "till", "send", "deny", created_at=3.0)


@tool
def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


async def kept(*rules):
    journal = MemoryJournal()
    for each in rules:
        assert await keep_rule(journal, each)
    return journal


@pytest.mark.parametrize(
    ("of", "found"),
    [
        ({}, ()),
        ({"run": "", "project": ""}, ()),
        ({"project": "shop"}, (SHOP,)),
        ({"project": "shop", "owner": "ann", "run": "till"}, (SHOP, ANN, RUN)),
        ({"project": "ann", "owner": "shop"}, ()),
        ({"run": "til"}, ()),
    ],
)
def test_those_that_hold_are_found_as_they_were_made(of, found):
    async def reading():
        return await standing_rules(await kept(RUN, ANN, SHOP), **of)

    assert asyncio.run(reading()) == found


def test_what_is_found_is_in_force_in_the_run_that_is_opened_with_it():
    async def using():
        journal = await kept(SHOP)
        model = Script([call("send", to="x"), call("send", to="y"), "end"])
        rules = await standing_rules(journal, project="shop")
        async with open_run(
            [Agent("a", tools=[send], model=model)], journal=journal, policy="strict", rules=rules
        ) as run:
            await run.result(await run.post("a", "go"))
        return [each.content for each in model.requests[-1].messages if each.role == "tool"]

    assert asyncio.run(using()) == ["sent to x", "Error: permission denied: send was not granted"]


def test_an_id_is_kept_once():
    async def keeping():
        journal = await kept(SHOP)
        return await keep_rule(journal, replace(ANN, id="r1")), await standing_rules(journal, project="shop")

    assert asyncio.run(keeping()) == (False, (SHOP,))


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"tool":"","verdict":"deny"}', b'{"tool":"*","verdict":"forbid"}']
)
def test_a_rule_that_cannot_be_read_is_not_passed_over(body):
    """What it denies must not be allowed because this version does not understand it."""

    async def reading():
        journal = await kept(SHOP)
        await journal.add_rule(StoredRule("r9", "project", "shop", body, 5.0))
        await standing_rules(journal, project="shop")

    with pytest.raises(UserError, match=r"The rule 'r9' cannot be read .*drop it"):
        asyncio.run(reading())


@pytest.mark.parametrize("rule", [None, "allow", {"id": "r"}])
def test_what_is_no_rule_is_not_kept(rule):
    with pytest.raises(UserError, match=r"keep_rule\(rule\) takes"):
        asyncio.run(kept(rule))
