"""Pieces of a request, their shapes, and what examples teach about them."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")

from antiphon.models.local.spans import MAX_LOOKED_AT, SHAPES, candidates, learn, spans


@pytest.mark.parametrize(
    ("shape", "text", "found"),
    [
        ("whole", " What is it? ", ["What is it?"]),
        ("quoted", "find \"a b\" and 'c d' and `e`, don't", ["a b", "c d", "e"]),
        ("path", "How long is docs/a.md in lines?", ["docs/a.md"]),
        ("path", "words of README and setup.cfg.", ["setup.cfg"]),
        ("path", "How many words are in README?", ["README"]),
        ("path", "what is in the docs folder", ["docs"]),
        ("path", "list the folder images", ["images"]),
        ("path", "how many files are in docs?", ["docs"]),
        ("path", "how many files are in this folder?", []),
        ("sum", "What is 17 times 23?", ["17 times 23"]),
        ("sum", "Work out 15% of 240.", ["15% of 240"]),
        ("sum", "3 books at 4.20? 3 * 4.20", ["3 * 4.20"]),
        ("sum", "Compute (4 + 5) * (7 - 2)", ["(4 + 5) * (7 - 2)"]),
        ("sum", "Sum of 3.3, 4.4 and 5.5", ["Sum of 3.3, 4.4 and 5.5"]),
        ("sum", "hello", []),
        ("date", "from 3 March 2024 until 2025-01-02", ["3 March 2024", "2025-01-02"]),
        ("date", "Days from today to December 24, 2027", ["today", "December 24, 2027"]),
        ("quantity", "Which date is 90 days after 2026-05-01?", ["90 days"]),
        ("quantity", "how fast is 100 km/h in mph", ["100 km/h"]),
        ("quantity", "350 °F in °C", ["350 °F"]),
        ("quantity", "centimetres in an inch", ["an inch"]),
        ("number", "from 1,500 to -2.5", ["1,500", "-2.5"]),
        ("word", "Convert miles to °C", ["Convert", "miles", "°C"]),
    ],
)
def test_spans(shape: str, text: str, found: list[str]) -> None:
    assert sorted(spans(shape, text)) == sorted(found)


def test_a_shape_is_learnt_from_copies() -> None:
    assert learn([("Count a.txt", "a.txt"), ("Count b/c", "b/c")]) == ("path", [])
    assert learn([("Tell me all", "Tell me all")])[0] == "whole"
    assert learn([("List the files", "."), ("List docs/", "docs/")]) == ("path", ["."])
    assert learn([("Now", ".")]) == ("", ["."])
    assert learn([]) == ("", [])


def test_candidates() -> None:
    assert candidates("path", ["nothing here"]) == []
    assert candidates("path", ["count REDME", "There is no file REDME. Near: README.md"]) == [
        "REDME",
        "README.md",
    ]
    assert candidates("whole", ["a b", "an error"]) == ["a b"]
    assert candidates("", ["open 'x y' at 2026-01-02"]) == ["x y", "2026-01-02", "2026-01-02"][:2]
    assert candidates("", ["just words"]) == ["just words"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("piece", ["1", " ", ",", "a", "-", "(", "1 and ", "in ", "'", "x.", "/"])
def test_no_text_takes_long(shape: str, piece: str) -> None:
    start = time.process_time()
    spans(shape, piece * (3 * MAX_LOOKED_AT))
    assert time.process_time() - start < 1
