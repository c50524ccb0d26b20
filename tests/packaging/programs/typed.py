"""A user's program, and behind each `reveal_type` what mypy and pyright must know, see test_types.py."""

import asyncio
from dataclasses import dataclass
from typing import Literal, reveal_type

from antiphon import Agent, Record, Result, ToolContext, map_sync, open_run, run, run_sync, stream, tool
from antiphon.values.hooks import InstructionsContext
from antiphon.view.notebook import live_sync


@dataclass
class Invoice:
    sender: str
    total: float


@dataclass
class Shop:
    prices: dict[str, float]


@tool(effect="read")
async def word_count(path: str) -> int:
    """Count the words of a text file."""
    return len(path)


@tool
def price(ctx: ToolContext[Shop], sku: str) -> float:
    """The price of a thing."""
    reveal_type(ctx.deps)  # Shop
    return ctx.deps.prices[sku]


reveal_type(word_count)  # Tool[[path: str], Coroutine[Any, Any, int]]
reveal_type(price)  # Tool[[ctx: ToolContext[Shop], sku: str], float]

writer = Agent("writer", "You write well.")
clerk = Agent("clerk", "You read invoices.", tools=[word_count, price], output_type=Invoice)
lister = Agent("lister", "You read lists of invoices.", output_type=list[Invoice])
judge = Agent("judge", "You judge.", output_type=Literal["good", "bad"])
either: Agent[object, int | str] = Agent("either", "You read either.", output_type=int | str)


def greet(ctx: InstructionsContext[Shop]) -> str:
    return f"You sell {', '.join(ctx.deps.prices)}."


async def greet_later(ctx: InstructionsContext[Shop]) -> str:
    return greet(ctx)


reveal_type(Agent("seller", greet))  # Agent[Shop, object]
reveal_type(Agent("seller", greet_later, output_type=Invoice))  # Agent[Shop, Invoice]
shop: Agent[Shop, Invoice] = Agent("shop", tools=[price], output_type=Invoice)
reveal_type(writer)  # Agent[object, object]
reveal_type(clerk)  # Agent[object, Invoice]
reveal_type(judge)  # Agent[object, object]  # Agent[object, Literal['good', 'bad']]
reveal_type(run_sync(either, "Read").value)  # int | str | None

result = run_sync(clerk, "Read", agents=[clerk, writer, shop], deps=Shop({}))
reveal_type(result)  # Result[Invoice]
reveal_type(result.value)  # Invoice | None
reveal_type(result.output)  # str
reveal_type(run_sync(shop, "Sell", deps=Shop({})).value)  # Invoice | None
reveal_type(run_sync([shop, "clerk"], "Go", agents=[clerk]))  # Result[object]
reveal_type(run_sync("clerk", "Go", agents=[clerk], deps=7))  # Result[object]
reveal_type(live_sync(clerk, "Read", deps=Shop({})))  # Result[Invoice]
reveal_type(map_sync(clerk, ["a"], message=str.upper))  # list[Result[Invoice]]


async def main() -> Result[list[Invoice]]:
    async with stream(clerk, "Read", journal="sqlite:///runs.db") as events:
        async for event in events:
            if isinstance(event, Record):
                print(event.seq, event.agent, event.type)
        reveal_type(await events.result())  # Result[Invoice]
    async with open_run([writer, shop], deps=Shop({})) as opened:
        async for event in opened.events():
            reveal_type(event)  # Record | ReplyDelta
        reveal_type(await opened.result(await opened.post(shop, "Sell")))  # Result[object]
    return await run(lister, "Read")


asyncio.run(main())
