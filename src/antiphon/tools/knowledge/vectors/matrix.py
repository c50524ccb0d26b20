"""The vectors of an index in memory: one matrix, kept as the index is, searched by one product."""

from __future__ import annotations

import threading
from array import array
from typing import TYPE_CHECKING

from antiphon.tools.folder.index import FolderIndex, Ranked
from antiphon.tools.folder.index import vectors as stored
from antiphon.tools.knowledge.vectors.model import SIZE, give_back

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MANY = 10_000
"""Vectors that are read at once, from which on what reading them took is given back."""
NEAR = 0.2
"""How near a passage must be to a question to count: what has nothing to do with it is below."""


class VectorMatrix:
    """Safe from several threads. What changed is read at the next search, what did not is kept."""

    def __init__(self, index: FolderIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._rows: dict[bytes, int] = {}
        self._free: list[int] = []
        self._matrix: NDArray[np.float32] | None = None
        self._keys: NDArray[np.int64] | None = None
        self._row_of: NDArray[np.int64] | None = None
        self._passages = 0

    def covers(self) -> tuple[int, int]:
        """How many passages have a vector, and how many there are."""
        with self._lock:
            self._follow()
            return (len(self._keys) if self._keys is not None else 0), self._passages

    def rank(self, query: NDArray[np.float32], count: int) -> list[Ranked]:
        """The keys of the passages nearest to a vector, nearest first: 1 is the same, 0 as far as NEAR.

        Of those that `covers` has seen last, so that nobody who searches the index otherwise is waited for. A
        passage of code counts half.
        """
        import numpy as np

        with self._lock:
            if self._matrix is None or self._keys is None or self._row_of is None:
                return []
            keys, scores = self._keys, (self._matrix @ query)[self._row_of]
        near = np.flatnonzero(scores >= NEAR)
        if not len(near):
            return []
        ranks = (scores[near] - NEAR) / (1 - NEAR) * np.where(keys[near] & 1, 0.5, 1.0)
        best = np.argpartition(-ranks, min(count, len(near)) - 1)[:count]
        best = best[np.lexsort((keys[near[best]], -ranks[best]))]
        return [Ranked(int(keys[near[each]]), float(ranks[each])) for each in best]

    def _follow(self) -> None:
        """Hold what the index holds now. Rows of texts that have gone are given to new ones."""
        import numpy as np

        # One state of the file, whatever other processes write meanwhile.
        with self._index.using() as connection, connection:
            stamp = stored.stamp(connection)
            if stamp == self._stamp:
                return
            # What is made of a hundred thousand passages is little beside them: no list of them is held.
            rows, new, keys, row_of = dict[bytes, int](), list[bytes](), array("q"), array("q")
            for key, digest in stored.keyed(connection):
                row = rows.get(digest)
                if row is None:
                    row = rows[digest] = self._rows.get(digest, -1 - len(new))
                    if row < 0:
                        new.append(digest)
                keys.append(key)
                row_of.append(row)
            self._free.extend(row for digest, row in self._rows.items() if digest not in rows)
            self._rows = {digest: row for digest, row in rows.items() if row >= 0} if new else rows
            self._make_room(len(new))
            given = np.zeros(len(new), np.int64)
            for number, (digest, vector) in enumerate(stored.load(connection, new)):
                row = self._rows[digest] = given[number] = self._free.pop()
                if self._matrix is not None:
                    self._matrix[row] = np.frombuffer(vector, "<f4")
            found = np.array(row_of, np.int64)
            if new:
                found = np.where(found < 0, given[-1 - np.minimum(found, -1)], found)
            self._keys, self._row_of = np.array(keys, np.int64), found
            self._passages = connection.execute("select count(*) from passages").get
            self._stamp = stamp
        if len(new) > MANY:
            del rows, keys, row_of
            give_back()

    def _make_room(self, count: int) -> None:
        """At least so many free rows; a quarter more than needed, so that few additions copy the matrix."""
        import numpy as np

        missing = count - len(self._free)
        if missing <= 0:
            return
        had = 0 if self._matrix is None else len(self._matrix)
        more = max(missing, had // 4) if had else missing
        grown = np.zeros((had + more, SIZE), np.float32)
        if self._matrix is not None:
            grown[:had] = self._matrix
        self._matrix = grown
        self._free.extend(range(had + more - 1, had - 1, -1))
