"""Scenarios: an agent's own coroutine."""

import asyncio

from antiphon import Message, ModelError
from antiphon.errors import EffectFailed
from antiphon.models.script import call
from antiphon.values.hooks import Call, Continue, Do, Return
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, never, to


@scenario
async def an_action(stage):
    """Steps, one of them twice; its own model with a tool and a retry; an agent, a person; what it keeps."""

    async def act(ctx):
        found = [await ctx.step("fetch", str.upper, what) for what in ("x", "y", "x")]
        found.append(await ctx.ask("What is there?"))
        found += await asyncio.gather(ctx.call("b", "help"), ctx.question("Which?"))
        ctx.set("found", found)
        ctx.append("log", ["one", "two"])
        ctx.append("log", ["three"])
        return {"all": len(found)}

    replies = {"a": [ModelError("overloaded", "busy"), call("look"), "a bird"], "b": ["helped"]}
    async with stage.open(agent("a", act=act), agent("b"), model=stage.script(replies)) as conversation:
        request = await conversation.post("a", "go")
        await stage.until(conversation, "1/1.x:question")
        opened = [each.event.id for each in await conversation.records() if "x:question" in str(each.event)]
        await conversation.answer(opened[-1], "this one", by="ann")
        await stage.ended(conversation, request)


@scenario
async def what_fails_in_an_action(stage):
    """A step, a result that is not JSON, an unknown agent, nobody to ask; and the action with them."""

    async def act(ctx):
        tries = [
            ctx.step("parse", int, "x"),
            ctx.step("make", object),
            ctx.call("nobody", "?"),
            ctx.question("?"),
        ]
        for each in tries:
            try:
                await each
            except EffectFailed as error:
                said.append(error.outcome)
        ctx.set("said", said)
        await ctx.ask("Well?")

    said = []
    await stage.ask(agent("a", act=act, model=stage.script([ModelError("auth", "no")])))


@scenario
async def an_action_ends_before_what_it_began(stage):
    async def act(ctx):
        others = [
            asyncio.ensure_future(each)
            for each in (ctx.call("b", "x"), ctx.step("wait", never), ctx.ask("?"))
        ]
        await asyncio.wait(others, timeout=0.01)
        for each in others:
            each.cancel()
        raise LookupError("enough")

    replies = {"a": [never], "b": [call("hang")]}
    await stage.ask(agent("a", act=act), agent("b"), model=stage.script(replies))


@scenario
async def an_action_is_cancelled(stage):
    async def act(ctx):
        await ctx.step("first", str.upper, "x")
        await ctx.call("b", "x")

    replies = {"a": [to("c"), "went on"], "b": [never]}
    team = agent("a"), agent("b"), agent("c", act=act)
    async with stage.open(*team, model=stage.script(replies)) as conversation:
        request = await conversation.post("a", "go")
        await stage.until(conversation, "3/1.m1 model")
        await conversation.cancel("1/1.c1", "too slow")
        await stage.ended(conversation, request)


@scenario
async def published_messages_go_round(stage):
    """A broker hands on what two publish; one fails at first and reads it again."""

    def player(name, fails=False):
        async def act(ctx):
            if fails and len(ctx.history) == len(ctx.taken):
                raise LookupError("not yet")
            heard = "+".join(each.content for each in ctx.taken)
            for number in range(2):
                ctx.publish(
                    Message(
                        "forward", name, "", f"{name}{number} of {heard}", topic=name, id=f"{heard}{number}"
                    )
                )

        return agent(name, act=act, context="continue", tools=[])

    def plan(moment):
        places = {"b": [], "c": []}
        for place, message in enumerate(moment.taken):
            places["c" if message.topic == "b" else "b"].append(place)
        calls = [
            Call(name, take=tuple(taken)) for name, taken in places.items() if taken or name in moment.unread
        ]
        return Do(calls, {"turn": moment.turn})

    def decide(moment):
        laps = [dict(each) for each in moment.laps]
        ended = [f"{each.agent} {each.outcome}" for each in moment.ended]
        if moment.turn < 4:
            return Continue(set={"laps": laps, "ended": ended})
        return Return("completed", f"{len(moment.inbox)} unread", "four rounds")

    broker = agent("a", plan=plan, decide=decide, tools=[])
    await stage.ask(broker, player("b"), player("c", fails=True))
