"""An MCP server as a toolset."""

from __future__ import annotations

from antiphon.errors import ToolError
from antiphon.tools.mcp.offers import tool_name
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.tool.toolset import Offered, Toolset, ToolsetLink

CONNECT_SECONDS = 30.0
"""What connecting may take: programs are fetched and started in it, and an older server that does not answer
the first question is asked another one after ten seconds."""


def mcp_toolset(server: McpServer) -> Toolset:
    """The tools of a server: `Agent("a", tools=[mcp_toolset(server)])`.

    One connection serves all runs of an event loop that have the same server with the same credentials. Needs
    the extra `mcp`, which is imported with the first connection.
    """

    async def connect(link: ToolsetLink) -> Offered:
        try:
            from antiphon.tools.mcp.session import McpSession
        except ImportError as error:
            raise ToolError(
                f"MCP servers need the extra mcp: pip install 'antiphon[mcp]' ({error.name} is missing)"
            ) from error
        session = link.session = McpSession(server, link)
        return await session.start()

    async def disconnect(link: ToolsetLink) -> None:
        if link.session is not None:
            await link.session.stop()

    return Toolset(
        server.name, connect, disconnect, required=server.required, connect_timeout=CONNECT_SECONDS,
        only=tuple([tool_name(server.name, each) for each in server.tools]), key=("mcp", server.key),
    )  # fmt: skip
