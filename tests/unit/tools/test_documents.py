"""Search: the right passage first, quoted word for word with its place; the index follows the files."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import ToolError
from antiphon.tools import folder_tools
from antiphon.tools.folder import documents
from antiphon.tools.folder.documents import quoted
from antiphon.tools.folder.index import FolderIndex, IndexBounds, Match
from antiphon.tools.folder.readers import read_document
from antiphon.tools.folder.root import Root
from antiphon.tools.folder.text.passages import Passage, passages
from antiphon.tools.folder.text.terms import stem, terms

GUIDE = """# Guide

Antiphon keeps a journal of every run.

## Retrying

A model call that fails is retried with a growing delay.
Retries are journaled.

## Leases

A lease names its owner. When the owner dies,
another process takes the run over.

```python
# Leases in code are not a heading
lease = 1
```
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text(GUIDE)
    (tmp_path / "docs" / "food.rst").write_text(
        "Soup\n====\n\nTomatoes are boiled.\n\nBread\n=====\n\nFlour is baked.\n"
    )
    (tmp_path / "lease.py").write_text("def lease():\n    '''Take a lease.'''\n")
    (tmp_path / "LICENSE").write_text("You may copy this software.\n")
    (tmp_path / "data.bin").write_bytes(b"lease\0")
    (tmp_path / ".hidden.md").write_text("lease of the hidden house\n")
    (tmp_path / "odd.md").write_bytes(b"lease\0\0")
    return tmp_path


def looked_up(index: FolderIndex, query: str, count: int) -> list[Match]:
    index.refresh()
    return index.search(query, count)


def cut(path: str, text: str) -> list[Passage]:
    return passages(path, read_document(path, text.encode()))


def places(found: list[Match]) -> list[str]:
    return [f"{match.passage.path}:{match.passage.first}-{match.passage.last}" for match in found]


def test_the_right_passage_is_first(folder: Path) -> None:
    index = FolderIndex(Root(folder))
    assert places(looked_up(index, "What happens to a lease when its owner dies?", 1)) == [
        "docs/guide.md:10-18"
    ]
    assert places(looked_up(index, "how are failing calls RETRIED", 1)) == ["docs/guide.md:5-8"]
    assert places(looked_up(index, "baking flour", 1)) == ["docs/food.rst:6-9"]
    assert places(looked_up(index, "Which license: may I copy it?", 1)) == ["LICENSE:1-1"]
    assert places(looked_up(index, "elephants", 3)) == []
    assert looked_up(index, "lease", 9)[-1].passage.path == "lease.py", "prose goes before code"


def test_a_quotation_is_word_for_word(folder: Path) -> None:
    search: Any = folder_tools(folder)[0]
    first = search("growing delay", 1)
    assert first.splitlines()[0] == "docs/guide.md:5-8"
    lines = GUIDE.splitlines()
    assert [line.removeprefix("> ") for line in first.splitlines()[1:]] == lines[4:8]
    assert search("elephants and giraffes").startswith("None of 4 documents mentions: elephants, giraffes\n")
    for query in ("", "   ", "x" * 1001):
        with pytest.raises(ToolError, match="1 to 1000"):
            search(query)


def test_the_index_follows_the_files(folder: Path) -> None:
    index = FolderIndex(Root(folder))
    assert looked_up(index, "zeppelin", 1) == []
    path = folder / "docs" / "food.rst"
    path.write_text("A zeppelin flies.\n")
    assert places(looked_up(index, "zeppelin", 1)) == ["docs/food.rst:1-1"]
    assert looked_up(index, "tomatoes", 1) == []
    path.write_text("A balloon flies!!\n")
    os.utime(path, ns=(1, 1))
    assert looked_up(index, "zeppelin", 1) == []
    path.unlink()
    assert looked_up(index, "balloon", 1) == []


def test_limits_are_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BOUNDS", IndexBounds(documents=2))
    search: Any = folder_tools(folder)[0]
    assert search("lease").endswith("(3 more documents were beyond the limits and not searched)")
    index = FolderIndex(Root(folder), bounds=IndexBounds(total_bytes=10))
    assert looked_up(index, "lease", 1) == []
    assert index.stats().left_out > 0


def test_what_could_not_be_read_is_said_where_nothing_is_found(folder: Path) -> None:
    search: Any = folder_tools(folder)[0]
    said = search("elephants")
    assert said.endswith("mentions: elephants\n(not searched: odd.md is a binary file, not text)")
    (folder / "other.md").write_bytes(b"\0")
    assert search("elephants").endswith("odd.md is a binary file, not text, and 1 more)")


def test_passages_are_cut_at_headings_and_sizes() -> None:
    text = "\n".join(f"sentence number {at} of a long text" for at in range(400))
    found = cut("a.md", text)
    assert len(found) > 5
    assert [passage.first for passage in found[1:]] == [passage.last + 1 for passage in found[:-1]]
    assert "\n".join(passage.text for passage in found) == text
    assert cut("a.md", "") == []
    assert [passage.heading for passage in cut("g.md", GUIDE)] == ["Guide", "Retrying", "Leases"]


def test_a_very_long_line_is_cut_in_the_quotation() -> None:
    passage = cut("a.md", "word " * 2000)[0]
    assert len(quoted(Match(1.0, passage))) < 2100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("retries", "retry"),
        ("retried", "retry"),
        ("leases", "lease"),
        ("stopping", "stop"),
        ("running", "runs"),
    ],
)
def test_endings_do_not_matter(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_terms() -> None:
    assert terms("openRun") == ["openrun", "open", "run"]
    assert terms("메시지") == ["메시", "시지"]
    assert terms("word_count") == ["word", "count"]


def test_several_threads_may_search(folder: Path) -> None:
    index = FolderIndex(Root(folder))
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(places(looked_up(index, "lease", 2)))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(each == found[0] for each in found)
