"""How an action ends, whoever ends it, and how it goes on in the next process."""

import asyncio

import pytest

from antiphon import Agent, Limits, open_journal, open_run
from antiphon.errors import EffectFailed, RunSuspended
from antiphon.kernel.facts.events import (
    ActionEffect,
    EffectFinished,
    EffectStarted,
    QuestionEffect,
    StateChanged,
    StepEffect,
)
from antiphon.kernel.run import actions
from antiphon.kernel.run.runtime import Runtime
from antiphon.models.script import Script
from antiphon.testing.clock import VirtualClock
from tests.transcript import effects
from tests.unit.kernel.teams import B, acted, actor, inside, never, opened


def test_an_action_that_raises_fails_its_call_and_nothing_is_published():
    async def act(ctx):
        ctx.set("seen", True)
        raise LookupError("gone")

    result, records = acted(act)
    assert (result.outcome, result.reason) == ("failed", "LookupError: gone")
    changed = [each.event.set for each in records if type(each.event) is StateChanged]
    assert changed == [{"seen": True}]


def test_what_an_action_was_for_is_unread_again_when_it_fails():
    taken = []

    async def act(ctx):
        taken.append([each.content for each in ctx.new_messages])
        if len(taken) == 1:
            raise LookupError("not yet")

    async def main():
        async with open_run([actor(act, context="continue")], model=Script([])) as run:
            with pytest.raises(Exception, match="not yet"):
                await run.result(await run.post("a", "one"))
            await run.result(await run.post("a", "two"))

    asyncio.run(main())
    assert taken == [["one"], ["one", "two"]]


def test_an_action_with_a_deadline_is_cancelled_before_its_timer():
    async def main():
        clock = VirtualClock(autojump=False)
        async with open_run([actor(never)], limits=Limits(timeout_seconds=10), clock=clock) as run:
            request = await run.post("a", "go")
            await opened(run, ActionEffect)
            await run.cancel(request)
            assert (await run.result(request)).outcome == "cancelled"
            return await run.records()

    assert effects(asyncio.run(main()), "x", "d")[-2:] == [
        "1/1.x cancelled: the caller ended",
        "1/1.d1 cancelled: the caller ended",
    ]


def test_a_result_that_json_cannot_hold_fails_it():
    async def act(ctx):
        return object()

    result, _ = acted(act)
    assert result.outcome == "failed"
    assert result.reason.startswith("TypeError: ")


def test_halves_of_signs_are_mended():
    async def act(ctx):
        return (await ctx.ask_model("x\ud83d")) + "\ud83d"

    result, _ = acted(act, ["said"])
    assert result.output == "said\ufffd"


@pytest.mark.parametrize(
    ("method", "place"), [("call", "call"), ("ask_model", "ask"), ("ask_user", "question")]
)
def test_what_it_left_running_is_cancelled_before_its_end(method, place):
    left = []

    async def act(ctx):
        text = ("b", "Write.") if method == "call" else ("Well?",)
        left.append(asyncio.ensure_future(getattr(ctx, method)(*text)))
        await asyncio.sleep(0)
        return "that was all"

    async def main():
        lines = {"*": [never]}
        async with open_run([actor(act), B], model=Script(lines)) as run:
            result = await run.result(await run.post("a", "go"))
            assert result.output == "that was all"
            with pytest.raises(EffectFailed, match="the action ended without it"):
                await left[0]
            assert inside(await run.records())[-2:] == [
                f"1/1.x:{place} cancelled: the action ended without it",
                "1/1.x completed: that was all",
            ]

    asyncio.run(main())


def test_a_step_that_ends_after_its_action_comes_too_late():
    """Its result is dropped, and what it was part of can begin nothing more."""

    async def main():
        left, let_go = [], asyncio.Event()

        async def slow(ctx):
            try:
                await ctx.step("slow", let_go.wait)
            except EffectFailed as error:
                left.append(error.outcome)
            await ctx.step("more", let_go.wait)

        async def act(ctx):
            left.append(asyncio.ensure_future(slow(ctx)))
            await asyncio.sleep(0)
            return "that was all"

        async with open_run([actor(act), B], model=Script([])) as run:
            result = await run.result(await run.post("a", "go"))
            assert result.output == "that was all"
            before = run.seq
            let_go.set()
            with pytest.raises(EffectFailed, match=r"the action 1/1\.x has ended"):
                await left[0]
            assert left[1] == "cancelled"
            assert run.seq == before

    asyncio.run(main())


def test_a_step_that_was_cancelled_alone_has_one_end_and_the_action_goes_on():
    async def main():
        let_go = asyncio.Event()

        async def act(ctx):
            try:
                await ctx.step("slow", let_go.wait)
            except EffectFailed as error:
                return f"{error.outcome}: {error}"

        async with open_run([actor(act)], model=Script([])) as run:
            request = await run.post("a", "go")
            await run.cancel((await opened(run, StepEffect)).id, "not needed")
            let_go.set()
            assert (await run.result(request)).output == "cancelled: not needed"

    asyncio.run(main())


def test_a_step_that_was_cancelled_before_its_start_was_safe_never_runs(monkeypatch):
    async def main():
        safe, ran = asyncio.Event(), []

        async def act(ctx):
            try:
                await ctx.step("note", ran.append, 1)
            except EffectFailed as error:
                return f"{error.outcome}: {error}"

        monkeypatch.setattr(Runtime, "until_may_act", lambda self: safe.wait())
        async with open_run([actor(act)], model=Script([])) as run:
            request = await run.post("a", "go")
            await run.cancel((await opened(run, StepEffect)).id, "not needed")
            safe.set()
            assert (await run.result(request)).output == "cancelled: not needed"
        assert ran == []

    asyncio.run(main())


@pytest.mark.unwatched  # the fault is in what the witness watches with
def test_a_fault_of_the_kernels_own_parks_the_run_and_is_not_the_actions(monkeypatch):
    async def act(ctx):
        return await ctx.ask_user("Which?")

    async def main():

        def fault(emit, *arguments):
            emit(EffectFinished("9/1.c1"))

        monkeypatch.setattr(actions, "begin", fault)
        async with open_run([actor(act)], model=Script([])) as run:
            with pytest.raises(RunSuspended):
                await run.result(await run.post("a", "go"))

    asyncio.run(main())


def test_a_step_that_cancels_itself_fails_the_action_alone():
    async def cut():
        raise asyncio.CancelledError

    async def act(ctx):
        await ctx.step("cut", cut)

    result, records = acted(act)
    assert (result.outcome, result.reason) == ("failed", "it cancelled itself")
    assert inside(records)[-2:] == [
        "1/1.x:cut cancelled: the action ended without it",
        "1/1.x failed: it cancelled itself",
    ]


OPERATIONS = {
    "step": lambda ctx: ctx.step("hang", never),
    "ask": lambda ctx: ctx.ask_model("Well?"),
    "call": lambda ctx: ctx.call("b", "Write."),
    "question": lambda ctx: ctx.ask_user("Which?"),
    "nothing": lambda ctx: never(),
    "several": lambda ctx: asyncio.gather(
        ctx.step("hang", never), ctx.ask_model("Well?"), ctx.call("b", "x")
    ),
}


# People take their time: waiting for them counts for no limit.
ENDINGS = [
    *((operation, "cancel") for operation in OPERATIONS),
    *((operation, "time") for operation in OPERATIONS if operation != "question"),
]


@pytest.mark.parametrize(("operation", "by"), ENDINGS)
def test_ended_from_outside_it_leaves_nothing_open(operation, by):
    ended = []

    async def act(ctx):
        try:
            await OPERATIONS[operation](ctx)
        finally:
            ended.append("cleaned up")

    async def main():
        lines, clock = {"*": [never] * 2}, VirtualClock(autojump=False)
        limits = Limits(timeout_seconds=5 if by == "time" else None)
        async with open_run([actor(act), B], model=Script(lines), clock=clock, limits=limits) as run:
            request = await run.post("a", "go")
            await opened(run, ActionEffect)
            for _ in range(10):
                await asyncio.sleep(0)
            if by == "cancel":
                await run.cancel(request, "enough")
            else:
                clock.advance(6)
            result = await run.result(request)
            for _ in range(10):
                await asyncio.sleep(0)
            expected = {"cancel": ("cancelled", "enough"), "time": ("limit", "the limit of 5 s is used up")}
            assert (result.outcome, result.reason) == expected[by]
            records = await run.records()
        starts = [each.event.id for each in records if type(each.event) is EffectStarted]
        ends = [each.event.id for each in records if type(each.event) is EffectFinished]
        assert sorted(starts) == sorted(ends)
        assert ended == ["cleaned up"]

    asyncio.run(main())


# -- in the next process ------------------------------------------------------------------------


def test_left_in_the_middle_it_goes_on_with_what_it_has(tmp_path):
    """The step that ended does not run again; the question is still open; nothing is recorded twice."""
    ran = []

    async def act(ctx):
        first = await ctx.step("first", ran.append, "first")
        ctx.set("attempt", ctx.attempt)
        ctx.append("log", [ctx.attempt])
        said = await ctx.ask_user("Which?")
        await ctx.step("last", ran.append, "last")
        return f"{first}, {said}, attempt {ctx.attempt}"

    async def main():
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        async with open_run([actor(act)], journal=journal, model=Script([])) as run:
            request = await run.post("a", "go")
            asked = await opened(run, QuestionEffect)
        run_id = run.run_id
        async with open_run([actor(act)], journal=journal, run_id=run_id, model=Script([])) as run:
            await run.answer(asked.id, "left")
            assert (await run.result(request)).output == "None, left, attempt 2"
            changed = [each.event for each in await run.records() if type(each.event) is StateChanged]
        assert [(each.set, each.append) for each in changed] == [({"attempt": 2}, {"log": [2]})]
        assert ran == ["first", "last"]
        await journal.close()

    asyncio.run(main())


def test_code_may_change_between_two_processes(tmp_path):
    """What the new code no longer asks for is cancelled; an agent without an action says so."""

    async def act(ctx):
        await ctx.ask_user("Which?")

    async def changed(ctx):
        return "nothing to ask"

    async def main(team, outcome, said):
        journal = open_journal(f"sqlite:///{tmp_path}/{outcome}.db")
        async with open_run([actor(act)], journal=journal, model=Script([])) as run:
            request = await run.post("a", "go")
            await opened(run, QuestionEffect)
        async with open_run(team, journal=journal, run_id=run.run_id, model=Script([])) as run:
            runtime_result = run.result(request)
            if outcome == "completed":
                assert (await runtime_result).output == said
            else:
                with pytest.raises(Exception, match=said):
                    await runtime_result
        await journal.close()

    asyncio.run(main([actor(changed)], "completed", "nothing to ask"))
    asyncio.run(main([Agent("a")], "failed", "a has no action any more"))


def test_an_agent_that_no_longer_acts_asks_its_model(tmp_path):
    async def act(ctx):
        return "acted"

    async def main():
        journal, run_id, said = open_journal(f"sqlite:///{tmp_path}/runs.db"), None, []
        for agent in (actor(act, context="continue"), Agent("a", context="continue")):
            async with open_run(
                [agent], journal=journal, run_id=run_id, model=Script(["from the model"])
            ) as run:
                run_id = run.run_id
                said.append((await run.result(await run.post("a", "go"))).output)
        assert said == ["acted", "from the model"]
        await journal.close()

    asyncio.run(main())
