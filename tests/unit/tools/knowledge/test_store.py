"""Sources that were added: each under its project and its owner, and no query crosses them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from antiphon.errors import ConfigError, DuplicateName, UnknownName, UserError
from antiphon.tools.knowledge import Federation, KnowledgeKey, KnowledgeStore, McpSearch, SourceSpec
from antiphon.tools.knowledge.scripted import ScriptedSource

ANA, BEN, ALL = KnowledgeKey("tides", "ana"), KnowledgeKey("tides", "ben"), KnowledgeKey()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "moon.md").write_text("The moon pulls the sea.\n")
    return folder


def test_sources_are_added_listed_and_removed(tmp_path: Path, folder: Path) -> None:
    store = KnowledgeStore(tmp_path / "knowledge")
    assert store.names(ANA) == []
    added = store.add(ANA, "sea", str(folder), "on the sea")
    assert (added.folder, added.description) == (str(folder.resolve()), "on the sea")
    assert KnowledgeStore(tmp_path / "knowledge").spec(ANA, "sea") == added
    assert store.known_keys() == [ANA]
    for name in ("sea", "SEA"):
        with pytest.raises(DuplicateName):
            store.add(ANA, name, str(folder))
    for key, name in ((BEN, "sea"), (ALL, "sea"), (ANA, "lake")):
        with pytest.raises(UnknownName):
            store.remove(key, name)
    store.remove(ANA, "sea")
    assert store.names(ANA) == []
    assert (folder / "moon.md").is_file()
    assert store.add(ANA, "sea", str(folder)).name == "sea"


def test_what_cannot_be_a_source_is_refused(tmp_path: Path, folder: Path) -> None:
    store = KnowledgeStore(tmp_path / "knowledge")
    for name in ("../sea", "a/b", "", ".hidden"):
        with pytest.raises(UserError, match="A source is named by"):
            store.add(ALL, name, str(folder))
    with pytest.raises(UserError):
        store.add(KnowledgeKey("..", ""), "sea", str(folder))
    with pytest.raises(ConfigError, match="is not a folder"):
        store.add(ALL, "sea", str(folder / "moon.md"))
    assert not (tmp_path / "knowledge").exists()


def test_no_query_crosses_keys(tmp_path: Path, folder: Path) -> None:
    store = KnowledgeStore(tmp_path / "knowledge")
    store.add(ANA, "sea", str(folder))

    def found(key: KnowledgeKey) -> list[str]:
        names = store.names(key)
        federation = Federation([store.open(key, store.spec(key, each)) for each in names], seconds=60)
        return [each.citation for each in asyncio.run(federation.search("moon")).passages]

    assert found(ANA) == ["sea/moon.md:1-1"]
    assert found(BEN) == found(ALL) == found(KnowledgeKey("tides")) == found(KnowledgeKey("", "ana")) == []
    stolen = tmp_path / "knowledge" / "tides" / "ben"
    stolen.parent.joinpath("ana").rename(stolen)
    federation = Federation([store.open(BEN, store.spec(BEN, "sea"))], seconds=60)
    assert "is the index of" in asyncio.run(federation.search("moon")).missing[0].text


def test_an_index_that_is_kept_is_not_made_again(tmp_path: Path, folder: Path) -> None:
    store = KnowledgeStore(tmp_path / "knowledge")
    spec = store.add(ALL, "sea", str(folder))
    first = store.open(ALL, spec)
    assert asyncio.run(first.changes()).added == ("moon.md",)
    first.close()
    assert asyncio.run(store.open(ALL, spec).changes()).added == ()


def test_a_source_that_was_damaged_says_what_to_do(tmp_path: Path, folder: Path) -> None:
    store = KnowledgeStore(tmp_path / "knowledge")
    store.add(ALL, "sea", str(folder))
    file = tmp_path / "knowledge" / "-" / "-" / "sea" / "source.json"
    for text, place, told in (
        ("{", ":1:2", "is not JSON: a key in quotes is expected, and the file ends"),
        ('{"name": "sea",\n "folder": "/", "more": 1}', ":1:1", "unknown field `more`"),
        ('{"name": "sea",\n "folder": 7}', ":2:12", "Expected `str`, got `int`"),
        ('{"name": "sea",\n "mcp": {"server":\n []}}', ":3:2", "Expected `str`, got `array`"),
        ('{"name": "sea"}', ":1:1", "a source is a folder, an MCP server (mcp) or a search of the web"),
        ('{"name": "sea", "folder": "/", "web": "brave"}', ":1:1", "one of them"),
        (
            '{\n"name": "lake", "folder": "/"}',
            ":2:9",
            "says that it is the source 'lake', and lies elsewhere",
        ),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError) as caught:
            store.spec(ALL, "sea")
        said = str(caught.value)
        assert said.startswith(f"{file}{place}: "), said
        assert told in said
        assert said.endswith("remove the source (`antiphon knowledge rm NAME --yes`) and add it again")


def test_what_is_no_folder_is_kept_and_opened_by_whoever_can(tmp_path: Path) -> None:
    spec = SourceSpec("papers", description="ours", mcp=McpSearch("library", search="look_up"))
    store = KnowledgeStore(tmp_path / "knowledge")
    assert store.keep(ALL, spec) == store.spec(ALL, "papers") == spec
    with pytest.raises(ConfigError, match="papers: MCP server library can not be searched here"):
        store.open(ALL, spec)
    source = ScriptedSource("papers", {"p1": "The moon pulls the sea."})
    opened = KnowledgeStore(tmp_path / "knowledge", elsewhere={spec: source}.__getitem__)
    assert opened.open(ALL, spec) is source
    for wrong in (SourceSpec("sea"), SourceSpec("sea", folder="/", web="brave")):
        with pytest.raises(UserError, match="sea: a source is a folder, an MCP server"):
            store.keep(ALL, wrong)
    with pytest.raises(DuplicateName):
        store.keep(ALL, spec)
