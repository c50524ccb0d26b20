"""Who searches the web, and how each is asked: what goes out, and where in the answer its pages stand."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from antiphon.tools.web.search.port import WebHit

_MARK = re.compile(r"</?(?:strong|b|em|mark|span)(?:\s[^<>]*)?>", re.IGNORECASE)


class SearchRequest(Struct, frozen=True):
    """What goes out to a provider. content: JSON that is posted; None: `query` is asked for with GET."""

    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    content: Mapping[str, Any] | None = None


class SearchProvider(Struct, frozen=True):
    """Somebody who searches the web over HTTP.

    variable: the setting that holds the key, or the address where there is no usual one. ask: from
    query, count and key what goes out. place: the keys that lead to the list of pages. fields: where a
    page has its address, title, text and date; of several the first that is there counts.
    """

    name: str
    variable: str
    address: str
    ask: Callable[[str, int, str], SearchRequest]
    place: tuple[str, ...]
    url: str
    text: tuple[str, ...]
    published: str
    most: int = 20
    """Pages that one answer has at most."""
    needs: Literal["key", "address"] = "key"

    def hits(self, answer: Any) -> Iterable[WebHit]:
        """The pages of an answer; what is no page is left out."""
        for part in self.place:
            answer = answer.get(part) if isinstance(answer, dict) else None
        for each in answer if isinstance(answer, list) else ():
            if isinstance(each, dict) and isinstance(url := each.get(self.url), str) and url:
                text = next((found for name in self.text if (found := _text(each.get(name)))), "")
                yield WebHit(url, _text(each.get("title")) or url, text, _text(each.get(self.published)))


def _text(given: Any) -> str:
    """A text of one line, without marks; of a list of texts all of them."""
    if isinstance(given, list):
        return " … ".join(found for each in given if (found := _text(each)))
    return " ".join(html.unescape(_MARK.sub("", given)).split()) if isinstance(given, str) else ""


def _brave(query: str, count: int, key: str) -> SearchRequest:
    asked = {"q": query, "count": str(count), "text_decorations": "false"}
    return SearchRequest("/res/v1/web/search", asked, {"X-Subscription-Token": key})


def _tavily(query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest("/search", {}, _bearer(key), {"query": query, "max_results": count})


def _serper(query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest("/search", {}, {"X-API-KEY": key}, {"q": query, "num": count})


def _exa(query: str, count: int, key: str) -> SearchRequest:
    asked = {"query": query, "numResults": count, "type": "auto", "contents": {"highlights": True}}
    return SearchRequest("/search", {}, {"x-api-key": key}, asked)


def _jina(query: str, count: int, key: str) -> SearchRequest:
    # Of each page its description is enough: its text is read with visit_url, as that of any other.
    headers = {**_bearer(key), "X-Respond-With": "no-content"}
    return SearchRequest("/", {"q": query, "num": str(count)}, headers)


def _searxng(query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest("/search", {"q": query, "format": "json"})


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


PROVIDERS: Mapping[str, SearchProvider] = {
    each.name: each
    for each in (
        SearchProvider(
            "brave", "BRAVE_API_KEY", "https://api.search.brave.com", _brave, ("web", "results"), "url",
            ("description", "extra_snippets"), "age",
        ),
        SearchProvider(
            "exa", "EXA_API_KEY", "https://api.exa.ai", _exa, ("results",), "url",
            ("highlights", "summary", "text"), "publishedDate",
        ),
        SearchProvider(
            "jina", "JINA_API_KEY", "https://s.jina.ai", _jina, ("data",), "url",
            ("description", "content"), "date",
        ),
        SearchProvider(
            "searxng", "SEARXNG_URL", "", _searxng, ("results",), "url", ("content",), "publishedDate",
            needs="address",
        ),
        SearchProvider(
            "serper", "SERPER_API_KEY", "https://google.serper.dev", _serper, ("organic",), "link",
            ("snippet",), "date",
        ),
        SearchProvider(
            "tavily", "TAVILY_API_KEY", "https://api.tavily.com", _tavily, ("results",), "url", ("content",),
            "published_date",
        ),
    )
}  # fmt: skip
"""Those that are known, by name."""
