"""Passages compared by meaning: a vector for each text, made once, searched beside words."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.errors import ConfigError
from antiphon.tools.folder.index import FolderIndex
from antiphon.tools.folder.root import Root
from antiphon.tools.knowledge import FolderSource, KnowledgeKey, KnowledgeLibrary, KnowledgeStore
from antiphon.tools.knowledge.monitor import FolderMonitor
from antiphon.tools.knowledge.source import SourceAnswer
from antiphon.tools.knowledge.vectors import model
from antiphon.tools.knowledge.vectors.model import SIZE, EmbeddingModel, Embeddings
from tests.unit.tools.documents_made import held

MEANINGS = {"sea": 1, "ocean": 1, "moon": 2, "lunar": 2, "ship": 3, "boat": 3}


class WordMeanings:
    """Knows which of a few words mean the same."""

    made: list[str]

    def __init__(self) -> None:
        self.made = []

    def embed(self, text: str) -> NDArray[np.float32]:
        self.made.append(text)
        vector = np.zeros(SIZE, np.float32)
        for word in text.lower().replace(".", " ").split():
            vector[MEANINGS.get(word, 0)] += 1
        vector[0] = 0.1
        found: NDArray[np.float32] = vector / np.float32(np.linalg.norm(vector))
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("The ocean is deep.\n")
    (folder / "b.md").write_text("A boat in the harbour.\n")
    (folder / "c.md").write_text("Nothing of the kind.\n")
    return folder


def asked(source: FolderSource, query: str, limit: int = 1) -> tuple[list[str], str]:
    async def ask() -> SourceAnswer:
        return await source.search(query, limit, asyncio.get_running_loop().time() + 60)

    found = asyncio.run(ask())
    return [each.place.document for each in found.passages], found.how


def embed_all(source: FolderSource) -> int:
    total = 0
    while made := source.embed_some():
        total += made
    return total


def test_what_means_the_same_is_found_without_a_word_in_common(folder: Path) -> None:
    source = FolderSource("sea", folder, embeddings=Embeddings(WordMeanings))
    assert asked(source, "sea") == ([], "searched by words alone")
    assert embed_all(source) == 3
    assert asked(source, "sea") == (["a.md"], "")
    assert asked(source, "ship") == (["b.md"], "")
    (folder / "a.md").write_text("The ocean is deep, and a sea.\n")
    (folder / "d.md").write_text("Sea shells.\n")
    asked(source, "x")
    embed_all(source)
    assert asked(source, "sea", 3)[0] == ["d.md", "a.md"], "words and meaning count alike"


def test_what_changes_is_searched_as_it_is(folder: Path) -> None:
    source = FolderSource("sea", folder, embeddings=Embeddings(WordMeanings))
    asked(source, "x")
    embed_all(source)
    assert asked(source, "moon")[0] == [], "what has nothing to do with it is not found"
    (folder / "c.md").write_text("The lunar kind.\n")
    assert asked(source, "zzz")[1] == "1 of 3 passages were searched by words alone"
    embed_all(source)
    assert asked(source, "moon")[0] == ["c.md"]
    (folder / "c.md").unlink()
    assert "c.md" not in asked(source, "moon", 3)[0]
    for at in range(9):
        (folder / f"n{at}.md").write_text(f"The lunar kind {at}.\n")
        asked(source, "zzz")
        embed_all(source)
        assert asked(source, "moon", 20)[0] == [f"n{each}.md" for each in range(at + 1)]


def test_a_text_is_embedded_once_however_often_it_stands_or_moves(folder: Path, tmp_path: Path) -> None:
    words = WordMeanings()
    source = FolderSource("sea", folder, index=str(tmp_path / "i.db"), embeddings=Embeddings(lambda: words))
    asked(source, "x")
    embed_all(source)
    words.made.clear()
    (folder / "sub").mkdir()
    (folder / "a.md").rename(folder / "sub" / "a.md")
    (folder / "copy.md").write_text((folder / "b.md").read_text())
    asked(source, "x")
    assert embed_all(source) == 0
    source.close()
    again = FolderSource("sea", folder, index=str(tmp_path / "i.db"), embeddings=Embeddings(lambda: words))
    assert asked(again, "sea") == (["sub/a.md"], "")
    assert words.made == ["x", "sea"], "the query alone"


def test_an_index_with_vectors_equals_one_made_anew(folder: Path, tmp_path: Path) -> None:
    def made(index: str | None) -> dict[str, Any]:
        source = FolderSource("sea", folder, index=index, embeddings=Embeddings(WordMeanings))
        asked(source, "x")
        embed_all(source)
        found = held(source.index)
        source.close()
        return found

    path = str(tmp_path / "i.db")
    made(path)
    (folder / "c.md").write_text("The lunar kind.\n")
    (folder / "b.md").unlink()
    assert made(path) == made(None)
    assert len(made(None)["vectors"]) == 2


def test_without_a_model_words_alone_are_searched_and_the_answer_says_so(folder: Path) -> None:
    def missing() -> WordMeanings:
        raise ConfigError("numpy not installed: pip install 'antiphon[knowledge]'")

    source = FolderSource("sea", folder, embeddings=Embeddings(missing))
    asked(source, "ocean")
    assert embed_all(source) == 0
    reason = "numpy not installed: pip install 'antiphon[knowledge]'"
    assert asked(source, "ocean") == (["a.md"], f"searched by words alone ({reason})")
    assert reason in asyncio.run(source.about())


def test_a_monitor_makes_vectors_while_nothing_else_is_to_do(folder: Path, tmp_path: Path) -> None:
    library = KnowledgeLibrary(KnowledgeStore(tmp_path / "knowledge", Embeddings(WordMeanings)))
    source = library.federation(KnowledgeKey(), folder).sources()["files"]
    assert isinstance(source, FolderSource)
    source.index.refresh()

    with FolderMonitor(library):
        while source.index.stats().embedded < 3:
            pass
        assert asked(source, "sea") == (["a.md"], "")
    library.close()


def test_what_is_not_what_was_pinned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "TOKENIZER_SHA256", "0" * 64)
    embeddings = Embeddings()
    assert embeddings.model() is None
    assert "is not what was pinned" in embeddings.why_not
    monkeypatch.setattr(model, "is_installed", lambda name: name != "numpy")
    assert Embeddings().why_not == "numpy not installed: pip install 'antiphon[knowledge]'"
    assert Embeddings().model() is None


@pytest.mark.slow
def test_the_model_knows_what_is_near(folder: Path) -> None:
    made = EmbeddingModel()
    near, far = made.embed("a kitten sat on the rug"), made.embed("interest rates rose again")
    cat = made.embed("the cat lies on the mat")
    assert cat.shape == (SIZE,)
    assert float(cat @ near) > 0.5 > 0.2 > float(cat @ far)
    assert (made.embed("the cat lies on the mat") == cat).all(), "bit by bit the same"
    assert made.embed("").shape == made.embed("word " * 5000).shape == (SIZE,)


@pytest.mark.slow
def test_nothing_is_sent_home_and_nothing_kept_for_it(tmp_path: Path) -> None:
    code = (
        "import os; from antiphon.tools.knowledge.vectors.model import EmbeddingModel;"
        "EmbeddingModel().embed('x');"
        "print(*[os.readlink(f'/proc/self/fd/{each}') for each in os.listdir('/proc/self/fd')"
        " if os.path.exists(f'/proc/self/fd/{each}')])"
    )
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "onnxruntime.db" not in done.stdout
    assert "socket" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_vectors_of_texts_that_have_gone_are_dropped(folder: Path) -> None:
    index = FolderIndex(Root(folder))
    index.refresh()
    waiting = index.unembedded(10)
    (folder / "c.md").unlink()
    index.refresh()
    index.store_vectors([(digest, b"\0" * 4 * SIZE) for digest, _ in waiting])
    assert index.stats().embedded == 2
    assert index.unembedded(10) == []
