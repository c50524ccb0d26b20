"""What a unit of work costs in Python calls is no more than it was; and the gates bite."""

import asyncio
import sys
from typing import Any

import pytest

from antiphon.kernel.facts.fold.apply import Folding
from antiphon.kernel.run.log import records
from bench import counted
from bench.counted import GATES, calls_of
from bench.instructions import CELLS


@pytest.fixture(autouse=True)
def _nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests listen to the log, which is made of the events for whoever does."""
    monkeypatch.setattr(records.LOG, "hasHandlers", lambda: False)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions call comprehensions otherwise")
@pytest.mark.slow
@pytest.mark.unwatched
@pytest.mark.parametrize("kind", GATES)
def test_a_unit_of_work_makes_no_more_calls(kind: str) -> None:
    found = asyncio.run(calls_of(kind))
    assert found <= GATES[kind], f"{kind}: {found:.2f} Python calls, {GATES[kind]} is the gate"
    # A gate that is far above what it guards guards nothing.
    assert found > 0.97 * GATES[kind] - 1


def test_everything_that_is_counted_has_a_gate() -> None:
    assert GATES.keys() == CELLS.keys()


@pytest.mark.slow
@pytest.mark.unwatched
def test_the_gate_sees_one_call_more(monkeypatch: pytest.MonkeyPatch) -> None:
    before, emit = asyncio.run(calls_of("tool turn")), Folding.emit

    def again(folding: Folding, event: Any) -> None:
        emit(folding, event)

    monkeypatch.setattr(Folding, "emit", again)
    # As if it were the package's own.
    monkeypatch.setattr(counted, "PACKAGE", ("/", counted.PACKAGE))
    assert asyncio.run(calls_of("tool turn")) > before + 3
