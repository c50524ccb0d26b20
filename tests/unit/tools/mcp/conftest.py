"""What the tests of MCP servers share."""

import asyncio
import sys
from pathlib import Path

import pytest

from antiphon import Agent, Policy, open_run
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Script
from antiphon.tools.mcp import McpServer, mcp_toolset

HERE = Path(__file__).parent
PATIENCE = 60
"""Seconds after which what should have happened has not; never reached when all is well."""
FREE = Policy("open", allow=("*",))


def peer(how, *more, **fields):
    """The server that behaves as `how` says, see peer.py."""
    arguments = ("-S", "-E", str(HERE / "peer.py"), how, *map(str, more))
    return McpServer("p", sys.executable, arguments, **fields)


def shop(**fields):
    """The whole server of shop_server.py, as a program."""
    return McpServer("shop", sys.executable, (str(HERE / "shop_server.py"),), **fields)


class Played:
    """What became of a run. told: what its model was told of its calls, in order; listed: the tools that each
    of its requests had beside those of every agent."""

    def __init__(self, output, model, records):
        self.output, self.model, self.records = output, model, records
        last = model.requests[-1].messages
        self.told = [each.content for each in last if each.role == "tool"]
        self.files = [each.attachments for each in last if each.role == "tool"]
        self.listed = [[each.name for each in request.tools][2:] for request in model.requests]


async def _play(toolset, lines, policy, options):
    model = Script([*lines, "done"])
    async with open_run([Agent("a", tools=[toolset])], model=model, policy=policy, **options) as run:
        output = (await run.result(await run.post("a", "go"))).output
        records = await run.records()
    await close_unused()
    return Played(output, model, records)


def play(server, *lines, policy=FREE, **options):
    """A run of an agent that has the tools of a server, and whose model says these lines."""
    toolset = mcp_toolset(server) if isinstance(server, McpServer) else server

    async def bounded():
        async with asyncio.timeout(PATIENCE):
            return await _play(toolset, lines, policy, options)

    return asyncio.run(bounded())


@pytest.fixture(autouse=True)
def _needs_the_extra():
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
