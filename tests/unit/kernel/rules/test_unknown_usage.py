"""What a provider does not say of its bill is not nothing: the call is charged what was held for it."""

from typing import Any

import pytest

from antiphon import Agent, Limits, ModelOptions, Usage, run_sync, tool
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, ModelEffect
from antiphon.models.script import Script, call
from antiphon.values.fields import unchecked
from antiphon.values.model import MOST_TOKENS, ModelRequest, Reply
from tests.transcript import recorded


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


LOOKER = Agent("a", tools=[look], asking=ModelOptions(max_output_tokens=8_000))


class Provider:
    """Always wants to look once more, and says this of its bill."""

    name = "provider"

    def __init__(self, said: Any) -> None:
        self._said, self.asked = said, 0

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        self.asked += 1
        one = call("look")
        return Reply("looking", (type(one)(f"c{self.asked}", one.name, one.arguments),), "calls", self._said)


told = unchecked(Usage)
NONSENSE = [
    None, told(), {}, "many", told(-5, 3), told(5, -3), told(5, 3, -1), told(5.5, 3), told("5", 3),
    told(None, 3), told(True, 3), told(MOST_TOKENS + 1, 3), told(2**80, 3), told(float("nan"), 3),
]  # fmt: skip


@pytest.mark.parametrize("said", NONSENSE, ids=repr)
def test_a_limit_holds_though_nobody_says_what_was_used(said):
    provider = Provider(said)
    result, records = recorded(LOOKER, "go", model=provider, limits=Limits(tokens=60_000))
    assert (result.outcome, result.output) == ("budget", "looking")
    assert result.usage == Usage()
    held = [
        each.event.detail.held_tokens
        for each in records
        if isinstance(each.event, EffectStarted) and isinstance(each.event.detail, ModelEffect)
    ]
    assert provider.asked == len(held) < 8
    assert sum(held) <= 60_000
    ends = [each.event for each in records if isinstance(each.event, EffectFinished)]
    assert all(each.reply.usage is None for each in ends if each.reply is not None)


def test_what_is_said_is_what_is_charged():
    said = Usage(1_000, 500, cache_read_tokens=200, reasoning_tokens=100)
    provider = Provider(said)
    result, _ = recorded(LOOKER, "go", model=provider, limits=Limits(tokens=60_000))
    assert result.outcome == "budget"
    assert result.usage.total == 1_500 * provider.asked > 45_000


def test_a_model_that_is_free_may_use_nothing():
    model = Script([*[call("look")] * 20, "done"])
    result = run_sync(LOOKER, "go", model=model, limits=Limits(tokens=20_000))
    assert (result.outcome, result.output, model.asked) == ("completed", "done", 21)


def test_zeros_of_a_model_that_may_cost_something_are_unknown():
    model = Script([*[call("look")] * 20, "done"], name="dear")
    assert run_sync(LOOKER, "go", model=model, limits=Limits(tokens=20_000)).outcome == "budget"
