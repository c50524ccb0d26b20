"""What a call costs beside the SDK's own: counted in calls of functions, which no load changes."""

import asyncio
import cProfile
import sys

import pytest

from antiphon.tools.mcp.visit import visited
from antiphon.values.tool import ToolContext
from tests.unit.tools.mcp.conftest import HERE, peer

CALLS = 50
MOST = 1.10
"""What a call through the pool may cost, as a multiple of one through the bare SDK."""


async def counted(call):
    """How many functions of Python are called by so many calls."""
    await call()
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(CALLS):
        await call()
    profile.disable()
    return sum(each.callcount for each in profile.getstats())


@pytest.mark.slow
def test_a_call_costs_hardly_more_than_that_of_the_sdk():
    from mcp import Client, StdioServerParameters

    words = ["-S", "-E", str(HERE / "peer.py"), "honest"]

    async def work():
        program = StdioServerParameters(command=sys.executable, args=words)
        async with Client(program) as bare, visited(peer("honest")) as tools:
            (echo,) = [each for each in tools if each.name == "p_echo"]
            ours = await counted(lambda: echo.bind('{"text":"x"}', ToolContext())())
            theirs = await counted(lambda: bare.call_tool("echo", {"text": "x"}))
        assert ours <= MOST * theirs, f"{ours / CALLS:.0f} calls, the SDK {theirs / CALLS:.0f}"

    asyncio.run(work())
