"""Crash recovery, when recovery is killed too: all pairs of the smallest scenario, a sample of others."""

import subprocess
from pathlib import Path

import pytest

from antiphon.testing.crash import enumerate_crashes
from tests.promises.crash_scenarios import ALL, SINGLE

DRAWN = 50


def commit_seed() -> int:
    """Other pairs with every commit, and the same ones for the same commit."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout or "20261120", 16)


SEED = commit_seed()


@pytest.mark.slow
def test_a_few_pairs(tmp_path):
    report = enumerate_crashes(SINGLE, tmp_path, every=9, pairs=5, seed=SEED)
    assert report.pairs == 5
    assert not report.bad, str(report)


@pytest.mark.deep
@pytest.mark.parametrize(("commit", "pairs"), [("deferred", None), ("at once", DRAWN)])
def test_pairs_of_the_smallest(commit, pairs, tmp_path):
    """Every pair where commits are waited for, and a sample where each is made at once."""
    report = enumerate_crashes(SINGLE, tmp_path, commit=commit, pairs=pairs, seed=SEED)
    assert report.pairs == pairs or (pairs is None and report.pairs > 250)
    assert not report.bad, f"seed {SEED}: {report}"


@pytest.mark.deep
@pytest.mark.parametrize("scenario", ALL[1:], ids=lambda scenario: scenario.name)
def test_drawn_pairs(scenario, tmp_path):
    report = enumerate_crashes(scenario, tmp_path, commit="deferred", every=2, pairs=DRAWN, seed=SEED)
    assert report.pairs == DRAWN
    assert not report.bad, f"seed {SEED}: {report}"
