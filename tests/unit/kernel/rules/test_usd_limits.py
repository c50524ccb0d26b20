"""Limits.usd: money is held before it is spent, and an unknown price is refused."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Limits, ModelOptions, Usage, open_journal, run_sync, tool
from antiphon.kernel.facts.ledger import NANO
from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.kernel.run import open as opening
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.values.model import Reply
from tests.transcript import recorded_run


def price(monkeypatch: pytest.MonkeyPatch, dollar_per_token: float) -> None:
    each = dollar_per_token * NANO

    def priced(model: Any, windows: Any, env: Any) -> ModelOption:
        return ModelOption(model, None, each, each, lambda usage: int(usage.total * each))

    monkeypatch.setattr(opening, "_option", priced)


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def steps(count: int) -> Script:
    return Script(
        [*[Reply("", (call("look"),), "calls", Usage(80, 20))] * count, Reply("done", usage=Usage(80, 20))]
    )


def test_it_stops_before_the_money_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    price(monkeypatch, 0.001)

    async def playing() -> None:
        journal, model = open_journal(), steps(50)
        agent = Agent("a", tools=[look], asking=ModelOptions(max_output_tokens=100))
        result, _ = await recorded_run(agent, "go", model=model, journal=journal, limits=Limits(usd=3.0))
        assert result.outcome == "budget"
        assert "of $3.0000 are spent" in result.reason
        assert 1 < model.asked < 30
        await check_run(journal, result.run_id)
        state = await fold(journal, result.run_id)
        assert state.totals.nano_usd == int(model.asked * 0.1 * NANO)
        assert state.totals.nano_usd <= 3 * NANO

    asyncio.run(playing())


def test_an_unknown_price_is_refused_only_where_there_is_a_limit() -> None:
    nobodys = Script(["x"], name="nobody/knows")
    result = run_sync(Agent("a"), "go", model=nobodys, limits=Limits(usd=1.0))
    assert result.outcome == "budget"
    assert (
        result.reason == "the price of nobody/knows is unknown, and there is a limit in USD; give it a price"
    )
    assert run_sync(Agent("a"), "go", model=nobodys).output == "x"


def test_a_model_of_this_process_is_free() -> None:
    assert run_sync(Agent("a"), "go", model=Script(["x"]), limits=Limits(usd=0.0)).output == "x"


def test_a_callee_spends_its_callers_money(monkeypatch: pytest.MonkeyPatch) -> None:
    price(monkeypatch, 0.001)
    poor = Agent("poor", asking=ModelOptions(max_output_tokens=100), limits=Limits(usd=0.01))
    lead = Agent("lead", asking=ModelOptions(max_output_tokens=100))
    model = Script({"lead": [call("call_agent", agent_name="poor", message="m"), "done"], "poor": ["never"]})
    result = run_sync(lead, "go", agents=[lead, poor], model=model, limits=Limits(usd=50.0))
    assert result.output == "done"
    assert "budget is used up" in next(each.content for each in result.messages if each.sender == "poor")


def test_parallel_callees_never_hold_more_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness of every test checks `spent + held <= limit` at each record."""
    price(monkeypatch, 0.001)
    worker = Agent("worker", asking=ModelOptions(max_output_tokens=100))
    lead = Agent("lead", asking=ModelOptions(max_output_tokens=100))
    calls = [call("call_agent", agent_name="worker", message=str(n)) for n in range(8)]
    each = Usage(80, 20)
    lines = {"lead": [calls, "done"], "worker": lambda request: Reply("x", usage=each)}
    result = run_sync(
        lead, "go", agents=[lead, worker], model=Script(lines, usage=each), limits=Limits(usd=4.0)
    )
    assert (result.output, result.outcome) == ("done", "completed")
