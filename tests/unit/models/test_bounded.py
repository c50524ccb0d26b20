"""Bounds on a model object: how many at once, how many a minute, and in whose turn."""

import asyncio
from decimal import Decimal

import pytest

from antiphon import Agent, RetryPolicy, UserError, run
from antiphon.models.bounded import Bounded
from antiphon.models.catalog import Prices
from tests.unit.models.endpoints.waiting import Slow, request, settle


def test_no_more_than_so_many_run_at_once_and_every_run_has_its_turn():
    async def scenario():
        model = Slow()
        bounded = Bounded(model, concurrency=2)
        calls = [asyncio.ensure_future(bounded.complete(request(run_id), print)) for run_id in "aaaab"]
        await settle()
        assert model.asked == ["a", "a"]
        model.gate.set()
        assert [reply.content for reply in await asyncio.gather(*calls)] == list("aaaab")
        # b came last and is served after one more of a, not after all of them.
        assert model.asked.index("b") == 3
        assert model.most == 2

    asyncio.run(scenario())


def test_a_bounded_model_is_a_model_and_keeps_what_is_known_of_it():
    async def scenario():
        model = Slow()
        model.gate.set()
        model.prices = Prices(input=Decimal(1))
        bounded = Bounded(model)
        assert (bounded.name, bounded.window, bounded.prices) == ("slow", 1000, model.prices)
        result = await run(Agent("a"), "go", model=bounded)
        assert result.output == result.run_id

    asyncio.run(scenario())


def test_what_the_model_says_of_retries_stays_unless_the_bounds_say_it():
    model = Slow()
    model.retry = RetryPolicy(max_attempts=7)
    assert Bounded(model).retry == model.retry
    assert Bounded(model, retry=RetryPolicy(max_attempts=2)).retry == RetryPolicy(max_attempts=2)


def test_bounds_that_let_nobody_in_are_refused():
    with pytest.raises(UserError, match=r"concurrency=\.\.\.\) is at least 1; got 0"):
        Bounded(Slow(), concurrency=0)
