"""The scenario of tools whose provider changes, dies and comes back, which is killed everywhere with the
others."""

import asyncio

from antiphon import Agent, ToolContext, tool
from antiphon.models.script import Script, call
from antiphon.testing.crash import Scenario
from antiphon.values.tool.toolset import Toolset
from tests.promises.crash_tools import tools_of


class Shop:
    """What it offers depends on the world alone, so that it is the same for whichever process asks."""

    def __init__(self, world):
        self._world, self._link = world, None

    async def open(self, link):
        self._link = link
        return self._offer()

    def _offer(self):
        tools, world = tools_of(self._world), self._world

        @tool(effect="idempotent")
        async def restock(ctx: ToolContext) -> str:
            "Restock."
            world.did(ctx, "restocked")
            self._link.offer(self._offer())
            return "restocked"

        @tool(effect="once")
        async def pull(ctx: ToolContext) -> str:
            "Pull the plug."
            world.did(ctx)
            self._link.lost("unplugged")
            await asyncio.Event().wait()

        @tool(effect="read")
        async def find(ctx: ToolContext, what: str) -> str:
            "Find."
            world.did(ctx)
            return f"found {what}"

        new = any(each.note == "restocked" for each in world.deeds())
        return [tools["put"], tools["pay"], restock, pull, find if new else tools["look"]]


async def _refused(link):
    raise OSError("connection refused")


def _team(world):
    """One provider that lives and dies, one that never comes up."""
    return [Agent("a", "You are a.", tools=[Toolset("shop", Shop(world).open), Toolset("bank", _refused)])]


TOOLSETS = Scenario(
    "toolsets", _team,
    lambda: Script(
        [
            call("look", what="x"),
            call("restock"),
            [call("find", what="y"), call("pay", what="z")],
            call("pull"),
            [call("put", what="w"), call("look", what="x")],
            "done",
        ],
        by="turn",
    ),
    (("a", "go"),),
)  # fmt: skip
"""After `pull` its provider is opened again, and `look` is no longer there."""
