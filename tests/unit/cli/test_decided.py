"""Who decided on a call, and what a run waits for, as `runs show` and `runs tail` tell it."""

import asyncio

from antiphon import Agent, Policy, open_run, tool
from antiphon.cli.commands import runs
from antiphon.kernel.facts.events import EffectFinished
from antiphon.models.script import Script, call
from antiphon.view import RunTree

JOURNAL = ".antiphon/antiphon.db"


@tool(requires_approval=True)
def pay(who: str) -> str:
    """Pay somebody."""
    return "paid " + who


def recorded(answers):
    """The records of a run that asks before each of two payments, and how they were answered."""

    async def work():
        agent = Agent(
            "clerk", model=Script([call("pay", who="ann"), call("pay", who="bob"), "done"]), tools=[pay]
        )
        given, journal = iter(answers), f"sqlite:///{JOURNAL}"
        async with open_run([agent], journal=journal, run_id="paying", create=True) as run:
            request = await run.post("clerk", "Pay both.")
            async for record in run.events(deltas=False):
                if record.asks is not None:
                    await run.answer(record.event.id, next(given))
                if type(record.event) is EffectFinished and record.event.id == request:
                    break
            await run.close()
            return await run.records()

    return asyncio.run(work())


def test_show_says_who_decided(shell):
    (shell.folder / ".antiphon").mkdir()
    recorded(["yes", "no"])
    said = shell("runs", "show", "paying").out
    assert 'asked to allow pay(who="ann")  allowed by user\n' in said
    assert 'asked to allow pay(who="bob")  denied by user\n' in said
    (request,) = shell("runs", "show", "paying", "--json").value["requests"]
    decided = [each["decision"] for each in request["items"] if each["name"] == "pay" and each["decision"]]
    assert [(each["allowed"], each["by"]) for each in decided] == [(True, "user")] * 2 + [(False, "user")] * 2
    tail = shell("runs", "tail", "paying").out
    assert "clerk is allowed 1/1.c1 by user\n" in tail
    assert "clerk is not allowed 1/2.c1 by user\n" in tail


def test_show_says_which_policy_decided(shell):
    (shell.folder / ".antiphon").mkdir()

    async def work():
        agent = Agent("clerk", model=Script([call("pay", who="ann"), "done"]), tools=[pay])
        policy = Policy("open", deny=("pay",))
        async with open_run(
            [agent], journal=f"sqlite:///{JOURNAL}", run_id="denied", create=True, policy=policy
        ) as run:
            await run.result(await run.post("clerk", "Pay."))

    asyncio.run(work())
    assert 'pay(who="ann")  denied  by policy  →' in shell("runs", "show", "denied").out


def test_tail_says_once_what_a_run_waits_for(shell):
    (shell.folder / ".antiphon").mkdir()
    told, tree = [], RunTree()
    waits = runs.Waits(tree, lambda effect: f"antiphon answer {effect}", told.append)
    seen = []
    for record in recorded(["yes", "no"]):
        tree.add(record)
        if record.last_of_row:
            waits.look()
            waits.look()
            seen.append((record.seq, len(told)))
    assert told == [
        "(waits for a person: clerk asks; to answer: antiphon answer 1/1.c1)",
        "(waits for a person: clerk asks; to answer: antiphon answer 1/2.c1)",
    ]
    assert seen[0][1] == 0
