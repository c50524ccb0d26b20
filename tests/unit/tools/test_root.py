"""The fence around a folder: no path, link or odd file leads out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.errors import ConfigError, ToolError
from antiphon.tools.folder import root
from antiphon.tools.folder.index import FolderIndex
from antiphon.tools.folder.root import MAX_BYTES, MAX_DEPTH, Root, decoded


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    (inside / "docs" / "deep").mkdir(parents=True)
    (inside / ".git").mkdir()
    (inside / "node_modules").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (inside / "README.md").write_text("Hello there, reader.\n")
    (inside / "docs" / "guide.md").write_text("# Guide\n")
    (inside / "docs" / "deep" / "notes.txt").write_text("deep\n")
    (inside / ".env").write_text("KEY=1")
    (inside / ".git" / "config").write_text("[core]")
    (inside / "node_modules" / "index.js").write_text("x")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "own.md").symlink_to(inside / "README.md")
    (inside / "away").symlink_to(tmp_path)
    (inside / "hard.txt").hardlink_to(tmp_path / "secret.txt")
    os.mkfifo(inside / "pipe")
    return inside


@pytest.mark.parametrize("by_component", [True, False])
def test_reads_and_lists(folder: Path, by_component: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "_BY_COMPONENT", by_component)
    inside = Root(folder)
    assert inside.read("README.md") == inside.read("./README.md") == b"Hello there, reader.\n"
    assert inside.read("docs//deep/notes.txt") == b"deep\n"
    assert [entry.path for entry in inside.files()] == ["README.md", "docs/guide.md", "docs/deep/notes.txt"]
    assert [entry.path for entry in inside.files("docs/")] == ["docs/guide.md", "docs/deep/notes.txt"]
    assert [entry.path for entry in inside.files(limit=1)] == ["README.md"]


REFUSED = [
    ("../secret.txt", "leads out"),
    ("docs/../../secret.txt", "leads out"),
    ("docs/..", "leads out"),
    ("/etc/passwd", "absolute"),
    ("C:\\Windows\\win.ini", "absolute"),
    ("C:secret", "absolute"),
    ("\\\\host\\share", "absolute"),
    ("a\0b", "control character"),
    ("a\nb", "control character"),
    ("x" * 5000, "longer than 1024"),
    ("x" * 300, "There is no file"),
    ("/".join("x" * 500), "There is no file"),
    (".env", "looks like a secret"),
    (".git/config", "keeps the versions"),
    (".hidden", "is hidden"),
    ("node_modules/index.js", "left out"),
    ("link.txt", "symbolic link"),
    ("own.md", "symbolic link"),
    ("hard.txt", "hard link: the same file has another name"),
    ("away/secret.txt", "symbolic link"),
    ("away/inside/README.md", "symbolic link"),
    ("pipe", "not a regular file"),
    ("docs", "a folder"),
    (".", "The folder itself"),
    ("", "The folder itself"),
    ("README.md/x", "There is no file"),
    ("README", "Near: README.md"),
    ("readme.md", "Near: README.md"),
    ("guide.md", "Near: docs/guide.md"),
    ("docs/gude.md", "Near: docs/guide.md"),
    ("zzz", "There is no file zzz$"),
]


@pytest.mark.parametrize("by_component", [True, False])
@pytest.mark.parametrize(("path", "why"), REFUSED)
def test_refused(
    folder: Path, path: str, why: str, by_component: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Systems that can not open relative to a folder look for links first.
    monkeypatch.setattr(root, "_BY_COMPONENT", by_component)
    with pytest.raises(ToolError, match=why):
        Root(folder).read(path)


@pytest.mark.parametrize(
    ("path", "why"),
    [("..", "leads out"), ("away", "link"), ("README.md", "not a folder"), ("doc", "There is no folder")],
)
def test_no_folder(folder: Path, path: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        list(Root(folder).files(path))


def test_a_folder_swapped_for_a_link_is_not_followed(folder: Path) -> None:
    inside = Root(folder)
    listing = inside.files()
    assert next(listing).path == "README.md"
    (folder / "docs").rename(folder / "moved")
    (folder / "docs").symlink_to(folder.parent)
    assert all("secret" not in entry.path for entry in listing)
    with pytest.raises(ToolError, match="symbolic link"):
        inside.read("docs/secret.txt")


def test_sizes_and_depth(folder: Path) -> None:
    inside = Root(folder)
    with pytest.raises(ToolError, match="has 21 bytes; at most 5"):
        inside.read("README.md", 5)
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ToolError, match="at most"):
        inside.read("huge.txt")
    deep = folder / "d"
    for _ in range(MAX_DEPTH + 3):
        deep.mkdir()
        (deep / "f.txt").write_text("x")
        deep = deep / "d"
    assert len(list(inside.files("d"))) <= MAX_DEPTH


def test_a_root_is_a_folder(folder: Path) -> None:
    for path in (folder / "README.md", folder / "missing"):
        with pytest.raises(ConfigError, match="is not a folder"):
            Root(path)
    assert Root(folder / "away").path == folder.parent.resolve()


def test_decoded() -> None:
    assert decoded("Grüße".encode(), "a") == "Grüße"
    assert decoded("\ufeffx".encode(), "a") == "x"
    assert decoded("Grüße".encode("utf-16"), "a") == "Grüße"
    assert decoded("Grüße".encode("latin-1"), "a") == "Grüße"
    for data in (b"\x7fELF\0\0", b"\xff\xfe\x00"):
        with pytest.raises(ToolError, match="text"):
            decoded(data, "a")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.lists(
        st.sampled_from(["..", ".", "docs", "away", "link.txt", "secret.txt", "", "/", "\\", "~"]), max_size=6
    )
)
def test_no_path_reads_the_secret(folder: Path, parts: list[str]) -> None:
    try:
        data = Root(folder).read("/".join(parts))
    except ToolError:
        return
    assert b"secret" not in data


def test_a_hard_link_is_no_document_and_a_copy_of_it_is(folder: Path) -> None:
    index = FolderIndex(Root(folder))
    index.refresh()
    assert not index.search("secret", 5)
    (folder / "copy.txt").write_bytes((folder / "hard.txt").read_bytes())
    index.refresh()
    assert [found.passage.path for found in index.search("secret", 5)] == ["copy.txt"]
