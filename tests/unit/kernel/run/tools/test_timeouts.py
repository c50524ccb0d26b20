"""A call that takes too long is told so, and only it; calls that may take equally long share one timer."""

import asyncio

import pytest

from antiphon import Agent, run, tool
from antiphon.kernel.run.tools import timeouts
from antiphon.kernel.run.tools.timeouts import Timeout
from antiphon.models.script import Script, call


class Clock:
    """The loop's time and timers, moved by hand."""

    def __init__(self, loop, monkeypatch):
        self.loop, self.now, self.timers, self.armed = loop, 100.0, [], 0
        monkeypatch.setattr(loop, "time", lambda: self.now)
        monkeypatch.setattr(loop, "call_at", self.call_at)

    def call_at(self, when, callback, *args, context=None):
        handle = asyncio.TimerHandle(when, callback, args, self.loop, context)
        self.timers.append(handle)
        self.armed += 1
        return handle

    @property
    def pending(self):
        return [each for each in self.timers if not each.cancelled()]

    async def begin(self, *works):
        tasks = [asyncio.ensure_future(each) for each in works]
        await self.move(0)
        return tasks

    async def move(self, seconds):
        self.now += seconds
        for each in [each for each in self.pending if each.when() <= self.now]:
            self.timers.remove(each)
            each._run()
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def clocked(monkeypatch):
    """Runs a test in a loop whose clock it moves."""

    def play(test):
        async def go():
            return await test(Clock(asyncio.get_running_loop(), monkeypatch))

        return asyncio.run(go())

    return play


async def wait(seconds, event=None):
    with Timeout(seconds):
        await (event or asyncio.Event()).wait()
    return "done"


def test_a_hundred_tools_of_a_reply_ask_for_one_timer(clocked):
    go = asyncio.Event()

    @tool(effect="read", timeout=7.0)
    async def slow() -> str:
        "Waits."
        await go.wait()
        return "fine"

    async def test(clock):
        model = Script([[call("slow")] * 100, "done"])
        running = asyncio.ensure_future(run(Agent("a", tools=[slow]), "go", model=model, env={}))
        for _ in range(20):
            await asyncio.sleep(0)
        waiting = [each for each in clock.pending if each.when() == 107.0]
        go.set()
        result = await running
        assert [each for each in clock.pending if each.when() == 107.0] == []
        return len(waiting), result.output

    assert clocked(test) == (1, "done")


def test_each_is_overdue_in_its_own_time(clocked):
    async def test(clock):
        (first,) = await clock.begin(wait(10))
        await clock.move(4)
        second, shorter = await clock.begin(wait(10), wait(3))
        await clock.move(3)
        assert (first.done(), second.done(), shorter.done()) == (False, False, True)
        await clock.move(3)
        assert (first.done(), second.done()) == (True, False)
        await clock.move(3.9)
        assert not second.done()
        await clock.move(0.1)
        for each in (first, second, shorter):
            assert isinstance(each.exception(), TimeoutError)
        assert clock.pending == []

    clocked(test)


def test_one_that_ends_in_time_leaves_no_timer_and_harms_nobody(clocked):
    async def test(clock):
        event = asyncio.Event()
        quick, slow = await clock.begin(wait(10, event), wait(10))
        await clock.move(1)
        event.set()
        await clock.move(1)
        assert quick.result() == "done"
        await clock.move(8)
        assert isinstance(slow.exception(), TimeoutError)
        late = asyncio.Event()
        (third,) = await clock.begin(wait(10, late))
        await clock.move(1)
        late.set()
        await clock.move(0)
        assert third.result() == "done"
        assert clock.pending == []

    clocked(test)


def test_a_loop_that_is_a_little_early_ends_what_its_timer_was_for(clocked):
    async def test(clock):
        (task,) = await clock.begin(wait(10))
        (timer,) = clock.pending
        clock.timers.remove(timer)
        clock.now += 9.999
        timer._run()
        await clock.move(0)
        assert isinstance(task.exception(), TimeoutError)
        assert clock.pending == []

    clocked(test)


def test_who_is_cancelled_is_cancelled_also_at_the_same_time(clocked):
    async def test(clock):
        one, both = await clock.begin(wait(10), wait(10))
        await clock.move(1)
        one.cancel()
        await clock.move(0)
        assert one.cancelled()
        both.cancel()
        await clock.move(9)
        assert both.cancelled()
        assert clock.pending == []

    clocked(test)


def test_an_error_stays_what_it_is(clocked):
    async def fails():
        with Timeout(10):
            await asyncio.sleep(0)
            raise KeyError("key")

    async def test(clock):
        with pytest.raises(KeyError):
            await fails()
        assert clock.pending == []
        return asyncio.current_task().cancelling()

    assert clocked(test) == 0


def test_a_timeout_inside_of_another_is_told_where_it_belongs(clocked):
    async def nested(outer, inner):
        told = []
        try:
            with Timeout(outer):
                try:
                    with Timeout(inner):
                        await asyncio.Event().wait()
                except TimeoutError:
                    told.append("inner")
                    await asyncio.Event().wait()
        except TimeoutError:
            told.append("outer")
        return told, asyncio.current_task().cancelling()

    async def test(clock):
        outer_first, inner_first = await clock.begin(nested(3, 5), nested(5, 3))
        await clock.move(3)
        await clock.move(5)
        assert outer_first.result() == (["outer"], 0)
        assert inner_first.result() == (["inner", "outer"], 0)

    clocked(test)


def test_lengths_of_time_for_which_nobody_waits_are_forgotten(clocked):
    async def check(clock):
        held = await clock.begin(wait(0.25))
        for seconds in range(1, 10 * timeouts.MAX_IDLE):
            with Timeout(seconds):
                pass
        assert len(vars(clock.loop)[timeouts._KEPT_AS]) <= timeouts.MAX_IDLE + 1
        await clock.move(0.25)
        with pytest.raises(TimeoutError):
            await held[0]

    clocked(check)
