"""The index of a folder: it holds what the files hold, read again only where they differ."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from antiphon.errors import ConfigError, ToolError
from antiphon.tools.folder.index import FolderIndex, IndexBounds, learning, searching
from antiphon.tools.folder.readers import pdf
from antiphon.tools.folder.root import Root
from tests.unit.tools import documents_made
from tests.unit.tools.documents_made import held

LATER = 4_000_000_000_000_000_000
"""A time of day at which every file was changed long ago."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "tides.md").write_text("# Tides\n\nThe moon pulls the sea.\n")
    (folder / "deep" / "ships.md").write_text("# Ships\n\nA ship needs a harbour.\n")
    (folder / "pump.py").write_text("def pump():\n    '''Pump water.'''\n")
    return folder


def index_of(folder: Path, path: Path | None = None, **options: object) -> FolderIndex:
    options.setdefault("clock", lambda: LATER)
    return FolderIndex(Root(folder), str(path) if path else None, **options)  # type: ignore[arg-type]


def found(index: FolderIndex, query: str) -> list[str]:
    return [match.passage.path for match in index.search(query, 10)]


def test_what_a_look_changed_is_told(folder: Path) -> None:
    index = index_of(folder)
    first = index.refresh()
    assert first.added == ("deep/ships.md", "tides.md", "pump.py")
    assert not index.refresh()
    (folder / "tides.md").write_text("# Tides\n\nThe sun pulls it too.\n")
    (folder / "new.txt").write_text("A lighthouse.\n")
    (folder / "pump.py").unlink()
    second = index.refresh()
    assert (second.added, second.changed, second.removed) == (("new.txt",), ("tides.md",), ("pump.py",))
    assert found(index, "moon") == []
    assert found(index, "sun") == ["tides.md"]
    assert found(index, "lighthouse") == ["new.txt"]


def test_an_unchanged_file_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(folder)
    index.refresh()
    monkeypatch.setattr(Root, "read", None)
    assert not index.refresh()
    assert index.refresh().seen == 3


def test_a_file_changed_just_before_it_was_read_is_read_again(folder: Path) -> None:
    path = folder / "tides.md"
    index = index_of(folder, clock=lambda: path.stat().st_mtime_ns + 1)
    index.refresh()
    before = path.stat()
    path.write_text(path.read_text().replace("moon", "wind"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert index.refresh().changed == ("tides.md",), "same size, same time of change, another text"
    assert found(index, "wind") == ["tides.md"]


def test_a_touched_file_is_no_change_and_a_moved_one_keeps_its_passages(folder: Path) -> None:
    index = index_of(folder)
    index.refresh()
    os.utime(folder / "tides.md", ns=(5, 5))
    assert not index.refresh()
    with index.using() as connection:
        keys = set(connection.execute("select key from passages").fetchall())
    (folder / "sea").mkdir()
    (folder / "tides.md").rename(folder / "sea" / "tides.md")
    index.refresh()
    assert found(index, "moon") == ["sea/tides.md"]
    with index.using() as connection:
        assert set(connection.execute("select key from passages").fetchall()) == keys
    (folder / "copy").mkdir()
    (folder / "copy" / "tides.md").write_bytes((folder / "sea" / "tides.md").read_bytes())
    index.refresh()
    with index.using() as connection:
        assert len(set(connection.execute("select key from passages").fetchall())) == len(keys)
    assert found(index, "moon") == ["copy/tides.md"], "one passage, under the first of its names"
    (folder / "copy" / "tides.md").unlink()
    index.refresh()
    assert found(index, "moon") == ["sea/tides.md"]


def test_what_can_not_be_read_is_a_finding_until_it_changes(folder: Path) -> None:
    odd = folder / "odd.md"
    odd.write_bytes(b"text\0binary")
    index = index_of(folder)
    assert [each.path for each in index.refresh().unreadable] == ["odd.md"]
    assert [(each.path, each.reason) for each in index.unreadable()] == [
        ("odd.md", "odd.md is a binary file, not text")
    ]
    assert not index.refresh(), "nothing changed, so it is not tried again"
    odd.write_text("Readable now.\n")
    assert index.refresh().changed == ("odd.md",)
    assert index.unreadable() == []
    assert found(index, "readable") == ["odd.md"]


def test_a_file_that_is_too_large_is_a_finding_and_is_not_read(folder: Path) -> None:
    with (folder / "large.md").open("wb") as file:
        file.truncate(100_000_000)
    index = index_of(folder)
    assert [each.reason for each in index.refresh().unreadable] == [
        "large.md has 100000000 bytes; at most 20000000 are read"
    ]


def test_a_folder_that_can_not_be_listed_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = Root._scan

    def refuse(root: Root, parts: tuple[str, ...]) -> list[tuple[str, os.stat_result]]:
        if parts == ("deep",):
            raise PermissionError(13, "Permission denied")
        return scan(root, parts)

    index = index_of(folder)
    with monkeypatch.context() as patched:
        patched.setattr(Root, "_scan", refuse)
        assert [each.path for each in index.refresh().unreadable] == ["deep/"]
        assert index.refresh().removed == ()
    index.refresh()
    assert index.unreadable() == []
    assert found(index, "harbour") == ["deep/ships.md"]


def test_a_folder_that_is_gone_leaves_the_index_as_it_was(folder: Path) -> None:
    index = index_of(folder)
    index.refresh()
    folder.rename(folder.parent / "away")
    with pytest.raises(ToolError):
        index.refresh()
    with pytest.raises(ToolError, match="is gone"):
        index.refresh(["tides.md"])
    assert found(index, "moon") == ["tides.md"]


def test_only_what_is_named_is_looked_at(folder: Path) -> None:
    index = index_of(folder)
    index.refresh()
    (folder / "tides.md").unlink()
    (folder / "deep" / "more.md").write_text("An anchor holds.\n")
    (folder / "deep" / "ships.md").unlink()
    changes = index.refresh(["deep"])
    assert (changes.added, changes.removed) == (("deep/more.md",), ("deep/ships.md",))
    assert found(index, "moon") == ["tides.md"]
    assert index.refresh(["tides.md", "deep/none.md", "../out", "/etc"]).removed == ("tides.md",)
    assert index.refresh(["deep-not", "deep/more.md/x"]) == learning.Changes()


def test_a_link_out_of_the_folder_is_not_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("The password is swordfish.\n")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    index = index_of(folder)
    index.refresh()
    index.refresh(["link.md", "linked", "linked/secret.md"])
    assert found(index, "swordfish") == []


@pytest.mark.parametrize(
    "query",
    [
        '"', "'", '" OR "', "moon AND", "NOT moon", "name:moon", "moon*", "^moon", "NEAR(moon sea)", "{",
        "moon) OR (1", "words MATCH 'x'", "\0moon", "\ud800", "moon" * 5000, "* * *", "-moon", "a" * 100_000,
        "'; drop table files; --", "{name body}: moon", "moon + sea", "\u202emoon", "🌊", "moon sea " * 2000,
    ],
)  # fmt: skip
def test_nothing_in_a_query_is_syntax(folder: Path, query: str) -> None:
    index = index_of(folder)
    index.refresh()
    assert {match.passage.path for match in index.search(query, 10)} <= {"tides.md", "deep/ships.md"}
    assert found(index, "moon") == ["tides.md"]


def test_what_is_kept_within_bounds_does_not_depend_on_the_order_of_events(folder: Path) -> None:
    bounds = IndexBounds(documents=2)
    index = index_of(folder, bounds=bounds)
    assert index.refresh().left_out == 1
    (folder / "a.md").write_text("First by name.\n")
    index.refresh()
    assert held(index) == held_anew(folder, bounds=bounds)
    assert found(index, "first") == ["a.md"]
    assert index.stats().left_out == 2
    (folder / "a.md").unlink()
    assert index.refresh(["a.md"]).added == ("tides.md",), "what frees a place lets in what was left out"
    assert held(index) == held_anew(folder, bounds=bounds)
    (folder / "b.md").write_text("First again.\n")
    index.refresh(["b.md"])
    assert held(index) == held_anew(folder, bounds=bounds)


def held_anew(folder: Path, **options: object) -> dict[str, object]:
    anew = index_of(folder, **options)
    anew.refresh()
    return held(anew)


def test_a_file_keeps_the_index_and_nobody_else_may_read_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "index" / "docs.db"
    first = index_of(folder, path)
    first.refresh()
    first.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = index_of(folder, path)
    assert found(again, "moon") == ["tides.md"], "without a look at the files"
    assert not again.refresh()
    assert held(again) == held_anew(folder)


def test_another_folders_index_and_another_programs_file_are_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    index_of(folder, path).close()
    with pytest.raises(ConfigError, match="is the index of"):
        index_of(tmp_path, path)
    with pytest.raises(ConfigError, match="is the index of"):
        index_of(folder, path, subject=f"{folder} of somebody else")
    foreign = tmp_path / "foreign.db"
    connection = apsw.Connection(str(foreign))
    connection.execute("create table theirs(x)")
    connection.close()
    with pytest.raises(ConfigError, match="another program's"):
        index_of(folder, foreign)
    with pytest.raises(ConfigError, match="can not be opened"):
        index_of(folder, folder)
    with pytest.raises(ConfigError, match="another program's"):
        index_of(folder, folder / "tides.md")
    assert (folder / "tides.md").read_text().startswith("# Tides"), "what is no index is never deleted"


def test_a_damaged_index_is_built_anew(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    index = index_of(folder, path)
    index.refresh()
    index.close()
    whole = path.read_bytes()
    for damage in (b"", whole[:72] + b"\xff" * 4096, whole[:5000]):
        path.write_bytes(damage)
        index = index_of(folder, path)
        index.refresh()
        assert held(index) == held_anew(folder)
        index.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xaa" * (len(data) - 4096)
    path.write_bytes(data)
    index = index_of(folder, path)
    index.refresh()
    assert held(index) == held_anew(folder)


def test_another_format_is_built_anew(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "docs.db"
    index = index_of(folder, path)
    index.refresh()
    index.close()
    monkeypatch.setattr("antiphon.tools.folder.index.file.FORMAT", 99)
    index = index_of(folder, path)
    assert index.stats().files == 0
    index.refresh()
    assert held(index) == held_anew(folder)


def test_two_processes_may_share_one_index(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    for at in range(200):
        (folder / f"n{at}.md").write_text(f"# Note {at}\n\nAbout wave number {at}.\n")
    indexes = [index_of(folder, path) for _ in range(3)]
    threads = [threading.Thread(target=index.refresh) for index in indexes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in indexes:
        assert held(index) == held_anew(folder)


def test_progress_is_told_in_files_and_bytes(folder: Path) -> None:
    told: list[learning.IndexProgress] = []
    index_of(folder).refresh(progress=told.append)
    assert [(each.done, each.total) for each in told] == [(1, 3), (2, 3), (3, 3)]
    assert (
        told[-1].bytes_done
        == told[-1].bytes_total
        == sum((folder / name).stat().st_size for name in ("tides.md", "pump.py", "deep/ships.md"))
    )


def test_a_search_does_not_wait_for_documents_that_are_read(folder: Path) -> None:
    index = index_of(folder)
    index.refresh()
    (folder / "tides.md").write_text("The sun.\n")
    seen: list[list[str]] = []
    index.refresh(progress=lambda _: seen.append(found(index, "moon")))
    assert seen == [["tides.md"]]
    assert found(index, "moon") == []


def test_what_nobody_here_could_read_is_read_once_somebody_can(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tides.pdf").write_bytes(documents_made.pdf("Neap tides."))
    index = index_of(folder)
    with monkeypatch.context() as without:
        without.setattr(pdf, "is_installed", lambda name: False)
        assert "antiphon[knowledge]" in index.refresh().unreadable[0].reason
        without.setattr(Root, "read", None)
        assert not index.refresh(), "until then it costs a stat"
    assert index.refresh().changed == ("tides.pdf",)
    assert found(index, "neap") == ["tides.pdf"]


def test_an_index_that_can_not_be_written_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def full(connection: apsw.Connection) -> Iterator[None]:
        raise apsw.FullError("database or disk is full")
        yield

    monkeypatch.setattr(learning, "writing", full)
    with pytest.raises(ToolError, match="The index can not be written: database or disk is full"):
        index_of(folder).refresh()


def test_names_that_are_not_utf8_do_no_harm(folder: Path) -> None:
    name = os.fsencode(str(folder)) + b"/caf\xe9.md"
    try:
        with open(name, "wb") as file:
            file.write(b"Coffee.\n")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    index = index_of(folder)
    assert [each.path for each in index.refresh().unreadable] == ["caf\ufffd.md"]
    assert found(index, "moon") == ["tides.md"]


@pytest.fixture
def large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FolderIndex:
    """An index of many passages, as far as its searches know: all of them hold `sea`, a third `moon`."""
    monkeypatch.setattr(searching, "LARGE", 10)
    for number in range(100):
        moon = "the moon " if not number % 3 else ""
        (folder / f"{number:03}.md").write_text(f"The sea and {moon}number n{number}.\n")
    (folder / "one.md").write_text("A tide in a stormless sea.\n")
    (folder / "two.md").write_text("A tide, a moon, a sea.\n")
    return index_of(folder)


def test_of_many_passages_those_with_the_rarest_terms_are_scored_by_all_terms(large: FolderIndex) -> None:
    large.refresh()
    assert found(large, "sea moon tide") == ["two.md", "one.md"]
    assert found(large, "moon n7 sea")[:1] == ["007.md"]
    # Common terms alone are asked for, all the same.
    common = large.search("sea moon", 60)
    assert len(common) > 30
    assert all("moon" in each.passage.text.lower() for each in common)
    assert large.rank("zeppelin", 60) == []
    # What passages share of all that is asked: 0 to 1, whoever is scored.
    assert all(
        0 < each.score < 1 for query in ("sea moon tide", "sea", "n7") for each in large.rank(query, 60)
    )


def test_how_common_a_term_is_follows_the_files(large: FolderIndex, folder: Path) -> None:
    large.refresh()
    assert found(large, "sea storm") == found(large, "sea")
    (folder / "three.md").write_text("A storm.\n")
    large.refresh()
    assert found(large, "sea storm") == ["three.md"]
