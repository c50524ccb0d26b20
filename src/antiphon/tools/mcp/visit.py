"""A connection to a server that no run has: to look at it, or to call one tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from antiphon.errors import ToolError
from antiphon.tools.mcp.servers import McpServer
from antiphon.tools.mcp.toolset import mcp_toolset
from antiphon.values.codec import text_of
from antiphon.values.tool import Tool
from antiphon.values.tool.toolset import Offered

AT_ONCE = 8
"""Servers that are connected side by side."""


class _Visit:
    """Stands for the provider of a toolset: nobody is told what happens later."""

    def __init__(self) -> None:
        self.session: Any = None

    def offer(self, tools: Offered) -> None:
        """See ToolsetLink."""

    def lost(self, reason: str) -> None:
        """See ToolsetLink."""


@asynccontextmanager
async def _connected(server: McpServer) -> AsyncGenerator[tuple[list[Tool], Any]]:
    """What a server offers, and its session. Raises ToolError with why it cannot be reached."""
    toolset, link = mcp_toolset(server), _Visit()
    try:
        try:
            async with asyncio.timeout(toolset.connect_timeout):
                offered: Any = await toolset.open(link)
        except TimeoutError:
            raise ToolError(f"it was not reached within {toolset.connect_timeout:g} s") from None
        taken = [each for each in offered if not toolset.only or each.name in toolset.only]
        yield taken, link.session
    finally:
        if toolset.close is not None:
            await toolset.close(link)


@asynccontextmanager
async def visited(server: McpServer) -> AsyncGenerator[list[Tool]]:
    """The tools of a server while this is entered, those alone that are taken. Raises ToolError with why it
    cannot be reached."""
    async with _connected(server) as (tools, _):
        yield tools


async def changed(server: McpServer, *, approving: bool) -> dict[str, list[str]]:
    """Of each tool of a server whose definition has changed since it was approved, what has; approved now, if
    that is wanted. Raises ToolError."""
    from antiphon.tools.mcp.pins import approve, difference, pinned

    async with _connected(server) as (_, session):
        now = {each["name"]: each for each in session.definitions}
        kept = pinned(server, session.definitions)
        if approving:
            approve(server, session.definitions)
    found = {name: difference(kept[name], each) for name, each in now.items()}
    return {name: each for name, each in found.items() if each}


async def look(servers: Mapping[str, McpServer]) -> dict[str, list[Tool] | str]:
    """Of each server its tools, or why it cannot be reached; some are asked side by side."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(server: McpServer) -> list[Tool] | str:
        async with room:
            try:
                async with visited(server) as tools:
                    return tools
            except ToolError as error:
                return text_of(error)

    found = await asyncio.gather(*[one(each) for each in servers.values()])
    return dict(zip(servers, found, strict=True))
