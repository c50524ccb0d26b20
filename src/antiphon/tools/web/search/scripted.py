"""A search of the web that says what a test tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from antiphon.errors import ToolError
from antiphon.tools.web.search.port import WebHit


class ScriptedWebSearch:
    """Finds the pages that were given for a query, or for every query under `""`.

    queries: what was asked so far. error: raised by every search.
    """

    name = "scripted"

    def __init__(self, pages: Mapping[str, Sequence[WebHit]], *, error: str = "") -> None:
        self.queries: list[str] = []
        self._pages, self._error = dict(pages), error

    async def search(self, query: str, count: int) -> Sequence[WebHit]:
        """See `WebSearch`."""
        self.queries.append(query)
        if self._error:
            raise ToolError(self._error)
        return self._pages.get(query, self._pages.get("", ()))[:count]
