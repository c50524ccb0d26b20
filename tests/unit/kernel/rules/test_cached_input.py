"""Input that comes from a provider's cache counts for limits of tokens by its price, or as the user says."""

from decimal import Decimal

import pytest

from antiphon import Agent, Limits, ModelOptions, Usage, UserError, run_sync, tool
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, ModelEffect, encode
from antiphon.kernel.facts.ledger import charge_of
from antiphon.models.catalog import Prices
from antiphon.models.catalog.spec import Tier
from antiphon.models.rates import rates_of
from antiphon.models.script import Script, call
from antiphon.values.limits import tightest
from antiphon.values.model import Reply
from tests.transcript import recorded

TENTH = Prices(input=Decimal(3), output=Decimal(15), cached_input=Decimal("0.3"))
LONG = Usage(20_000, 100, cache_read_tokens=19_000)
"""A turn of a long session: all but a little of it is cached."""


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def session(turns, prices=TENTH, **limits):
    """How a session of so many long turns ends, and how many calls of its model began."""
    model = Script(
        [Reply("", (call("look"),), "calls", LONG)] * (turns - 1) + [Reply("done", usage=LONG)], name="m"
    )
    model.prices = prices
    agent = Agent("a", tools=[look], asking=ModelOptions(max_output_tokens=30_000))
    result, records = recorded(agent, "go", model=model, limits=Limits(**limits))
    shares = {each.event.detail.cached_share for each in records if asks(each)}
    return result, model.asked, shares


def asks(record):
    return isinstance(record.event, EffectStarted) and isinstance(record.event.detail, ModelEffect)


def test_a_long_cached_session_is_not_ended_long_before_it_costs_as_much():
    result, asked, shares = session(100, tokens=400_000)
    assert (result.outcome, asked, shares) == ("completed", 100, {0.1})
    assert result.usage.total == 100 * 20_100


def test_where_no_price_is_known_a_cached_token_is_a_token():
    result, asked, shares = session(100, None, tokens=400_000)
    assert (result.outcome, shares) == ("budget", {1.0})
    assert asked < 20


@pytest.mark.parametrize(
    ("prices", "said", "binds"),
    [(TENTH, 1.0, 1.0), (TENTH, 0.5, 0.5), (None, 0.0, 0.0), (None, 0.25, 0.25)],
)
def test_what_the_user_says_comes_first(prices, said, binds):
    result, _, shares = session(2, prices, cached_share=said)
    assert (result.outcome, shares) == ("completed", {binds})


def test_of_limits_within_one_another_the_largest_share_binds():
    agent = Agent("a", limits=Limits(cached_share=0.2))
    for outer, binds in ((None, 0.2), (0.1, 0.2), (0.6, 0.6)):
        _, records = recorded(
            agent, "go", model=Script([Reply("x", usage=LONG)]), limits=Limits(cached_share=outer)
        )
        assert {each.event.detail.cached_share for each in records if asks(each)} == {binds}
    assert tightest(Limits(cached_share=0.1), Limits(cached_share=0.4)).cached_share == 0.4
    assert tightest(Limits(), Limits(cached_share=0.4)).cached_share == 0.4
    assert tightest(Limits(), Limits()).cached_share is None


@pytest.mark.parametrize(
    ("share", "usage", "tokens"),
    [
        (1.0, Usage(100, 10, 80), 110),
        (0.1, Usage(100, 10, 80), 38),
        (0.0, Usage(100, 10, 80), 30),
        (0.0, Usage(100, 0, 100), 0),
        (0.5, Usage(100, 10, 900), 60),
    ],
    ids=["a token each", "a tenth", "nothing", "all of it cached", "more cached than there was"],
)
def test_what_a_call_is_charged(share, usage, tokens):
    detail = ModelEffect("m", "", 1_000, cached_share=share)
    charged = charge_of(detail, EffectFinished("1/1.m1", reply=Reply("x", usage=usage), cost_nano_usd=7))
    assert (charged.tokens, charged.nano_usd, charged.usage) == (tokens, 7, usage)


class Priced:
    name = "m"

    def __init__(self, prices):
        self.prices = prices


@pytest.mark.parametrize(
    ("prices", "share"),
    [
        (TENTH, 0.1),
        (Prices(input=Decimal(3), output=Decimal(1)), 1.0),
        (Prices(input=Decimal(0), output=Decimal(0), cached_input=Decimal(0)), 1.0),
        (Prices(input=Decimal(1), output=Decimal(1), cached_input=Decimal(2)), 1.0),
        (Prices(), 1.0),
    ],
)
def test_the_share_of_a_price(prices, share):
    assert rates_of(Priced(prices), {}).cached_share == share


def test_the_share_of_a_price_with_tiers_is_the_largest():
    tier = Tier(200_000, input=Decimal(6), cached_input=Decimal("1.5"))
    prices = Prices(input=Decimal(3), output=Decimal(15), cached_input=Decimal("0.3"), tiers=(tier,))
    assert rates_of(Priced(prices), {}).cached_share == 0.25


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), "half", True])
def test_what_is_no_share_is_refused(wrong):
    with pytest.raises(UserError, match="cached_share"):
        Limits(cached_share=wrong)


def test_a_whole_share_is_read_back_as_it_is_kept():
    assert Limits(cached_share=1) == Limits(cached_share=1.0)
    assert run_sync(Agent("a"), "go", model=Script(["x"]), limits=Limits(cached_share=1)).output == "x"


@pytest.mark.parametrize(("said", "stored"), [(None, False), (float("1"), False), (0.5, True)])
def test_what_counts_in_full_takes_no_room_in_a_row(said, stored):
    limits = Limits(tokens=400_000, cached_share=said)
    _, records = recorded(Agent("a"), "go", model=Script(["done"]), limits=limits)
    (asked,) = [each.event for each in records if asks(each)]
    assert ("cached_share" in encode([asked]).decode()) == stored
