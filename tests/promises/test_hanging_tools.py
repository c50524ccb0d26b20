"""A tool that hangs costs its own call and no other: it is given up, named, and the rest goes on."""

import asyncio
import logging
import threading
from contextlib import suppress

import pytest

from antiphon import Agent, Hooks, Limits, open_run, run, run_sync, tool
from antiphon.kernel.run import stopping
from antiphon.kernel.run.tools import threads
from antiphon.models.script import Script, call
from antiphon.testing.census import census

LONG = 3_600.0
"""Seconds that no test lasts: what is bound by them only must end otherwise."""


@tool(effect="read", timeout=20)
def look() -> str:
    """Look."""
    return "seen"


@pytest.fixture
def hang():
    """A synchronous tool that hangs until the test is over."""
    release, before = threading.Event(), workers()

    @tool(timeout=0.05)
    def hang() -> str:
        """Hang."""
        release.wait(60)
        return "late"

    yield hang
    release.set()
    for each in workers():
        if each not in before:
            each.join(20)


def results(model):
    return [each.content for each in model.requests[-1].messages if each.role == "tool"]


def workers():
    return [each for each in threading.enumerate() if each.name == threads.THREAD_NAME]


def test_as_many_hung_calls_as_there_are_threads_do_not_starve_the_rest(hang):
    model = Script([[call("hang")] * threads.WORKING, call("look"), "done"])
    assert run_sync(Agent("a", tools=[hang, look]), "go", model=model, env={}).output == "done"
    *hung, seen = results(model)
    assert seen == "seen"
    assert set(hung) == {
        "Error: [hang] no result after 0.05 s; it still runs in a thread that cannot be stopped; "
        "it may or may not have taken effect"
    }


def test_other_runs_do_not_notice_either(hang):
    async def main():
        async with open_run(
            [Agent("a", tools=[hang])], model=Script([[call("hang")] * 40, "done"]), env={}
        ) as one:
            request = await one.post("a", "go")
            for _ in range(3):
                model = Script([call("look"), "done"])
                await run(Agent("b", tools=[look]), "go", model=model, env={})
                assert results(model) == ["seen"]
            await one.result(request)

    asyncio.run(main())


def test_two_hundred_runs_share_the_threads_of_their_loop():
    most = []

    @tool(effect="read")
    def count() -> str:
        """Count."""
        most.append(len(workers()))
        return ""

    async def main():
        inside = asyncio.Barrier(200)

        async def one():
            agent = Agent("a", tools=[count])
            async with open_run([agent], model=Script([call("count"), "done"]), env={}) as opened:
                await opened.result(await opened.post("a", "go"))
                await inside.wait()

        before = len(workers())
        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(one())
        return before

    with census() as orphans:
        before = asyncio.run(main())
    assert len(most) == 200
    assert max(most) - before <= threads.WORKING
    assert not orphans


def test_a_call_that_is_given_up_before_it_began_never_runs():
    ran, busy, release = [], threading.Barrier(threads.WORKING + 1), threading.Event()

    @tool(effect="read", timeout=LONG)
    def block() -> str:
        """Block."""
        busy.wait(20)
        release.wait(20)
        return "blocked"

    @tool(timeout=0.05)
    def pay() -> str:
        """Pay."""
        ran.append("paid")
        return "paid"

    async def main():
        blocking = Script([[call("block")] * threads.WORKING, "done"])
        async with open_run([Agent("a", tools=[block])], model=blocking, env={}) as first:
            request = await first.post("a", "go")
            await asyncio.to_thread(busy.wait, 20)
            model = Script([call("pay"), "done"])
            await run(Agent("b", tools=[pay]), "go", model=model, env={})
            release.set()
            await first.result(request)
            # Whatever was queued before this call has been taken from the queue after it.
            await run(Agent("c", tools=[look]), "go", model=Script([call("look"), "done"]), env={})
        return results(model)

    assert asyncio.run(main()) == [
        "Error: [pay] not run, no thread was free for 0.05 s: at work are block (32)"
    ]
    assert ran == []


def test_beyond_the_bound_a_call_fails_at_once_and_names_what_hangs(hang, monkeypatch):
    monkeypatch.setattr(threads, "WORKING", 1)
    monkeypatch.setattr(threads, "MAX_WRITTEN_OFF", 1)

    @tool(timeout=LONG)
    def pay() -> str:
        """Pay."""
        return "paid"

    # The first payment is queued behind what hangs, the second one is not even queued.
    model = Script([[call("hang"), call("pay")], call("pay"), "done"])
    run_sync(Agent("a", tools=[hang, pay]), "go", model=model, env={})
    *_, queued, after = results(model)
    assert queued == after
    assert after.startswith("Error: [pay] not run: no thread is left")
    assert "too many tools did not return: hang. Restart" in after


def test_a_thread_whose_function_returns_after_all_is_used_again(monkeypatch):
    monkeypatch.setattr(threads, "WORKING", 1)
    monkeypatch.setattr(threads, "MAX_WRITTEN_OFF", 1)
    release = threading.Event()

    @tool(timeout=0.05)
    def hang() -> str:
        """Hang."""
        release.wait(20)
        return "late"

    def until_seen(request):
        results = [each.content for each in request.messages if each.role == "tool"]
        if len(results) == 2:
            assert results[1].startswith("Error: [look] not run: ")
            release.set()
        return "done" if results[-1:] == ["seen"] else call("look" if results else "hang")

    agent = Agent("a", tools=[hang, look])
    limits = Limits(turns=4_000)
    assert run_sync(agent, "go", model=Script(until_seen), limits=limits, env={}).output == "done"


def test_who_leaves_a_run_is_told_what_still_runs_of_it(hang, caplog):
    model = Script([[call("hang"), call("look")], "done"])
    with caplog.at_level(logging.WARNING, "antiphon"):
        result = run_sync(Agent("a", tools=[hang, look]), "go", model=model, env={})
    assert [each.getMessage() for each in caplog.records] == [
        f"Run {result.run_id}: hang still runs in a thread that nothing can stop",
        f"Run {result.run_id}: hang may or may not have taken effect",
        f"Run {result.run_id} was left, and nothing can stop what still runs of it: hang",
    ]


def test_a_thread_that_returns_when_its_loop_has_stopped_ends():
    release = threading.Event()

    @tool(effect="read", timeout=0.01)
    def hangs() -> str:
        """Hang."""
        release.wait(30)
        return "late"

    before, loop = workers(), asyncio.new_event_loop()
    try:
        loop.run_until_complete(run(Agent("a", tools=[hangs]), "go", model=Script([call("hangs"), "done"])))
        (left,) = (each for each in workers() if each not in before)
        release.set()
        left.join(10)
        assert not left.is_alive()
    finally:
        loop.close()


def test_nothing_is_said_of_tools_that_have_returned(caplog):
    run_sync(Agent("a", tools=[look]), "go", model=Script([call("look"), "done"]), env={})
    assert not caplog.records


class Stubborn:
    """Waits for ever, whatever asks it to stop."""

    def __init__(self):
        self.closed = 0

    async def wait(self):
        try:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    continue
        finally:
            self.closed += 1


@pytest.fixture
def stubborn(monkeypatch):
    monkeypatch.setattr(stopping, "GRACE", 0.05)
    return Stubborn()


def test_a_coroutine_that_ignores_its_timeout_is_closed_and_named(stubborn):
    @tool(timeout=0.05)
    async def insist() -> str:
        """Insist."""
        await stubborn.wait()
        return ""

    model = Script([call("insist"), "done"])
    assert run_sync(Agent("a", tools=[insist]), "go", model=model, env={}).output == "done"
    assert results(model) == [
        "Error: [insist] no result after 0.05 s; it ignored that and was closed; "
        "it may or may not have taken effect"
    ]
    assert stubborn.closed == 1


def test_a_coroutine_that_cleans_up_in_time_is_not_closed(stubborn):
    cleaned = []

    @tool(timeout=0.01)
    async def tidy() -> str:
        """Tidy up."""
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            cleaned.append("up")
        return ""

    model = Script([call("tidy"), "done"])
    run_sync(Agent("a", tools=[tidy]), "go", model=model, env={})
    assert cleaned == ["up"]
    assert results(model)[0].startswith("Error: [tidy] no result after 0.01 s; it may")


async def give_up_waiting(times):
    """What a tool does that looks again now and then."""
    for _ in range(times):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()


def test_a_timeout_of_a_tool_s_own_does_not_end_its_call(monkeypatch):
    monkeypatch.setattr(stopping, "GRACE", 0.0)

    @tool(timeout=LONG)
    async def watch() -> str:
        """Look again and again."""
        await give_up_waiting(20)
        return "seen"

    model = Script([call("watch"), "done"])
    run_sync(Agent("a", tools=[watch]), "go", model=model, env={})
    assert results(model) == ["seen"]


def test_who_ignores_the_call_s_timeout_after_one_of_its_own_is_closed(stubborn):
    @tool(timeout=0.05)
    async def insist() -> str:
        """Insist."""
        await give_up_waiting(3)
        await stubborn.wait()
        return ""

    model = Script([call("insist"), "done"])
    run_sync(Agent("a", tools=[insist]), "go", model=model, env={})
    assert "it ignored that and was closed" in results(model)[0]
    assert stubborn.closed == 1


@pytest.mark.parametrize("kind", ["tool", "action"])
def test_what_ignores_a_cancel_does_not_hold_up_whoever_leaves(kind, stubborn, caplog):
    async def main():
        started = asyncio.Event()

        async def insist(ctx) -> str:
            """Insist."""
            started.set()
            await stubborn.wait()
            return ""

        agent = Agent("a", tools=[tool(timeout=LONG)(insist)])
        if kind == "action":
            agent = Agent("a", hooks=Hooks(act=insist))
        async with open_run([agent], model=Script([call("insist"), "done"]), env={}) as opened:
            request = await opened.post("a", "go")
            await started.wait()
            await opened.cancel(request)
            return (await opened.result(request)).outcome

    assert asyncio.run(main()) == "cancelled"
    assert stubborn.closed == 1
    assert not caplog.records


def test_a_model_that_ignores_a_cancel_is_named(monkeypatch, caplog):
    monkeypatch.setattr(stopping, "GRACE", 0.01)

    async def main():
        asked, stop = asyncio.Event(), asyncio.Event()

        async def deaf(request):
            asked.set()
            while not stop.is_set():
                try:
                    await stop.wait()
                except asyncio.CancelledError:
                    continue
            return "late"

        async with open_run([Agent("a")], model=Script(deaf), env={}) as opened:
            await opened.post("a", "go")
            await asked.wait()
        stop.set()
        return opened.run_id

    run_id = asyncio.run(main())
    assert [each.getMessage() for each in caplog.records] == [
        f"Run {run_id} was left, and nothing can stop what still runs of it: effect 1/1.m1"
    ]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            TimeoutError("the server is slow"),
            "[oops] the server is slow; it may or may not have taken effect",
        ),
        (StopIteration("over"), "[oops] StopIteration: over"),
        (asyncio.CancelledError(), "[oops] it cancelled itself"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_a_function_in_a_thread_raises_is_its_own(raised, said):
    @tool
    def oops() -> str:
        """Raise."""
        raise raised

    model = Script([call("oops"), "done"])
    run_sync(Agent("a", tools=[oops]), "go", model=model, env={})
    assert results(model) == [f"Error: {said}"]
