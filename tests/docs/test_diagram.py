"""The diagram of phases in docs/architecture.md is the one that the code draws."""

import re
from pathlib import Path
from typing import get_args

import pytest

from antiphon.kernel.facts.activation import Phase
from antiphon.kernel.facts.fold.apply import FINISHED
from antiphon.kernel.facts.fold.turns import turn_started
from antiphon.kernel.rules.step import RULES
from scripts import diagram

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_page_shows_the_diagram_that_the_rules_draw() -> None:
    drawn = re.findall(r"^```mermaid\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert drawn == [diagram.diagram()], "write it anew: python scripts/diagram.py"


def test_every_phase_has_its_rule_and_is_reached() -> None:
    reached = {end for _, end in diagram.edges()} - {"[*]"}
    assert set(RULES) == set(get_args(Phase)) == reached


def test_every_effect_of_a_turn_is_drawn() -> None:
    labels = " ".join(label for found in diagram.edges().values() for label in found)
    # A call waits for an approval or a result, and an action for a step, without leaving its phase.
    quiet = {"ApprovalEffect", "ResultEffect", "StepEffect"}
    assert {kind.__name__ for kind in FINISHED} - quiet == set(re.findall(r"\w+Effect", labels))


def test_phases_are_read_off_the_fold() -> None:
    assert set(diagram.phases(turn_started)) == {"asking", "calling", "settled"}


def test_a_comment_that_names_no_event_is_refused() -> None:
    with pytest.raises(ValueError, match="Nonsense; there is no such event"):
        diagram.emitted('    "idle": turn.begin,  # messages? -> Nonsense\n')
