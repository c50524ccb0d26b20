"""What the tests of a team as an MCP server share."""

from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client
from mcp_types import ElicitResult

from antiphon import Agent, tool
from antiphon.host import Host
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.server.mcp.following import RequestWatch
from antiphon.server.mcp.runs import LocalRuns
from antiphon.server.mcp.team_server import TeamServer
from antiphon.values.tool import ToolContext

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
FLAT = {
    "type": "object", "properties": {"cups": {"type": "integer", "minimum": 1}, "hot": {"type": "boolean"}},
    "required": ["cups"],
}  # fmt: skip
DEEP = {"type": "array", "items": {"type": "integer"}}
FORMS = {
    "flat": {"schema": FLAT},
    "deep": {"schema": DEEP},
    "options": {"options": ["tea", "milk"]},
    "text": {},
}


@tool(effect="read")
async def order(ctx: ToolContext, form: str) -> str:
    """Ask the user for an order."""
    return f"ordered {await ctx.ask_user('What do you want?', **FORMS[form])}"


def asker(form):
    return Agent("desk", model=Script([call("order", form=form), "done"], by="turn"), tools=[order])


@asynccontextmanager
async def serving(team, *, journal=None, limits=None, name="desk"):
    """A host of one team, and that team as a server."""
    async with Host(
        journal if journal is not None else MemoryJournal(), {name: team}, drain_seconds=0
    ) as host:
        yield host, TeamServer(host, name, lambda _: LocalRuns(host, name, "user"), limits=limits)


@asynccontextmanager
async def client_of(team, mode, says=None, **options):
    """A client of a team, which answers forms by what `says` makes of them, and the host."""
    async with AsyncExitStack() as stack:
        host, server = await stack.enter_async_context(serving(team, **options))
        client = Client(server.protocol, mode=mode, elicitation_callback=says)
        yield await stack.enter_async_context(client), host


class Person:
    """Answers the forms that a client shows, one after another. shown: their messages and schemas."""

    def __init__(self, *answers):
        self._answers, self.shown = list(answers), []

    async def __call__(self, ctx, params):
        self.shown.append((params.message, params.requested_schema))
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            return ElicitResult(action=answer)
        return ElicitResult(action="accept", content=answer)


def state_of(result):
    return result.structured_content["state"]


def text_of(result):
    return "\n".join(each.text for each in result.content)


async def ended(run, request="0/1.c1"):
    """How a request ends."""

    async def tell(number, line):
        pass

    async with aclosing(RequestWatch(run, request, tell)) as watch:
        return (await watch.settled()).end
