"""What `bench/replay.py` says of a clone: edits are made, spoilt ones rescued or refused, none is wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from antiphon.tools.folder.text.matching import Edit
from bench import replay
from bench.replay import Hunk, changes, fewest_around, main, measure, outcome

FIRST = """\
class Shop:
    def price(self, what):
        found = self.prices.get(what)
        return found

    def order(self, what):
        self.orders.append(what)
        return self.price(what)
"""
SECOND = FIRST.replace(
    "        return found\n",
    "        if found is None:\n            raise KeyError(what)\n        return found\n",
)
THIRD = SECOND.replace("append(what)\n", "append(what)\n        self.save()\n").replace(
    "class Shop", "class Store"
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    git("init", "-q")
    for text in (FIRST, SECOND, THIRD):
        (tmp_path / "shop.py").write_text(text)
        git("add", "shop.py")
        git("commit", "-q", "-m", "change")
    return tmp_path


def test_every_hunk_of_the_commits_is_an_edit(clone: Path) -> None:
    newest, oldest = changes(str(clone), 10)
    assert (newest.before, newest.after, oldest.before) == (SECOND, THIRD, FIRST)
    assert oldest.hunks == (Hunk(3, 3, ("        if found is None:", "            raise KeyError(what)")),)
    assert [each.first for each in newest.hunks] == [0, 9]
    assert fewest_around("a\nx\na\nx\nb\n", ["a", "x", "a", "x", "b", ""], Hunk(3, 4, ("y",))) == 1
    assert fewest_around("a\na\n" * 60, ("a\na\n" * 60).split("\n"), Hunk(60, 61, ("y",))) == -1


def test_the_figures(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = measure(str(clone), 10, 100, 1)
    assert (found.files, found.hunks, found.whole_files) == (2, 3, 2)
    assert all(each["wrong"] == 0 == each["white space"] for each in found.spoilt.values())
    assert set(found.spoilt) == {*replay.SPOILT, "another word"}
    assert found.spoilt["trailing blanks"]["right"] == 3
    main([str(clone)])
    assert "2 files, 3 hunks" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("edit", "expected", "told"),
    [
        (Edit("b", "c"), "a\nc\n", "right"),
        (Edit("z", "c"), "a\nc\n", "refused"),
        (Edit("b", "  c"), "a\nc\n", "white space"),
        (Edit("b", "d"), "a\nc\n", "wrong"),
    ],
)  # fmt: skip
def test_an_outcome_is_told_by_the_whole_file(edit: Edit, expected: str, told: str) -> None:
    assert outcome("a\nb\n", edit, expected) == told
