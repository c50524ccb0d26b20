"""The port of what can be searched: a folder, a server, an index elsewhere. A source is asked, never trusted.

class Tickets:
    name, description = "tickets", "what customers asked"

    async def search(self, query, limit, deadline): ...
    async def changes(self): return Changes()
    async def read(self, place): ...
    async def about(self): return "1,204 tickets"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from antiphon.errors import ToolError, UserError
from antiphon.tools.folder.index import Changes
from antiphon.values.fields import shown

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class DocumentPlace(Struct, frozen=True):
    """A document of a source, or lines of it."""

    document: str
    """Its path or address within its source."""
    first: int = 0
    """Lines count from 1; 0: the source knows no lines, or the beginning."""
    last: int = 0
    """The last line, that one included; 0: as `first`."""


class SourcePassage(Struct, frozen=True):
    """A passage that a source found, word for word."""

    place: DocumentPlace
    text: str
    heading: str = ""
    """The title under which it stands; of a PDF its page."""


class SourceAnswer(Struct, frozen=True):
    """What a source found."""

    passages: tuple[SourcePassage, ...] = ()
    """Best first."""
    note: str = ""
    """Why this may not be all, such as an index that is still being made; empty when it is."""
    how: str = ""
    """What whoever asks should know of how it was searched, such as by words alone; empty: nothing."""


class DocumentPart(Struct, frozen=True):
    """Lines of a document."""

    lines: tuple[tuple[int, str], ...]
    """Numbers from 1 and texts; several texts may stand on one line of a page without line breaks."""
    total: int
    """Lines of the whole document."""


class Source(Protocol):
    """Something that can be searched. Every method may raise: the source then contributes nothing, and what
    it raised is told in its name. Used by one event loop."""

    @property
    def name(self) -> str:
        """What it is called in questions and citations, see `check_source_name`."""
        ...

    @property
    def description(self) -> str:
        """What is in it, for whoever chooses among sources; may be empty."""
        ...

    async def search(self, query: str, limit: int, deadline: float) -> SourceAnswer:
        """The best passages, at most `limit`. deadline: seconds on the event loop's clock; what comes later
        is not waited for, so better answer with a part of it and a note."""
        ...

    async def changes(self) -> Changes:
        """Bring up to date what is searched; returns what changed since that was last done. Nothing where
        the source is always current."""
        ...

    async def read(self, place: DocumentPlace) -> DocumentPart:
        """The lines of a place. Raises ToolError: no such document, or not readable, with the reason."""
        ...

    async def about(self) -> str:
        """How much there is, and what could not be read: one line."""
        ...


class HeldSource(Source, Protocol):
    """A source that holds what it should let go of at the end."""

    def let_go(self) -> None:
        """Begin to let go of it, from any thread; the source is not used afterwards."""
        ...

    async def left(self) -> None:
        """Wait until what was let go of on this event loop has ended; what has not ends with the loop."""
        ...


def check_source_name(name: str) -> str:
    """The name of a source, which begins its citations. Raises UserError."""
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"A source is named by 1 to 40 letters, digits, dots, dashes, underscores; got {shown(name)}"
        )
    return name


def lines_within(lines: Sequence[str], place: DocumentPlace) -> DocumentPart:
    """The lines of a document that a place means, of all it has. Raises ToolError: it has not so many."""
    first = max(place.first, 1)
    last = min(max(place.last or len(lines), first), len(lines))
    if first > max(len(lines), 1):
        raise ToolError(f"{place.document} has only {len(lines)} lines")
    return DocumentPart(tuple(enumerate(lines[first - 1 : last], first)), len(lines))
