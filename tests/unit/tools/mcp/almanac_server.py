"""An MCP server that knows the tides of places; run as a program it speaks over its pipes.

The argument is a named pipe: `watch` tells its process id there, and never ends.
"""

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

RANGES = {"Carn": "4.11 m to 5.71 m", "Fundy": "up to 16 m"}
almanac = MCPServer("almanac")


@almanac.tool(annotations=ToolAnnotations(read_only_hint=True))
def range_at(place: str) -> str:
    """How far the tide rises and falls at a place."""
    return f"{place}: {RANGES[place]}"


def tell() -> None:
    """Whoever reads the pipe knows now that a call is under way, and whose."""
    Path(sys.argv[1]).write_text(str(os.getpid()))


@almanac.tool(annotations=ToolAnnotations(read_only_hint=True))
async def watch(place: str) -> str:
    """Watch the sea."""
    tell()
    await asyncio.Event().wait()
    return ""


if __name__ == "__main__":
    almanac.run()
