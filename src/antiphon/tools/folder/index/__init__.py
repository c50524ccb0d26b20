"""The index of one folder: passages in SQLite, searched by BM25 (FTS5), kept as the files are.

`file.py` holds the tables, `learning.py` brings them up to date, `searching.py` asks them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

import apsw
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.folder.index import learning, searching
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
    """Files beyond the bounds, when it was last brought up to date."""
    embedded: int
    """Passages that have a vector."""


class FolderIndex:
    """The passages of a folder's documents. Safe from several threads; several processes may share a file.

    path: the index's file; None keeps it in memory. clock: nanoseconds since 1970, as files' times are.
    Raises ConfigError when the file can not be used.
    """

    def __init__(
        self,
        root: Root,
        path: str | None = None,
        *,
        bounds: IndexBounds | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.root = root
        self.path = path
        self.bounds = bounds or IndexBounds()
        self.left_out = 0
        self._clock = clock
        self._lock = threading.RLock()
        self._connection = open_index(path, str(root.path))

    def refresh(
        self, paths: Iterable[str] | None = None, progress: Callable[[IndexProgress], None] | None = None
    ) -> Changes:
        """Read again what differs in size or time of change, or is not settled yet; forget what is gone.

        paths: only look at these, files or folders relative to the root; None: at all of it. Raises
        ToolError when the folder can not be listed; the index then stays as it is.
        """
        with self._lock:
            try:
                return self._refreshed(paths, progress)
            except DAMAGED:
                self._rebuild()
                return self._refreshed(None, progress)

    def _refreshed(
        self, paths: Iterable[str] | None, progress: Callable[[IndexProgress], None] | None
    ) -> Changes:
        found = learning.refresh(self._connection, self.root, self.bounds, self._clock, paths, progress)
        if paths is None:
            self.left_out = found.left_out
        return found

    def search(self, query: str, count: int) -> list[Match]:
        """The best passages by BM25, best first, as the index is now; empty when no word of `query` occurs.

        Nothing that stands in a query is syntax. Raises ToolError when the index is damaged.
        """
        return self.matches(self.rank(query, count))

    def rank(self, query: str, count: int) -> list[Ranked]:
        """The keys of the best passages by BM25, best first."""
        with self._asking():
            return searching.rank(self._connection, query, count)

    def matches(self, ranked: Sequence[Ranked]) -> list[Match]:
        """The passages of these keys, in this order; one that has gone meanwhile is left out."""
        with self._asking():
            return searching.matches(self._connection, ranked)

    def unreadable(self) -> list[Unreadable]:
        """The documents that could not be read, by path, with the reason."""
        with self._asking():
            return searching.unreadable(self._connection)

    def stats(self) -> IndexStats:
        """What the index holds now."""
        with self._asking():
            return IndexStats(*searching.counts(self._connection, self.left_out))

    @property
    def documents(self) -> int:
        """How many documents are indexed, unreadable ones among them."""
        return self.stats().files

    def using(self) -> _Asking:
        """The index for one thread: `with index.using() as connection`."""
        return self._asking()

    def close(self) -> None:
        """Let go of the file. The index can not be used afterwards."""
        with self._lock:
            self._connection.close()

    def _asking(self) -> _Asking:
        return _Asking(self._lock, lambda: self._connection)

    def _rebuild(self) -> None:
        self._connection.close()
        if self.path is not None:
            remove_index(self.path)
        self._connection = open_index(self.path, str(self.root.path))


class _Asking:
    """The connection, held by one thread, with SQLite's errors told as a tool's."""

    def __init__(self, lock: threading.RLock, connection: Callable[[], apsw.Connection]) -> None:
        self._lock = lock
        self._connection = connection

    def __enter__(self) -> apsw.Connection:
        self._lock.acquire()
        return self._connection()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        if isinstance(error, DAMAGED):
            raise ToolError("The index is damaged; it is built anew at the next look at the files") from error
        if isinstance(error, apsw.Error):
            raise ToolError(f"The index can not be searched: {error}") from error
