"""Counting, listing and reading the files of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import ToolError
from antiphon.tools import folder_tools
from antiphon.tools.folder.text.passages import lines_of
from antiphon.tools.folder.writing import version_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("One two three\nfour  five — six\n", encoding="utf-8")
    (tmp_path / "docs" / "long.txt").write_text("\n".join(f"line {at}" for at in range(1, 501)))
    (tmp_path / "docs" / "picture.png").write_bytes(b"\x89PNG\0\0")
    return tmp_path


def tools(folder: Path) -> dict[str, Any]:
    return {tool.name: tool for tool in folder_tools(folder)}


def test_every_tool_only_reads(folder: Path) -> None:
    found = tools(folder)
    assert sorted(found) == [
        "attach_file",
        "count_text",
        "find_files",
        "folder_statistics",
        "grep_files",
        "list_files",
        "read_lines",
        "search_documents",
        "view_image",
    ]
    assert {tool.effect for tool in found.values()} == {"read"}
    assert all(len(tool.examples) >= 3 for tool in found.values())


def test_count_text(folder: Path) -> None:
    count = tools(folder)["count_text"]
    assert count("README.md") == "README.md: 7 words, 2 lines, 31 characters, 33 bytes"
    with pytest.raises(ToolError, match="binary"):
        count("docs/picture.png")


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)])
def test_lines(text: str, lines: int) -> None:
    assert len(lines_of(text)) == lines


def test_list_files(folder: Path) -> None:
    listed = tools(folder)["list_files"]
    assert listed() == "README.md (33 bytes)\ndocs/long.txt (4391 bytes)\ndocs/picture.png (6 bytes)"
    assert listed("docs") == "docs/long.txt (4391 bytes)\ndocs/picture.png (6 bytes)"
    for at in range(250):
        (folder / f"file{at}").touch()
    assert listed().count("\n") == 200
    assert listed().endswith("only the first 200 are listed")
    (folder / "empty").mkdir()
    assert listed("empty") == "There are no files in empty"


def test_read_lines(folder: Path) -> None:
    read = tools(folder)["read_lines"]
    version = version_of((folder / "docs" / "long.txt").read_bytes())
    two = f"docs/long.txt, lines 2-3 of 500, version {version}:\n2: line 2\n3: line 3"
    assert read("docs/long.txt", 2, 3) == read("./docs//long.txt", 2, 3) == two
    assert read("docs/long.txt", 499, 900).endswith(f"{version}:\n499: line 499\n500: line 500")
    assert read("docs/long.txt", 1, 9999).startswith("docs/long.txt, lines 1-200 of 500, ")
    for first, last in ((0, 3), (4, 3), (501, 600)):
        with pytest.raises(ToolError, match="lines"):
            read("docs/long.txt", first, last)
    (folder / "wide.txt").write_text("x" * 9999)
    assert read("wide.txt").endswith("(9999 characters)")


def test_folder_statistics(folder: Path) -> None:
    statistics = tools(folder)["folder_statistics"]
    assert statistics() == (
        "The folder: 3 files in 2 folders, 4430 bytes\n"
        "By kind: 1 .md, 1 .txt, 1 .png\n"
        "Largest: docs/long.txt (4391 bytes), README.md (33 bytes), docs/picture.png (6 bytes)"
    )
    assert statistics("docs").startswith("docs: 2 files in 1 folder, 4397 bytes")
    (folder / "empty").mkdir()
    assert statistics("empty") == "There are no files in empty"
