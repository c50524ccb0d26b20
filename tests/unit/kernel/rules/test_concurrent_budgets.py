"""However many spend at once: `spent + held <= limit` at every prefix of the journal."""

import asyncio
import random
from typing import Any

import pytest

from antiphon import (
    Agent,
    Limits,
    ModelError,
    ModelOptions,
    RetryPolicy,
    RunFailed,
    Usage,
    open_journal,
    open_run,
)
from antiphon.kernel.facts.ledger import NANO
from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.kernel.run import open as opening
from antiphon.models.script import call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_run
from antiphon.values.model import ModelRequest, Reply


class Spender:
    """Answers in any order, with any bill, and sometimes not at all."""

    name = "spender"

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        dice = self._dice
        for _ in range(dice.randrange(4)):
            await asyncio.sleep(0)
        if dice.random() < 0.15:
            raise ModelError(dice.choice(("overloaded", "disconnected", "auth")), "no")
        usage = Usage(dice.randrange(400), dice.randrange(60))
        if dice.random() < 0.4 and len(request.messages) < 4:
            names = [dice.choice("abc") for _ in range(dice.randint(1, 4))]
            calls = [call("call_agent", agent_name=name, message="m") for name in names]
            named = tuple(
                type(each)(f"c{index}", each.name, each.arguments) for index, each in enumerate(calls)
            )
            return Reply("", named, "calls", usage)
        return Reply("x", usage=usage)


async def spend(seed: int) -> str:
    dice = random.Random(seed)

    def own() -> Limits | None:
        if dice.random() < 0.5:
            return None
        return Limits(
            tokens=dice.choice((None, 3_000, 9_000)),
            usd=dice.choice((None, 0.01)),
            activations=dice.choice((3, 20)),
            calls=dice.choice((3, 50)),
        )

    agents = [
        Agent(
            name, asking=ModelOptions(max_output_tokens=50, retry=RetryPolicy(max_attempts=2)), limits=own()
        )
        for name in "abc"
    ]
    agents[1] = Agent("b", asking=ModelOptions(max_output_tokens=50), limits=own(), context="continue")
    journal = open_journal()
    limits = Limits(
        tokens=dice.randrange(3_000, 40_000), usd=dice.choice((None, 0.05)), depth=4, activations=30
    )
    async with open_run(
        agents, journal=journal, model=Spender(dice), clock=VirtualClock(), limits=limits
    ) as run:
        asked = [await run.post(name, "go") for name in "abc"]
        if dice.random() < 0.3:
            await asyncio.sleep(0)
            await run.cancel(asked[0])
        for each in asked:
            try:
                await run.result(each)
            except RunFailed:
                continue
    await check_run(journal, run.run_id)
    return run.run_id


def priced(model: Any, windows: Any, env: Any) -> ModelOption:
    each = 0.000002 * NANO
    return ModelOption(model, None, each, each, lambda usage: int(usage.total * each))


@pytest.mark.slow
@pytest.mark.unwatched  # check_run is the audit here
@pytest.mark.parametrize("seeds", [200, pytest.param(5_000, marks=pytest.mark.deep)])
def test_nobody_spends_what_is_not_there(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_option", priced)
    for seed in range(seeds):
        try:
            asyncio.run(spend(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
