"""`run_sync`: in a program without an event loop, and beside one that runs, as in a notebook."""

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from antiphon import Agent, ModelError, RunFailed, map_sync, run_sync
from antiphon.models.script import Script

CLERK = Agent("clerk")
WHO: ContextVar[str] = ContextVar("who", default="nobody")


def in_a_loop(work):
    """What `work()` returns, called where an event loop runs."""

    async def main():
        return work()

    return asyncio.run(main())


def test_it_runs_beside_a_loop_that_runs():
    threads = []

    def model(request):
        threads.append(threading.current_thread().name)
        return f"hello, {WHO.get()}"

    def asks():
        WHO.set("Ada")
        return run_sync(CLERK, "hi", model=Script(model)).output

    assert in_a_loop(asks) == "hello, Ada"
    assert asks() == "hello, Ada"
    assert threads == ["antiphon-run", "MainThread"]
    assert [each.output for each in in_a_loop(lambda: map_sync(CLERK, ["a"], model=Script(model)))]


def test_what_it_raises_is_raised_there():
    def model(request):
        raise ModelError("validation", "no such thing")

    with pytest.raises(RunFailed, match="no such thing"):
        in_a_loop(lambda: run_sync(CLERK, "hi", model=Script(model)))


INTERRUPTED = """
import asyncio, signal, threading
from antiphon import Agent, run_sync
from antiphon.models.script import Script

# Whatever started this process may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

async def model(request):
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        print("ended", request.effect_id)

async def main():
    run_sync(Agent("clerk"), "hi", model=Script([model]))

# As a notebook's loop: asyncio.run would take the signal for itself.
loop = asyncio.new_event_loop()
try:
    loop.run_until_complete(main())
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""


def test_an_interrupt_ends_the_run_before_it_is_raised():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines() == ["ended 1/1.m1", "interrupted 1"], done.stderr


def test_a_result_is_short_to_look_at():
    result = run_sync(CLERK, "hi", model=Script(["<b>fine</b>" + " and more" * 100]))
    assert repr(result).startswith("Result(completed, '<b>fine</b> and more and more")
    assert len(repr(result)) < 300
    assert result.run_id in repr(result)
    page = result._repr_html_()
    assert "&lt;b&gt;fine&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "completed · " in page
