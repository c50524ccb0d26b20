"""No path, however spelled or made, reads or changes what lies outside of a folder, or a secret in it."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from antiphon.errors import ToolError
from antiphon.tools.folder import root, writing
from antiphon.tools.folder.names import why_refused
from antiphon.tools.folder.root import FoundFile, Root
from antiphon.tools.folder.writing import FileChanged

WORD = b"outside or secret"
SPELLED = [
    "../out/word.txt", "../../out/word.txt", "docs/../../out/word.txt", "docs/../docs/../../out/word.txt",
    "./../out/word.txt", "docs/./../../out/word.txt", "..//out//word.txt", "docs//..//..//out/word.txt",
    "..", "../", "docs/..", "../inside/../out/word.txt", "../inside/docs/a.md", "docs/../docs/a.md",
    "/etc/passwd", "//etc/passwd", "///etc/passwd", "/proc/self/root/etc/passwd", "/proc/self/cwd/a",
    "/dev/fd/0", "/dev/stdin", "{out}/word.txt", "{inside}/docs/a.md", "~/word.txt", "~root/.profile",
    "$HOME/word.txt", "${{PWD}}/../out/word.txt", "file:///etc/passwd", "file://{out}/word.txt",
    "%2e%2e/out/word.txt", "%2e%2e%2fout%2fword.txt", "..%2fout%2fword.txt", "%252e%252e/out/word.txt",
    "..%c0%af..%c0%afout/word.txt", "\uff0e\uff0e/out/word.txt", "\u2025/out/word.txt",
    "\u2024\u2024/out/word.txt", "..\u2215out\u2215word.txt", "..\uff0fout\uff0fword.txt",
    "..\\out\\word.txt", "docs\\..\\..\\out\\word.txt", "..\\/out/word.txt", "C:\\Windows\\win.ini",
    "C:/Windows/win.ini", "C:word.txt", "c:", "\\\\host\\share\\word.txt", "//host/share/word.txt",
    "\\\\?\\C:\\word.txt", "\\\\.\\pipe\\word", "docs/a.md\x00../../out/word.txt",
    "docs/a.md\x0a../out/word.txt", "docs/a.md\x0d", "\x09../out/word.txt", "docs/\x7fa.md",
    "docs/\x85a.md", "docs/\u202ea.md", "docs/\u2066a.md", "docs/\ud800a.md", "docs/\udcffa.md", "link.txt",
    "own.md", "near.md", "away/word.txt", "away/../out/word.txt", "up/out/word.txt", "loop", "loop/a",
    "chain", "chain/word.txt", "docs/deep/away/word.txt", "gone", "gone/word.txt", "proc",
    "proc/etc/passwd", "hard.txt", "docs/hard.md", "pipe", "socket", "docs", ".", "", "docs/a.md/..",
    "docs/a.md/../../../out/word.txt", "docs/a.md/x",
]  # fmt: skip
SECRET = [
    ".git/config", ".git/hooks/pre-commit", ".GIT/config", ".Git/config", ".git./config", ".git /config",
    ".git::$INDEX_ALLOCATION/config", "git~1/config", "GIT~2/config", ".g\u200cit/config",
    ".gi\ufefft/config", "docs/.git/config", ".hg/hgrc", ".svn/entries", ".env", ".ENV", ".env.local",
    ".env.production", ".env ", "docs/.env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".ssh/id_rsa", ".aws/credentials", ".kube/config", ".docker/config.json", ".mcp.json", ".bash_history",
    ".antiphon/antiphon.db", ".venv/x.py", "id_rsa", "keys/id_ed25519", "server.pem", "server.KEY",
    "docs/cert.p12", "credentials.json", "secrets.yaml", "service-account-1.json", "main.tfstate",
    "node_modules/x.js", "__pycache__/x.pyc", ".hidden", ".config/x", "...",
]  # fmt: skip


@pytest.fixture
def places(tmp_path: Path) -> Path:
    inside, out = tmp_path / "inside", tmp_path / "out"
    (inside / "docs" / "deep").mkdir(parents=True)
    out.mkdir()
    (out / "word.txt").write_bytes(WORD)
    (inside / "docs" / "a.md").write_bytes(b"text\n")
    for name in SECRET:
        with suppress(OSError):
            (inside / name).parent.mkdir(parents=True, exist_ok=True)
            (inside / name).write_bytes(WORD)
    for name, target in (
        ("link.txt", out / "word.txt"), ("own.md", inside / "docs" / "a.md"), ("near.md", "docs/a.md"),
        ("away", out), ("up", ".."), ("loop", "loop"), ("chain", "away"), ("docs/deep/away", out),
        ("gone", out / "none"), ("proc", "/proc/self/root"),
    ):  # fmt: skip
        (inside / name).symlink_to(target)
    (inside / "hard.txt").hardlink_to(out / "word.txt")
    (inside / "docs" / "hard.md").hardlink_to(out / "word.txt")
    os.mkfifo(inside / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(inside / "socket"))
    return tmp_path


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """What lies in a folder, links as what they say."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        known = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path)] = os.readlink(path) if path.is_symlink() else known
    return found


def change(inside: Root, path: str, what: str) -> None:
    """Do one of the things that tools do with a path."""
    parts = inside.parts(path)
    if what == "read" or not parts:
        inside.read(path)
    elif what == "move to":
        writing.move(inside, ("docs", "a.md"), parts, inside.found("docs/a.md"))
    elif what == "move":
        writing.move(inside, parts, ("docs", "moved"), FoundFile(WORD, os.stat(__file__)))
    elif what == "delete":
        writing.take_away(inside, parts, FoundFile(WORD, os.stat(__file__)), "key")
    elif what == "write":
        writing.put(inside, parts, FoundFile(WORD, os.stat(__file__)), b"changed", "key")
    else:
        writing.put(inside, parts, None, b"changed", "key")


@pytest.mark.parametrize("by_component", [True, False])
@pytest.mark.parametrize("path", [*SPELLED, *SECRET])
def test_refused(places: Path, path: str, by_component: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Systems that can not open relative to a folder look for links first.
    monkeypatch.setattr(root, "_BY_COMPONENT", by_component)
    inside = Root(places / "inside")
    said = path.format(out=places / "out", inside=places / "inside")
    outside, secrets = tree(places / "out"), {each: (places / "inside" / each) for each in SECRET}
    for what in ("read", "write", "move", "move to", "delete", "make"):
        before = {each: file.read_bytes() for each, file in secrets.items() if file.is_file()}
        made = what in ("make", "move to") and not why_refused_anywhere(said)
        if made:
            # What is only odd may be the name of a file of one's own, inside.
            with suppress(ToolError, FileChanged, IndexError):
                change(inside, said, what)
        else:
            with pytest.raises((ToolError, FileChanged)):
                change(inside, said, what)
        assert tree(places / "out") == outside
        assert before == {each: file.read_bytes() for each, file in secrets.items() if file.is_file()}
        (places / "inside" / "docs" / "a.md").write_bytes(b"text\n")


def why_refused_anywhere(path: str) -> bool:
    return any(why_refused(part) for part in path.split("/") if part not in ("", ".", ".."))


def test_there_are_more_than_a_hundred() -> None:
    assert len({*SPELLED, *SECRET}) >= 100


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/check.yml", ".gitignore", ".gitattributes", ".editorconfig", ".env.example",
        ".flake8", ".pre-commit-config.yaml", ".GitHub/x.md", "docs/secrets.md", "src/credentials.py",
        "keys.py", "env", "git", "public.pem.md",
    ],
)  # fmt: skip
def test_settings_of_a_project_are_seen(tmp_path: Path, path: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"seen")
    inside = Root(tmp_path)
    assert inside.read(path) == b"seen"
    assert [entry.path for entry in inside.files()] == [path]


def test_what_is_refused_is_not_listed(places: Path) -> None:
    assert [entry.path for entry in Root(places / "inside").files()] == ["docs/a.md"]


@contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    """Meanwhile another thread swaps without a pause."""
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            swap()

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("times", [100, pytest.param(2_000, marks=pytest.mark.slow)])
def test_a_link_swapped_in_between_is_never_followed(
    tmp_path: Path, times: int, exchanges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder and the file in it become links to the outside and back, all the time."""
    if not exchanges:
        monkeypatch.setattr(writing, "_renameat2", lambda: None)
    inside, out, spare = tmp_path / "inside", tmp_path / "out", tmp_path / "spare"
    for folder in (inside / "docs", out):
        folder.mkdir(parents=True)
    (inside / "docs" / "a.md").write_bytes(b"text 0")
    for name in ("a.md", "b.md", "c.md"):
        (out / name).write_bytes(WORD)
    before = tree(out)

    docs, file, kept = inside / "docs", inside / "docs" / "a.md", tmp_path / "kept"

    def swap() -> None:
        swaps = (
            lambda: docs.rename(spare), lambda: docs.symlink_to(out), docs.unlink,
            # What is made there meanwhile is a folder like any other.
            lambda: shutil.rmtree(docs), lambda: spare.rename(docs),
            lambda: file.rename(kept), lambda: file.symlink_to(out / "a.md"), file.unlink,
            lambda: kept.rename(file),
        )  # fmt: skip
        for each in swaps:
            with suppress(OSError):
                each()

    root, written, read = Root(inside), 0, 0
    with swapping(swap):
        for number in range(100 * times):
            if number >= times and read and written:
                break
            with suppress(ToolError, FileChanged):
                found = root.found("docs/a.md")
                assert found.data != WORD
                read += 1
                writing.put(root, ("docs", "a.md"), found, f"text {number}".encode(), "key")
                written += 1
            with suppress(ToolError, FileChanged):
                writing.put(root, ("docs", "b.md"), None, b"made", "other")
            with suppress(ToolError, FileChanged):
                writing.take_away(root, ("docs", "b.md"), FoundFile(b"made", os.stat(__file__)), "third")
            for each in _listed(root):
                with suppress(ToolError):
                    assert root.read(each.path) != WORD
    assert tree(out) == before
    assert read > 0
    assert written > 0


def _listed(root: Root) -> Iterator[root.FolderEntry]:
    with suppress(ToolError):
        yield from root.files("docs")
