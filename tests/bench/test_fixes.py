"""What `bench/fixes.py` replays: commits whose tests fail before and pass afterwards, by a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.fixes import fixes, is_of_tests
from bench.replay import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="runs commands under a keeper"),
]
SHOP = "def price(what):\n    return PRICES[what]\n\n\nPRICES = {'tea': 3}\n"
MENDED = SHOP.replace("PRICES[what]", "PRICES.get(what, 0)")
TEST = """\
import unittest

import shop


class T(unittest.TestCase):
    def test_tea(self):
        assert shop.price('tea') == 3
"""
FURTHER = TEST + "\n    def test_rum(self):\n        assert shop.price('rum') == 0\n"
TESTS = "tests/test_shop.py"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four commits: the shop, a bug fix, a change that no test tells, one that no test told before."""
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    clone = tmp_path / "clone"
    (clone / "tests").mkdir(parents=True)

    def commit(**files: str) -> None:
        for name, text in files.items():
            (clone / {"test": TESTS}.get(name, f"{name}.py")).write_text(text)
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
        for words in (["add", "."], ["commit", "-q", "-m", "change"]):
            subprocess.run(["git", "-C", clone, *who, *words], check=True, capture_output=True)

    subprocess.run(["git", "init", "-q", clone], check=True, capture_output=True)
    commit(shop=SHOP, test=TEST)
    commit(shop="from stock import PRICES\n" + MENDED.partition("\n\n\nPRICES")[0] + "\n",
           stock="PRICES = {'tea': 3}\n", test=FURTHER)  # fmt: skip
    commit(shop=SHOP)
    commit(shop=SHOP.replace("3", "4"), test=TEST + "\n# nothing new\n")
    return clone


def test_the_commits_that_are_bug_fixes_are_mended_whole(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest, fix = fixes(str(clone))
    assert (newest.tests, [each.path for each in newest.remedy.changed]) == ((TESTS,), ["shop.py"])
    assert (list(fix.remedy.fresh), [each.path for each in fix.remedy.changed]) == (["stock.py"], ["shop.py"])
    main([str(clone), "--fixes", "5", "--run", f"{sys.executable} -m unittest -q"])
    assert capsys.readouterr().out.splitlines() == [
        "1 of 1 bug fixes mended whole (1 whose tests pass before)"
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/test_a.py", True),
        ("tests/data/a.txt", True),
        ("src/a_test.py", True),
        ("src/testing/a.py", False),
        ("src/a.py", False),
    ],
)
def test_what_is_among_the_tests(path: str, expected: bool) -> None:
    assert is_of_tests(path) is expected
