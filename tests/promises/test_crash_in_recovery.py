"""Crash recovery, when recovery is killed too: all pairs of the smallest scenario, a sample of others."""

import pytest

from antiphon.testing.crash import enumerate_crashes
from tests.promises.crash_scenarios import ALL, SINGLE

SEED = 20261120
DRAWN = 75


@pytest.mark.slow
def test_a_few_pairs(tmp_path):
    report = enumerate_crashes(SINGLE, tmp_path, every=9, pairs=5, seed=SEED)
    assert report.pairs == 5
    assert not report.bad, str(report)


@pytest.mark.deep
@pytest.mark.parametrize("commit", ["at once", "deferred"])
def test_every_pair_of_the_smallest(commit, tmp_path):
    report = enumerate_crashes(SINGLE, tmp_path, commit=commit, pairs=None)
    assert report.pairs > 250
    assert not report.bad, str(report)


@pytest.mark.deep
@pytest.mark.parametrize("scenario", ALL[1:], ids=lambda scenario: scenario.name)
def test_drawn_pairs(scenario, tmp_path):
    report = enumerate_crashes(scenario, tmp_path, commit="deferred", every=2, pairs=DRAWN, seed=SEED)
    assert report.pairs == DRAWN
    assert not report.bad, f"seed {SEED}: {report}"
