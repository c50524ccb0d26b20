"""Every test is watched: the runs it makes are folded twice and audited, and it leaves nothing behind."""

import pytest

from antiphon.testing.census import census
from antiphon.testing.witness import watching


def pytest_configure(config):
    config.addinivalue_line("markers", "unwatched: breaks invariants, or leaves things behind, on purpose")


@pytest.fixture(autouse=True)
def _watched(request):
    if request.node.get_closest_marker("unwatched"):
        yield
        return
    with census() as orphans, watching() as witness:
        yield
    witness.verdict()
    assert not orphans, "\n".join(orphans)
