"""Whether the files that a process has open are still the ones that others find at their paths."""

from __future__ import annotations

import os
import time
from pathlib import Path

from antiphon.errors import JournalDamaged

SETTLED_NS = 100_000_000
"""Age from which on the time of a folder's last change names that change alone."""
TRUSTED_S = 1.0
"""Seconds for which a folder that did not change is believed: some file systems count in whole seconds."""


class OpenFiles:
    """The files that a connection has open: the database, its log, and the index of the log."""

    def __init__(self, path: Path) -> None:
        self._shown, place = path, os.path.realpath(path)
        self._folder, self._unchanged, self._until = os.path.dirname(place), (0, 0), 0.0
        self._paths = [f"{place}{side}" for side in ("", "-wal", "-shm")]
        self._known = [self._identity(each) for each in self._paths]

    @staticmethod
    def _identity(path: str) -> tuple[int, int] | None:
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def check(self) -> None:
        """Raise JournalDamaged when one of them is no longer where it was: whoever opens the journal
        now sees another file than this process writes."""
        try:
            folder = os.stat(self._folder)
        except OSError:
            now = 0, 0
        else:
            now = folder.st_ino, folder.st_mtime_ns
            if now == self._unchanged and time.monotonic() < self._until:
                return
        for path, known in zip(self._paths, self._known, strict=True):
            if self._identity(path) != known:
                raise JournalDamaged(
                    self._shown,
                    f"{path} was removed or replaced while this process had it open; what it wrote since is"
                    " not there. Put the file back, or end whoever uses the journal; then resume",
                )
        # Of a folder that has just changed the next change may have the same time.
        self._unchanged = now if time.time_ns() - now[1] > SETTLED_NS else (0, 0)
        self._until = time.monotonic() + TRUSTED_S
