"""The sources of a process: each is opened once, however many teams search it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from antiphon.errors import AntiphonError, ToolError
from antiphon.tools.folder.documents import BOUNDS
from antiphon.tools.folder.index import Changes
from antiphon.tools.knowledge.federation import DEADLINE, Federation
from antiphon.tools.knowledge.folder_source import FolderSource
from antiphon.tools.knowledge.source import DocumentPart, DocumentPlace, HeldSource, Source, SourceAnswer
from antiphon.tools.knowledge.spec import SourceSpec
from antiphon.tools.knowledge.store import KnowledgeKey, KnowledgeStore

FILES = "files"
"""The name of the source that the team's own folder is."""
_OWN = "the files of this folder"
_Folders = tuple[tuple[str, Path], ...]


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
        self._opened: dict[tuple[KnowledgeKey, SourceSpec], HeldSource] = {}
        self._own: dict[tuple[KnowledgeKey, str, Path], FolderSource] = {}
        self._federations: dict[tuple[KnowledgeKey, _Folders], Federation] = {}

    def federation(
        self,
        key: KnowledgeKey,
        folder: str | os.PathLike[str] | None = None,
        named: Mapping[str, str | os.PathLike[str]] = {},
    ) -> Federation:
        """The sources that were added under a key, the folders that are `named`, and the folder as `files`
        unless one is called so. Of one name those that are named count.

        Raises ConfigError when the folder is none; a named one that is none says so when it is searched.
        """
        own = {FILES: folder} if folder is not None and FILES not in named else {}
        places = tuple((name, Path(each).resolve()) for name, each in {**named, **own}.items())
        with self._lock:
            if (key, places) not in self._federations:
                for name, place in places:
                    if name in own:
                        self._folder(key, name, place)
                self._federations[key, places] = Federation(
                    partial(self._sources, key, places), seconds=self._seconds
                )
            return self._federations[key, places]

    def folders(self) -> list[FolderSource]:
        """The folders that are searched now."""
        with self._lock:
            found = [each for key, places in self._federations for each in self._sources(key, places)]
            return list({id(each): each for each in found if isinstance(each, FolderSource)}.values())

    def close(self) -> None:
        """Let go of every index and connection."""
        with self._lock:
            for each in self._held():
                each.let_go()
            for held in (self._opened, self._own, self._federations):
                held.clear()

    async def left(self) -> None:
        """Let go of connections, and wait until those of this event loop have ended."""
        with self._lock:
            held = [each for each in self._held() if not isinstance(each, FolderSource)]
        for each in held:
            each.let_go()
            await each.left()

    def _held(self) -> list[HeldSource]:
        return [*self._opened.values(), *self._own.values()]

    def _folder(self, key: KnowledgeKey, name: str, place: Path) -> FolderSource:
        if (key, name, place) not in self._own:
            described = _OWN if name == FILES else ""
            self._own[key, name, place] = (
                FolderSource(name, place, description=described, bounds=BOUNDS)
                if self._store is None
                else self._store.folder_source(key, name, place, described)
            )
        return self._own[key, name, place]

    def _sources(self, key: KnowledgeKey, places: _Folders) -> list[Source]:
        with self._lock:
            added = [] if self._store is None else self._added(self._store, key)
            named = {name for name, _ in places} - {FILES}
            found = [each for each in added if each.name not in named]
            taken = {each.name for each in found}
            return [*found, *(self._opened_folder(key, *each) for each in places if each[0] not in taken)]

    def _opened_folder(self, key: KnowledgeKey, name: str, place: Path) -> Source:
        try:
            return self._folder(key, name, place)
        except AntiphonError as error:
            return LostSource(name, str(error))

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
            self._opened.pop(gone).let_go()
        return found
