"""What the start token costs: tools used as the runtime uses them, and the same without it, in pairs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median

from antiphon import Tool, ToolContext
from antiphon.kernel.facts.activation import OpenEffect
from antiphon.kernel.facts.events import EffectFinished, ToolEffect
from antiphon.kernel.run.perform import use_tool
from antiphon.kernel.run.tools.start_token import StartToken
from antiphon.kernel.run.tools.threads import Threads
from bench.cell import Metrics
from bench.durable import ARGUMENTS, journal_file, look, note

CALLS, PAIRS = 2_000, 41


def no_context() -> ToolContext:
    """Neither tool takes one."""
    raise NotImplementedError


async def _us_a_call(used: Callable[[], Awaitable[EffectFinished]]) -> float:
    start = time.thread_time()
    for _ in range(CALLS):
        await used()
    return (time.thread_time() - start) / CALLS * 1e6


async def token(*, acts: bool) -> Metrics:
    """µs of CPU time that a call costs more with its token than without; a reading tool has none."""
    offered: Tool = note if acts else look
    opened = OpenEffect("1/1.c1", ToolEffect(offered.name), 1, 1, 0)
    async with journal_file("NORMAL") as (journal, _):
        lease = await journal.claim("run", create=True)
        is_fresh = partial(journal.is_fresh, lease)

        async def without() -> EffectFinished:
            return await use_tool(offered, ARGUMENTS, opened, no_context, Threads)

        async def as_it_is() -> EffectFinished:
            if offered.effect == "read":
                return await use_tool(offered, ARGUMENTS, opened, no_context, Threads)
            if not is_fresh():
                await journal.confirm(lease)
            begun = StartToken(opened, is_fresh)
            return await use_tool(offered, ARGUMENTS, opened, no_context, Threads, begun)

        pairs = [(await _us_a_call(without), await _us_a_call(as_it_is)) for _ in range(PAIRS)]
    more = sorted(late - early for early, late in pairs)
    return {
        "token_us": median(more),
        "least_us": more[PAIRS // 4],
        "most_us": more[-PAIRS // 4],
        "us_per_call": median(late for _, late in pairs),
    }
