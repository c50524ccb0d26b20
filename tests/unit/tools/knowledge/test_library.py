"""The sources of a process: added ones and the team's own folder, opened once, named where they fail."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from antiphon.errors import ConfigError
from antiphon.tools.knowledge import (
    Federation,
    KnowledgeKey,
    KnowledgeLibrary,
    KnowledgeStore,
    SourceSpec,
)
from antiphon.tools.knowledge.scripted import ScriptedSource

KEY = KnowledgeKey("tides")
PATIENCE = 60.0
"""Seconds that no search takes."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("team", "The moon pulls the sea."), ("notes", "The moon is far."), ("more", "Moon?")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(text)
    return tmp_path


def citations(federation: Federation) -> list[str]:
    return [each.citation for each in asyncio.run(federation.search("moon")).passages]


def missing(federation: Federation) -> dict[str, str]:
    return {each.source: each.text for each in asyncio.run(federation.search("moon")).missing}


def test_the_folder_is_a_source_beside_those_that_were_added(folder: Path) -> None:
    store = KnowledgeStore(folder / "knowledge")
    library = KnowledgeLibrary(store, seconds=PATIENCE)
    federation = library.federation(KEY, folder / "team")
    assert library.federation(KEY, folder / "team") is federation
    assert citations(federation) == ["files/team.md:1-1"]
    store.add(KEY, "notes", str(folder / "notes"))
    assert citations(federation) == ["notes/notes.md:1-1", "files/team.md:1-1"]
    store.remove(KEY, "notes")
    assert citations(federation) == ["files/team.md:1-1"]
    store.add(KEY, "files", str(folder / "more"))
    assert citations(federation) == ["files/more.md:1-1"]
    assert citations(library.federation(KnowledgeKey("other"), folder / "team")) == ["files/team.md:1-1"]
    library.close()


class Leaving(ScriptedSource):
    gone = 0

    def let_go(self) -> None:
        self.gone += 1

    async def left(self) -> None:
        """It has."""


def test_a_source_that_is_no_folder_is_searched_and_let_go_of(folder: Path) -> None:
    papers = Leaving("papers", {"p1": "The moon is far."})
    store = KnowledgeStore(folder / "knowledge", elsewhere=lambda spec: papers)
    store.keep(KEY, SourceSpec("papers", web="brave"))
    library = KnowledgeLibrary(store, seconds=PATIENCE)
    federation = library.federation(KEY, folder / "team")
    assert citations(federation) == ["papers/p1:1-1", "files/team.md:1-1"]
    assert [each.name for each in library.folders()] == ["files"]
    store.remove(KEY, "papers")
    assert citations(federation) == ["files/team.md:1-1"]
    assert papers.gone == 1
    store.keep(KEY, SourceSpec("papers", web="brave"))
    federation.sources()
    library.close()
    assert papers.gone == 2


def test_one_source_is_opened_once(folder: Path) -> None:
    store = KnowledgeStore(folder / "knowledge")
    store.add(KEY, "notes", str(folder / "notes"))
    library = KnowledgeLibrary(store, seconds=PATIENCE)
    first = library.federation(KEY, folder / "team").sources()
    assert library.federation(KEY, folder / "more").sources()["notes"] is first["notes"]
    assert len(library.folders()) == 3


def test_without_a_store_the_folder_is_all(folder: Path) -> None:
    assert citations(KnowledgeLibrary(seconds=PATIENCE).federation(KEY, folder / "team")) == [
        "files/team.md:1-1"
    ]
    with pytest.raises(ConfigError, match="is not a folder"):
        KnowledgeLibrary().federation(KEY, folder / "none")
    assert sorted(each.name for each in folder.iterdir()) == ["more", "notes", "team"]


def test_a_source_that_cannot_be_opened_is_named_and_comes_back(folder: Path) -> None:
    store = KnowledgeStore(folder / "knowledge")
    store.add(KEY, "notes", str(folder / "notes"))
    (folder / "notes").rename(folder / "away")
    federation = KnowledgeLibrary(store, seconds=PATIENCE).federation(KEY, folder / "team")
    assert citations(federation) == ["files/team.md:1-1"]
    assert "is not a folder" in missing(federation)["notes"]
    (folder / "away").rename(folder / "notes")
    assert citations(federation) == ["notes/notes.md:1-1", "files/team.md:1-1"]
    (folder / "knowledge" / "tides" / "-" / "notes" / "source.json").write_text("{")
    assert "remove the source" in missing(federation)["notes"]
