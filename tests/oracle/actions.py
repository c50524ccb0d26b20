"""Scenarios: an agent's own coroutine."""

import asyncio

from antiphon import Hooks, Message, ModelError
from antiphon.errors import EffectFailed
from antiphon.models.script import call
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnPlan
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, never, to


@scenario
async def an_action(stage):
    """Steps, one of them twice; its own model with a tool and a retry; an agent, a person; what it keeps."""

    async def act(ctx):
        found = [await ctx.step("fetch", str.upper, what) for what in ("x", "y", "x")]
        found.append(await ctx.ask_model("What is there?"))
        found += await asyncio.gather(ctx.call("b", "help"), ctx.ask_user("Which?"))
        ctx.set("found", found)
        ctx.append("log", ["one", "two"])
        ctx.append("log", ["three"])
        return {"all": len(found)}

    replies = {"a": [ModelError("overloaded", "busy"), call("look"), "a bird"], "b": ["helped"]}
    async with stage.open(agent("a", hooks=Hooks(act=act)), agent("b"), model=stage.script(replies)) as run:
        request = await run.post("a", "go")
        await stage.until(run, "1/1.x:question", "3/1.m1 completed")
        opened = [each.event.id for each in await run.records() if "x:question" in str(each.event)]
        await run.answer(opened[-1], "this one", by="ann")
        await stage.ended(run, request)


@scenario
async def what_fails_in_an_action(stage):
    """A step, a result that is not JSON, an unknown agent, nobody to ask; and the action with them."""

    async def act(ctx):
        tries = [
            ctx.step("parse", int, "x"),
            ctx.step("make", object),
            ctx.call("nobody", "?"),
            ctx.ask_user("?"),
        ]
        for each in tries:
            try:
                await each
            except EffectFailed as error:
                said.append(error.outcome)
        ctx.set("said", said)
        await ctx.ask_model("Well?")

    said = []
    await stage.ask(agent("a", hooks=Hooks(act=act), model=stage.script([ModelError("auth", "no")])))


@scenario
async def an_action_ends_before_what_it_began(stage):
    async def act(ctx):
        others = [
            asyncio.ensure_future(each)
            for each in (ctx.call("b", "x"), ctx.step("wait", never), ctx.ask_model("?"))
        ]
        await asyncio.wait(others, timeout=0.01)
        for each in others:
            each.cancel()
        raise LookupError("enough")

    replies = {"a": [never], "b": [call("hang")]}
    await stage.ask(agent("a", hooks=Hooks(act=act)), agent("b"), model=stage.script(replies))


@scenario
async def an_action_is_cancelled(stage):
    async def act(ctx):
        await ctx.step("first", str.upper, "x")
        await ctx.call("b", "x")

    replies = {"a": [to("c"), "went on"], "b": [never]}
    team = agent("a"), agent("b"), agent("c", hooks=Hooks(act=act))
    async with stage.open(*team, model=stage.script(replies)) as run:
        request = await run.post("a", "go")
        await stage.until(run, "3/1.m1 model")
        await run.cancel("1/1.c1", "too slow")
        await stage.ended(run, request)


@scenario
async def published_messages_go_round(stage):
    """A broker hands on what two publish; one fails at first and reads it again."""

    def player(name, fails=False):
        async def act(ctx):
            if fails and len(ctx.all_messages) == len(ctx.new_messages):
                raise LookupError("not yet")
            heard = "+".join(each.content for each in ctx.new_messages)
            for number in range(2):
                ctx.publish(
                    Message(
                        "forward", name, "", f"{name}{number} of {heard}", topic=name, id=f"{heard}{number}"
                    )
                )

        return agent(name, hooks=Hooks(act=act), context="continue", tools=[])

    def plan(context):
        places = {"b": [], "c": []}
        for place, message in enumerate(context.new_messages):
            places["c" if message.topic == "b" else "b"].append(place)
        calls = [
            PlannedCall(name, forward=tuple(taken))
            for name, taken in places.items()
            if taken or name in context.unread
        ]
        return TurnPlan(calls, {"turn": context.turn})

    def decide(context):
        laps = [dict(each) for each in context.hops]
        ended = [f"{each.agent} {each.outcome}" for each in context.results]
        if context.turn < 4:
            return Continue(activation_data={"laps": laps, "ended": ended})
        return Return("completed", f"{len(context.inbox)} unread", "four rounds")

    broker = agent("a", hooks=Hooks(plan_turn=plan, end_turn=decide), tools=[])
    await stage.ask(broker, player("b"), player("c", fails=True))
