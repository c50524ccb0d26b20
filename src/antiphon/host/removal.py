"""What must not cross: a project that is removed, and runs that begin in it or are moved there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.errors import UserError


class ProjectBusy(UserError):
    """A project is being removed, or a run begins in it just now."""


class Removal:
    """Who is about to change which project. Belongs to one event loop."""

    def __init__(self) -> None:
        self._starting: Counter[str] = Counter()
        self._removed: set[str] = set()

    @contextmanager
    def starting(self, project: str) -> Iterator[None]:
        """A run begins in a project, or comes to it. Raises ProjectBusy while it is removed."""
        if project in self._removed:
            raise ProjectBusy(f"The project {project} is being removed; use another one")
        self._starting[project] += 1
        try:
            yield
        finally:
            self._starting[project] -= 1
            if not self._starting[project]:
                del self._starting[project]

    @contextmanager
    def of(self, project: str) -> Iterator[None]:
        """A project is removed. Raises ProjectBusy while a run begins in it, or it is removed already."""
        if project in self._removed or self._starting[project]:
            raise ProjectBusy(f"A run begins in the project {project} just now; ask again in a moment")
        self._removed.add(project)
        try:
            yield
        finally:
            self._removed.discard(project)
