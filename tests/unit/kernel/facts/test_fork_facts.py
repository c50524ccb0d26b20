"""What the fold makes of a fork's first record: a run of its own, in which nothing was lost."""

import asyncio

from antiphon import Agent, Limits, ModelError, open_run, tool
from antiphon.kernel.facts.events import Fork, RunResumed, TimerEffect
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.state import RunState
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from tests.transcript import until

DAY = 86_400.0
FORK = Fork("origin", 9, "00", shift=DAY)


@tool
async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return "never"


def folded(model: Script, said: str, **options: object) -> tuple[RunState, RunState]:
    """The same run twice, folded up to the row that says something."""

    async def main() -> tuple[RunState, RunState]:
        clock = VirtualClock()
        agent = Agent("a", tools=[hang], limits=Limits(timeout_seconds=60))
        async with open_run(
            [agent], model=model, clock=clock, run_id="origin", create=True, **options
        ) as run:
            await run.post("a", "go")
            await until(run, said)
            records = await run.records()
        states = RunState(), RunState()
        for state in states:
            for record in records:
                state.at = record.at
                apply(state, record.event)
        return states

    return asyncio.run(main())


def test_a_fork_has_an_id_and_commands_of_its_own_and_lost_nothing() -> None:
    origin, fork = folded(Script([call("hang")]), "1/1.c1 tool hang started")
    origin.command = fork.command = 3
    apply(origin, RunResumed(True))
    apply(fork, RunResumed(True, run_id="fork", fork=FORK))
    assert (origin.run_id, origin.command) == ("origin", 3)
    assert (fork.run_id, fork.command) == ("fork", 0)
    assert origin.open["1/1.c1"].crashes == 1
    assert fork.open["1/1.c1"].crashes == 0
    # What began before the cut keeps the origin's key: whoever did it already will not do it twice.
    assert fork.open["1/1.c1"].run_id == "origin"


def test_instants_of_the_origin_are_moved_by_the_time_between() -> None:
    origin, fork = folded(Script([ModelError("rate_limit", "slow down")]), "1/1.w1 wait retry started")
    apply(fork, RunResumed(True, run_id="fork", fork=FORK))
    for effect_id, opened in origin.open.items():
        moved = fork.open[effect_id]
        assert moved.since == opened.since + DAY
        if isinstance(opened.detail, TimerEffect):
            assert moved.detail.due_at == opened.detail.due_at + DAY
    assert {type(each.detail) for each in fork.open.values()} >= {TimerEffect}
    (model,) = origin.models.failures
    assert fork.models.failures[model] == (1, origin.models.failures[model][1] + DAY)


def test_a_question_stays_open_for_the_same_time() -> None:
    origin, fork = folded(
        Script([call("call_agent", agent_name="user", message="?")]), "1/1.c1 wait question user started"
    )
    apply(fork, RunResumed(True, run_id="fork", fork=FORK))
    (before, *_), (after, *_) = origin.activations[1].scopes, fork.activations[1].scopes
    assert after.asked_at == before.asked_at + DAY


def test_the_time_to_answer_is_moved_too() -> None:
    asks = call("call_agent", agent_name="user", message="Which?", timeout_seconds=30)
    _, fork = folded(Script([asks]), "1/1.c1 wait question user started")
    before = fork.open["1/1.c1"].detail.deadline
    apply(fork, RunResumed(True, run_id="fork", fork=FORK))
    assert fork.open["1/1.c1"].detail.deadline == before + DAY
