"""The queue before an endpoint: limits at once and by the minute, whose turn it is, and who gave up."""

import asyncio
import gc
import threading

import pytest

from antiphon import ModelError, Usage
from antiphon.models.endpoints.queue import RequestQueue
from antiphon.values.agent import EndpointOptions
from antiphon.values.model import Reply
from tests.unit.models.endpoints.waiting import Slow, Time, request, settle


def ignore(_):
    pass


class Scene:
    """A queue with a slow model behind it, and a clock of the test's."""

    def __init__(self, monkeypatch, **limits):
        self.time = Time(monkeypatch)
        self.queue = RequestQueue(self.time)
        self.queue.join(EndpointOptions(**limits))
        self.model = Slow()
        self.told = {}

    def ask(self, run_id="a", **fields):
        heard = self.told.setdefault(run_id, [])
        emit = lambda delta: heard.append((delta.kind, delta.text))  # noqa: E731
        asking = self.queue.ask(self.model, request(run_id, **fields), emit)
        return asyncio.get_running_loop().create_task(asking)

    async def let_go(self, count):
        """Let `count` requests end that are being asked."""
        for _ in range(count):
            self.model.gate.set()
            await asyncio.sleep(0)
            self.model.gate.clear()
            await settle()


def scenario(play):
    def test(monkeypatch):
        async def playing():
            await play(lambda **limits: Scene(monkeypatch, **limits))

        asyncio.run(playing())

    test.__name__, test.__doc__ = play.__name__, play.__doc__
    return test


@scenario
async def test_a_run_with_one_request_is_not_behind_a_run_with_a_hundred(scene):
    scene = scene(concurrency=1)
    many = [scene.ask("many") for _ in range(100)]
    await settle()
    one = scene.ask("one")
    scene.model.gate.set()
    await asyncio.gather(one, *many)
    assert scene.model.asked.index("one") == 2
    assert scene.model.most == 1


@scenario
async def test_within_a_run_who_comes_first_is_served_first(scene):
    scene = scene(concurrency=1)
    asked = []
    model = scene.model
    model.gate.set()

    async def ask(number):
        await scene.queue.ask(model, request("a", text=str(number)), ignore)
        asked.append(number)

    await asyncio.gather(*map(ask, range(20)))
    assert asked == list(range(20))


@scenario
async def test_a_hundred_at_once_where_nobody_says_it(scene):
    scene = scene()
    asking = [scene.ask() for _ in range(101)]
    await settle()
    assert scene.model.now == 100
    scene.model.gate.set()
    await asyncio.gather(*asking)


@scenario
async def test_of_several_users_the_lowest_limits_hold_while_they_are_there(scene):
    scene = scene(concurrency=3, requests_per_minute=100)
    strict = EndpointOptions(concurrency=1)
    scene.queue.join(strict)
    scene.queue.join(EndpointOptions())
    asking = [scene.ask() for _ in range(4)]
    await settle()
    assert scene.model.now == 1
    scene.queue.part(strict)
    await settle()
    assert scene.model.now == 3
    scene.model.gate.set()
    await asyncio.gather(*asking)


# -- by the minute --------------------------------------------------------------------------------


@scenario
async def test_so_many_requests_in_any_minute(scene):
    scene = scene(requests_per_minute=2)
    scene.model.gate.set()
    asking = [scene.ask()]
    await scene.time.pass_to(10.0)
    asking += [scene.ask() for _ in range(3)]
    await settle()
    assert len(scene.model.asked) == 2
    await scene.time.pass_to(59.9)
    assert len(scene.model.asked) == 2
    await scene.time.pass_to(60.0)
    assert len(scene.model.asked) == 3
    await scene.time.pass_to(69.9)
    assert len(scene.model.asked) == 3
    await scene.time.pass_to(70.0)
    assert len(scene.model.asked) == 4
    await asyncio.gather(*asking)


@scenario
async def test_tokens_are_estimated_before_and_counted_as_billed_after(scene):
    scene = scene(tokens_per_minute=1000)
    # 400 characters are about 100 tokens, and the reply may have 500: 600 of 1,000.
    large = {"text": "x" * 400, "max_output": 500}
    scene.model.says = [Reply("short", usage=Usage(100, 50))]
    first, second = scene.ask(**large), scene.ask(**large)
    await settle()
    assert scene.model.now == 1
    await scene.let_go(1)
    # It was billed 150 of its 600, so there is room now.
    assert (first.done(), scene.model.now) == (True, 1)
    third = scene.ask(**large)
    await settle()
    assert scene.model.now == 1
    await scene.time.pass_to(60.0)
    # What began a minute ago counts no more, whether it has ended or not.
    assert scene.model.now == 2
    scene.model.says = [Reply("late", usage=Usage(1, 1))]
    scene.model.gate.set()
    await asyncio.gather(second, third)
    # Nor does what is billed for it later: only the third is in this minute.
    assert scene.queue._spent == 600


@scenario
async def test_a_request_larger_than_a_minute_takes_is_asked_alone(scene):
    scene = scene(tokens_per_minute=100)
    small, huge, after = scene.ask(), scene.ask(max_output=5_000), scene.ask()
    await settle()
    assert scene.model.now == 1
    await scene.time.pass_to(60.0)
    assert scene.model.now == 2
    await scene.time.pass_to(119.0)
    assert scene.model.now == 2
    await scene.time.pass_to(120.0)
    scene.model.gate.set()
    await asyncio.gather(small, huge, after)


@scenario
async def test_what_no_model_has_worked_on_costs_no_tokens(scene):
    scene = scene(tokens_per_minute=100)
    scene.model.gate.set()
    scene.model.says = [ModelError("auth", "no"), ModelError("disconnected", "half of it")]
    with pytest.raises(ModelError):
        await scene.ask(max_output=90)
    with pytest.raises(ModelError):
        await scene.ask(max_output=90)
    waits = scene.ask(max_output=90)
    await settle()
    assert len(scene.model.asked) == 2
    await scene.time.pass_to(60.0)
    await waits


@scenario
async def test_a_usage_that_nobody_said_leaves_the_estimate(scene):
    scene = scene(tokens_per_minute=100)
    scene.model.gate.set()
    scene.model.says = [Reply("a", usage=None)]
    await scene.ask(max_output=90)
    waits = scene.ask(max_output=90)
    await settle()
    assert not waits.done()
    await scene.time.pass_to(60.0)
    await waits


# -- a provider that asks to wait -----------------------------------------------------------------


@scenario
async def test_a_retry_after_holds_everyone_back(scene):
    scene = scene()
    scene.model.gate.set()
    scene.model.says = [ModelError("rate_limit", "slow down", retry_after=20.0)]
    with pytest.raises(ModelError):
        await scene.ask("a")
    other = scene.ask("b")
    await scene.time.pass_to(19.9)
    assert scene.model.asked == ["a"]
    await scene.time.pass_to(20.0)
    assert (await other).content == "b"


@scenario
async def test_a_retry_after_of_an_hour_keeps_nobody_in_the_line(scene):
    scene = scene()
    scene.model.gate.set()
    scene.model.says = [ModelError("rate_limit", "slow down", retry_after=3_600.0)]
    with pytest.raises(ModelError):
        await scene.ask("a")
    assert (await scene.ask("b")).content == "b"


# -- told to whoever watches ----------------------------------------------------------------------


@scenario
async def test_who_waits_is_told_the_place_in_the_line_and_when_it_is_their_turn(scene):
    scene = scene(concurrency=1)
    asking = [scene.ask(run_id) for run_id in ("a", "b", "b", "c")]
    await scene.time.pass_to(1.0)
    await scene.time.pass_to(1.9)
    assert (scene.told["a"], scene.told["c"]) == ([], [("queued", "2")])
    assert scene.told["b"] == [("queued", "1"), ("queued", "3")]
    await scene.time.pass_to(3.5)
    # A place is told once.
    assert scene.told["c"] == [("queued", "2")]
    await scene.let_go(1)
    await scene.time.pass_to(5.0)
    assert scene.told["b"][2:] == [("queued", "0"), ("queued", "2")]
    assert scene.told["c"] == [("queued", "2"), ("queued", "1")]
    scene.model.gate.set()
    await asyncio.gather(*asking)
    assert scene.told["c"][-1] == ("queued", "0")


@scenario
async def test_who_need_not_wait_is_told_nothing_and_nothing_rings(scene):
    scene = scene(concurrency=2)
    scene.model.gate.set()
    await asyncio.gather(scene.ask(), scene.ask(), scene.ask())
    assert scene.told["a"] == []
    assert scene.time.due == []


# -- given up -------------------------------------------------------------------------------------


@scenario
async def test_who_is_cancelled_in_the_line_or_while_asked_gives_the_place_up(scene):
    scene = scene(concurrency=1)
    first, second, third = (scene.ask() for _ in range(3))
    await settle()
    second.cancel()
    first.cancel()
    await settle()
    assert scene.model.asked == ["a", "a"]
    scene.model.gate.set()
    assert (await third).content == "a"
    assert scene.model.now == 0


@pytest.mark.parametrize("steps", range(8))
def test_a_cancel_at_any_step_leaves_the_queue_as_if_it_had_not_been_there(steps, monkeypatch):
    async def playing():
        scene = Scene(monkeypatch, concurrency=1, requests_per_minute=2, tokens_per_minute=10)
        first, second = scene.ask(max_output=5), scene.ask(max_output=5)
        await settle()
        scene.model.gate.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([first, second])
        await scene.time.pass_to(60.0)
        assert (await scene.ask("b", max_output=5)).content == "b"
        queue = scene.queue
        assert (queue._running, queue._waiting, queue._loops, queue._timers) == (0, {}, {}, {})
        await scene.time.pass_to(120.0)
        queue.part(EndpointOptions(concurrency=1, requests_per_minute=2, tokens_per_minute=10))
        assert queue.idle
        assert queue._spent == 0

    asyncio.run(playing())


def test_who_was_let_in_and_cancelled_before_it_was_asked_counts_in_no_minute(monkeypatch):
    async def playing(steps):
        scene = Scene(monkeypatch, concurrency=1, requests_per_minute=2)
        first, second = scene.ask(), scene.ask()
        await settle()
        scene.model.gate.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        let_in = len(scene.queue._minute) == 2
        second.cancel()
        await asyncio.wait([first, second])
        if let_in and scene.model.asked == ["a"]:
            assert (await scene.ask("b")).content == "b"
            return True
        return False

    # At one of these steps the second has been let in and has not asked yet.
    assert any(asyncio.run(playing(steps)) for steps in range(8))


@pytest.mark.parametrize("steps", range(8))
def test_a_place_that_is_given_back_goes_to_the_next_at_once(steps, monkeypatch):
    async def playing():
        scene = Scene(monkeypatch, concurrency=1)
        first, second, third = (scene.ask() for _ in range(3))
        await settle()
        scene.model.gate.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        second.cancel()
        await settle()
        # No time has passed, and nobody has looked again.
        assert (first.done(), third.done()) == (True, True)

    asyncio.run(playing())


def test_a_request_that_is_thrown_away_in_a_living_loop_takes_no_place():
    async def scenario():
        queue, slow, free = RequestQueue(), Slow(), Slow()
        free.gate.set()
        queue.join(EndpointOptions(concurrency=1))
        asked, waits = (queue.ask(slow, request(), ignore) for _ in range(2))
        asked.send(None)
        waits.send(None)
        del waits
        gc.collect()
        del asked
        gc.collect()
        assert (await queue.ask(free, request("b"), ignore)).content == "b"
        assert (queue._running, queue._waiting, queue._loops, queue._timers) == (0, {}, {}, {})

    asyncio.run(scenario())


def test_a_line_that_is_thrown_away_with_its_loop_is_no_line_any_more():
    queue, model = RequestQueue(), Slow()
    queue.join(EndpointOptions(concurrency=1))

    async def begin():
        for _ in range(2):
            asking.append(queue.ask(model, request(), ignore))
        # Stepped by hand, so that nobody cancels them when the loop ends.
        asking[0].send(None)
        asking[1].send(None)

    asking = []
    asyncio.run(begin())
    asking.clear()
    gc.collect()

    async def another():
        free = Slow()
        free.gate.set()
        return await asyncio.wait_for(queue.ask(free, request("b"), ignore), 5)

    assert asyncio.run(another()).content == "b"
    assert (queue._running, queue._waiting) == (0, {})


# -- many loops -----------------------------------------------------------------------------------


def test_one_line_for_the_loops_of_several_threads(monkeypatch):
    # Nobody is woken by looking again: whoever lets a request in wakes the loop that it waits in.
    monkeypatch.setattr("antiphon.models.endpoints.queue.TICK", 1_000.0)
    queue, lock = RequestQueue(), threading.Lock()
    queue.join(EndpointOptions(concurrency=3))
    seen = {"now": 0, "most": 0, "asked": 0}

    class Counting:
        name = "counting"

        async def complete(self, request, emit):
            with lock:
                seen["now"] += 1
                seen["asked"] += 1
                seen["most"] = max(seen["most"], seen["now"])
            await asyncio.sleep(0)
            with lock:
                seen["now"] -= 1
            return Reply("x")

    async def many():
        await asyncio.gather(*(queue.ask(Counting(), request(str(n % 7)), ignore) for n in range(200)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen["asked"] == 800
    assert seen["most"] <= 3
    assert (queue._running, queue._waiting, queue._loops) == (0, {}, {})


def test_one_loop_after_another_counts_in_the_same_minute():
    now = [0.0]
    queue, model = RequestQueue(lambda: now[0]), Slow()
    queue.join(EndpointOptions(requests_per_minute=2))

    async def ask():
        model.gate = asyncio.Event()
        model.gate.set()
        await queue.ask(model, request(), ignore)

    asyncio.run(ask())
    asyncio.run(ask())
    assert queue._wait_for(1) == 60.0
    now[0] = 60.0
    asyncio.run(ask())
