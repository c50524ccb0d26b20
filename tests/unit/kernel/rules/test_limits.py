"""Limits: what is refused, how it ends, and that what was held never exceeds what is allowed."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Limits, ModelOptions, RunFailed, ToolCall, Usage, run_sync, tool
from antiphon.errors import ModelError
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, ModelEffect
from antiphon.models.script import Script, call, finish
from antiphon.testing.clock import VirtualClock
from antiphon.values.model import Reply
from tests.transcript import effects, recorded, results_shown, sent


def ask(name: str, message: str = "m") -> ToolCall:
    return call("call_agent", agent_name=name, message=message)


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


A, B = Agent("a", tools=[look]), Agent("b")
LOOK = Reply("looking", (call("look"),), "calls")


def test_turns() -> None:
    result, _ = recorded(A, "go", model=Script([LOOK] * 9), limits=Limits(turns=3))
    assert (result.outcome, result.output) == ("limit", "looking")
    assert result.reason == "the limit of 3 turns of one activation is used up"


def test_calls() -> None:
    result, _ = recorded(A, "go", model=Script([LOOK] * 9), limits=Limits(calls=2))
    assert (result.outcome, result.output) == ("limit", "looking")
    assert result.reason == "the limit of 2 calls is used up"


def test_a_result_is_handed_back_when_the_calls_are_used_up() -> None:
    """`finish` is no call on anything: it must not fail for want of one."""
    result, _ = recorded(A, "go", model=Script([LOOK, LOOK, finish("done")]), limits=Limits(calls=2))
    assert (result.outcome, result.output) == ("completed", "done")


def test_calls_are_counted_over_the_whole_tree() -> None:
    model = Script({"a": [ask("b"), ask("b"), "end"], "b": ["1", "2"]})
    result, _ = recorded(A, "go", agents=[A, B], model=model, limits=Limits(calls=1))
    assert result.reason == "the limit of 1 calls is used up"


def test_limits_of_one_agent_are_its_own() -> None:
    """What a callee ran into is an error result for its caller, with the best partial output."""
    b = Agent("b", tools=[look], limits=Limits(turns=1))
    model = Script({"a": [ask("b"), "went on"], "b": [LOOK] * 9})
    result, _ = recorded(A, "go", agents=[A, b], model=model)
    assert result.output == "went on"
    assert results_shown(model.requests[-1]) == [
        "Error: the limit of 1 turns of one activation is used up\nPartial output: looking"
    ]


def test_depth() -> None:
    model = Script([ask("a", "1"), ask("a", "2"), "deepest", "middle", "top"])
    result, _ = recorded(A, "go", model=model, limits=Limits(depth=1))
    assert result.output == "middle"
    assert results_shown(model.requests[2]) == [
        "Error: the depth limit of 1 nested calls is reached; do the work yourself"
    ]


def test_activations() -> None:
    model = Script({"a": [[ask("b"), ask("b")], "end"], "b": ["r"]})
    recorded(A, "go", agents=[A, B], model=model, limits=Limits(activations=2))
    assert results_shown(model.requests[-1]) == [
        "r",
        "Error: the limit of 2 agent calls is reached; do the work yourself",
    ]


def test_a_budget_that_can_never_be_kept() -> None:
    model = Script(["never asked"])
    result, _ = recorded(A, "go", model=model, limits=Limits(tokens=1_000))
    assert (result.outcome, model.asked) == ("budget", 0)
    assert result.output == f"There is no answer yet: {result.reason}."
    assert result.reason.startswith("the budget is used up: 0 of 1,000 tokens are spent, up to ")


def test_a_budget_that_is_used_up() -> None:
    model = Script([Reply("looking", (call("look"),), "calls", Usage(1_000, 500))] * 9)
    result, _ = recorded(
        Agent("a", tools=[look], asking=ModelOptions(max_output_tokens=1_000)),
        "go",
        model=model,
        limits=Limits(tokens=6_000),
    )
    assert (result.outcome, result.output) == ("budget", "looking")
    assert result.usage.total <= 6_000


def test_a_hold_that_fits_only_later_waits_for_its_turn() -> None:
    """Three at once, with room for one: they go one after the other, and nothing is exceeded."""
    running: list[str] = []
    most: list[int] = []

    async def answer(request: Any) -> ToolCall:
        running.append(request.effect_id)
        most.append(len(running))
        await asyncio.sleep(0)
        running.remove(request.effect_id)
        return finish("r")

    team = [A, *(Agent(name, asking=ModelOptions(max_output_tokens=3_500)) for name in "bcd")]
    script: dict[str, Any] = {"a": [[ask(name) for name in "bcd"], "end"]}
    model = Script(script | {name: [answer] for name in "bcd"}, usage=Usage(10, 10))
    limit = 7_000
    result, records = recorded(A, "go", agents=team, model=model, limits=Limits(tokens=limit))
    assert (result.output, max(most)) == ("end", 1)
    spent = held = 0
    holds: dict[str, int] = {}
    for record in records:
        event = record.event
        if isinstance(event, EffectStarted) and isinstance(event.detail, ModelEffect):
            holds[event.id] = event.detail.held_tokens
            held += event.detail.held_tokens
        elif isinstance(event, EffectFinished) and event.id in holds:
            held -= holds[event.id]
            spent += event.reply.usage.total if event.reply is not None else 0
        assert spent + held <= limit
    assert result.usage.total == spent == 100


def test_with_room_for_all_they_run_at_once() -> None:
    team = [A, B]
    model = Script({"a": [[ask("b"), ask("b")], "end"], "b": [finish("1"), finish("2")]})
    _, records = recorded(A, "go", agents=team, model=model, limits=Limits(tokens=100_000))
    found = effects(records, "m")
    assert found.index("3/1.m1 model started") < found.index("2/1.m1 completed: [finish]")


def test_one_request_is_not_on_the_books_of_another() -> None:
    a = Agent("a", asking=ModelOptions(max_output_tokens=1_000))
    model = Script(["1", "2"], usage=Usage(100, 900))
    result = run_sync(
        [a, Agent("b", asking=ModelOptions(max_output_tokens=1_000))],
        "go",
        model=model,
        limits=Limits(tokens=4_000),
    )
    assert result.outcome == "completed"


def test_a_passing_failure_is_tried_again() -> None:
    clock = VirtualClock()
    model = Script(
        [ModelError("rate_limit", "slow down", retry_after=7.0), ModelError("network", "gone"), "hi"]
    )
    result, records = recorded(A, "go", model=model, clock=clock)
    assert result.output == "hi"
    assert effects(records)[1:-1] == [
        "1/1.m1 model started",
        "1/1.m1 failed: rate_limit: slow down",
        "1/1.w1 wait retry started",
        "1/1.w1 completed",
        "1/1.m2 model started",
        "1/1.m2 failed: network: gone",
        "1/1.w2 wait retry started",
        "1/1.w2 completed",
        "1/1.m3 model started",
        "1/1.m3 completed: hi",
    ]
    assert clock.jumps[0] == pytest.approx(1_700_000_007.0)


def test_a_lasting_failure_is_not() -> None:
    model = Script([ModelError("quota", "no money"), "never asked"])
    with pytest.raises(RunFailed, match="quota: no money") as failed:
        run_sync(A, "go", model=model)
    assert model.asked == 1
    assert sent(failed.value.result)[-1] == "return a>user: Error: quota: no money"


@pytest.mark.parametrize(("stop", "why"), [("length", "max_output"), ("refusal", "refused"), ("stop", "")])
def test_a_text_that_was_cut_or_refused_says_so(stop, why):
    result = run_sync(Agent("a"), "go", model=Script([Reply("half of", stop=stop)]))
    assert (result.output, result.outcome) == ("half of", "completed")
    assert why in result.reason
    assert bool(why) == bool(result.reason)
