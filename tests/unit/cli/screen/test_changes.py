"""What is shown of a change that is to be approved: every line of both texts, and the words that differ."""

import random

import msgspec
import pytest

from antiphon.cli.screen.changes import LINES, change_rows
from antiphon.cli.session.questions import argument_rows


def marked(row):
    return [row.plain[each.start : each.end] for each in row.spans if "reverse" in str(each.style)]


def test_of_a_changed_line_the_words_are_marked_that_differ():
    rows = change_rows("def f(a):\n    return a + 1\n", "def f(a):\n    return b + 1\n")
    assert [each.plain for each in rows] == ["  def f(a):", "-     return a + 1", "+     return b + 1", "  "]
    assert [marked(each) for each in rows] == [[], ["a"], ["b"], []]


def test_lines_that_have_nothing_in_common_are_not_marked_in_pieces():
    assert [marked(each) for each in change_rows("alpha", "omega")] == [[], []]


@pytest.mark.parametrize("seed", range(30))
def test_both_texts_are_there_to_be_read(seed):
    chance = random.Random(seed)
    words = ["a", "b ", "c", "(", "  ", "\n", "\n", "x y", "ü"]
    old, new = ("".join(chance.choices(words, k=chance.randint(0, 60))) for _ in range(2))
    rows = [each.plain for each in change_rows(old, new)]
    assert "\n".join(each[2:] for each in rows if each[0] in " -") == old
    assert "\n".join(each[2:] for each in rows if each[0] in " +") == new


def test_a_large_change_is_shown_whole_without_being_compared():
    old, new = "x\n" * LINES, "y\n" * LINES
    assert len(change_rows(old, new)) == 2 * (LINES + 1)
    assert change_rows("a \x1b[2J", "b")[0].plain == "- a ␛[2J"


def test_arguments_that_change_a_text_are_shown_as_the_change():
    arguments = {"path": "a.py", "old": "a b", "new": "a c", "more": [{"old": "x", "new": "y"}]}
    rows = [each.plain for each in argument_rows(msgspec.json.encode(arguments).decode(), 60)]
    assert rows == [
        "  path: a.py", "  edit 1 of 2:", "  - a b", "  + a c", "  edit 2 of 2:", "  - x", "  + y",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"old": "a", "new": 1},
        {"path": "x", "old": "a", "new": "b", "more": [{"old": "c"}]},
        {"path": "x", "old": "a", "new": "b", "more": "c"},
        {"path": "x", "old": "a", "new": "b", "more": [{"old": "c", "new": "d", "else": 1}]},
        {"command": "ls"},
        [],
    ],
)
def test_other_arguments_are_shown_as_they_are(arguments):
    rows = [each.plain for each in argument_rows(msgspec.json.encode(arguments).decode(), 60)]
    assert not any(each.startswith("  - ") for each in rows)
    for name in arguments:
        assert any(each.startswith(f"  {name}: ") for each in rows)
