"""Whoever comes in the middle of a run sees what those saw who were there from the beginning."""

import asyncio
from contextlib import aclosing

import pytest

from antiphon import Agent, Hooks, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import CallEffect, EffectStarted
from antiphon.models.script import Script, call
from antiphon.view import RunTree, connect
from antiphon.view.nodes import ActivationNode
from tests.oracle import play
from tests.oracle.stage import Stage
from tests.transcript import until

PLAYED = (
    "approvals", "background_calls", "a_question_to_the_user", "nested_calls", "several_requests_at_once",
    "an_action", "a_plan_goes_on_without_those_who_ask_people", "a_limit_raised_by_a_person",
    "killed_approval", "environment_of_agents", "a_callee_goes_on_where_it_was", "profiles_with_a_dispatch",
    "parts_are_cancelled", "told_something_more", "left_with_tools_in_flight", "tried_again",
)  # fmt: skip
"""Scenarios of the oracle that between them have every kind of record."""


def played(name, folder):
    """The records of every run of a scenario."""

    async def talk():
        stage = Stage(folder)
        await play.SCENARIOS[name](stage)
        found = []
        for entry in await stage.journal.runs():
            async with connect(stage.journal, entry.run_id) as run:
                found.append(await run.records())
        await stage.journal.close()
        return found

    return asyncio.run(talk())


def owners(tree):
    """Of every activation and effect, whose it is and how it stands."""
    return (
        {number: (each.agent, each.path, each.outcome) for number, each in tree.activations.items()},
        {name: (each.kind, each.name, each.outcome, each.began_at) for name, each in tree.effects.items()},
        {name: tree.waits(name) for name in tree.requests},
        list(tree.human_inputs),
    )


@pytest.mark.parametrize("name", PLAYED)
def test_a_tree_and_the_records_after_it_are_the_whole_run_at_every_cursor(name, tmp_path):
    for records in played(name, tmp_path):
        whole = RunTree.of(records)
        for cursor in range(1, len(records)):
            tree = RunTree.of(records[:cursor])
            for record in records[cursor:]:
                for change in tree.add(record):
                    owner = getattr(change, "activation", None)
                    if isinstance(owner, ActivationNode):
                        assert tree.activations[owner.id].agent == owner.agent
            assert owners(tree) == owners(whole)


@pytest.mark.parametrize("name", PLAYED)
def test_a_call_names_its_callee_and_a_row_its_last_record(name, tmp_path):
    for records in played(name, tmp_path):
        tree, begun = RunTree(), 0
        for record in records:
            tree.add(record)
            starts = isinstance(record.event, EffectStarted) and isinstance(record.event.detail, CallEffect)
            assert bool(record.callee) == starts
            if starts:
                begun += 1
                assert tree.effects[record.event.id].callee.id == record.callee
        assert begun
        assert records[-1].last_of_row


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def test_what_is_read_live_says_the_same_as_what_is_stored():
    async def talk():
        journal = MemoryJournal()
        both = [call("pay", amount=1), call("pay", amount=2)]
        ask = call("call_agent", agent_name="b", message="x")
        team = [
            Agent("a", model=Script([both, [ask, ask], "done"]), tools=[pay]),
            Agent("b", model=Script(["one", "two"])),
        ]
        async with (
            asyncio.timeout(20),
            open_run(team, journal=journal, interactive=True) as run,
            connect(journal, run.run_id) as seen,
        ):
            live = []

            async def watch():
                # Of a run that this loop drives it reads what the owner tells, and ends with the run's close.
                async with aclosing(seen.events(deltas=False)) as events:
                    async for record in events:
                        live.append(record)

            watching = asyncio.ensure_future(watch())
            request = await run.post("a", "go")
            await until(run, "1/1.c2? wait approval pay started")
            tree = await seen.tree()
            assert tree.waits(request)
            approvals = [each for each in await seen.records() if each.asks]
            assert [each.last_of_row for each in approvals] == [False, True]
            for each in approvals:
                await run.answer(each.event.id, "yes")
            await run.result(request)
            await run.close()
            await watching
            return live, await seen.records()

    live, stored = asyncio.run(talk())
    assert live == stored
    assert sorted(each.callee for each in live if each.callee) == [1, 2, 3]
    assert sum(each.last_of_row for each in live) < len(live)


def test_a_request_waits_for_a_person_only_when_nothing_else_goes_on_under_it():
    async def talk():
        gate = asyncio.Event()

        @tool(effect="read")
        async def slow() -> str:
            """Take long."""
            await gate.wait()
            return "done"

        both = [call("pay", amount=1), call("slow")]
        team = [Agent("a", model=Script([both, "done"]), tools=[pay, slow])]
        journal = MemoryJournal()
        async with (
            asyncio.timeout(20),
            open_run(team, journal=journal, interactive=True) as run,
            connect(journal, run.run_id) as seen,
        ):
            request = await run.post("a", "go")
            await until(run, "1/1.c2 tool slow started")
            found = [(await seen.tree()).waits(request)]
            gate.set()
            await until(run, "1/1.c2 completed: done")
            found.append((await seen.tree()).waits(request))
            await run.answer("1/1.c1?", "yes")
            await run.result(request)
            found.append((await seen.tree()).waits(request))
        return found

    assert asyncio.run(talk()) == [False, True, False]


def test_an_action_that_asks_waits_though_it_runs():
    async def act(ctx):
        return await ctx.ask_user("Which?")

    async def talk():
        journal = MemoryJournal()
        team = [Agent("a", hooks=Hooks(act=act), standalone=True)]
        async with (
            asyncio.timeout(20),
            open_run(team, journal=journal, interactive=True) as run,
            connect(journal, run.run_id) as seen,
        ):
            request = await run.post("a", "go")
            async with aclosing(run.events(deltas=False)) as events:
                async for each in events:
                    if each.asks:
                        break
            found = [(await seen.tree()).waits(request)]
            await run.answer(each.event.id, "blue")
            await run.result(request)
            found.append((await seen.tree()).waits(request))
        return found

    assert asyncio.run(talk()) == [True, False]
