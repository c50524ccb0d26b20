"""The tests that docs/testing.md shows are what pytest and the plugin make of them."""

from pathlib import Path

import pytest

import antiphon.testing.plugin  # noqa: F401 - pytester forgets modules that are first imported in its run
from tests.docs.test_examples import parts_of

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_tests_in_the_document_pass(pytester: pytest.Pytester) -> None:
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    pytester.makepyfile("\n".join(part.text for part in parts_of(text) if part.kind == "python"))
    left_out = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:antiphon")
    pytester.runpytest_inprocess(*left_out, "-p", "antiphon.testing.plugin").assert_outcomes(passed=3)
