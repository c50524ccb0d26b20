"""Folders followed: what changes is found by the next search, and what changed while nobody looked."""

from __future__ import annotations

import asyncio
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from antiphon.errors import ConfigError
from antiphon.tools.folder.index import Changes
from antiphon.tools.knowledge import FolderSource, KnowledgeKey, KnowledgeLibrary, KnowledgeStore
from antiphon.tools.knowledge.monitor import FolderMonitor, followed, watch_folders
from antiphon.tools.knowledge.vectors.model import Embeddings

KEY = KnowledgeKey()
PATIENCE = 30.0
"""Seconds, of which a working monitor needs none."""


def no_model() -> NoReturn:
    raise ConfigError("none in these tests")


class Watched:
    """A library with one folder, and what its monitor says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "docs"
        self.folder.mkdir()
        self.store = KnowledgeStore(folder / "knowledge", Embeddings(no_model))
        self.library = KnowledgeLibrary(self.store, seconds=PATIENCE)
        self.federation = self.library.federation(KEY, self.folder)
        self.told: queue.Queue[tuple[str, Changes]] = queue.Queue()
        self.events: queue.Queue[set[str] | Exception | None] = queue.Queue()

    @property
    def source(self) -> FolderSource:
        found = self.federation.sources()["files"]
        assert isinstance(found, FolderSource)
        return found

    def watch(self, folders: list[str], stop: threading.Event) -> Iterator[set[str]]:
        """What the test says; until it says something, nothing has changed."""
        yield set()
        while not stop.is_set():
            try:
                event = self.events.get(timeout=0.01)
            except queue.Empty:
                yield set()
                continue
            if event is None:
                return
            if isinstance(event, Exception):
                raise event
            yield event

    def monitor(self, **options: object) -> FolderMonitor:
        options.setdefault("watch", self.watch)
        return FolderMonitor(
            self.library,
            told=lambda source, changes: self.told.put((source.name, changes)),
            **options,  # type: ignore[arg-type]
        )

    def next(self) -> Changes:
        return self.told.get(timeout=PATIENCE)[1]

    def found(self, query: str) -> list[str]:
        return [each.citation for each in asyncio.run(self.federation.search(query)).passages]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    found = Watched(tmp_path)
    yield found
    found.library.close()


def test_what_changed_while_nothing_ran_is_found_at_the_start(watched: Watched) -> None:
    (watched.folder / "moon.md").write_text("The moon.\n")
    (watched.folder / "old.md").write_text("An old text.\n")
    assert watched.found("moon") == ["files/moon.md:1-1"]
    (watched.folder / "moon.md").write_text("The sun, and more.\n")
    (watched.folder / "old.md").rename(watched.folder / "new.md")
    with watched.monitor():
        changes = watched.next()
    assert (changes.added, changes.changed, changes.removed) == (("new.md",), ("moon.md",), ("old.md",))


def test_a_folder_that_nobody_asked_for_is_not_indexed(watched: Watched, tmp_path: Path) -> None:
    (watched.folder / "moon.md").write_text("The moon.\n")
    watched.store.add(KEY, "notes", str(watched.folder))
    with watched.monitor():
        watched.source.index.refresh([])
        assert watched.told.get(timeout=PATIENCE)[0] == "files"
    assert not (tmp_path / "knowledge" / "-" / "-" / "notes" / "index.db").exists()


def test_only_what_is_told_is_looked_at_and_a_search_looks_no_more(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    (watched.folder / "moon.md").write_text("The moon.\n")
    watched.source.index.refresh([])
    with watched.monitor():
        assert watched.next().added == ("moon.md",)
        looks: list[object] = []
        refresh = watched.source.index.refresh
        monkeypatch.setattr(
            watched.source.index,
            "refresh",
            lambda paths=None, progress=None: looks.append(paths) or refresh(paths),
        )
        (watched.folder / "sub").mkdir()
        (watched.folder / "sub" / "sun.md").write_text("The sun.\n")
        hidden = [watched.folder / ".git" / "x.md", watched.folder.parent / "knowledge" / "a.db"]
        watched.events.put({str(each) for each in [watched.folder / "sub", *hidden]})
        assert watched.next().added == ("sub/sun.md",)
        assert watched.found("sun") == ["files/sub/sun.md:1-1"]
        (watched.folder / "moon.md").unlink()
        assert watched.found("moon") == ["files/moon.md:1-1"], "nobody has told it yet"
        watched.events.put({str(watched.folder / "moon.md")})
        assert watched.next().removed == ("moon.md",)
        assert looks == [{"sub"}, {"moon.md"}]
    assert not watched.source.watched


def test_a_source_that_is_added_later_is_followed_too(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A note.\n")
    (watched.folder / "moon.md").write_text("The moon.\n")
    watched.source.index.refresh([])
    with watched.monitor():
        assert watched.told.get(timeout=PATIENCE)[0] == "files"
        spec = watched.store.add(KEY, "notes", str(tmp_path / "notes"))
        watched.store.open(KEY, spec).index.close()
        assert watched.told.get(timeout=PATIENCE)[0] == "notes"


@pytest.mark.parametrize("error", [OSError(28, "no watches left"), RuntimeError("the system says no")])
def test_a_system_that_does_not_tell_leaves_the_look_to_searches(
    watched: Watched, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    (watched.folder / "moon.md").write_text("The moon.\n")
    watched.source.index.refresh([])
    with watched.monitor():
        watched.next()
        watched.events.put(error)
        until(lambda: not watched.source.watched)
        (watched.folder / "sun.md").write_text("The sun.\n")
        assert watched.found("sun") == ["files/sun.md:1-1"]
    assert next(each.getMessage() for each in caplog.records).startswith("Folders are not followed")


def test_a_look_that_ends_after_the_system_fell_silent_does_not_stop_searches_from_looking(
    watched: Watched,
) -> None:
    (watched.folder / "moon.md").write_text("The moon.\n")
    watched.source.index.refresh([])
    reading, begun, go_on = watched.source.root.read, threading.Event(), threading.Event()

    def read(relative: str, limit: int = 0) -> bytes:
        begun.set()
        go_on.wait(PATIENCE)
        return reading(relative)

    watched.source.root.read = read  # type: ignore[method-assign]
    with watched.monitor() as monitor:
        assert begun.wait(PATIENCE)
        watched.events.put(OSError(28, "no watches left"))
        until(lambda: not monitor.follows)
        go_on.set()
        assert watched.next().added == ("moon.md",)
        (watched.folder / "sun.md").write_text("The sun.\n")
        assert watched.found("sun") == ["files/sun.md:1-1"]
        assert not watched.source.watched


def test_a_folder_that_is_gone_is_named_by_the_search(watched: Watched) -> None:
    (watched.folder / "moon.md").write_text("The moon.\n")
    watched.source.index.refresh([])
    with watched.monitor():
        watched.next()
        watched.folder.rename(watched.folder.parent / "away")
        watched.events.put({str(watched.folder)})
        until(lambda: not watched.source.watched)
        found = asyncio.run(watched.federation.search("moon"))
        assert [each.text for each in found.missing] == ["The folder docs is gone"]


def test_a_large_document_of_one_source_holds_up_no_other(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "a.md").write_text("A slow one.\n")
    (watched.folder / "moon.md").write_text("The moon.\n")
    slow = watched.library.federation(KnowledgeKey("slow"), tmp_path / "slow").sources()["files"]
    assert isinstance(slow, FolderSource)
    go_on = threading.Event()
    reading = slow.root.read

    def read(relative: str, limit: int = 0) -> bytes:
        go_on.wait(PATIENCE)
        return reading(relative)

    slow.root.read = read  # type: ignore[method-assign]
    for each in (slow, watched.source):
        each.index.refresh([])
    with watched.monitor():
        assert watched.next().added == ("moon.md",)
        go_on.set()
        assert watched.next().added == ("a.md",)


@pytest.mark.slow
def test_the_system_tells_of_edits_moves_and_deletes(watched: Watched) -> None:
    """The true system: within 2 s of a change the next search finds it, and looks at nothing itself."""
    moon, sub = watched.folder / "moon.md", watched.folder / "sub"
    moon.write_text("The moon.\n")
    watched.source.index.refresh([])
    with watched.monitor(watch=watch_folders):
        assert watched.next().added == ("moon.md",)
        until(lambda: watched.source.watched)

        def found_soon(query: str, expected: list[str]) -> None:
            start = time.monotonic()
            until(lambda: watched.found(query) == expected)
            assert time.monotonic() - start < 2
            assert watched.source.watched

        moon.write_text("The moon and the sea.\n")
        found_soon("sea", ["files/moon.md:1-1"])
        draft = watched.folder / ".draft"
        draft.write_text("Put in place as an editor does.\n")
        os.replace(draft, moon)
        found_soon("editor", ["files/moon.md:1-1"])
        sub.mkdir()
        moon.rename(sub / "moon.md")
        found_soon("editor", ["files/sub/moon.md:1-1"])
        sub.rename(watched.folder / "other")
        found_soon("editor", ["files/other/moon.md:1-1"])
        shutil.rmtree(watched.folder / "other")
        found_soon("editor", [])


def test_without_watchfiles_nothing_is_followed(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.tools.knowledge.monitor.is_installed", lambda name: False)
    watched.source.index.refresh([])
    before = threading.active_count()
    with followed(watched.library):
        assert threading.active_count() == before
