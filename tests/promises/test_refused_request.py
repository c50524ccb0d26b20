"""A request that never became a call has an outcome like every other: it failed, and says why."""

import asyncio

import pytest

from antiphon import Agent, RunFailed, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.commands import AskAgent, encode
from antiphon.models.script import Script


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (AskAgent("a", "x" * 1_200_000), "characters"),
        (AskAgent("nobody", "hi"), "Unknown agent: nobody. Available agents: a"),
    ],
)
def test_it_failed_and_says_why(command, why):
    async def main():
        journal = MemoryJournal()
        async with open_run([Agent("a")], journal=journal, model=Script([]), env={}) as run:
            await journal.post(run.run_id, "key", encode(command))
            async for item in run.events(deltas=False):
                if item.type == "EffectFinished":
                    break
            with pytest.raises(RunFailed, match=why) as failed:
                await run.result("0/1.c1")
            assert failed.value.result.outcome == "failed"

    asyncio.run(main())
