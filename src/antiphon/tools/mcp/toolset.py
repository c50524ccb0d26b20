"""An MCP server as a toolset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from antiphon.errors import ToolError
from antiphon.tools.mcp.offers import tool_name
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.tool.toolset import Offered, Toolset, ToolsetLink

CONNECT_SECONDS = 30.0
"""What connecting may take: programs are fetched and started in it, and an older server that does not answer
the first question is asked another one after ten seconds."""


def server_of(name: str, servers: Mapping[str, McpServer]) -> McpServer | None:
    """The server that a name in a team means: its own, or that of a tool, `server_tool`; None: no one's."""
    if name in servers:
        return servers[name]
    found = [each for each in servers if name.startswith(f"{each}_")]
    server = servers[max(found, key=len)] if found else None
    taken = [] if server is None else [tool_name(server.name, each) for each in server.tools]
    return server if not taken or name in taken else None


def named_toolsets(names: Iterable[str], servers: Mapping[str, McpServer]) -> list[Toolset]:
    """The toolsets that names in a team mean, each once: whole, or those of its tools that are named."""
    found: dict[str, list[str]] = {}
    for name in names:
        server = server_of(name, servers)
        if server is not None:
            found.setdefault(server.name, []).append(name)
    made = [(mcp_toolset(servers[server]), given) for server, given in found.items()]
    return [each if each.name in given else replace(each, only=tuple(given)) for each, given in made]


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
