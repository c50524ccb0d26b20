"""Callees of a plan that rest between their calls, or wait for people; and what is kept of all that."""

import asyncio

import pytest

from antiphon import Agent, Hooks, Limits, LoopOptions, Message, open_journal, open_run, tool
from antiphon.kernel.facts.events import (
    ActionEffect,
    ApprovalEffect,
    CallEffect,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    QuestionEffect,
)
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnPlan
from tests.transcript import Gate, lines, recorded
from tests.unit.kernel.teams import broker, contents, ended, opened, player, rounds, says


def dead_letters(records):
    """What could not be delivered, and why."""
    posted = [each.event for each in records if type(each.event) is MessagePosted]
    return [(each.message.content, each.dead_letter) for each in posted if each.dead_letter]


# -- callees that rest --------------------------------------------------------------------------


def reader(**options):
    """An agent that acts on one message at a time and says what it read."""

    async def act(ctx):
        return "|".join(contents(ctx.new_messages))

    return Agent("reader", hooks=Hooks(act=act), context="continue", loop=LoopOptions(batch="one"), **options)


def test_what_a_resting_callee_has_not_read_waits_for_it_and_shows():
    """Called without a word, it reads on; no empty message is put among the others."""
    seen = []
    agent = rounds(
        [PlannedCall("reader", forward=(0, 1, 2))], [PlannedCall("reader")], [PlannedCall("reader")],
        seen=seen, value=lambda context: str(ended(context)),
    )  # fmt: skip

    async def main():
        mail = [Message("forward", "x", "", text) for text in ("two", "three")]
        async with open_run([agent, reader()], env={}) as run:
            result = await run.result(await run.post("broker", "one", inbox=mail))
            assert result.output == "[('reader', 'completed', 'three')]"

    asyncio.run(main())
    assert [ended(each) for each in seen[1::2]] == [
        [("reader", "completed", text)] for text in ("one", "two", "three")
    ]


def test_a_callee_that_was_never_called_may_only_get_messages():
    seen = []
    agent = rounds(
        [PlannedCall("reader", forward=(0, 1), deliver_only=True)],
        [PlannedCall("reader")], [PlannedCall("reader")],
        seen=seen, value=lambda context: str(ended(context)),
    )  # fmt: skip

    async def main():
        journal = open_journal()
        mail = [Message("forward", "x", "", "two")]
        async with open_run([agent, reader()], journal=journal, env={}) as run:
            result = await run.result(await run.post("broker", "one", inbox=mail))
            turns = [record.agent for record in await run.records() if record.type == "TurnStarted"]
        await check_run(journal, run.run_id)
        return result.output, turns

    output, turns = asyncio.run(main())
    assert ended(seen[1]) == [("reader", "skipped", "reader is not called now; it finds this in its inbox")]
    assert ended(seen[3]) == [("reader", "completed", "one")]
    assert output == "[('reader', 'completed', 'two')]"
    assert turns == ["user", "broker", "broker", "reader", "broker", "reader"]


@pytest.mark.parametrize("callee_plans", [True, False])
def test_a_planned_turn_publishes_to_a_caller_that_plans(callee_plans):
    heard = []
    said = Message("forward", "inner", "", "news", id="1", topic="t")
    inner = Agent(
        "inner",
        hooks=Hooks(
            plan_turn=lambda context: TurnPlan() if callee_plans else None,
            end_turn=lambda context: Return(output="done", publish=[said]),
        ),
        model=says("said"),
    )

    def decide(context):
        heard.append(contents(context.inbox))
        return Continue() if context.inbox else Return(output=str(ended(context)))

    outer = broker(
        lambda context: TurnPlan([PlannedCall("inner", "go")] if context.turn == 1 else ()), decide
    )

    async def main():
        journal = open_journal()
        async with open_run([outer, inner], journal=journal, env={}) as run:
            await run.result(await run.post("broker", "go"))
            # Whom a user calls has nobody who would distribute it.
            assert (await run.result(await run.post("inner", "go"))).output == "done"
        await check_run(journal, run.run_id)

    asyncio.run(main())
    assert heard == ([["news"], []] if callee_plans else [[]])


def test_unread_says_how_much():
    seen = []

    def plan(context):
        return TurnPlan([PlannedCall("reader", forward=tuple(range(len(context.new_messages))))])

    def decide(context):
        seen.append(dict(context.unread))
        return Continue() if context.unread else Return()

    async def main():
        mail = [Message("forward", "x", "", text) for text in ("two", "three")]
        async with open_run([broker(plan, decide), reader()], env={}) as run:
            await run.result(await run.post("broker", "one", inbox=mail))

    asyncio.run(main())
    assert seen == [{"reader": 2}, {"reader": 1}, {}]


def test_a_callee_goes_on_with_its_history_and_data():
    async def act(ctx):
        ctx.append("count", [len(ctx.all_messages)])
        return str(ctx.data.get("count"))

    agent = rounds(
        [PlannedCall("keeper", "1")], [PlannedCall("keeper", "2")], value=lambda context: str(ended(context))
    )
    keeper = Agent("keeper", hooks=Hooks(act=act), context="continue")
    result, records = recorded(agent, "go", agents=[agent, keeper], env={})
    assert result.output == "[('keeper', 'completed', '[1]')]"
    started = [each.event for each in records if type(each.event) is EffectStarted]
    calls = [each for each in started if type(each.detail) is CallEffect and each.detail.agent == "keeper"]
    assert [(each.id, each.detail.reactivates) for each in calls] == [("1/1.c1", 0), ("1/2.c1", 2)]


# -- callees that ask people --------------------------------------------------------------------


def asking(how):
    """An agent that asks a person once, and its message's number in all it took."""
    taken = []

    @tool(requires_approval=True)
    async def pay() -> str:
        "Pay."
        return "paid"

    async def act(ctx):
        taken.append(contents(ctx.new_messages))
        if len(taken) == 1:
            return await ctx.ask_user("May I?") if how == "question" else await ctx.ask_model("Pay.")
        return "read"

    model = Script([call("pay"), "it is paid"])
    return Agent("clerk", hooks=Hooks(act=act), tools=[pay], model=model, context="continue"), taken


@pytest.mark.parametrize("how", ["question", "approval"])
def test_nobodys_round_waits_for_people(how):
    """The rounds go on; what comes meanwhile is read after the answer; the broker stays until then."""
    clerk, taken = asking(how)
    log = []

    def plan(context):
        if context.turn > 2:
            return TurnPlan([PlannedCall("clerk")] if context.unread else ())
        everybody = tuple(range(len(context.new_messages)))
        return TurnPlan(
            [PlannedCall("clerk", f"round {context.turn}", forward=everybody), PlannedCall("news")]
        )

    def decide(context):
        log.append([(each.agent, each.outcome) for each in context.results])
        return Continue() if context.turn < 3 else Return(output="over")

    agent, news = broker(plan, decide), player("news", "fresh")

    async def main():
        async with open_run([agent, clerk, news], env={}) as run:
            request = await run.post("broker", "go")
            effect = await opened(run, QuestionEffect if how == "question" else ApprovalEffect)
            for _ in range(20):
                await asyncio.sleep(0)
            assert request in await run.open_requests()
            assert log == [
                [("clerk", "skipped"), ("news", "completed")],
                [("clerk", "skipped"), ("news", "completed")],
                [],
            ]
            await run.answer(effect.id, "yes")
            result = await run.result(request)
            assert (result.outcome, result.output) == ("completed", "over")
            assert dead_letters(await run.records()) == []

    asyncio.run(main())
    assert taken == [["round 1", "go"], ["round 2", "fresh"]]


def test_what_a_callee_was_given_while_it_asked_is_what_it_reads_next():
    clerk, taken = asking("question")

    def plan(context):
        return TurnPlan(
            [PlannedCall("clerk", forward=tuple(range(len(context.new_messages))))]
            if context.new_messages or context.unread
            else ()
        )

    def decide(context):
        return Continue() if context.unread or context.inbox else Return()

    async def main():
        async with open_run([broker(plan, decide), clerk], env={}, limits=Limits(inbox=2)) as run:
            request = await run.post("broker", "go")
            effect = await opened(run, QuestionEffect)
            for text in ("one", "two", "three"):
                await run.post(request, Message("forward", "x", "broker", text))
            assert dead_letters(await run.records()) == [
                ("three", "the inbox of clerk is full (2 unread messages)")
            ]
            await run.answer(effect.id, "yes")
            await run.result(request)

    asyncio.run(main())
    assert taken == [["go"], ["one", "two"]]


def test_who_asks_is_told_nothing_where_there_is_nothing_to_tell():
    clerk, taken = asking("question")
    seen = []
    agent = rounds([PlannedCall("clerk", "x")], [PlannedCall("clerk")], seen=seen)

    async def main():
        async with open_run([agent, clerk], env={}) as run:
            request = await run.post("broker", "go")
            effect = await opened(run, QuestionEffect)
            await run.answer(effect.id, "yes")
            await run.result(request)

    asyncio.run(main())
    assert taken == [["x"]]
    assert dict(seen[-1].unread) == {}


def test_a_broker_under_a_broker_is_not_waited_for_either():
    clerk, _ = asking("question")
    inner = Agent(
        "inner",
        hooks=Hooks(
            plan_turn=lambda context: TurnPlan([PlannedCall("clerk", "x")] if context.turn == 1 else ())
        ),
    )
    seen = []
    agent = rounds([PlannedCall("inner", "x")], [], seen=seen)

    async def main():
        async with open_run([agent, inner, clerk], env={}) as run:
            request = await run.post("broker", "go")
            effect = await opened(run, QuestionEffect)
            assert ended(seen[1]) == [("inner", "skipped", "somebody is asked; it goes on meanwhile")]
            await run.answer(effect.id, "yes")
            assert (await run.result(request)).output == "over"

    asyncio.run(main())


def test_a_broker_that_is_cancelled_takes_those_who_ask_along():
    clerk, _ = asking("question")
    agent = rounds([PlannedCall("clerk", "x")], [])

    async def main():
        async with open_run([agent, clerk], env={}) as run:
            request = await run.post("broker", "go")
            effect = await opened(run, QuestionEffect)
            await run.cancel(request, "enough")
            assert (await run.result(request)).outcome == "cancelled"
            ends = [each.event.id for each in await run.records() if type(each.event) is EffectFinished]
            assert effect.id in ends

    asyncio.run(main())


# -- what is kept -------------------------------------------------------------------------------


def test_what_hooks_set_is_there_the_next_moment_and_the_next_day(tmp_path):
    seen = []

    def plan(context):
        seen.append(dict(context.data))
        return TurnPlan([PlannedCall("clerk", "x")] if context.turn == 1 else (), {"plan": [context.turn]})

    def decide(context):
        seen.append(dict(context.data))
        return (
            Continue(activation_data={"decide": context.turn})
            if context.turn == 1
            else Return(activation_data={"over": True})
        )

    async def main():
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        agent = broker(plan, decide, context="continue")
        team = [agent, asking("question")[0]]
        async with open_run(team, journal=journal, env={}) as run:
            request = await run.post("broker", "go")
            effect = await opened(run, QuestionEffect)
        run_id = run.run_id
        async with open_run(team, journal=journal, run_id=run_id, env={}) as run:
            await run.answer(effect.id, "yes")
            await run.result(request)
            seen.append("the next day")
            await run.result(await run.post("broker", "again"))
            said = lines(await run.records())
        assert "1 broker set {'plan': [1]}" in said
        await journal.close()

    asyncio.run(main())
    assert seen[:4] == [
        {},
        {"plan": [1]},
        {"plan": [1], "decide": 1},
        {"plan": [2], "decide": 1},
    ]
    assert seen[seen.index("the next day") + 1] == {"plan": [3], "decide": 1, "over": True}


def test_left_between_two_rounds_it_goes_on(tmp_path):
    """What was called is not called again; what was published is there once."""
    gate = Gate("late")
    agent = rounds(
        [PlannedCall("news"), PlannedCall("slow", "x")],
        [],
        value=lambda context: "|".join(contents(context.new_messages)),
    )

    async def main():
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        team = [agent, player("news", "fresh"), Agent("slow", model=Script([gate]))]
        async with open_run(team, journal=journal, env={}) as run:
            request = await run.post("broker", "go")
            async for item in run.events(deltas=False):
                if type(item.event) is MessagePosted and item.event.by:
                    break
        team[2] = Agent("slow", model=says("late"))
        run_id = run.run_id
        async with open_run(team, journal=journal, run_id=run_id, env={}) as run:
            assert (await run.result(request)).output == "fresh"
            records = await run.records()
            starts = [each.event.detail for each in records if type(each.event) is EffectStarted]
            for_news = [type(each) for each in starts if getattr(each, "agent", "") == "news"]
            assert for_news == [CallEffect, ActionEffect]
        await journal.close()

    asyncio.run(main())
