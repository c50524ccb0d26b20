"""The index of one folder: passages in SQLite, searched by BM25 (FTS5), kept as the files are.

`file.py` holds the tables, `learning.py` brings them up to date, `searching.py` asks them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import apsw
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.folder.index import learning, searching, vectors
from antiphon.tools.folder.index.file import DAMAGED, open_index, remove_index
from antiphon.tools.folder.index.learning import Changes, IndexBounds, IndexProgress, Unreadable
from antiphon.tools.folder.index.searching import Match, Ranked
from antiphon.tools.folder.root import Root

__all__ = [
    "IndexBounds",
    "Changes",
    "FolderIndex",
    "IndexStats",
    "Match",
    "IndexProgress",
    "Ranked",
    "Unreadable",
]


class IndexStats(Struct, frozen=True):
    """What an index holds."""

    files: int
    passages: int
    bytes: int
    """Of the files that were read."""
    unreadable: int
    left_out: int
    """Files beyond the bounds, at the last look at all of them."""
    embedded: int
    """Passages that have a vector."""


class FolderIndex:
    """The passages of a folder's documents. Safe from several threads; several processes may share a file.

    path: the index's file; None keeps it in memory. subject: what it is of, the folder unless given;
    a file of another one is refused. clock: nanoseconds since 1970, as files' times are. Raises
    ConfigError when the file can not be used.
    """

    def __init__(
        self,
        root: Root,
        path: str | None = None,
        *,
        subject: str | None = None,
        bounds: IndexBounds | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.root = root
        self.path = path
        self.subject = subject or str(root.path)
        self.bounds = bounds or IndexBounds()
        self._clock = clock
        self._refreshing = threading.Lock()
        self._lock = threading.Lock()
        self._connection = open_index(path, self.subject)
        self._counts = searching.TermCounts()

    def refresh(
        self, paths: Iterable[str] | None = None, progress: Callable[[IndexProgress], None] | None = None
    ) -> Changes:
        """Read again what differs in size or time of change, or is not settled yet; forget what is gone.

        paths: only look at these, files or folders relative to the root; None: at all of it. One look at a
        time; searches go on meanwhile. Raises ToolError when the folder can not be listed, and the index then
        stays as it is, or when the index can not be written.
        """
        with self._refreshing:
            try:
                return self._refreshed(paths, progress)
            except DAMAGED:
                self._rebuild()
                return self._refreshed(None, progress)
            except apsw.Error as error:
                raise ToolError(f"The index can not be written: {error}") from error

    def _refreshed(
        self, paths: Iterable[str] | None, progress: Callable[[IndexProgress], None] | None
    ) -> Changes:
        return learning.refresh(self._held, self.root, self.bounds, self._clock, paths, progress)

    def search(self, query: str, count: int) -> list[Match]:
        """The best passages by BM25, best first, as the index is now; empty when no word of `query` occurs.

        Nothing that stands in a query is syntax. Raises ToolError when the index is damaged.
        """
        return self.matches(self.rank(query, count))

    def rank(self, query: str, count: int) -> list[Ranked]:
        """The keys of the best passages by BM25, best first."""
        with self.using() as connection:
            return searching.rank(connection, self._counts, query, count)

    def matches(self, ranked: Sequence[Ranked]) -> list[Match]:
        """The passages of these keys, in this order; one that has gone meanwhile is left out."""
        with self.using() as connection:
            return searching.matches(connection, ranked)

    def unreadable(self) -> list[Unreadable]:
        """The documents that could not be read, by path, with the reason."""
        with self.using() as connection:
            return searching.unreadable(connection)

    def stats(self) -> IndexStats:
        """What the index holds now."""
        with self.using() as connection:
            return IndexStats(*searching.index_counts(connection))

    def unembedded(self, count: int) -> list[tuple[bytes, str]]:
        """Digests and texts of passages that have no vector, at most `count`."""
        with self.using() as connection:
            return vectors.without(connection, count)

    def store_vectors(self, found: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep vectors under the digests of their texts."""
        with self.using() as connection:
            vectors.store(connection, found)

    @contextmanager
    def using(self) -> Iterator[apsw.Connection]:
        """The index for one thread: `with index.using() as connection`. SQLite's errors are ToolError."""
        try:
            with self._held() as connection:
                yield connection
        except DAMAGED as error:
            raise ToolError("The index is damaged; it is built anew at the next look at the files") from error
        except apsw.Error as error:
            raise ToolError(f"The index can not be searched: {error}") from error

    def close(self) -> None:
        """Let go of the file. The index can not be used afterwards."""
        with self._refreshing, self._lock:
            self._connection.close()

    @contextmanager
    def _held(self) -> Iterator[apsw.Connection]:
        with self._lock:
            yield self._connection

    def _rebuild(self) -> None:
        with self._lock:
            self._connection.close()
            if self.path is not None:
                remove_index(self.path)
            self._connection = open_index(self.path, self.subject)
            self._counts = searching.TermCounts()
