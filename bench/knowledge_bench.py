"""How well and how fast knowledge is searched.

python -m bench.knowledge_bench found FOLDER --index FILE     known items: is the page found that answers?
python -m bench.knowledge_bench scale FOLDER [--passages N] [--keep PLACE]
                                                              reading, queries, memory, a look at the files

FOLDER is the library part of Python's documentation as HTML (Debian: python3-doc), of about the version that
runs this. A query is the first line of a docstring, the answer the page of its module. FILE keeps vectors
between calls: they take minutes. PLACE keeps what `scale` has made: a second call measures in seconds,
and of reading says 0. Passages of `scale` are put together from lines of FOLDER, with vectors of
no meaning, so that only time and memory are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import json
import random
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from antiphon.tools.folder.index import FolderIndex, Ranked
from antiphon.tools.folder.root import Root
from antiphon.tools.knowledge.folder_source import FolderSource
from antiphon.tools.knowledge.vectors.matrix import VectorMatrix
from antiphon.tools.knowledge.vectors.model import SIZE, Embeddings

SEED, QUERIES, WITHIN, DEPTH = 7, 500, 10, 50
FILES = 20_000
ELSEWHERE = {"posix": "os.html"}
"""Modules whose functions another page documents."""
LEFT_OUT = {"antigravity", "this", "idlelib", "test", "tkinter", "turtle", "turtledemo", "lib2to3"}


def known_items(folder: Path) -> list[tuple[str, str]]:
    """First lines of docstrings, each with the page that documents its module."""
    found: dict[str, str] = {}
    for page in sorted(folder.glob("*.html")):
        name = page.stem
        if name.split(".")[0] in LEFT_OUT:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(name)
        except Exception:  # noqa: BLE001 - a page that is no module of this Python has no items
            continue
        for each in vars(module).values():
            if getattr(each, "__module__", None) != name or not callable(each):
                continue
            line = (inspect.getdoc(each) or "").split("\n")[0].strip()
            if len(line.split()) >= 5 and "(" not in line:
                found[line] = ELSEWHERE.get(name, page.name) if line not in found else ""
    items = [(line, page) for line, page in sorted(found.items()) if page]
    random.Random(SEED).shuffle(items)
    return items[:QUERIES]


def scored(items: list[tuple[str, str]], pages_of: Callable[[str], list[str]]) -> dict[str, float]:
    """Mean reciprocal rank and recall, of pages, within the first ten."""
    ranks = []
    for query, page in items:
        pages = list(dict.fromkeys(pages_of(query)))[:WITHIN]
        ranks.append(1 / (pages.index(page) + 1) if page in pages else 0.0)
    return {
        "mrr@10": round(statistics.mean(ranks), 3),
        "recall@10": round(statistics.mean(each > 0 for each in ranks), 3),
    }


def found(folder: Path, index: str | None) -> dict[str, object]:
    """The quality of each way to search, and of both together."""
    embeddings = Embeddings()
    source = FolderSource("library", folder, index=index, embeddings=embeddings)
    source.watched = True
    source.index.refresh()
    while made := source.embed_some(64):
        print(f"{source.index.stats().embedded:,} vectors, {made} more", file=sys.stderr)
    model, vectors = embeddings.model(), VectorMatrix(source.index)
    assert model is not None, embeddings.why_not
    vectors.covers()
    items = known_items(folder)

    def pages(ranked: list[Ranked]) -> list[str]:
        return [each.passage.path for each in source.index.matches(ranked)]

    def both(query: str) -> list[str]:
        answer = asyncio.run(source.search(query, DEPTH, float("inf")))
        return [each.place.document for each in answer.passages]

    return {
        "passages": source.index.stats().passages,
        "queries": len(items),
        "words": scored(items, lambda query: pages(source.index.rank(query, DEPTH))),
        "meaning": scored(items, lambda query: pages(vectors.rank(model.embed(query), DEPTH))),
        "both": scored(items, both),
    }


def made_up(folder: Path, passages: int) -> Iterator[str]:
    """Texts of about a thousand characters, of sentences that stand in the folder."""
    index = FolderIndex(Root(folder))
    index.refresh()
    with index.using() as connection:
        lines = [
            line for (text,) in connection.execute("select text from passages") for line in text.split("\n")
        ]
    chance = random.Random(SEED)
    for _ in range(passages):
        text: list[str] = []
        while sum(map(len, text)) < 900:
            text.append(chance.choice(lines))
        yield "\n".join(text)


def write_documents(folder: Path, docs: Path, passages: int) -> list[str]:
    """Write FILES documents of made up passages; returns queries for some of them."""
    texts = list(made_up(folder, passages))
    for at, text in enumerate(texts):
        path = docs / f"{at % FILES // 100}" / f"{at % FILES}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(f"# Part {at}\n\n{text}\n\n")
    return [" ".join(each.split()[5:14]) for each in random.Random(SEED + 1).sample(texts, 200)]


def queries_of(folder: Path, place: Path, passages: int) -> list[str]:
    """The queries for documents in a place, which are written unless they are there."""
    kept = place / f"queries-{passages}.json"
    if not kept.exists():
        # In a process of its own, so that its memory is not counted.
        with ProcessPoolExecutor(1) as another:
            queries = another.submit(write_documents, folder, place / "docs", passages).result()
        kept.write_text(json.dumps(queries))
    found: list[str] = json.loads(kept.read_text())
    return found


def scale(folder: Path, passages: int, keep: str | None) -> dict[str, object]:
    """What reading, searching and looking at files cost with so many passages."""
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as place:
        Path(place).mkdir(parents=True, exist_ok=True)
        docs, queries = Path(place, "docs"), queries_of(folder, Path(place), passages)
        embeddings = Embeddings()
        source = FolderSource("scale", docs, index=f"{place}/index.db", embeddings=embeddings)
        source.watched = True
        begun = time.perf_counter()
        is_new = bool(source.index.refresh())
        reading = time.perf_counter() - begun
        chance = np.random.default_rng(SEED)
        while waiting := source.index.unembedded(1000):
            vectors = chance.standard_normal((len(waiting), SIZE)).astype("<f4")
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            source.index.store_vectors(
                (digest, vector.tobytes()) for (digest, _), vector in zip(waiting, vectors, strict=True)
            )

        async def ask() -> tuple[list[float], list[float]]:
            times, busy = [], []
            for query in queries:
                start, begun = time.perf_counter(), time.process_time()
                await source.search(query, 10, float("inf"))
                times.append(time.perf_counter() - start)
                busy.append(time.process_time() - begun)
            return sorted(times), sorted(busy)

        asyncio.run(ask())
        times, busy = asyncio.run(ask())
        begun = time.perf_counter()
        source.index.refresh()
        look = time.perf_counter() - begun
        stats = source.index.stats()
        held = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        source.close()
        return {
            "passages": stats.passages,
            "files": stats.files,
            "bytes": stats.bytes,
            "read_passages_per_s": round(stats.passages / reading) if is_new else 0,
            "query_p50_ms": round(times[len(times) // 2] * 1000, 1),
            "query_p95_ms": round(times[len(times) * 95 // 100] * 1000, 1),
            "query_cpu_p50_ms": round(busy[len(busy) // 2] * 1000, 1),
            "query_cpu_p95_ms": round(busy[len(busy) * 95 // 100] * 1000, 1),
            "look_at_unchanged_files_s": round(look, 2),
            "memory_mib": round(held / 2**20),
        }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.knowledge_bench")
    parser.add_argument("what", choices=["found", "scale"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--index", metavar="FILE")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--keep", metavar="PLACE")
    asked = parser.parse_args()
    if asked.what == "found":
        result = found(asked.folder, asked.index)
    else:
        result = scale(asked.folder, asked.passages, asked.keep)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
