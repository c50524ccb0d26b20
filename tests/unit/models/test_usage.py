"""Usage by model, and how much of a window is left."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.models.catalog import Catalog, ModelSpec, load_catalog
from antiphon.models.usage import UsageLedger, context_left
from antiphon.values.model import Usage


def test_usage_is_counted_by_model() -> None:
    ledger = UsageLedger()
    ledger.record("m1", Usage(10, 5, 4, 2))
    ledger.record("m1", Usage(20, 5))
    assert ledger.last == Usage(20, 5)
    ledger.record("m1", None)
    assert ledger.last is None
    assert ledger.context_left() is None
    ledger.record(None, Usage(1, 1))
    assert ledger.last == Usage(1, 1)
    assert (ledger.last_model, ledger.total_calls) == ("unknown", 3)
    assert {name: (one.calls, one.usage) for name, one in ledger.by_model.items()} == {
        "m1": (2, Usage(30, 10, 4, 2)),
        "unknown": (1, Usage(1, 1)),
    }
    assert ledger.total == Usage(31, 11, 4, 2)
    assert ledger.total.total == 42


def test_cost_is_known_only_when_every_call_is_priced() -> None:
    ledger = UsageLedger(Catalog())
    assert ledger.cost == 0
    ledger.record("openai:gpt-4.1-2025-04-14", Usage(1_000_000, 0))
    assert ledger.cost == ledger.known_cost == Decimal("2")
    ledger.record("nobody", Usage(1, 1))
    assert ledger.cost is None
    assert ledger.known_cost == Decimal("2")
    assert (ledger.by_model["nobody"].unpriced, ledger.by_model["nobody"].calls) == (1, 1)


def test_each_call_is_priced_in_its_own_tier() -> None:
    ledger = UsageLedger(Catalog())
    ledger.record("claude-sonnet-4-5", Usage(150_000, 0))
    ledger.record("claude-sonnet-4-5", Usage(150_000, 0))
    assert ledger.cost == Decimal("0.9"), "together they would be in the dearer tier"


def test_context_left_prefers_the_input_limit(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text("openai:m: {max_input: 200, context_window: 1000}\n")
    ledger = UsageLedger(load_catalog(path))
    assert ledger.context_left() is None
    ledger.record("openai:m", Usage(80, 20))
    assert ledger.context_left() == 50
    ledger.record("m-2026-03-01", Usage(80, 20))
    assert ledger.context_left() == 50
    ledger.record("m", Usage())
    assert ledger.context_left() == 100
    ledger.record("m", Usage(500))
    assert ledger.context_left() == 0
    ledger.record("nobody", Usage(1))
    assert ledger.context_left() is None


def test_the_limit_of_an_unknown_model_is_unknown() -> None:
    assert ModelSpec("m", "p", context_window=2000, max_input=1000).input_limit == 1000
    assert ModelSpec("m", "p", context_window=2000).input_limit == 2000
    assert ModelSpec("m", "p").input_limit is None
    assert Catalog().find("nobody") is None


@pytest.mark.parametrize(
    ("total", "limit", "left"),
    [(0, 1000, 100), (850, 1000, 15), (5, 1000, 100), (15, 1000, 99), (995, 1000, 1)],
)
def test_halves_are_rounded_up(total: int, limit: int, left: int) -> None:
    assert context_left(Usage(total), ModelSpec("m", "p", context_window=limit)) == left


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_left_is_the_rounded_share(total: int, limit: int) -> None:
    left = context_left(Usage(total), ModelSpec("m", "p", context_window=limit))
    assert left is not None
    assert 0 <= left <= 100
    exact = (1 - Decimal(total) / limit) * 100
    assert abs(left - max(Decimal(0), exact)) <= Decimal("0.5")


def test_nothing_is_said_without_a_window() -> None:
    assert context_left(Usage(1), None) is None
    assert context_left(None, ModelSpec("m", "p", context_window=10)) is None
    assert context_left(Usage(1), ModelSpec("m", "p")) is None
    assert context_left(Usage(1), ModelSpec("m", "p", context_window=0)) is None
