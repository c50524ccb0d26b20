"""The census finds what was left behind; the witness finds a state that the journal does not tell of."""

import asyncio
import os
import signal
import socket
import threading

import pytest

from antiphon import Agent, run_sync
from antiphon.kernel.run.runtime import Runtime
from antiphon.models.script import Script
from antiphon.testing.census import census
from antiphon.testing.witness import FoldDiffers, watching

pytestmark = pytest.mark.unwatched


def test_nothing_left_is_nothing_found():
    with census() as orphans:
        asyncio.run(asyncio.sleep(0))
        threading.Thread(target=lambda: None).start()
    assert orphans == []


def test_a_task_is_found():
    left = []

    async def main():
        left.append(asyncio.ensure_future(asyncio.Event().wait()))
        await asyncio.sleep(0)

    with census() as orphans:
        asyncio.run(main())
    assert len(orphans) == 1
    assert "Event.wait" in orphans[0]


def test_a_thread_a_socket_and_a_child_are_found(monkeypatch):
    monkeypatch.setattr("antiphon.testing.census.GRACE", 0.01)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="left", daemon=True)
    with census() as orphans:
        thread.start()
        one, other = socket.socketpair()
        child = os.fork()
        if not child:
            signal.pause()
    stop.set()
    thread.join()
    one.close()
    other.close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert "thread left" in orphans
    assert f"child process {child}" in orphans
    assert sum("socket" in each for each in orphans) == 2


def test_a_state_changed_behind_the_journal_is_found(monkeypatch):
    record = Runtime.record

    def cheating(self, *events):
        record(self, *events)
        self.state.activations[0].progress.best_text = "nobody wrote this down"

    monkeypatch.setattr(Runtime, "record", cheating)
    with watching() as witness:
        run_sync(Agent("a"), "hi", model=Script(["there"]))
    with pytest.raises(FoldDiffers, match=r"activations\[0\].progress.best_text"):
        witness.verdict()


def test_a_run_in_order_is_compared_row_by_row():
    with watching() as witness:
        run_sync(Agent("a"), "hi", model=Script(["there"]))
    assert witness.rows == witness.compared > 3
    witness.verdict()
