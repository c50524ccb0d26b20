"""`review_workspace_files`: what is there, and a look into what is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import ToolError
from antiphon.tools.folder.review import LINES, LISTED, REVIEWED, review_tool
from antiphon.tools.folder.root import Root


def test_files_are_listed_and_their_beginnings_shown(tmp_path: Path) -> None:
    review: Any = review_tool(Root(tmp_path))
    assert review() == "The workspace holds no files"
    (tmp_path / "a.md").write_text("one\ntwo\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("".join(f"line {at}\n" for at in range(LINES + 2)))
    (tmp_path / "c.md").write_bytes(b"\0")
    assert review().splitlines() == ["a.md (8 bytes)", "c.md (1 byte)", "sub/b.txt (326 bytes)"]
    first, second = review(["a.md", "sub/b.txt", "a.md"]).split("\n\n")
    assert first == "a.md, 2 lines:\n1: one\n2: two"
    assert second.splitlines()[-2:] == ["40: line 39", "… 2 more lines"]


def test_what_cannot_be_shown_says_why_beside_the_others(tmp_path: Path) -> None:
    review: Any = review_tool(Root(tmp_path))
    (tmp_path / "a.md").write_text("one\n")
    (tmp_path / "c.md").write_bytes(b"\0")
    told = review(["c.md", "../secret", "none.md", "a.md"]).split("\n\n")
    assert told[0] == "c.md: c.md is a binary file, not text"
    assert "leads out of the folder" in told[1]
    assert "There is no file none.md" in told[2]
    assert told[3] == "a.md, 1 line:\n1: one"
    with pytest.raises(ToolError, match="At most 10 files"):
        review([f"{at}.md" for at in range(REVIEWED + 1)])


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    for at in range(LISTED + 1):
        (tmp_path / f"{at:03}.md").touch()
    listed = review_tool(Root(tmp_path)).function().splitlines()
    assert (len(listed), listed[-1]) == (LISTED + 1, "… and more; only the first 200 are listed")
