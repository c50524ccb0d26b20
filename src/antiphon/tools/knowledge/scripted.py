"""A source that says what a test tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from antiphon.errors import ToolError
from antiphon.tools.folder.index import Changes
from antiphon.tools.knowledge.source import (
    DocumentPart,
    DocumentPlace,
    SourceAnswer,
    SourcePassage,
    lines_within,
)


class ScriptedSource:
    """Documents given as texts, each a passage of its own; it finds those that hold a word of the query.

    error: raised by every method. hangs: no method ever answers.
    """

    description = "texts of a test"

    def __init__(
        self, name: str, documents: Mapping[str, str], *, error: Exception | None = None, hangs: bool = False
    ) -> None:
        self.name, self.documents = name, dict(documents)
        self.error, self.hangs = error, hangs

    async def search(self, query: str, limit: int, deadline: float) -> SourceAnswer:
        """Documents in the order in which they were given."""
        await self._behave()
        words = query.casefold().split()
        found = [each for each in self.documents.items() if any(word in each[1].casefold() for word in words)]
        return SourceAnswer(
            tuple(SourcePassage(DocumentPlace(path, 1, text.count("\n") + 1), text) for path, text in found)
        )

    async def changes(self) -> Changes:
        """None: what it holds is what it was given."""
        await self._behave()
        return Changes()

    async def read(self, place: DocumentPlace) -> DocumentPart:
        """Lines of a text."""
        await self._behave()
        if place.document not in self.documents:
            raise ToolError(f"There is no document {place.document}")
        return lines_within(self.documents[place.document].split("\n"), place)

    async def about(self) -> str:
        """How many there are."""
        await self._behave()
        return f"{len(self.documents)} documents"

    async def _behave(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
