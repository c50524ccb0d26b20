"""When a model cannot answer: the next one, the circuit, and what the outcome says of it."""

import asyncio
from typing import Any

import pytest

from antiphon import (
    Agent,
    ModelError,
    ModelOptions,
    RetryPolicy,
    RunFailed,
    UserError,
    open_run,
    run_sync,
    tool,
)
from antiphon.errors import ModelErrorKind
from antiphon.kernel.facts.events import EffectStarted, ModelEffect
from antiphon.kernel.rules.models import CIRCUIT_FAILURES, COOL_DOWN
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from tests.transcript import recorded

BUSY = ModelError("overloaded", "busy")
ONCE = RetryPolicy(max_attempts=1)


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def test_the_next_model_is_asked_once_the_first_has_used_up_its_attempts() -> None:
    clock, first, second = VirtualClock(), Script([BUSY] * 3, name="first"), Script(["done"], name="second")
    result, records = recorded(
        Agent("a", asking=ModelOptions(fallback_models=[second])), "go", model=first, clock=clock
    )
    assert (result.output, first.asked, second.asked) == ("done", 3, 1)
    names = [
        (each.event.detail.model, each.event.detail.fallback)
        for each in records
        if isinstance(each.event, EffectStarted) and isinstance(each.event.detail, ModelEffect)
    ]
    assert names == [("first", 0)] * 3 + [("second", 1)]


def test_the_next_turn_begins_with_the_first_again() -> None:
    first = Script([BUSY, "done"], name="first")
    second = Script([call("look")], name="second")
    result = run_sync(
        Agent("a", tools=[look], asking=ModelOptions(fallback_models=[second], retry=ONCE)), "go", model=first
    )
    assert (result.output, first.asked, second.asked) == ("done", 2, 1)


def test_each_model_has_its_own_attempts() -> None:
    first, second = Script([BUSY] * 2, name="first"), Script([BUSY, "done"], name="second")
    agent = Agent("a", asking=ModelOptions(fallback_models=[second], retry=RetryPolicy(max_attempts=2)))
    assert run_sync(agent, "go", model=first, clock=VirtualClock()).output == "done"


@pytest.mark.parametrize("kind", ["auth", "quota", "context_length", "provider"])
def test_what_only_this_model_cannot_do_another_may(kind: Any) -> None:
    first, second = Script([ModelError(kind, "no")], name="first"), Script(["done"], name="second")
    assert (
        run_sync(Agent("a", asking=ModelOptions(fallback_models=[second])), "go", model=first).output
        == "done"
    )


@pytest.mark.parametrize("kind", ["validation", "refusal"])
def test_what_no_model_would_take_is_not_asked_again(kind: Any) -> None:
    first, second = Script([ModelError(kind, "no")], name="first"), Script(["never"], name="second")
    with pytest.raises(RunFailed, match=kind):
        run_sync(Agent("a", asking=ModelOptions(fallback_models=[second])), "go", model=first)
    assert second.asked == 0


def test_the_last_failure_is_the_outcomes_reason() -> None:
    first, second = Script([BUSY], name="first"), Script([ModelError("auth", "who?")], name="second")
    with pytest.raises(RunFailed, match="auth: who"):
        run_sync(Agent("a", asking=ModelOptions(fallback_models=[second], retry=ONCE)), "go", model=first)


def requests(model: Script, count: int, *, pause: float = 0.0, spare: Script | None = None) -> list[str]:
    """Several requests of one run, one after the other: the output or why there is none."""

    async def asking() -> list[str]:
        clock = VirtualClock()
        found = []
        agent = Agent("a", asking=ModelOptions(retry=ONCE, fallback_models=(spare,) if spare else ()))
        async with open_run([agent], model=model, clock=clock) as run:
            for _ in range(count):
                try:
                    found.append(str(await run.result(await run.post("a", "go"))))
                except RunFailed as failed:
                    found.append(str(failed))
                clock.advance(pause)
        return found

    return asyncio.run(asking())


def test_a_model_that_keeps_failing_is_left_alone_for_a_while() -> None:
    model = Script([*[BUSY] * CIRCUIT_FAILURES, "well again"])
    found = requests(model, CIRCUIT_FAILURES + 2)
    assert model.asked == CIRCUIT_FAILURES
    assert found[-1] == f"overloaded: script failed {CIRCUIT_FAILURES} times in a row; not asked now"


@pytest.mark.parametrize("kind", ["validation", "context_length", "refusal"])
def test_requests_that_were_wrong_do_not_count_against_the_model(kind: ModelErrorKind) -> None:
    model = Script([*[ModelError(kind, "no such field")] * (CIRCUIT_FAILURES + 2), "fine"])
    assert requests(model, CIRCUIT_FAILURES + 3)[-1] == "fine"


def test_after_a_while_it_is_tried_again() -> None:
    model = Script([*[BUSY] * CIRCUIT_FAILURES, "well again"])
    found = requests(model, CIRCUIT_FAILURES + 1, pause=COOL_DOWN)
    assert found[-1] == "well again"


def test_while_the_circuit_is_open_the_next_model_answers_at_once() -> None:
    first = Script([BUSY] * CIRCUIT_FAILURES, name="first")
    second = Script([str(n) for n in range(CIRCUIT_FAILURES + 2)], name="second")
    found = requests(first, CIRCUIT_FAILURES + 2, spare=second)
    assert found == [str(n) for n in range(CIRCUIT_FAILURES + 2)]
    assert first.asked == CIRCUIT_FAILURES


def test_one_success_closes_the_books_on_failures() -> None:
    model = Script([*[BUSY] * (CIRCUIT_FAILURES - 1), "fine", *[BUSY] * (CIRCUIT_FAILURES - 1), "fine"])
    assert requests(model, 2 * CIRCUIT_FAILURES).count("fine") == 2


def test_a_rules_error_is_told_at_once() -> None:
    with pytest.raises(UserError):
        run_sync(Agent("a", output_type=open), "go", model=Script(["x"]))
