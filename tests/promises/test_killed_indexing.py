"""An index that is killed anywhere equals, after the next look at the files, one built anew."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from antiphon.tools.folder.index import FolderIndex, learning
from antiphon.tools.folder.root import Root
from tests.unit.tools.documents_made import held

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process that it has forked")


def write(folder: Path) -> None:
    folder.mkdir()
    for at in range(4):
        (folder / f"n{at}.md").write_text(f"# Note {at}\n\nAbout wave {at}.\n\n# More\n\nOf wave {at}.\n")
    (folder / "odd.md").write_bytes(b"\0")


def change(folder: Path) -> None:
    """Edited, moved, removed, copied, mended and added, all at once."""
    (folder / "n0.md").write_text("# Note 0\n\nAnother text.\n")
    (folder / "sub").mkdir()
    (folder / "n1.md").rename(folder / "sub" / "n1.md")
    (folder / "n2.md").unlink()
    (folder / "sub" / "n3.md").write_bytes((folder / "n3.md").read_bytes())
    (folder / "odd.md").write_text("Readable.\n")
    (folder / "new.md").write_text("# New\n\nA buoy.\n")


def embed(index: FolderIndex) -> None:
    """Vectors that follow from the texts, two at a time."""
    while waiting := index.unembedded(2):
        index.store_vectors([(digest, digest * 2) for digest, _ in waiting])


def kill_at(folder: Path, path: Path, point: int, told: list[str] | None) -> bool:
    """Bring the index up to date in a process that is killed at its statement `point`; whether it was.

    told: the paths that a monitor says have changed; None: it looks at all of them.
    """
    child = os.fork()
    if child == 0:
        count = 0

        def next_statement(cursor: Any, sql: str, bindings: Any) -> bool:
            nonlocal count
            count += 1
            if count == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

        index = FolderIndex(Root(folder), str(path))
        with index.using() as connection:
            connection.exec_trace = next_statement
        index.refresh(told)
        embed(index)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begun", "told"),
    [(False, None), (True, None), (True, ["n0.md", "n1.md", "n2.md", "sub", "odd.md", "new.md"])],
)
def test_killed_at_every_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool, told: list[str] | None
) -> None:
    monkeypatch.setattr(learning, "BATCH", 2)
    folder, start = tmp_path / "docs", tmp_path / "start.db"
    write(folder)
    if begun:
        index = FolderIndex(Root(folder), str(start))
        index.refresh()
        embed(index)
        index.close()
        change(folder)
    anew = FolderIndex(Root(folder))
    anew.refresh()
    embed(anew)
    expected = held(anew)
    point, killed = 0, True
    while killed:
        point += 1
        path = tmp_path / f"{point}.db"
        if begun:
            shutil.copy(start, path)
        killed = kill_at(folder, path, point, told)
        after = FolderIndex(Root(folder), str(path))
        after.refresh()
        embed(after)
        assert held(after) == expected, f"killed at statement {point}"
        after.close()
    assert point > 40
