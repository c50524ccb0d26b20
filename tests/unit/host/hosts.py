"""Hosts, teams and waits of the host's tests."""

import asyncio
from contextlib import aclosing

from antiphon import Agent, tool
from antiphon.models.script import Script


async def until(held):
    """Let others go first until something holds."""
    while not held():  # noqa: ASYNC110 - what a test may look at has no events
        await asyncio.sleep(0)


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def desk(*replies, tools=(), by="turn"):
    return Agent("desk", model=Script(replies, by=by), tools=tools)


def in_time(work):
    async def bounded():
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(bounded())


async def rested(host, clock, run_id):
    """Let a run rest until it is let go of."""
    hosted = host.runs[run_id]
    await until(lambda: hosted.run is not None and hosted.run.at_rest)
    while hosted.state != "resting":
        clock.advance(30)
        for _ in range(20):
            await asyncio.sleep(0)


async def answer_of(host, run_id, request=1):
    """The end of a run's request, seen from outside."""
    async with host.connect(run_id) as run, aclosing(run.events(deltas=False)) as events:
        async for _ in events:
            tree = await run.tree()
            ended = [each for each in tree.effects.values() if each.id == f"0/{request}.c1" and each.outcome]
            if ended:
                return ended[0].content
