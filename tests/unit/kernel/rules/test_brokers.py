"""Agents that call by a plan: deadlines, people who are asked under them, the thread of it all."""

import asyncio
from typing import Any

from antiphon import Agent, Hooks, LoopOptions, Record, Result, open_run, tool
from antiphon.kernel.facts.events import ApprovalEffect, EffectStarted
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.values.hooks import CallResult, PlannedCall, Return, TurnContext, TurnPlan
from antiphon.values.message import ToolCall
from tests.transcript import effects, recorded_run


@tool(effect="once", requires_approval=True)
def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


PAYER = Agent("payer", tools=[pay])


def broker(
    *calls: PlannedCall, **options: Any
) -> tuple[Agent, list[tuple[list[CallResult], list[CallResult]]]]:
    """An agent that makes these calls in its first turn, and what it was shown after each of its turns."""
    shown: list[tuple[list[CallResult], list[CallResult]]] = []

    def decide(context: TurnContext) -> Return:
        shown.append((list(context.results), list(context.background_results)))
        return Return(output="over")

    return Agent(
        "broker",
        hooks=Hooks(plan_turn=lambda context: TurnPlan(calls if context.turn == 1 else ()), end_turn=decide),
        **options,
    ), shown


async def answered(agents: list[Agent], model: Script, *answers: str) -> tuple[Result, list[Record]]:
    """A run of the first agent in which each approval is answered as it comes."""
    async with open_run(agents, model=model) as run:
        asked, left = await run.post(agents[0], "go"), list(answers)
        async for each in run.events(deltas=False):
            event = each.event if isinstance(each, Record) else None
            if isinstance(event, EffectStarted) and isinstance(event.detail, ApprovalEffect):
                await run.answer(event.id, left.pop(0))
            if not left:
                break
        return await run.result(asked), await run.records()


def test_a_plan_is_told_how_a_call_ended_that_asked_a_person() -> None:
    agent, shown = broker(PlannedCall("payer", "one", task_id="1"), PlannedCall("payer", "talk", task_id="2"))
    model = Script(_pay)
    result, _ = asyncio.run(answered([agent, PAYER], model, "yes"))
    assert result.output == "over"
    away, here = shown[0][0]
    assert (away.outcome, away.task_id, here.outcome, here.task_id) == ("skipped", "1", "completed", "2")
    assert [(ended, returned) for ended, returned in shown[1:]] == [
        ([], [CallResult("payer", "completed", "paid one", "", "1")])
    ]


def test_what_returns_in_the_middle_of_a_turn_is_shown_at_its_end() -> None:
    paid = asyncio.Event()

    def pays(request: Any) -> Any:
        if request.messages[-1].role == "tool":
            paid.set()
        return _pay(request)

    async def wait(ctx: Any) -> str:
        await paid.wait()
        return "late"

    agent, shown = broker(PlannedCall("payer", "one", task_id="1"), PlannedCall("slow", "x", task_id="2"))
    agents = [agent, PAYER, Agent("slow", hooks=Hooks(act=wait))]
    asyncio.run(answered(agents, Script(pays), "yes"))
    assert [(ended[1].content, [each.content for each in returned]) for ended, returned in shown] == [
        ("late", ["paid one"])
    ]


def test_a_callee_that_begins_anew_at_every_call_is_called_beside_one_that_waits() -> None:
    calls = [PlannedCall("payer", name, task_id=name) for name in ("one", "two", "three")]
    agent, shown = broker(*calls, loop=LoopOptions(max_parallel_calls=1))
    asyncio.run(answered([agent, PAYER], Script(_pay), "yes", "no", "yes"))
    told = {each.task_id: each.content for _, returned in shown for each in returned}
    assert (told["one"], told["three"]) == ("paid one", "paid three")
    assert "permission denied" in told["two"]


def _pay(request: Any) -> Any:
    last = request.messages[-1]
    if last.role == "tool":
        return last.content
    return "talked" if last.content == "talk" else call("pay", to=last.content)


def test_a_call_whose_deadline_has_passed_does_nothing() -> None:
    clock = VirtualClock(1_000.0)
    agent, shown = broker(
        PlannedCall("late", "x", deadline=999.0), PlannedCall("late", "y", deadline=1_001.0)
    )
    model = Script({"late": ["in time"]})
    _, records = asyncio.run(
        recorded_run(agent, "go", agents=[agent, Agent("late")], model=model, clock=clock)
    )
    assert [(each.outcome, each.content, each.reason) for each in shown[0][0]] == [
        ("limit", "", "the limit of 0 s is used up"),
        ("completed", "in time", ""),
    ]
    assert model.asked == 1
    assert "2/1.m1 model started" not in effects(records)


def test_the_thread_stays_the_same_from_call_to_call() -> None:
    model = Script({"a": [call("call_agent", agent_name="b", message="more"), "done"], "b": ["b is done"]})

    async def play() -> Result:
        async with open_run([Agent("a"), Agent("b")], model=model) as run:
            return await run.result(await run.post("a", "go", task_id="thread"))

    result = asyncio.run(play())
    assert [(each.type, each.sender, each.task_id) for each in result.messages] == [
        ("forward", "user", "thread"),
        ("forward", "a", "thread"),
        ("return", "b", "thread"),
        ("return", "a", "thread"),
    ]


def test_calls_that_came_with_a_message_are_no_reply_of_the_models() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = Script(["first", "second"], by="turn")

    async def play() -> str:
        async with open_run([Agent("a", tools=[look])], model=model) as run:
            asked = await run.post("a", "go", calls=[ToolCall("1", "look")])
            return (await run.result(asked)).output

    assert asyncio.run(play()) == "first"
    assert [each.role for each in model.requests[0].messages] == ["user", "assistant", "tool"]
