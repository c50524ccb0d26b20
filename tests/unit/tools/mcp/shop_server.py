"""A whole MCP server, as the SDK makes one; run as a program it speaks over its pipes."""

import asyncio
import os
import sys
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import ToolAnnotations

shop = MCPServer("shop")


@shop.tool(annotations=ToolAnnotations(read_only_hint=True, title="What an item costs"))
def price(item: str, count: int = 1) -> int:
    """What items cost, in euros."""
    return 3 * count


@shop.tool(annotations=ToolAnnotations(idempotent_hint=True))
async def reserve(item: str, ctx: Context[Any, Any]) -> str:
    """Reserve an item."""
    await ctx.report_progress(1, 2, "looking")
    return f"reserved {item}"


@shop.tool()
def buy(item: str) -> dict[str, Any]:
    """Buy an item."""
    if item == "rum":
        raise ValueError("no rum")
    return {"item": item, "paid": True}


@shop.tool()
def picture() -> Image:
    """A picture of the shop."""
    return Image(data=b"\x89PNG", format="png")


@shop.tool(name="env/dump")
def environment() -> str:
    """What it was given."""
    return " ".join(sorted(os.environ))


@shop.tool()
async def wait() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return ""


@shop.tool()
def die() -> None:
    """The program ends."""
    print("the shop burns", file=sys.stderr, flush=True)
    os._exit(3)


@shop.tool()
def rename() -> str:
    """Another tool is there from now on."""
    shop.add_tool(price, name="cost")
    return "renamed"


@shop.resource("shop://menu", name="menu", description="What there is.", mime_type="text/plain")
def menu() -> str:
    return "tea\nrum"


@shop.resource("shop://logo", name="logo", mime_type="image/png")
def logo() -> bytes:
    return b"\x89PNG"


@shop.prompt(description="Ask for something.")
def order(item: str) -> str:
    return f"Please order {item}."


if __name__ == "__main__":
    shop.run(sys.argv[1] if len(sys.argv) > 1 else "stdio")
