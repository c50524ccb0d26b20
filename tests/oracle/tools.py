"""Tools and calls that scenarios share."""

import asyncio
from typing import Any

from antiphon import Agent, ToolContext, tool
from antiphon.models.script import Script, call
from antiphon.values.message import ToolCall


@tool(effect="read")
async def look(where: str = "here", far: bool = False) -> str:
    """Look somewhere."""
    return f"seen {where}{' from afar' * far}"


@tool
async def send(to: str) -> str:
    """Send a parcel."""
    return f"sent to {to}"


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
async def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@tool(effect="read", timeout=3_600)
async def hang(ctx: ToolContext) -> str:
    """Never end."""
    return await never()


async def never(request: Any = None) -> Any:
    """What does not end: a reply of a model, or a step."""
    await asyncio.Event().wait()


def to(agent: str, message: str = "please", **more: Any) -> ToolCall:
    """A call of an agent."""
    return call("call_agent", agent_name=agent, message=message, **more)


def agent(name: str, **options: Any) -> Agent:
    """An agent with the tools of this file; its model says nothing unless it is given another one."""
    options.setdefault("model", Script([]))
    options.setdefault("tools", [look, send, pay, fail, hang])
    options.setdefault("instructions", f"You are {name}.")
    return Agent(name, **options)
