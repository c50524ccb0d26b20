"""Folders followed: what changes in a file is found by the next search, without a look at the others.

One thread asks the system for all folders together; each source is brought up to date in a thread of its
own, so that a large document of one holds up no other. What changed while nothing ran, or before a folder was
followed, is found by a look at all of it; so is, every few minutes, what the system did not tell.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType

from antiphon.errors import AntiphonError, ToolError
from antiphon.tools.folder.index import Changes
from antiphon.tools.folder.readers.apart import is_installed
from antiphon.tools.folder.root import Root
from antiphon.tools.knowledge.folder_source import FolderSource
from antiphon.tools.knowledge.library import KnowledgeLibrary
from antiphon.values.codec import type_and_text

DEBOUNCE_MS = 200
"""Changes that come within so long of each other are one."""
SURVEY_SECONDS = 300.0
"""How often all files are looked at whatever the system tells."""
MANY = 1000
"""Changed paths at once beyond which all files are looked at."""
RETRY_SECONDS = 5.0
"""When folders that could not be followed are tried again."""
IDLE_SECONDS = 0.25
"""How often it is looked whether there are folders to follow."""
_log = logging.getLogger("antiphon.knowledge")

Watch = Callable[[list[str], threading.Event], Iterable[set[str]]]
"""Sets of absolute paths that changed in folders, until the event is set; an empty one now and then."""
Told = Callable[[FolderSource, Changes], None]


def watch_folders(folders: list[str], stop: threading.Event) -> Iterator[set[str]]:
    """What the system tells of these folders, by watchfiles (the extra `knowledge`). Raises OSError."""
    from watchfiles import watch

    told = watch(
        *folders, watch_filter=None, debounce=DEBOUNCE_MS, step=50, stop_event=stop, rust_timeout=250,
        yield_on_timeout=True, raise_interrupt=False, ignore_permission_denied=True,
    )  # fmt: skip
    for changes in told:
        yield {path for _, path in changes}


class FolderMonitor:
    """Follows the folders of a library, also those that are opened later: `with FolderMonitor(library):`.

    A folder is followed once it has an index: before that, nobody has asked. told: called in a thread of the
    monitor's with what a look changed, if it did.
    """

    def __init__(
        self, library: KnowledgeLibrary, *, told: Told | None = None, watch: Watch = watch_folders
    ) -> None:
        self._library, self._told, self._watch = library, told, watch
        self._stop, self._following = threading.Event(), threading.Event()
        self._followers: dict[FolderSource, _Follower] = {}
        self._warned: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="antiphon-monitor", daemon=True)

    def __enter__(self) -> FolderMonitor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        for each in self._followers.values():
            each.end()

    @property
    def follows(self) -> bool:
        """Whether the system tells what changes."""
        return self._following.is_set()

    def _run(self) -> None:
        while not self._stop.is_set():
            folders, pause = self._folders(), IDLE_SECONDS
            if folders:
                try:
                    self._follow(folders)
                except (OSError, RuntimeError) as error:
                    self._warn(f"Folders are not followed, so that every search looks at them: {error}")
                    pause = RETRY_SECONDS
            self._following.clear()
            for each in list(self._followers):
                each.watched = False
                if str(each.root.path) not in self._folders():
                    self._followers.pop(each).end()
            self._stop.wait(pause)

    def _folders(self) -> dict[str, list[FolderSource]]:
        """Sources by the folder that is followed for them."""
        found: dict[str, list[FolderSource]] = {}
        try:
            for each in self._library.folders():
                if each.has_index and each.root.path.is_dir():
                    found.setdefault(str(each.root.path), []).append(each)
        except AntiphonError as error:
            self._warn(str(error))
        return found

    def _follow(self, folders: dict[str, list[FolderSource]]) -> None:
        """Follow these folders until others are to be followed. Raises OSError, RuntimeError."""
        surveyed = -math.inf
        for changes in self._watch(sorted(folders), self._stop):
            if self._stop.is_set() or self._folders() != folders:
                return
            self._following.set()
            if time.monotonic() - surveyed > SURVEY_SECONDS:
                # The first time too, and not before: from now on nothing escapes that happens meanwhile.
                surveyed = time.monotonic()
                for each in (source for sources in folders.values() for source in sources):
                    self._follower(each).look(None)
            for sources in folders.values():
                if paths := _inside(sources[0].root, changes):
                    for each in sources:
                        self._follower(each).look(paths if len(paths) <= MANY else None)

    def _follower(self, source: FolderSource) -> _Follower:
        if source not in self._followers:
            self._followers[source] = _Follower(source, self._told, self._warn, self._following)
        return self._followers[source]

    def _warn(self, text: str) -> None:
        """Say it once."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning(text)


@contextmanager
def followed(library: KnowledgeLibrary) -> Iterator[None]:
    """The folders of a library are followed where watchfiles is installed; it is closed at the end."""
    try:
        if not is_installed("watchfiles"):
            yield
        else:
            with FolderMonitor(library):
                yield
    finally:
        library.close()


class _Follower:
    """Brings one source up to date, one look at a time; what comes meanwhile is looked at after it."""

    def __init__(
        self,
        source: FolderSource,
        told: Told | None,
        warn: Callable[[str], None],
        following: threading.Event,
    ) -> None:
        self.source, self._told, self._warn, self._following = source, told, warn, following
        self._lock = threading.Lock()
        self._waiting: set[str] | None = set()
        self._at_work = self._ended = False

    def look(self, paths: set[str] | None) -> None:
        """Look at these paths, or at everything, soon."""
        with self._lock:
            self._waiting = None if paths is None or self._waiting is None else self._waiting | paths
            if self._at_work or self._ended:
                return
            self._at_work = True
        threading.Thread(target=self._work, name="antiphon-knowledge", daemon=True).start()

    def end(self) -> None:
        """Begin no more looks."""
        with self._lock:
            self._ended = True
            self.source.watched = False

    def _work(self) -> None:
        while True:
            with self._lock:
                paths, self._waiting = self._waiting, set()
                if self._ended:
                    return
            try:
                made = self._look(paths) if paths != set() else self.source.embed_some()
            except Exception as error:  # noqa: BLE001 - a search looks for itself then, and says why that fails
                made = 0
                self.source.watched = False
                self._warn(f"source {self.source.name}: {type_and_text(error)}")
            with self._lock:
                if not made and self._waiting == set():
                    self._at_work = False
                    return

    def _look(self, paths: set[str] | None) -> bool:
        """Look at these paths, or at everything. True: there may be vectors to make now."""
        changes = self.source.index.refresh(paths)
        with self._lock:
            if paths is None and self._following.is_set() and not self._ended:
                self.source.watched = True
        if changes and self._told is not None:
            self._told(self.source, changes)
        return True


def _inside(root: Root, changes: Iterable[str]) -> set[str]:
    """The paths in a folder, relative to it with `/`, without what no source ever reads."""
    found: set[str] = set()
    for path in changes:
        relative = os.path.relpath(path, root.path)
        try:
            found.add("/".join(root.parts(relative)) or ".")
        except ToolError:
            continue
    return found
