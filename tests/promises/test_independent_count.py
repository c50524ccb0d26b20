"""The ledger against a count of its own: a provider that notes what it billed, whatever it says of it."""

import asyncio
import random
from decimal import Decimal
from typing import Any

import pytest
from msgspec import Struct

from antiphon import (
    UNLIMITED,
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
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, ModelEffect
from antiphon.kernel.run.rows import fold
from antiphon.models.catalog import Prices
from antiphon.models.script import call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_run
from antiphon.values.fields import unchecked
from antiphon.values.limits import RunLimits
from antiphon.values.model import ModelRequest, Reply

NANO_A_TOKEN = 1_000
"""What the provider takes for a token: a dollar for a million."""
told: Any = unchecked(Usage)
NONSENSE: tuple[Any, ...] = (
    None, told(), told(-1, 5), told(5, -1), told(10**15, 1), told(1.5, 2), told(None, 2), {"input": 5}
)  # fmt: skip
"""What it says where it does not say what it billed."""


class Billed(Struct):
    """A call as its provider knows it."""

    tokens: int
    said: bool
    """What it was told of that was true."""
    charged: bool = True
    """It was billed, or may have been as far as anyone can know."""


class Provider:
    """Answers in any order, calls others, fails, and bills as it likes: above the cap too, if `huge`."""

    name = "provider"
    prices = Prices(input=Decimal(1), output=Decimal(1))

    def __init__(self, dice: random.Random, huge: bool) -> None:
        self._dice, self._huge = dice, huge
        self.billed: dict[str, Billed] = {}

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        dice = self._dice
        for _ in range(dice.randrange(4)):
            await asyncio.sleep(0)
        taken, given = dice.randrange(1, 300), dice.randrange(60)
        if self._huge and dice.random() < 0.1:
            taken *= 100
        bill = self.billed[request.effect_id] = Billed(taken + given, dice.random() < 0.6)
        if dice.random() < 0.1:
            kind = dice.choice(("overloaded", "disconnected", "timeout", "auth"))
            bill.said, bill.charged = False, kind in ("disconnected", "timeout")
            raise ModelError(kind, "no")
        usage = Usage(taken, given) if bill.said else dice.choice(NONSENSE)
        if dice.random() < 0.5 and len(request.messages) < 5:
            calls = [call("call_agent", agent_name=dice.choice("abc"), message="m") for _ in range(3)]
            named = tuple(type(each)(f"c{n}", each.name, each.arguments) for n, each in enumerate(calls))
            return Reply("more", named[: dice.randint(1, 3)], "calls", usage)
        return Reply("x", usage=usage)


async def billed(seed: int, *, huge: bool, limit: int | None) -> None:
    """Play one run and compare its ledger with what the provider noted."""
    dice, journal = random.Random(seed), open_journal()
    provider = Provider(dice, huge)
    asking = ModelOptions(max_output_tokens=60, retry=RetryPolicy(max_attempts=2))
    agents = [Agent(name, asking=asking, context=dice.choice(("fresh", "continue"))) for name in "abc"]
    limits = dice.choice((UNLIMITED, Limits(tokens=20_000, activations=60)))
    limits = limits if limits.tokens else Limits(activations=60, tokens=None)
    async with open_run(
        agents, journal=journal, model=provider, clock=VirtualClock(), limits=limits,
        run_limits=RunLimits(tokens=limit),
    ) as run:  # fmt: skip
        asked = [await run.post(name, "go") for name in "abcabc"]
        if dice.random() < 0.3:
            await asyncio.sleep(0)
            await run.cancel(asked[0])
        results = [await ended(run, each) for each in asked]
        records = await run.records()
    await check_run(journal, run.run_id)

    tokens = money = held = 0
    holds: dict[str, ModelEffect] = {}
    for record in records:
        event = record.event
        if isinstance(event, EffectStarted) and isinstance(event.detail, ModelEffect):
            holds[event.id] = event.detail
            held += event.detail.held_tokens
            assert limit is None or tokens + held <= limit, "more was begun than there is room for"
        elif isinstance(event, EffectFinished) and event.id in holds:
            hold = holds.pop(event.id)
            held -= hold.held_tokens
            bill = provider.billed.get(event.id)
            heard = bill is not None and bill.said and event.reply is not None
            if heard and bill is not None:
                tokens, money = tokens + bill.tokens, money + bill.tokens * NANO_A_TOKEN
            elif event.outcome in ("interrupted", "cancelled") or bill is None or bill.charged:
                tokens, money = tokens + hold.held_tokens, money + hold.held_nano_usd
    scope = (await fold(journal, run.run_id)).totals.scopes[0]
    assert (scope.tokens, scope.held_tokens) == (tokens, 0)
    assert (scope.nano_usd, scope.held_nano_usd) == (money, 0)
    assert sum(each.usage.total for each in results) <= tokens


async def ended(run: Any, request: str) -> Any:
    try:
        return await run.result(request)
    except RunFailed as failed:
        return failed.result


@pytest.mark.slow
@pytest.mark.unwatched  # check_run is the audit here
@pytest.mark.parametrize("limit", [None, 15_000])
@pytest.mark.parametrize("huge", [False, True])
@pytest.mark.parametrize("seeds", [40, pytest.param(500, marks=pytest.mark.deep)])
def test_the_ledger_has_what_was_billed_or_held(seeds: int, huge: bool, limit: int | None) -> None:
    for seed in range(seeds):
        try:
            asyncio.run(billed(seed, huge=huge, limit=limit))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
