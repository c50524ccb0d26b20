"""What readers cost a run: deltas said while many watch, and turns of a model that takes its time."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from statistics import median

from antiphon import Agent, ReplyDelta, Run, open_run, tool
from antiphon.kernel.facts.events import EffectFinished
from antiphon.values.model import Delta, Emit, ModelRequest, Reply
from bench.cell import Metrics, rss
from bench.fake import AMPLE, Talker, call
from bench.workloads import WORD

DELAY, DELTAS = 0.05, 40
"""Seconds of a reply, and the deltas in it."""
PASSES = 7


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


class Typist:
    """A Model port that says 40 deltas in 50 ms and calls a tool, `turns` times; then it answers."""

    name = "typist"

    def __init__(self, turns: int) -> None:
        self._turns = turns

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `antiphon.values.model.Model`."""
        turn, loop = len(request.messages) // 2, asyncio.get_running_loop()
        begun = loop.time()
        for said in range(1, DELTAS + 1):
            emit(Delta("text", WORD))
            await asyncio.sleep(max(begun + DELAY * said / DELTAS - loop.time(), 0))
        if turn < self._turns:
            return Reply(WORD * DELTAS, call("look", '{"page":3}', turn=turn), "calls")
        return Reply(WORD * DELTAS)


async def _read(run: Run, call_id: str) -> int:
    """Characters that a reader was given until the call had ended."""
    heard = 0
    async with aclosing(run.events(run.seq)) as items:
        async for item in items:
            if isinstance(item, ReplyDelta):
                heard += len(item.text)
            elif isinstance(item.event, EffectFinished) and item.event.id == call_id:
                break
    return heard


async def _typed(turns: int, readers: int) -> tuple[float, float, int]:
    """Seconds of a request with so many readers and one that stands still, its CPU time, memory in bytes."""
    async with open_run([Agent("a", "You look.", tools=[look], model=Typist(turns))], limits=AMPLE) as run:
        stalled = run.events() if readers else None
        start, cpu = time.perf_counter(), time.thread_time()
        call_id = await run.post("a", "go")
        reading = [asyncio.create_task(_read(run, call_id)) for _ in range(readers)]
        await run.result(call_id)
        wall, memory = time.perf_counter() - start, rss()
        heard = set(await asyncio.gather(*reading))
        used = time.thread_time() - cpu
        if readers and heard != {(turns + 1) * DELTAS * len(WORD)}:
            raise RuntimeError(f"{heard} characters of {(turns + 1) * DELTAS * len(WORD)}")
        if stalled is not None:
            stalled.close()
    return wall, used, memory


async def watched(*, readers: int, turns: int) -> Metrics:
    """The run with readers and without them, in pairs, and the memory that readers take beside it."""
    await _typed(2, 0)
    pairs, most = [], []
    for _ in range(3):
        alone, _, before = await _typed(turns, 0)
        wall, used, memory = await _typed(turns, readers)
        pairs.append((wall / alone, wall, alone, used))
        most.append(memory - before)
    longer, wall, alone, used = sorted(pairs)[1]
    # What the first pass took is not given back, and so is not taken by the later ones.
    return {
        "times_alone": longer, "wall_s": wall, "alone_s": alone, "cpu_s": used, "mb_more": max(most) / 2**20,
    }  # fmt: skip


async def _said(n: int, readers: int) -> float:
    """CPU seconds of a reply of `n` deltas that is said without a pause while so many watch it."""
    model = Talker(n, n + 1)
    async with open_run([Agent("a", "You talk.", model=model)], limits=AMPLE) as run:
        watching = [run.events() for _ in range(readers)]
        start = time.thread_time()
        await run.result(await run.post("a", "go"))
        used = time.thread_time() - start
        for each in watching:
            each.close()
    return used


async def delta(*, readers: int, n: int) -> Metrics:
    """CPU time that a delta more costs the driver: two replies of different length, in pairs."""
    await _said(100, readers)
    pairs = [(await _said(n // 10, readers), await _said(n, readers)) for _ in range(PASSES)]
    return {"us_per_delta": median((long - short) / (n - n // 10) * 1e6 for short, long in pairs)}
