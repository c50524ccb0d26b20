"""A tree of calls may be 2,000 deep: what ends it ends all of it, innermost first, and every effect once."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from antiphon import Agent, Hooks, Limits, Message, RunFailed, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.activation import Activation, Mailbox, OpenEffect
from antiphon.kernel.facts.events import (
    ActionEffect,
    CallEffect,
    EffectFinished,
    EffectStarted,
    StepEffect,
    ToolEffect,
)
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.cancelling import close
from antiphon.kernel.run.open import cancel_run
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.values.hooks import PlannedCall, Return, TurnPlan
from tests.unit.kernel.teams import never

pytestmark = pytest.mark.slow

DEPTH = 2_000
UNDER = ("cancelled", "the caller ended")
"""How everything ends that is under what was ended."""

Bottom = Callable[[], Awaitable[str]]
"""What the innermost agent does."""


class Tree(NamedTuple):
    """A team whose agent `down` calls the next level until its message is 0, in one of three ways."""

    agents: list[Agent]
    model: Script
    limits: Limits


def planned(bottom: Bottom) -> Tree:
    """By plans, which add no depth; the model of the agent `bottom` is the innermost."""

    def plan(context):
        left = int(context.new_messages[0].content)
        return TurnPlan([PlannedCall("down" if left else "bottom", str(left - 1))])

    def decide(context):
        (inner,) = context.results
        return Return(inner.outcome, inner.content, inner.reason)

    agents = [Agent("down", hooks=Hooks(plan_turn=plan, end_turn=decide)), Agent("bottom")]
    return Tree(agents, Script(lambda request: bottom()), Limits(activations=None, timeout_seconds=10))


def asked(bottom: Bottom) -> Tree:
    """By what models answer."""

    def reply(request):
        last = request.messages[-1]
        if last.role == "tool":
            return last.content
        left = int(last.content)
        return call("call_agent", agent_name="down", message=str(left - 1)) if left else bottom()

    limits = Limits(depth=None, activations=None, tokens=None, timeout_seconds=10)
    return Tree([Agent("down", can_call=["down"])], Script(reply), limits)


def acted(bottom: Bottom) -> Tree:
    """By actions."""

    async def act(ctx):
        left = int(ctx.new_messages[0].content)
        return await (ctx.call("down", str(left - 1)) if left else bottom())

    limits = Limits(depth=None, activations=None, timeout_seconds=10)
    return Tree([Agent("down", hooks=Hooks(act=act), can_call=["down"])], Script([]), limits)


def ways(*found):
    """The first way in every check, others in the deep one."""
    first, *others = found
    return pytest.mark.parametrize(
        "way", [first, *(pytest.param(each, marks=pytest.mark.deep) for each in others)]
    )


class Deep:
    """A tree whose clock stands still and whose innermost agent says `reached` when it begins."""

    def __init__(self, way: Callable[[Bottom], Tree], last: Bottom = never) -> None:
        async def bottom() -> str:
            self.reached.set()
            return await last()

        self.tree, self.reached = way(bottom), asyncio.Event()
        self.clock, self.journal, self.run_id = VirtualClock(autojump=False), MemoryJournal(), ""

    @asynccontextmanager
    async def opened(self, *more: Agent):
        """The run: a new one, later the same again by another owner."""
        agents, model, limits = self.tree
        async with open_run(
            [*agents, *more],
            model=model,
            limits=limits,
            journal=self.journal,
            clock=self.clock,
            run_id=self.run_id or None,
        ) as live:
            self.run_id = live.run_id
            yield live

    @asynccontextmanager
    async def grown(self, *more: Agent, entry: str = "down"):
        """The run and its request, once the innermost agent is at work."""
        async with self.opened(*more) as live:
            request = await live.post(entry, str(DEPTH))
            await self.reached.wait()
            yield live, request

    async def ended(self) -> list[EffectFinished]:
        """The ends of all calls. Every effect has ended, once, and calls have from the innermost out."""
        events = [record.event for record in await read(self.journal, self.run_id)]
        started = [each for each in events if isinstance(each, EffectStarted)]
        ends = {each.id: each for each in events if isinstance(each, EffectFinished)}
        assert sorted(ends) == sorted(each.id for each in events if isinstance(each, EffectFinished))
        assert set(ends) == {each.id for each in started}
        calls = [each.id for each in started if type(each.detail) is CallEffect]
        found = [each for each in ends.values() if each.id in set(calls)]
        assert len(found) > DEPTH
        assert [each.id for each in found] == calls[::-1]
        return found


def outcomes(ends: list[EffectFinished]) -> set[tuple[str, str]]:
    return {(each.outcome, each.reason) for each in ends}


@ways(planned, asked, acted)
def test_it_is_cancelled(way):
    async def playing():
        deep = Deep(way)
        async with deep.grown() as (live, request):
            await live.cancel(reason="enough")
            result = await live.result(request)
        assert (result.outcome, result.reason) == ("cancelled", "enough")
        *inner, _ = await deep.ended()
        assert outcomes(inner) == {UNDER}

    asyncio.run(playing())


@ways(planned, asked)
def test_it_ends_when_its_time_is_over(way):
    async def playing():
        deep = Deep(way)
        async with deep.grown() as (live, request):
            deep.clock.advance(10)
            result = await live.result(request)
        assert (result.outcome, result.reason) == ("limit", "the limit of 10 s is used up")
        *inner, _ = await deep.ended()
        assert outcomes(inner) == {UNDER}

    asyncio.run(playing())


@ways(planned, asked, acted)
def test_a_failure_at_the_bottom_is_handed_up_through_every_level(way):
    async def fails():
        raise ValueError("no more")

    async def playing():
        deep = Deep(way, fails)
        async with deep.grown() as (live, request):
            try:
                result = await live.result(request)
            except RunFailed as failed:
                result = failed.result
        innermost, *_, outermost = await deep.ended()
        assert (innermost.outcome, outermost.outcome) == ("failed", result.outcome)
        # A model is told of it and goes on; plans and actions here fail with it.
        assert result.outcome == ("completed" if way is asked else "failed")
        assert "ValueError: no more" in (result.output if way is asked else result.reason)

    asyncio.run(playing())


@ways(planned, asked)
def test_an_action_that_leaves_it_at_work_ends_it(way):
    async def playing():
        deep = Deep(way)

        async def leave(ctx):
            waits = asyncio.create_task(ctx.call("down", ctx.new_messages[0].content))
            await deep.reached.wait()
            waits.cancel()
            return "left"

        top = Agent("top", hooks=Hooks(act=leave), can_call=["down"])
        async with deep.grown(top, entry="top") as (live, request):
            result = await live.result(request)
        assert (result.outcome, result.output) == ("completed", "left")
        *inner, first, _ = await deep.ended()
        assert outcomes(inner) == {UNDER}
        assert (first.outcome, first.reason) == ("cancelled", "the action ended without it")

    asyncio.run(playing())


def test_it_ends_when_the_agent_at_its_top_is_gone():
    async def playing():
        deep = Deep(planned)
        top = Agent(
            "top",
            hooks=Hooks(
                plan_turn=lambda context: TurnPlan([PlannedCall("down", context.new_messages[0].content)])
            ),
        )
        async with deep.grown(top, entry="top") as (_, request):
            pass
        async with deep.opened() as live:
            with pytest.raises(RunFailed, match="no agent top any more"):
                await live.result(request)
        *inner, _ = await deep.ended()
        assert outcomes(inner) == {UNDER}

    asyncio.run(playing())


@pytest.mark.parametrize("way", [planned, asked])
def test_another_owner_goes_on_with_it_and_cancels_it(way):
    async def playing():
        deep = Deep(way)
        async with deep.grown() as (_, request):
            deep.reached.clear()
        async with deep.opened() as live:
            await deep.reached.wait()
            await live.cancel(request, "enough")
            result = await live.result(request)
        assert (result.outcome, result.reason) == ("cancelled", "enough")
        *inner, _ = await deep.ended()
        assert outcomes(inner) == {UNDER}

    asyncio.run(playing())


@ways(planned, asked)
def test_it_is_cancelled_where_nobody_drives_it(way):
    async def playing():
        deep = Deep(way)
        async with deep.grown():
            pass
        await cancel_run(deep.journal, deep.run_id, "enough")
        *inner, outermost = await deep.ended()
        assert outcomes(inner) == {UNDER}
        assert (outermost.outcome, outermost.reason) == ("cancelled", "enough")

    asyncio.run(playing())


def test_unread_mail_is_dead_when_all_under_its_reader_has_ended_and_before_the_reader_does():
    run = RunState()

    def activation(number, call="", phase="calling"):
        said = Message("forward", "user", f"a{number}", "hurry", id=f"mail {number}")
        run.activations[number] = Activation(
            number, f"a{number}", call, phase=phase, mailbox=Mailbox(inbox=[said])
        )
        return run.activations[number]

    def begin(caller, place, detail, child=0):
        opened = OpenEffect(f"{caller.id}/1.{place}", detail, caller.id, 1, -1, child=child)
        run.open[opened.id] = caller.open[opened.id] = opened
        return opened.id

    top = activation(1)
    acting = activation(2, begin(top, "c1", CallEffect("a2", ""), 2), "acting")
    begin(top, "c2", ToolEffect("look", ""))
    begin(acting, "x", ActionEffect("a2"))
    inner = activation(3, begin(acting, "x:1", CallEffect("a3", ""), 3))
    begin(acting, "x:2", StepEffect("look"))
    begin(inner, "c1", ToolEffect("look", ""))
    found = []
    close(found.append, run, top)
    assert [each.id if isinstance(each, EffectFinished) else each.message.id for each in found] == [
        "2/1.x:2",
        "3/1.c1",
        "mail 3",
        "2/1.x:1",
        "2/1.x",
        "mail 2",
        "1/1.c1",
        "1/1.c2",
        "mail 1",
    ]
