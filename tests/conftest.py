"""Every test is watched: its runs are folded twice, audited and replayed, and it leaves nothing behind."""

import sys

import pytest
from hypothesis import settings

from antiphon.testing.census import census
from antiphon.testing.witness import watching
from antiphon.view.page import is_built

IMPURE = "impure(why): a hook rests on more than its context, so that a replay goes another way, and must"


# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure(config):
    config.addinivalue_line("markers", "unwatched: breaks invariants, or leaves things behind, on purpose")
    config.addinivalue_line("markers", "longest: takes minutes, and begins before all others")
    config.addinivalue_line("markers", IMPURE)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    # A log is read for what failed: ten thousand points hide it.
    passed = report.when == "call" and report.passed and not hasattr(report, "wasxfail")
    if passed and not sys.stdout.isatty():
        return "passed", "", "PASSED"
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    # Who begins with the longest does not wait for one of them at the end.
    items.sort(key=lambda item: (not item.get_closest_marker("longest"), not item.get_closest_marker("deep")))
    # Coverage costs a third of their time, and the quick ones cover all that is asked for.
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker("no_cover")


@pytest.fixture
def built_page():
    """The web page is here, built of `ui/`: a test that looks at it cannot say anything without."""
    if not is_built():
        pytest.fail(
            "The web page is not built here, and this test looks at it. Build it with scripts/page.sh"
            " (Node 20 or newer); ./check does",
            pytrace=False,
        )


@pytest.fixture(autouse=True)
def _watched(request):
    if request.node.get_closest_marker("unwatched"):
        yield
        return
    with census() as orphans, watching() as witness:
        yield
    witness.verdict(pure=request.node.get_closest_marker("impure") is None)
    assert not orphans, "\n".join(orphans)
