"""A search of the web as a source of knowledge: what it finds is cited by its address, and read there."""

from __future__ import annotations

import asyncio

from antiphon.tools.folder.index import Changes
from antiphon.tools.folder.text.passages import DocumentText
from antiphon.tools.knowledge.source import (
    DocumentPart,
    DocumentPlace,
    SourceAnswer,
    SourcePassage,
    check_source_name,
    lines_within,
)
from antiphon.tools.web.client import WebClient
from antiphon.tools.web.pages import read_answer
from antiphon.tools.web.search.port import WebSearch

MAX_READ = 8
"""Pages that are kept as they were read."""


class WebSource:
    """Pages that a search of the web finds, see `antiphon.tools.web.search`.

    A passage is what the search says of a page; its place has no lines. A document is an address, which is
    visited when it is read, see `WebClient`. Raises UserError for a name that is none.
    """

    def __init__(
        self, name: str, search: WebSearch, client: WebClient | None = None, *, description: str = ""
    ) -> None:
        self.name, self.description = check_source_name(name), description
        self._search, self._client = search, client or WebClient()
        self._read: dict[str, DocumentText] = {}

    async def search(self, query: str, limit: int, deadline: float) -> SourceAnswer:
        """See `Source.search`."""
        found = await self._search.search(query, limit)
        return SourceAnswer(
            tuple(
                SourcePassage(DocumentPlace(each.url), each.text or each.title, each.title) for each in found
            )
        )

    async def changes(self) -> Changes:
        """None: it is always as the web is."""
        return Changes()

    async def read(self, place: DocumentPlace) -> DocumentPart:
        """The lines of a page. Its last pages are kept, so that its parts are those of one page."""
        text = self._read.pop(place.document, None)
        if text is None or place.first <= 1:
            answer = await self._client.get(place.document)
            text = (await asyncio.to_thread(read_answer, answer)).text
        self._read[place.document] = text
        while len(self._read) > MAX_READ:
            self._read.pop(next(iter(self._read)))
        # Lines of a page's own source mean nothing to anybody: its texts are counted.
        return lines_within([each for _, each in text.lines], place)

    async def about(self) -> str:
        """Who searches."""
        return f"the web, searched by {self._search.name}"

    def let_go(self) -> None:
        """See `HeldSource.let_go`: nothing is held between two questions."""

    async def left(self) -> None:
        """See `HeldSource.left`."""
