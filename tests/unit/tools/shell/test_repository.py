"""What git would run is put back, also what a keeper left behind that was killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from antiphon.tools.shell.keeping import place

if sys.platform != "win32":
    from antiphon.tools.shell.keeping.repository import Guard

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are run on Linux and macOS only")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "place"
    (found / ".git" / "hooks").mkdir(parents=True)
    (found / ".git" / "modules" / "a" / "hooks").mkdir(parents=True)
    (found / ".git" / "config").write_text("[core]\n")
    (found / ".git" / "hooks" / "post-commit").write_text("#!/bin/sh\n")
    (found / ".git" / "hooks" / "pre-commit.sample").write_text("#!/bin/sh\n")
    (found / ".git" / "hooks" / "linked").symlink_to("post-commit")
    (tmp_path / "kept").mkdir()
    return found


def guard(folder: Path) -> Guard:
    return Guard(str(folder), str(folder.parent / "shared"), str(folder.parent / "kept"))


def test_what_is_as_it_was_is_not_told(folder: Path) -> None:
    watched = guard(folder)
    (folder / ".git" / "index").write_text("x")
    (folder / ".git" / "hooks" / "pre-commit.sample").write_text("x")
    watched.close()
    assert watched.told == []


def test_each_change_is_put_back_and_told_once(folder: Path) -> None:
    watched, git = guard(folder), folder / ".git"
    for _ in range(2):
        (git / "config").write_text("[core]\npager = evil\n")
        (git / "hooks" / "post-commit").unlink()
        (git / "hooks" / "linked").unlink()
        (git / "hooks" / "pre-push").mkdir()
        (git / "modules" / "a" / "hooks" / "x").write_text("x")
        (git / "commondir").symlink_to("/evil")
        watched.check()
    watched.close()
    assert watched.told == [
        ".git/commondir was made, and was taken away",
        ".git/config was changed, and was put back as it was",
        ".git/hooks/linked was removed, and was put back as it was",
        ".git/hooks/post-commit was removed, and was put back as it was",
        ".git/hooks/pre-push was made, and was taken away",
        ".git/modules/a/hooks/x was made, and was taken away",
    ]
    assert (git / "config").read_text() == "[core]\n"
    assert (git / "hooks" / "post-commit").read_text() == "#!/bin/sh\n"
    assert os.readlink(git / "hooks" / "linked") == "post-commit"
    assert not (git / "commondir").is_symlink()
    assert (folder.parent / "kept" / "changed-.git-config").read_text() == "[core]\npager = evil\n"


def test_no_link_leads_out_when_it_is_put_back(folder: Path) -> None:
    watched, git, out = guard(folder), folder / ".git", folder.parent / "out"
    out.mkdir()
    (git / "hooks").rename(git / "away")
    (git / "hooks").symlink_to(out)
    watched.check()
    watched.close()
    assert list(out.iterdir()) == []
    assert (git / "hooks" / "post-commit").read_text() == "#!/bin/sh\n"


def test_what_a_killed_keeper_left_is_put_back_by_the_next(folder: Path) -> None:
    killed = guard(folder)
    os.close(killed._lock)
    (folder / ".git" / "config").write_text("[core]\npager = evil\n")
    after = guard(folder)
    assert after.told == [".git/config was changed, and was put back as it was"]
    after.close()
    assert (folder / ".git" / "config").read_text() == "[core]\n"
    # Nobody watches now, so the next one begins with what stands there.
    (folder / ".git" / "config").write_text("[user]\n")
    last = guard(folder)
    last.close()
    assert last.told == []


def test_those_that_watch_at_once_share_the_beginning(folder: Path) -> None:
    first = guard(folder)
    (folder / ".git" / "config").write_text("[core]\npager = evil\n")
    second = guard(folder)
    first.close()
    second.close()
    assert (folder / ".git" / "config").read_text() == "[core]\n"


def test_a_repository_that_is_made_or_removed_is_told(folder: Path) -> None:
    watched = guard(folder)
    (folder / ".git").rename(folder / "elsewhere")
    watched.close()
    assert watched.told == [".git was removed"]
    watched = guard(folder)
    (folder / "elsewhere").rename(folder / ".git")
    watched.close()
    assert watched.told == ["a git repository was made here"]
    assert (folder / ".git" / "config").exists()


def test_a_record_is_read_as_it_was_written_or_not_at_all() -> None:
    fields = {"words": ["a", "", "b\n"], "none": [], "bytes": [os.fsdecode(b"\xff")], "end": ["end"]}
    data = place.pack(fields)
    assert place.unpack(data) == fields
    for length in range(len(data)):
        with pytest.raises((ValueError, IndexError)):
            place.unpack(data[:length])


def test_what_has_begun_does_not_begin_again(tmp_path: Path) -> None:
    assert place.begin(str(tmp_path), b"first")
    assert not place.begin(str(tmp_path), b"second")
    assert place.read(str(tmp_path), "begun") == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["begun"]
