"""The port of a search over the web."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class WebHit(Struct, frozen=True):
    """A page that a search found."""

    url: str
    title: str
    text: str = ""
    """What the page says of what was asked, or of itself; one paragraph, without marks."""
    published: str = ""
    """When, as the provider writes it."""


class WebSearch(Protocol):
    """Somebody who searches the web."""

    @property
    def name(self) -> str:
        """Who it is, one word."""
        ...

    async def search(self, query: str, count: int) -> Sequence[WebHit]:
        """At most `count` pages, best first. Raises ToolError: not reached, not allowed, not understood."""
        ...
