"""Bounds on a model: how many at once, how many a minute, and in whose turn."""

import asyncio

import pytest

from antiphon import Agent, run
from antiphon.models.bounded import Bounded
from antiphon.values.model import ModelRequest, Reply


class Slow:
    """A model whose calls end when the test says so."""

    name = "slow"
    window = 1000

    def __init__(self):
        self.asked = []
        self.now = self.most = 0
        self.gate = asyncio.Event()

    async def complete(self, request, emit):
        self.asked.append(request.session)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.gate.wait()
        finally:
            self.now -= 1
        return Reply(request.session)


def request(run_id):
    return ModelRequest("slow", "", (), session=run_id)


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def test_no_more_than_so_many_run_at_once_and_every_run_has_its_turn():
    async def scenario():
        model = Slow()
        bounded = Bounded(model, at_once=2)
        calls = [asyncio.ensure_future(bounded.complete(request(run_id), print)) for run_id in "aaaab"]
        await settle()
        assert model.asked == ["a", "a"]
        model.gate.set()
        assert [reply.content for reply in await asyncio.gather(*calls)] == list("aaaab")
        # b came last and is served after one more of a, not after all of them.
        assert model.asked.index("b") == 3
        assert model.most == 2

    asyncio.run(scenario())


def test_who_is_cancelled_gives_the_place_up():
    async def scenario():
        model = Slow()
        bounded = Bounded(model, at_once=1)
        first, second, third = (
            asyncio.ensure_future(bounded.complete(request("a"), print)) for _ in range(3)
        )
        await settle()
        second.cancel()
        first.cancel()
        await settle()
        model.gate.set()
        assert (await third).content == "a"
        assert model.now == 0

    asyncio.run(scenario())


def test_who_was_let_in_and_cancelled_in_the_same_moment_gives_the_place_up_too():
    async def scenario():
        model = Slow()
        bounded = Bounded(model, at_once=1)
        first = asyncio.ensure_future(bounded.complete(request("a"), print))
        second = asyncio.ensure_future(bounded.complete(request("a"), print))
        await settle()

        async def end_first_and_cancel_second():
            # The order of the loop: the first ends and lets the second in, which is then cancelled.
            asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, second.cancel)
            model.gate.set()

        await end_first_and_cancel_second()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        assert (await bounded.complete(request("a"), print)).content == "a"

    asyncio.run(scenario())


def test_so_many_a_minute(monkeypatch):
    async def scenario():
        loop = asyncio.get_running_loop()
        now, alarms = [0.0], []
        monkeypatch.setattr(loop, "time", lambda: now[0])
        monkeypatch.setattr(loop, "call_later", lambda wait, ring: alarms.append((wait, ring)))
        model = Slow()
        model.gate.set()
        bounded = Bounded(model, per_minute=2)
        calls = [asyncio.ensure_future(bounded.complete(request("a"), print)) for _ in range(3)]
        await settle()
        assert len(model.asked) == 2
        (wait, ring), *_ = alarms
        assert wait == 60.0
        now[0] = 60.0
        ring()
        await asyncio.gather(*calls)
        assert len(model.asked) == 3

    asyncio.run(scenario())


def test_a_bounded_model_is_a_model_and_keeps_what_is_known_of_it():
    async def scenario():
        model = Slow()
        model.gate.set()
        bounded = Bounded(model)
        assert (bounded.name, bounded.window) == ("slow", 1000)
        result = await run(Agent("a"), "go", model=bounded)
        assert result.output == result.run_id

    asyncio.run(scenario())


def test_bounds_that_let_nobody_in_are_refused():
    with pytest.raises(ValueError, match="1 or more"):
        Bounded(Slow(), at_once=0)
