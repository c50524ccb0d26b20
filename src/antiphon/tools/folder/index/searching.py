"""The index asked: ranking by BM25, passages by key, what there is and what could not be read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import apsw
from msgspec import Struct

from antiphon.tools.folder.index.learning import Unreadable, left_out
from antiphon.tools.folder.index.vectors import stamp
from antiphon.tools.folder.text.passages import Passage
from antiphon.tools.folder.text.terms import kept, terms

MAX_TERMS = 32
"""Terms of a query that are looked for, the first ones."""
LARGE = 10_000
"""Passages beyond which not all that hold a term are scored."""
_SCORED = 10
"""Of so many passages one is scored then, about: those that hold one of the rarest terms, by all terms."""
MAX_COUNTED = 20_000
"""Terms whose counts are kept."""
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


class TermCounts:
    """How many passages hold a term, counted once as long as nothing changes. For one thread at a time."""

    def __init__(self) -> None:
        self._stamp: tuple[int, ...] | None = None
        self._counts: dict[str, int] = {}
        self.total = 0
        """Passages there are."""

    def held(self, connection: apsw.Connection, wanted: Iterable[str]) -> dict[str, int]:
        """The terms that passages hold, each with how many do."""
        if (now := stamp(connection)) != self._stamp or len(self._counts) > MAX_COUNTED:
            self._counts, self._stamp = {}, now
            self.total = connection.execute("select count(*) from passages").get
        for term in wanted:
            if term not in self._counts:
                self._counts[term] = connection.execute(
                    "select count(*) from words where words match ?", (_quoted(term),)
                ).get
        return {term: found for term in wanted if (found := self._counts[term])}


def rank(connection: apsw.Connection, counts: TermCounts, query: str, count: int) -> list[Ranked]:
    """The best passages for a query, best first; ties by path and line.

    A passage of code counts half of one of prose: people ask for what is said, seldom for its source.
    """
    held = counts.held(connection, list(dict.fromkeys(terms(" ".join(kept(query)))))[:MAX_TERMS])
    if not held:
        return []
    asked, most = _asked(held, counts.total)
    found = connection.execute(
        "select p.key, best.score from (select rowid as key,"
        " bm25(words, 2.0, 1.0) * (1.0 - 0.5 * (rowid & 1)) as score from words where words match ?"
        " order by score limit ?) as best join passages as p on p.key = best.key"
        " order by round(best.score, 9), (select min(path) from files where content = p.content), p.place"
        " limit ?",
        (asked, count * 2 + 20, count),
    )
    return [Ranked(key, -score / most) for key, score in found]


def _asked(held: dict[str, int], total: int) -> tuple[str, float]:
    """What FTS5 is asked for these terms, and the most that BM25 gives for all of it.

    Of many passages those alone are scored that hold one of the rarest terms; these count twice, since they
    say who is scored and are scored themselves.
    """
    most = {
        term: max(math.log((total - count + 0.5) / (count + 0.5)), _LEAST) * (_K1 + 1)
        for term, count in held.items()
    }
    every, rarest = " OR ".join(map(_quoted, held)), _rarest(held, total)
    if len(rarest) == len(held):
        return every, sum(most.values())
    chosen = " OR ".join(map(_quoted, rarest))
    return f"({chosen}) AND ({every})", sum(most.values()) + sum(most[term] for term in rarest)


def _quoted(term: str) -> str:
    # Terms hold letters and digits only, so nothing of a query can be an operator of FTS5.
    return f'"{term}"'


def _rarest(held: dict[str, int], total: int) -> list[str]:
    """The rarest terms, as many as few enough passages hold: all of them where there are few passages."""
    found, passages = list[str](), 0
    for term, count in sorted(held.items(), key=lambda each: each[1]):
        passages += count
        if total > LARGE and found and passages > total // _SCORED:
            break
        found.append(term)
    return found


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


def index_counts(connection: apsw.Connection) -> tuple[int, int, int, int, int, int]:
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
