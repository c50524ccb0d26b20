"""The nearest examples: by words and their pieces, numbers and names folded."""

from __future__ import annotations

import pytest

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")

from antiphon.models.local.nearest import features, nearest
from antiphon.values.model import Example

BANK = [
    Example("What is 4 times 9?", "calculate"),
    Example("Convert 3 km to miles", "convert"),
    Example("How many words are in notes.txt?", "count"),
    Example("How many lines does main.py have?", "count"),
    Example("Hello", "finish"),
]


def first(request: str) -> str:
    return nearest(request, BANK, 1)[0].request


def test_the_likest_is_last() -> None:
    assert first("What is 17 times 23?") == "What is 4 times 9?"
    assert first("converting 5 km") == "Convert 3 km to miles"
    assert first("number of words in docs/a.md") == "How many words are in notes.txt?"
    assert nearest("How many lines does x.py have?", BANK, 2)[-1] == BANK[3]


def test_equal_examples_count_once_and_order_is_stable() -> None:
    assert len(nearest("zzz", BANK * 3, 99)) == len(BANK)
    assert nearest("zzz", BANK, 2) == [BANK[1], BANK[0]]
    assert nearest("Hello", BANK, 9) == [BANK[4]], "what is not like it is left out"
    assert nearest("x", [], 3) == []
    assert nearest("", BANK, 1) == [BANK[0]]


def test_features_fold_numbers_dates_and_files() -> None:
    assert features("read a/b.md") == features("read c.txt")
    assert features("on 2026-01-01") == features("on 1999-12-31") == features("on 3 May 1999")
    assert features("17 + 4") == features("1,000 + 0.5")
    assert features("words of README") == features("words of a.md")
    assert features("3/8 km/h")["<file>"] == 0
    assert "~conv" in features("converting")
