"""A snapshot is read back as the run that it was made of, and what was one thing in it is one thing again."""

import asyncio

import msgspec
import pytest

from antiphon import Agent, Limits, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts import snapshot
from antiphon.kernel.facts.events import RunStarted
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.run.snapshots.keeping import latest_state
from antiphon.models.script import Script, call
from antiphon.values.limits import RunLimits
from tests.transcript import until


@tool
async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return "never"


async def busy():
    """A run in which an agent's colleague is at work, folded."""
    journal = MemoryJournal()
    worker = Agent("worker", "You work.", tools=[hang], limits=Limits(calls=5))
    asker = Agent("asker", "You ask.", can_call=["worker"])
    model = Script(
        {
            "asker": [call("call_agent", agent_name="worker", message="go")],
            "worker": [[call("hang"), call("hang")]],
        }
    )
    async with open_run(
        [asker, worker],
        journal=journal,
        model=model,
        limits=Limits(calls=50),
        run_limits=RunLimits(calls=500),
    ) as run:
        await run.post("asker", "go")
        await until(run, "2/1.c2 tool hang started")
    return await latest_state(journal, run.run_id)


def test_what_was_one_thing_is_one_thing_again():
    state, cast, _ = asyncio.run(busy())
    assert [len(each.scopes) for each in state.activations.values()] == [0, 2, 3]
    found, index = snapshot.decode(snapshot.encode(state, cast))
    assert (found, index) == (state, cast)
    asker, worker = found.activations[1], found.activations[2]
    assert worker.scopes[1] is asker.scopes[0]
    assert worker.scopes[2] is asker.scopes[1] is found.totals.scopes[0]
    assert set(worker.open) == {"2/1.c1", "2/1.c2"}
    for activation in found.activations.values():
        assert all(found.open[key] is each for key, each in activation.open.items())
    # What is settled in one is settled in all.
    worker.scopes[2].calls += 1
    assert asker.scopes[1].calls == worker.scopes[2].calls


def test_work_lists_are_no_part_of_it():
    run = RunState()
    apply(run, RunStarted("r"))
    run.ready.append(run.activations[0])
    run.activations[0].queued = True
    run.freed["0/1.c1"] = None
    found, _ = snapshot.decode(snapshot.encode(run, ActivationIndex()))
    assert (len(found.ready), found.freed, found.activations[0].queued) == (0, {}, False)
    # The run itself goes on with what it has to do.
    assert run.activations[0].queued
    assert run.freed


@pytest.mark.parametrize("number", [2**70, -(2**70)])
def test_a_number_that_no_snapshot_holds_is_said(number):
    run = RunState(data=number)
    with pytest.raises(OverflowError):
        snapshot.encode(run, ActivationIndex())


def test_other_bytes_are_no_snapshot():
    data = snapshot.encode(RunState(), ActivationIndex())
    for cut in range(len(data)):
        with pytest.raises(msgspec.MsgspecError):
            snapshot.decode(data[:cut])
