"""The scenario of tools that ask in their middle, which is killed everywhere with the others."""

import asyncio

from antiphon import Agent, ToolContext, tool
from antiphon.kernel.facts.events import EffectStarted
from antiphon.kernel.run.commands import AnswerInput
from antiphon.models.script import Script, call
from antiphon.testing.crash import Scenario


def stepped(world, ctx, name):
    """What a step of that name does, once in its action."""
    place = f"{ctx.effect_id}:{name}"
    world.did(ToolContext(ctx.run_id, place, ctx.agent, f"{ctx.run_id}:{place}", ctx.attempt))
    return name


def _team(world):
    """Both tools are run again; what they asked and what they did in steps is not."""

    async def ask(ctx, what):
        which = await ctx.ask_user(f"Which {what}?", options=["red", "blue"])
        priced, helped = await asyncio.gather(ctx.ask_model(f"What does {what} cost?"), ctx.call("b", "help"))
        sent = await ctx.step("send", stepped, world, ctx, "send")
        world.did(ctx)
        return f"{what} {which} {priced} {helped} {sent}"

    @tool(effect="idempotent")
    async def order(ctx: ToolContext, what: str) -> str:
        "Order."
        return await ask(ctx, what)

    @tool(effect="idempotent")
    def fetch(ctx: ToolContext, what: str) -> str:
        "Fetch."
        return ctx.wait(ask(ctx, what))

    @tool(effect="once")
    async def pay(ctx: ToolContext, what: str) -> str:
        "Pay."
        world.did(ctx)
        return f"paid {what}"

    return [
        Agent("a", "You are a.", tools=[order, fetch], can_call=["b"]),
        Agent("b", "You are b.", tools=[pay]),
    ]


def _a_asked(request):
    if "cost" in request.messages[-1].content:
        return "5"
    # One after the other: what a thread does beside something else comes in any order.
    lines = [call("order", what="tea"), call("fetch", what="rum"), "done"]
    return lines[sum(each.role == "assistant" for each in request.messages)]


def _choose(record):
    event = record.event
    if type(event) is EffectStarted and getattr(event.detail, "options", ()):
        return [(f"blue {event.id}", AnswerInput(event.id, "blue"))]
    return []


ASKING = Scenario(
    "tools that ask", _team,
    lambda: Script({"a": _a_asked, "b": [call("pay", what="y"), "b helped"]}, by="turn"),
    (("a", "go"),), _choose,
)  # fmt: skip
