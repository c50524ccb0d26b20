"""Scenarios: a tool that asks in its middle."""

import asyncio

from antiphon import ToolContext, tool
from antiphon.models.script import call
from antiphon.values.message import ToolResult
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, look, never, send, to


@tool(effect="idempotent")
async def order(ctx: ToolContext, what: str) -> str:
    """Order something."""
    region = await ctx.ask_user("Which region?", options=["north", "south"])
    priced, helped = await asyncio.gather(ctx.ask_model(f"What does {what} cost?"), ctx.call("b", "help"))
    return f"{await ctx.step('note', str.upper, what)} {region} {priced} {helped}"


@tool
async def sign(ctx: ToolContext) -> str:
    """Have somebody sign, once."""
    return await ctx.ask_user("Sign here")


async def _question(run):
    return next(each.event.id for each in await run.records() if "QuestionEffect" in str(each.event))


@scenario
async def a_tool_asks(stage):
    """A person, its agent's own model without tools, an agent, a step; the process is another one halfway."""
    replies = {"a": [call("order", what="tea"), "5 EUR", "done"], "b": ["helped"]}
    team = agent("a", tools=[order]), agent("b", tools=[])
    model = stage.script(replies)
    async with stage.open(*team, model=model) as run:
        await run.post("a", "go")
        await stage.until(run, "1/1.c1:question")
        question = await _question(run)
    async with stage.open(*team, model=model, run_id=run.run_id) as again:
        await again.answer(question, "north", by="ann")
        await stage.ended(again, "0/1.c1")


@scenario
async def a_tool_that_asks_is_cancelled(stage):
    """What it asked ends before it; the agent that it called, too."""
    asked = asyncio.Semaphore(0)

    async def asks(request):
        if not request.messages[-1].content.startswith(("What does", "help")):
            return "went on" if len(request.messages) > 1 else call("order", what="tea")
        asked.release()
        return await never()

    team = agent("a", tools=[order]), agent("b", tools=[])
    async with stage.open(*team, model=stage.script(asks)) as run:
        request = await run.post("a", "go")
        await stage.until(run, "1/1.c1:question")
        await run.answer(await _question(run), "south", by="ann")
        await asked.acquire()
        await asked.acquire()
        await run.cancel("1/1.c1", "too slow")
        await stage.ended(run, request)


@scenario
async def a_once_tool_dies_while_it_waits(stage):
    """Nobody knows what it did before it asked: it ends unknown, and what it asked is asked no more."""
    team = agent("a", tools=[sign], model=stage.script([call("sign"), "done"], by="turn"))
    async with stage.open(team) as run:
        await run.post("a", "go")
        await stage.until(run, "1/1.c1:question")
    async with stage.open(team, run_id=run.run_id) as again:
        await stage.ended(again, "0/1.c1")


@scenario
async def a_tool_asks_where_nobody_is_there(stage):
    await stage.ask(agent("a", tools=[sign], model=stage.script([call("sign"), "done"])))


@tool(effect="read", labels=["private"])
async def read_mail() -> str:
    """Read the mail."""
    return "a mail"


@tool(effect="read", labels=["untrusted"])
async def fetch() -> ToolResult:
    """Fetch a page."""
    return ToolResult("a page", labels=("of example.org",))


@scenario
async def an_agent_that_was_shown_both(stage):
    """What it was shown sticks, what its callee was shown too; a person allows one act, and not the next."""
    replies = {
        "a": [call("read_mail"), to("b"), [call("send", to="x"), call("look")], call("send", to="y"), "done"],
        "b": [[call("fetch"), call("send", to="z")], "helped"],
    }
    team = agent("a", tools=[read_mail, look, send]), agent("b", tools=[fetch, send])
    async with stage.open(*team, model=stage.script(replies)) as run:
        await run.post("a", "go")
        for answer, effect in (("always", "1/3.c1?"), ("no", "1/4.c1?")):
            await stage.until(run, f"{effect} wait approval")
            await run.answer(effect, answer, by="ann")
        await stage.ended(run, "0/1.c1")
