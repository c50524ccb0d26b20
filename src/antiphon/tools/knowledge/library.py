"""The sources of a process: each is opened once, however many teams search it."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path

from antiphon.errors import AntiphonError, ToolError
from antiphon.tools.folder.documents import BOUNDS
from antiphon.tools.folder.index import Changes
from antiphon.tools.knowledge.federation import DEADLINE, Federation
from antiphon.tools.knowledge.folder_source import FolderSource
from antiphon.tools.knowledge.source import DocumentPart, DocumentPlace, Source, SourceAnswer
from antiphon.tools.knowledge.store import KnowledgeKey, KnowledgeStore, SourceSpec

FILES = "files"
"""The name of the source that the team's own folder is."""
_OWN = "the files of this folder"


class LostSource:
    """A source that cannot be opened: whatever it is asked, it says why."""

    description = ""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self._reason = name, reason

    async def search(self, query: str, limit: int, deadline: float) -> SourceAnswer:
        """Raises ToolError."""
        raise ToolError(self._reason)

    async def changes(self) -> Changes:
        """Raises ToolError."""
        raise ToolError(self._reason)

    async def read(self, place: DocumentPlace) -> DocumentPart:
        """Raises ToolError."""
        raise ToolError(self._reason)

    async def about(self) -> str:
        """Raises ToolError."""
        raise ToolError(self._reason)


class KnowledgeLibrary:
    """The federations of a process, by key and folder. Safe from several threads.

    store: which sources were added, looked at anew by every search; None: no more than the folder. seconds:
    how long a search waits for them.
    """

    def __init__(self, store: KnowledgeStore | None = None, *, seconds: float = DEADLINE) -> None:
        self._store, self._seconds = store, seconds
        self._lock = threading.RLock()
        self._opened: dict[tuple[KnowledgeKey, SourceSpec], FolderSource] = {}
        self._own: dict[tuple[KnowledgeKey, Path], FolderSource] = {}
        self._federations: dict[tuple[KnowledgeKey, Path | None], Federation] = {}

    def federation(self, key: KnowledgeKey, folder: str | os.PathLike[str] | None = None) -> Federation:
        """The sources that were added under a key, and the folder as `files` unless one is called so.

        Raises ConfigError when it is no folder.
        """
        place = Path(folder).resolve() if folder is not None else None
        with self._lock:
            if (key, place) not in self._federations:
                if place is not None:
                    self._own[key, place] = self._folder(key, place)
                self._federations[key, place] = Federation(
                    partial(self._sources, key, place), seconds=self._seconds
                )
            return self._federations[key, place]

    def folders(self) -> list[FolderSource]:
        """The folders that are searched now."""
        with self._lock:
            found = [each for key, place in self._federations for each in self._sources(key, place)]
            return list({id(each): each for each in found if isinstance(each, FolderSource)}.values())

    def close(self) -> None:
        """Let go of every index."""
        with self._lock:
            for each in [*self._opened.values(), *self._own.values()]:
                each.close()
            for held in (self._opened, self._own, self._federations):
                held.clear()

    def _folder(self, key: KnowledgeKey, place: Path) -> FolderSource:
        if self._store is None:
            return FolderSource(FILES, place, description=_OWN, bounds=BOUNDS)
        return self._store.folder_source(key, FILES, place, _OWN)

    def _sources(self, key: KnowledgeKey, place: Path | None) -> list[Source]:
        with self._lock:
            added = [] if self._store is None else self._added(self._store, key)
            if place is None or any(each.name == FILES for each in added):
                return added
            return [*added, self._own[key, place]]

    def _added(self, store: KnowledgeStore, key: KnowledgeKey) -> list[Source]:
        found: list[Source] = []
        specs: set[SourceSpec] = set()
        for name in store.names(key):
            try:
                spec = store.spec(key, name)
                specs.add(spec)
                if (key, spec) not in self._opened:
                    self._opened[key, spec] = store.open(key, spec)
                found.append(self._opened[key, spec])
            except AntiphonError as error:
                found.append(LostSource(name, str(error)))
        for gone in [each for each in self._opened if each[0] == key and each[1] not in specs]:
            self._opened.pop(gone).close()
        return found
