"""The tools of the scenarios that are killed everywhere."""

import asyncio

from antiphon import Agent, ToolContext, tool
from antiphon.values.agent import OutsideTool, RequestOptions
from antiphon.values.tool import tool_from

PLACE = {"type": "array", "items": {"type": "integer"}}
BROUGHT = RequestOptions(
    (OutsideTool("see", "See.", {"type": "object"}, PLACE),), own_tools=("pay",), settings={"seed": 7},
    output=PLACE, instructions="Be brief.", policy="guarded",
)  # fmt: skip


def tools_of(world):
    """A tool of each contract, one that needs approval, one that never ends."""

    @tool(effect="read")
    async def look(ctx: ToolContext, what: str) -> str:
        "Look."
        world.did(ctx)
        return f"saw {what}"

    @tool(effect="idempotent")
    async def put(ctx: ToolContext, what: str) -> str:
        "Put."
        world.did(ctx)
        return f"put {what}"

    @tool(effect="once")
    async def pay(ctx: ToolContext, what: str) -> str:
        "Pay."
        world.did(ctx)
        return f"paid {what}"

    @tool(effect="once", requires_approval=True)
    async def wire(ctx: ToolContext, what: str) -> str:
        "Wire."
        world.did(ctx)
        return f"wired {what}"

    @tool(effect="read", timeout=3_600)
    async def hang(ctx: ToolContext) -> str:
        "Never ends."
        world.did(ctx)
        await asyncio.Event().wait()
        return ""

    return {each.name: each for each in (look, put, pay, wire, hang)}


def exposed(world):
    """An agent that sees what is private, and one that it asks, which fetches what a stranger wrote."""

    @tool(effect="read", labels=["private"])
    async def look(ctx: ToolContext, what: str) -> str:
        "Look."
        world.did(ctx)
        return f"saw {what}"

    @tool(effect="read", labels=["untrusted"])
    async def fetch(ctx: ToolContext, what: str) -> str:
        "Fetch."
        world.did(ctx)
        return f"fetched {what}"

    return [Agent("a", tools=[look, tools_of(world)["pay"]]), Agent("b", tools=[fetch])]


def seeing(world):
    """An agent that looks through the eyes of whoever runs the request, and acts itself."""
    see = tool_from("see", "See.", {"type": "object"}, result=PLACE)
    return [Agent("a", tools=[see, tools_of(world)["pay"]])]
