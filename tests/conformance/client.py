"""The client that the conformance suite starts: the pool, its tools called in a run."""

import asyncio
import json
import sys

from antiphon import Agent, Policy, open_run
from antiphon.kernel.facts.events import EffectStarted, QuestionEffect
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Script, call
from antiphon.tools.mcp import McpServer, mcp_toolset
from antiphon.tools.mcp.visit import visited

GIVEN = {"c_add_numbers": {"a": 2, "b": 3}}


async def main():
    server = McpServer("c", url=sys.argv[-1])
    async with visited(server) as tools:
        calls = [call(each.name, **GIVEN.get(each.name, {})) for each in tools]
    agent = Agent("a", tools=[mcp_toolset(server)], model=Script([*calls, "done"]))
    async with open_run([agent], interactive=True, policy=Policy("open", allow=("*",))) as run:
        request = await run.post("a", "go")
        async for item in run.events():
            event = getattr(item, "event", None)
            if type(event) is EffectStarted and type(event.detail) is QuestionEffect:
                await run.answer(event.id, json.dumps({}))
            if not await run.open_requests():
                break
        await run.result(request)
    await close_unused()


asyncio.run(main())
