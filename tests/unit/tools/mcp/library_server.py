"""An MCP server that searches, in several manners of saying what it found; run as a program it speaks
over its pipes. The first argument is the manner."""

import asyncio
import os
import sys
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PAPERS = {
    "p1": ("On tides", "The moon pulls the sea.\nTwice a day it is high."),
    "p2": ("On suns", "The sun pulls it, too."),
}
library = MCPServer("library")


def found(query: str) -> list[dict[str, str]]:
    words = query.casefold().split()
    return [
        {"id": name, "title": title, "text": text.partition("\n")[0], "url": f"https://papers.test/{name}"}
        for name, (title, text) in PAPERS.items()
        if any(word in f"{title} {text}".casefold() for word in words)
    ]


def usual() -> None:
    @library.tool()
    def search(query: str) -> dict[str, Any]:
        """Search the papers."""
        return {"results": found(query)}

    @library.tool()
    def fetch(id: str) -> dict[str, Any]:
        """Read a paper."""
        title, text = PAPERS[id]
        return {"id": id, "title": title, "text": text, "metadata": {}}


def listed() -> None:
    @library.tool()
    def look_up(words: str, top_k: int = 5) -> list[dict[str, str]]:
        """Look papers up."""
        return [
            {"uri": f"paper://{each['id']}", "name": each["title"], "snippet": each["text"]}
            for each in found(words)
        ][:top_k]

    @library.resource("paper://{name}")
    def paper(name: str) -> str:
        return PAPERS[name][1]


def plain() -> None:
    @library.tool(structured_output=False)
    def search(query: str) -> list[str]:
        """Say what is known."""
        return [each["text"] for each in found(query)]


def odd() -> None:
    @library.tool(structured_output=False)
    def search(query: str) -> Any:
        """Answer in whatever manner."""
        return {
            "numbers": {
                "results": [1, None, True, [], {"id": 7, "text": "seven"}, {"title": "only a title"}]
            },
            "nothing": {"results": []},
            "deep": {"data": {"results": [{"path": "a.md", "content": "x", "line": 3, "end_line": 9}]}},
            "long": {"results": [{"id": "l" * 5000, "text": "t" * 100_000}]},
            "many": [{"id": str(number), "text": f"text {number}"} for number in range(500)],
            "control": [{"id": "a\x00b", "text": "x\x1b[2Jy"}],
            "broken": '{"results": [',
        }[query]  # fmt: skip


def slow() -> None:
    @library.tool()
    async def search(query: str) -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return ""


def failing() -> None:
    @library.tool()
    def search(query: str) -> str:
        """Fail, or die."""
        if query == "die":
            print("burnt down", file=sys.stderr, flush=True)
            os._exit(3)
        raise ToolError("the index is being made")


if __name__ == "__main__":
    {"usual": usual, "listed": listed, "plain": plain, "odd": odd, "slow": slow, "failing": failing}[
        sys.argv[1]
    ]()
    library.run()
