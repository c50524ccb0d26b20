"""Vectors of an index: which passages have none, storing and loading them. Bytes alone, no arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw

from antiphon.tools.folder.index.file import writing

Keyed = tuple[int, bytes]
"""A passage's key, and the digest of what is embedded."""


def without(connection: apsw.Connection, count: int) -> list[tuple[bytes, str]]:
    """Digests and texts that have no vector yet, at most `count`."""
    # Found by indexes alone: the texts that have one are not read again each time.
    rows: list[tuple[bytes, int]] = connection.execute(
        "select digest, min(key) from passages as p indexed by passages_by_digest"
        " where not exists(select 1 from vectors where digest = p.digest) group by digest limit ?",
        (count,),
    ).fetchall()  # type: ignore[assignment]
    found: list[tuple[bytes, str]] = []
    for digest, key in rows:
        heading, text = connection.execute("select heading, text from passages where key = ?", (key,)).get
        found.append((digest, f"{heading}\n{text}"))
    return found


def store(connection: apsw.Connection, vectors: Iterable[tuple[bytes, bytes]]) -> None:
    """Keep vectors; those of texts that have gone meanwhile are dropped."""
    with writing(connection):
        connection.executemany(
            "insert or replace into vectors select ?1, ?2"
            " where exists(select 1 from passages where digest = ?1)",
            list(vectors),
        )


def stamp(connection: apsw.Connection) -> tuple[int, ...]:
    """What differs whenever passages or vectors do, whoever changed them."""
    version = connection.execute("pragma data_version").get
    return (version, connection.total_changes())


def keyed(connection: apsw.Connection) -> Iterator[Keyed]:
    """The passages that have a vector, by key, one after the other."""
    yield from connection.execute(
        "select key, digest from passages as p where exists(select 1 from vectors where digest = p.digest)"
        " order by key"
    )


def load(connection: apsw.Connection, digests: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Vectors by their digests, one after the other."""
    for digest in digests:
        vector = connection.execute("select vector from vectors where digest = ?", (digest,)).get
        yield digest, bytes(vector)
