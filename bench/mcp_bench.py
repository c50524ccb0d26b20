"""What MCP servers cost: calls, lists of tools, and how soon a death is known.

python -m bench.mcp_bench

The servers are tests/unit/tools/mcp/peer.py, which answers at once: what is measured is the pool and the SDK.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from antiphon.errors import ToolError
from antiphon.tools.mcp import McpServer
from antiphon.tools.mcp.session import McpSession
from antiphon.tools.mcp.visit import look, visited
from antiphon.values.tool import ToolContext
from antiphon.values.tool.toolset import ProviderLost

PEER = Path(__file__).parents[1] / "tests/unit/tools/mcp/peer.py"
CALLS, SERVERS, DEATHS = 400, 20, 10


def server(how: str, name: str = "p", *more: str) -> McpServer:
    """The server that behaves so."""
    return McpServer(name, sys.executable, ("-S", "-E", str(PEER), how, *more))


async def spent(call: Callable[[], Awaitable[object]]) -> float:
    """Seconds that a call takes."""
    begun = time.perf_counter()
    await call()
    return time.perf_counter() - begun


async def calls() -> dict[str, float]:
    """One call through the pool, one by the bare SDK, in turns."""
    program = StdioServerParameters(command=sys.executable, args=["-S", "-E", str(PEER), "honest"])
    async with Client(program) as bare, visited(server("honest")) as tools:
        (echo,) = [each for each in tools if each.name == "p_echo"]
        ours, theirs = list[float](), list[float]()
        for _ in range(CALLS):
            theirs.append(await spent(lambda: bare.call_tool("echo", {"text": "x"})))
            ours.append(await spent(lambda: echo.bind('{"text":"x"}', ToolContext())()))
    half = CALLS // 2
    median = statistics.median(ours[half:]), statistics.median(theirs[half:])
    return {
        "call_ms": round(median[0] * 1000, 3),
        "sdk_ms": round(median[1] * 1000, 3),
        "over_the_sdk": round(median[0] / median[1], 3),
    }


class Link:
    """Stands for the provider of a toolset; says when its connection was lost."""

    def __init__(self) -> None:
        self.session: Any = None
        self.gone = asyncio.Event()

    def offer(self, tools: object) -> None:
        """What it offers now."""

    def lost(self, reason: str) -> None:
        """Its connection is lost."""
        self.gone.set()


async def lists(folder: str) -> dict[str, float]:
    """The tools of many servers: started side by side, and asked once more."""
    # Each with arguments of its own: the pool opens no more than eight connections to one program.
    named = [f"p{number}" for number in range(SERVERS)]
    servers = {name: server("fifty tools", name, f"{folder}/{name}") for name in named}
    begun, busy = time.perf_counter(), time.process_time()
    offered = await look(servers)
    from_nothing, look_cpu = time.perf_counter() - begun, time.process_time() - busy
    tools = sum(len(each) for each in offered.values() if not isinstance(each, str))
    sessions = [McpSession(each, Link()) for each in servers.values()]  # type: ignore[arg-type]
    await asyncio.gather(*[each.start() for each in sessions])
    busy = time.process_time()
    again = await spent(lambda: asyncio.gather(*[each._listed(each._client) for each in sessions]))  # type: ignore[arg-type]
    again_cpu = time.process_time() - busy
    await asyncio.gather(*[each.stop() for each in sessions])
    return {
        "tools": tools,
        "listed_from_nothing_s": round(from_nothing, 2),
        "listed_from_nothing_cpu_s": round(look_cpu, 2),
        "listed_again_s": round(again, 2),
        "listed_again_cpu_s": round(again_cpu, 2),
    }


def first_life(place: str) -> int:
    """The process of a server that writes it down."""
    return int(Path(place).read_text().split()[0])


async def deaths(folder: str) -> dict[str, float]:
    """Seconds from a SIGKILL until whoever waits for an answer is told, and until it is known to the pool."""
    waiting, idle = list[float](), list[float]()
    for number in range(DEATHS):
        place = f"{folder}/{number}"
        hangs = server("hangs", "p", place)
        link = Link()
        session = McpSession(hangs, link)  # type: ignore[arg-type]
        tools = await session.start()
        echo = next(each for each in tools if each.name == "p_echo")
        call = asyncio.ensure_future(echo.bind('{"text":"x"}', ToolContext())()) if number % 2 else None
        await asyncio.sleep(0.05)
        begun = time.perf_counter()
        os.kill(first_life(place), signal.SIGKILL)
        if call is not None:
            try:
                await call
            except (ProviderLost, ToolError):
                waiting.append(time.perf_counter() - begun)
        else:
            await link.gone.wait()
            idle.append(time.perf_counter() - begun)
        await session.stop()
    return {"death_told_to_a_call_s": round(max(waiting), 3), "death_known_s": round(max(idle), 3)}


async def measured() -> dict[str, float]:
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        return {**await calls(), **await lists(folder), **await deaths(folder)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured()), indent=2))
