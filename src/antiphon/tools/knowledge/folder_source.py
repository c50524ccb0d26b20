"""A folder as a source: its documents in an index that follows the files."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable
from functools import partial

from antiphon.errors import ToolError
from antiphon.tools.folder.files import many
from antiphon.tools.folder.index import Changes, FolderIndex, IndexBounds, IndexProgress, Match, Ranked
from antiphon.tools.folder.readers import read_document
from antiphon.tools.folder.root import FolderEntry, Root
from antiphon.tools.folder.text.passages import DocumentText
from antiphon.tools.knowledge.source import (
    DocumentPart,
    DocumentPlace,
    SourceAnswer,
    SourcePassage,
    check_source_name,
)
from antiphon.tools.knowledge.threads import beside, in_thread
from antiphon.tools.knowledge.vectors.matrix import VectorMatrix
from antiphon.tools.knowledge.vectors.model import Embeddings

_RESERVE = 0.5
"""Seconds before a deadline at which a look at the files is waited for no longer."""
DEPTH = 50
"""Passages that each way of searching finds, at least, before both are brought together."""
MEANING = 0.4
"""What being the same in meaning counts beside holding all the words; see bench/knowledge_bench.py."""
_READINGS = 4
"""Documents that are kept as they were read: a PDF takes a second each time."""


class FolderSource:
    """The documents of a folder, see `antiphon.tools.folder`: searched as the files are at that time.

    index: the file that keeps the index between processes; None keeps it in memory. subject: whose it is, see
    FolderIndex. embeddings: passages are compared by meaning too, once `embed_some` has made their vectors;
    None: by words alone. A search looks at the files first, unless `watched` says that somebody else does;
    what is not read yet when its time is nearly over comes with a later search, and the answer says so.
    Raises ConfigError when it is no folder, UserError.
    """

    def __init__(
        self,
        name: str,
        folder: str | os.PathLike[str],
        *,
        index: str | None = None,
        subject: str | None = None,
        description: str = "",
        embeddings: Embeddings | None = None,
        bounds: IndexBounds | None = None,
    ) -> None:
        self.name = check_source_name(name)
        self.description = description
        self.root = Root(folder)
        self.watched = False
        """Whether changes are told by a monitor, so that a search need not look for them."""
        self._opening, self._file = threading.Lock(), index
        self._open = partial(FolderIndex, self.root, index, subject=subject, bounds=bounds)
        self._index: FolderIndex | None = None
        self._embeddings = embeddings
        self._vectors: VectorMatrix | None = None
        self._look: asyncio.Future[Changes] | None = None
        self._progress: IndexProgress | None = None
        self._readings: dict[str, tuple[FolderEntry, DocumentText]] = {}

    @property
    def index(self) -> FolderIndex:
        """What is searched; opened when it is first asked for. Raises ConfigError."""
        with self._opening:
            if self._index is None:
                self._index = self._open()
            return self._index

    @property
    def has_index(self) -> bool:
        """Whether somebody has asked for it before: an index is open, or kept."""
        return self._index is not None or (self._file is not None and os.path.exists(self._file))

    async def search(self, query: str, limit: int, deadline: float) -> SourceAnswer:
        """See `Source.search`."""
        note = "" if self.watched else await self._looked(deadline)
        found, how = await in_thread(lambda: self._search(query, limit))
        return SourceAnswer(
            tuple(
                SourcePassage(
                    DocumentPlace(each.passage.path, each.passage.first, each.passage.last),
                    each.passage.text,
                    each.passage.heading,
                )
                for each in found
            ),
            note,
            how,
        )

    def _search(self, query: str, limit: int) -> tuple[list[Match], str]:
        depth = max(5 * limit, DEPTH)
        # The index is used by one thread at a time: first what the vectors need of it.
        vectors = self._covering()
        words = beside(lambda: self.index.rank(query, depth))
        by_meaning, how = self._near(vectors, query, depth)
        by_words = words()
        scores = {each.key: each.score for each in by_words}
        for each in by_meaning:
            scores[each.key] = scores.get(each.key, 0.0) + MEANING * each.score
        best = sorted(scores, key=lambda key: -scores[key])[:limit]
        return self.index.matches([Ranked(key, scores[key]) for key in best]), how

    def _covering(self) -> tuple[int, int]:
        """How many passages have a vector in memory now, and how many there are."""
        if self._embeddings is None or self._embeddings.why_not:
            return 0, 0
        self._vectors = self._vectors or VectorMatrix(self.index)
        return self._vectors.covers()

    def _near(self, covered: tuple[int, int], query: str, count: int) -> tuple[list[Ranked], str]:
        """Passages near in meaning, and a word on what was searched by words alone."""
        if self._embeddings is None:
            return [], "searched by words alone"
        (embedded, passages), vectors = covered, self._vectors
        model = self._embeddings.model() if embedded else None
        if vectors is None or model is None:
            why = self._embeddings.why_not
            return [], f"searched by words alone{f' ({why})' if why else ''}"
        missing = passages - embedded
        how = f"{missing} of {passages} passages were searched by words alone" if missing else ""
        return vectors.rank(model.embed(query), count), how

    def embed_some(self, count: int = 16) -> int:
        """Make vectors of passages that have none, at most `count`; returns how many it made. Blocking.

        0: there are none left, or no model. Raises ToolError when the index cannot be written.
        """
        waiting = self.index.unembedded(count) if self._embeddings is not None else []
        model = self._embeddings.model() if self._embeddings is not None and waiting else None
        if model is None:
            return 0
        made = [(digest, model.embed(text).astype("<f4").tobytes()) for digest, text in waiting]
        self.index.store_vectors(made)
        return len(made)

    async def _looked(self, deadline: float) -> str:
        """Wait for a look at the files that began now or before; a word on it where it takes longer."""
        looking = self._looking()
        seconds = deadline - _RESERVE - asyncio.get_running_loop().time()
        await asyncio.wait([looking], timeout=max(seconds, 0))
        if not looking.done():
            told = self._progress
            return f"{told.done} of {told.total} files are read so far" if told else "files are being read"
        looking.result()
        return ""

    def _looking(self) -> asyncio.Future[Changes]:
        loop = asyncio.get_running_loop()
        if self._look is None or self._look.done() or self._look.get_loop() is not loop:
            self._progress = None
            self._look = in_thread(lambda: self.index.refresh(progress=self._note_progress))
        return self._look

    def _note_progress(self, progress: IndexProgress) -> None:
        self._progress = progress

    async def changes(self, paths: Iterable[str] | None = None) -> Changes:
        """See `Source.changes`. paths: look at these alone, relative to the folder."""
        if paths is None:
            return await asyncio.shield(self._looking())
        wanted = list(paths)
        return await in_thread(lambda: self.index.refresh(wanted))

    async def read(self, place: DocumentPlace) -> DocumentPart:
        """See `Source.read`: as the file is now."""
        return await in_thread(lambda: self._read(place))

    def _read(self, place: DocumentPlace) -> DocumentPart:
        lines = self._document(place.document).lines
        total = lines[-1][0] if lines else 0
        first = max(place.first, 1)
        last = max(place.last or total, first)
        if first > max(total, 1):
            raise ToolError(f"{place.document} has only {total} lines")
        return DocumentPart(tuple([each for each in lines if first <= each[0] <= last]), total)

    def _document(self, path: str) -> DocumentText:
        entry = self.root.entry(path)
        known = self._readings.get(path)
        if known is not None and known[0] == entry:
            return known[1]
        reading = read_document(path, self.root.read(path))
        if entry is not None:
            self._readings.pop(path, None)
            self._readings[path] = (entry, reading)
            while len(self._readings) > _READINGS:
                self._readings.pop(next(iter(self._readings)), None)
        return reading

    async def about(self) -> str:
        """See `Source.about`."""
        note = "" if self.watched else await self._looked(asyncio.get_running_loop().time() + 1 + _RESERVE)
        return await in_thread(lambda: self._about(note))

    def _about(self, note: str) -> str:
        stats = self.index.stats()
        told = [many(stats.files - stats.unreadable, "document"), many(stats.passages, "passage")]
        if note:
            told.append(note)
        if self._embeddings is not None:
            told.append(self._embeddings.why_not or f"{stats.embedded} by meaning too")
        if stats.unreadable:
            told.append(f"{stats.unreadable} not readable ({self.index.unreadable()[0].reason})")
        if stats.left_out:
            told.append(f"{stats.left_out} beyond the limits")
        return ", ".join(told)

    def close(self) -> None:
        """Let go of the index."""
        with self._opening:
            if self._index is not None:
                self._index.close()

    def let_go(self) -> None:
        """See `HeldSource.let_go`."""
        self.close()

    async def left(self) -> None:
        """See `HeldSource.left`: it is closed already."""
