"""The index asked: ranking by BM25, passages by key, what there is and what could not be read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import apsw
from msgspec import Struct

from antiphon.tools.folder.index.learning import Unreadable, left_out
from antiphon.tools.folder.text.passages import Passage
from antiphon.tools.folder.text.terms import kept, terms

MAX_TERMS = 32
"""Terms of a query that are looked for, the first ones."""
LARGE = 10_000
"""Passages beyond which a term that a fifth of them hold is no longer asked for beside rarer ones."""
_COMMON = 5
_K1, _LEAST = 1.2, 1e-6
"""As FTS5 has them."""


class Ranked(Struct, frozen=True):
    """A passage's key and how well it fits.

    By words: from 0 to about 1, which share it has of what a passage would score that is full of all of them.
    """

    key: int
    score: float


class Match(Struct, frozen=True):
    """A passage and how well it fits; only the order of scores means something."""

    score: float
    passage: Passage


def rank(connection: apsw.Connection, query: str, count: int) -> list[Ranked]:
    """The best passages for a query, best first; ties by path and line.

    A passage of code counts half of one of prose: people ask for what is said, seldom for its source.
    """
    held = _held(connection, list(dict.fromkeys(terms(" ".join(kept(query)))))[:MAX_TERMS])
    if not held:
        return []
    # Terms hold letters and digits only, so nothing of a query can be an operator of FTS5.
    asked = " OR ".join(f'"{term}"' for term in held)
    found = connection.execute(
        "select p.key, best.score from (select rowid as key,"
        " bm25(words, 2.0, 1.0) * (1.0 - 0.5 * (rowid & 1)) as score from words where words match ?"
        " order by score limit ?) as best join passages as p on p.key = best.key"
        " order by round(best.score, 9), (select min(path) from files where content = p.content), p.place"
        " limit ?",
        (asked, count * 2 + 20, count),
    )
    most = sum(held.values())
    return [Ranked(key, -score / most) for key, score in found]


def _held(connection: apsw.Connection, wanted: list[str]) -> dict[str, float]:
    """The terms that are asked, each with the most that BM25 gives for it."""
    total = connection.execute("select count(*) from passages").get
    common = total // _COMMON if total > LARGE else total + 1
    counts = {
        term: connection.execute(
            "select count(*) from (select 1 from words where words match ? limit ?)", (f'"{term}"', common)
        ).get
        for term in wanted
    }
    rare = {term: count for term, count in counts.items() if count < common}
    return {
        term: max(math.log((total - count + 0.5) / (count + 0.5)), _LEAST) * (_K1 + 1)
        for term, count in (rare or counts).items()
    }


def matches(connection: apsw.Connection, ranked: Sequence[Ranked]) -> list[Match]:
    """The passages, in the order given."""
    found: list[Match] = []
    for each in ranked:
        row = connection.execute(
            "select (select min(path) from files where content = p.content), first, last, heading, text"
            " from passages as p where key = ?",
            (each.key,),
        ).fetchone()
        if row is not None and row[0] is not None:
            found.append(Match(each.score, Passage(*row)))
    return found


def unreadable(connection: apsw.Connection) -> list[Unreadable]:
    """The files that have a reason not to be in the index."""
    rows = connection.execute("select path, reason from files where reason != '' order by path")
    return [Unreadable(path, reason) for path, reason in rows]


def counts(connection: apsw.Connection) -> tuple[int, int, int, int, int, int]:
    """The fields of `IndexStats`, in order."""
    row = connection.execute(
        "select count(*), coalesce(sum(case when reason = '' then size end), 0), count(nullif(reason, ''))"
        " from files"
    ).fetchone()
    files, size, bad = row if row is not None else (0, 0, 0)
    texts = connection.execute("select count(*) from passages").get
    with_vector = connection.execute(
        "select count(*) from passages where digest in (select digest from vectors)"
    ).get
    return files, texts, size, bad, left_out(connection), with_vector
