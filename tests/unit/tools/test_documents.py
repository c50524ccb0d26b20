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
from antiphon.tools.folder.documents import Index, passages, quoted, stem, terms
from antiphon.tools.folder.root import Root

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


def places(found: list[documents.Match]) -> list[str]:
    return [f"{match.passage.path}:{match.passage.first}-{match.passage.last}" for match in found]


def test_the_right_passage_is_first(folder: Path) -> None:
    index = Index(Root(folder))
    assert places(index.search("What happens to a lease when its owner dies?", 1)) == ["docs/guide.md:10-18"]
    assert places(index.search("how are failing calls RETRIED", 1)) == ["docs/guide.md:5-8"]
    assert places(index.search("baking flour", 1)) == ["docs/food.rst:6-9"]
    assert places(index.search("Which license: may I copy it?", 1)) == ["LICENSE:1-1"]
    assert places(index.search("elephants", 3)) == []
    assert index.search("lease", 9)[-1].passage.path == "lease.py", "prose goes before code"


def test_a_quotation_is_word_for_word(folder: Path) -> None:
    search: Any = folder_tools(folder)[0]
    first = search("growing delay", 1)
    assert first.splitlines()[0] == "docs/guide.md:5-8"
    lines = GUIDE.splitlines()
    assert [line.removeprefix("> ") for line in first.splitlines()[1:]] == lines[4:8]
    assert search("elephants and giraffes").endswith("documents mentions: elephants, giraffes")
    for query in ("", "   ", "x" * 1001):
        with pytest.raises(ToolError, match="1 to 1000"):
            search(query)


def test_the_index_follows_the_files(folder: Path) -> None:
    index = Index(Root(folder))
    assert index.search("zeppelin", 1) == []
    path = folder / "docs" / "food.rst"
    path.write_text("A zeppelin flies.\n")
    assert places(index.search("zeppelin", 1)) == ["docs/food.rst:1-1"]
    assert index.search("tomatoes", 1) == []
    path.write_text("A balloon flies!!\n")
    os.utime(path, ns=(1, 1))
    assert index.search("zeppelin", 1) == []
    path.unlink()
    assert index.search("balloon", 1) == []


def test_limits_are_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENTS", 2)
    search: Any = folder_tools(folder)[0]
    assert search("lease").endswith("more documents were beyond the limits and not searched)")
    monkeypatch.setattr(documents, "MAX_DOCUMENTS", 5000)
    monkeypatch.setattr(documents, "MAX_TOTAL", 10)
    index = Index(Root(folder))
    assert index.search("lease", 1) == []
    assert index.left_out > 0


def test_passages_are_cut_at_headings_and_sizes() -> None:
    text = "\n".join(f"sentence number {at} of a long text" for at in range(400))
    found = passages("a.md", text)
    assert len(found) > 5
    assert [passage.first for passage in found[1:]] == [passage.last + 1 for passage in found[:-1]]
    assert "\n".join(passage.text for passage in found) == text
    assert passages("a.md", "") == []
    assert [passage.heading for passage in passages("g.md", GUIDE)] == ["Guide", "Retrying", "Leases"]


def test_a_very_long_line_is_cut_in_the_quotation() -> None:
    passage = passages("a.md", "word " * 2000)[0]
    assert len(quoted(documents.Match(1.0, passage))) < 2100


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
    index = Index(Root(folder))
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(places(index.search("lease", 2)))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(each == found[0] for each in found)
