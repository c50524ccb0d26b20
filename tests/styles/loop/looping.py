"""What the tests of the loop share: two tools, and how a request is made."""

import asyncio
from typing import Any

from antiphon import tool
from antiphon.styles.loop import (
    AgentServices,
    LoopAgent,
    TaskComplete,
)
from antiphon.testing.clock import VirtualClock


@tool(effect="read")
async def echo(value: str) -> str:
    """Say it again."""
    return f"ok:{value}"


@tool
async def done(message: str = "") -> None:
    """End the task."""
    raise TaskComplete(message)


def play(agent: LoopAgent, message: str | None = "go", **options: Any) -> list[Any]:
    """The events of one request that are records too: without deltas."""

    async def playing() -> list[Any]:
        async with agent.run_stream(message, **{"deltas": False} | options) as events:
            return [event async for event in events]

    return asyncio.run(playing())


def ask(agent: LoopAgent, message: str = "go", **options: Any) -> Any:
    return asyncio.run(agent.run(message, **options))


def kinds(events: list[Any]) -> list[str]:
    return [event.__struct_config__.tag for event in events]


def waiting(**options: Any) -> tuple[AgentServices, VirtualClock]:
    clock = VirtualClock(1_000.0)
    return AgentServices(clock=clock), clock
