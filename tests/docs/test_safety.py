"""docs/safety.md names its proofs: each of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROOF = re.compile(r"`((?:tests/[\w/]+/)?test_\w+\.py)`")


def test_every_proof_that_is_named_exists():
    named = PROOF.findall((ROOT / "docs/safety.md").read_text("utf-8"))
    paths = [each if each.startswith("tests/") else f"tests/promises/{each}" for each in named]
    assert len(paths) > 20
    assert [each for each in paths if not (ROOT / each).exists()] == []
