"""Providers of searches: what is sent to each, what is made of its answer, what a refusal says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from antiphon.errors import ConfigError, ToolError, UnknownName, UserError
from antiphon.tools.web.search import PROVIDERS, HttpWebSearch, WebHit, configured_search

KEY = "sk-1234567890abcdef"
MOON = WebHit("https://a.test/moon", "The moon & the sea", "The moon pulls.", "2026-01-02")
BARE = WebHit("https://b.test/", "https://b.test/")
# As each provider documents its answers; what is not read stands there too.
ANSWERS: dict[str, Any] = {
    "brave": {
        "type": "search", "query": {"original": "tides"},
        "web": {"type": "search", "results": [
            {"type": "search_result", "title": "The moon &amp; the sea", "url": MOON.url, "age": "2026-01-02",
             "description": "The <strong>moon</strong> pulls.", "language": "en"},
            {"url": BARE.url}, {"title": "no address"}, "nonsense",
        ]},
    },
    "exa": {
        "requestId": "r", "resolvedSearchType": "neural",
        "results": [
            {"title": MOON.title, "url": MOON.url, "publishedDate": "2026-01-02", "author": None, "id": "1",
             "highlights": ["The moon", "pulls."], "highlightScores": [0.4]},
            {"url": BARE.url, "title": None},
        ],
    },
    "jina": {
        "code": 200, "status": 20000,
        "data": [
            {"title": MOON.title, "url": MOON.url, "description": "The moon pulls.", "date": "2026-01-02",
             "content": "", "usage": {"tokens": 1000}},
            {"url": BARE.url, "title": ""},
        ],
    },
    "searxng": {
        "query": "tides", "number_of_results": 2,
        "results": [
            {"url": MOON.url, "title": MOON.title, "content": "The moon pulls.", "engine": "x",
             "publishedDate": "2026-01-02", "score": 2.0},
            {"url": BARE.url, "title": 7},
        ],
    },
    "serper": {
        "searchParameters": {"q": "tides"}, "knowledgeGraph": {},
        "organic": [
            {"title": MOON.title, "link": MOON.url, "snippet": "The moon pulls.", "date": "2026-01-02",
             "position": 1},
            {"link": BARE.url},
        ],
    },
    "tavily": {
        "query": "tides", "answer": None, "images": [],
        "results": [
            {"title": MOON.title, "url": MOON.url, "content": "The moon pulls.", "score": 0.9,
             "published_date": "2026-01-02", "raw_content": None},
            {"url": BARE.url},
        ],
    },
}  # fmt: skip
SENT: dict[str, tuple[str, str, dict[str, str], Any]] = {
    "brave": (
        "GET", "https://api.search.brave.com/res/v1/web/search?q=tides&count=5&text_decorations=false",
        {"x-subscription-token": KEY}, None,
    ),
    "exa": (
        "POST", "https://api.exa.ai/search", {"x-api-key": KEY},
        {"query": "tides", "numResults": 5, "type": "auto", "contents": {"highlights": True}},
    ),
    "jina": (
        "GET", "https://s.jina.ai/?q=tides&num=5",
        {"authorization": f"Bearer {KEY}", "x-respond-with": "no-content", "accept": "application/json"},
        None,
    ),
    "searxng": ("GET", "https://search.test/search?q=tides&format=json", {}, None),
    "serper": ("POST", "https://google.serper.dev/search", {"x-api-key": KEY}, {"q": "tides", "num": 5}),
    "tavily": (
        "POST", "https://api.tavily.com/search", {"authorization": f"Bearer {KEY}"},
        {"query": "tides", "max_results": 5},
    ),
}  # fmt: skip


def searching(name: str, answer: Callable[[httpx2.Request], httpx2.Response]) -> HttpWebSearch:
    address = "https://search.test/" if name == "searxng" else ""
    return HttpWebSearch(name, KEY, address=address, transport=httpx2.MockTransport(answer))


def told(name: str, *answer: Any, **given: Any) -> str:
    search = searching(name, lambda request: httpx2.Response(*answer, **given))
    with pytest.raises(ToolError) as caught:
        asyncio.run(search.search("tides", 5))
    return str(caught.value)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_is_asked_as_it_wants_and_its_pages_are_found(name: str) -> None:
    sent: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, json=ANSWERS[name])

    found = asyncio.run(searching(name, answer).search("tides", 5))
    expected = MOON if name != "exa" else WebHit(MOON.url, MOON.title, "The moon … pulls.", MOON.published)
    assert list(found) == [expected, BARE]
    (request,) = sent
    method, url, headers, content = SENT[name]
    assert (request.method, str(request.url)) == (method, url)
    assert {key: request.headers.get(key) for key in headers} == headers
    assert (json.loads(request.content) if request.content else None) == content


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("answer", [{}, [], None, 7, {"web": 1, "results": {}, "data": None, "organic": "x"}])
def test_an_answer_that_holds_no_pages_holds_none(name: str, answer: Any) -> None:
    search = searching(name, lambda request: httpx2.Response(200, content=json.dumps(answer)))
    assert list(asyncio.run(search.search("tides", 5))) == []


def test_no_more_is_given_than_was_asked_for() -> None:
    many = {"results": [{"url": f"https://a.test/{number}"} for number in range(50)]}
    search = searching("tavily", lambda request: httpx2.Response(200, json=many))
    assert [len(asyncio.run(search.search("a", count))) for count in (0, 3, 99)] == [1, 3, 20]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, "tavily does not take the key in TAVILY_API_KEY (401: no *** here)"),
        (402, "tavily has no credit left for this key (402: no *** here)"),
        (
            429,
            "tavily has been asked too often for now; search later, or read what was found before"
            " (429: no *** here)",
        ),
        (500, "tavily did not answer (500: no *** here)"),
        (302, "tavily did not answer (302: no *** here)"),
    ],
)
def test_a_refusal_says_why_and_never_the_key(status: int, expected: str) -> None:
    headers = {"Location": "https://thief.test/"}
    assert told("tavily", status, text=f"no {KEY} here", headers=headers) == expected


def test_a_searxng_that_gives_no_json_says_what_to_set() -> None:
    hint = " (its settings must list json under search.formats)"
    search = HttpWebSearch(
        "searxng", address="https://search.test",
        transport=httpx2.MockTransport(lambda request: httpx2.Response(403)),
    )  # fmt: skip
    with pytest.raises(ToolError) as caught:
        asyncio.run(search.search("tides", 5))
    assert str(caught.value) == f"searxng refuses{hint} (403)"
    assert told("searxng", 200, text="<html>") == f"searxng did not answer with JSON{hint}"


def test_a_hostile_provider_costs_its_bounds() -> None:
    assert told("brave", 200, content=b"[" * 5_000_000) == "brave answered with more than 4,000,000 bytes"
    assert told("brave", 200, content=b"[" * 200_000) == "brave did not answer with JSON"

    def broken(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError(f"refused for {KEY}")

    with pytest.raises(ToolError, match=r"^brave was not reached: refused for \*\*\*$"):
        asyncio.run(searching("brave", broken).search("a", 1))


def test_settings_name_who_searches() -> None:
    def name(**env: str) -> str | None:
        found = configured_search(env)
        return found.name if found is not None else None

    assert name() is None
    assert name(TAVILY_API_KEY=KEY) == "tavily"
    assert name(TAVILY_API_KEY=KEY, BRAVE_API_KEY=KEY) == "brave"
    assert name(TAVILY_API_KEY=KEY, BRAVE_API_KEY=KEY, ANTIPHON_WEB_SEARCH="Tavily") == "tavily"
    assert name(TAVILY_API_KEY=KEY, ANTIPHON_WEB_SEARCH="none") is None
    assert name(SEARXNG_URL="http://127.0.0.1:8888") == "searxng"
    assert name(BRAVE_API_KEY=" ") is None


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            {"ANTIPHON_WEB_SEARCH": "bing"},
            "ANTIPHON_WEB_SEARCH is bing; it is none or one of: brave, exa, jina",
        ),
        (
            {"ANTIPHON_WEB_SEARCH": "serper"},
            "ANTIPHON_WEB_SEARCH is serper, and SERPER_API_KEY, its key, is not set",
        ),
        ({"SEARXNG_URL": "search.test"}, r"SEARXNG_URL: searxng: search\.test is no http or https address"),
        ({"SEARXNG_URL": "http://a:b@search.test"}, "is no http or https address without user"),
    ],
)
def test_settings_that_are_wrong_are_named(env: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configured_search(env)


def test_who_is_no_provider_and_who_has_no_key() -> None:
    with pytest.raises(UnknownName, match=r"Unknown web search: bing\. Known: brave"):
        HttpWebSearch("bing", KEY)
    with pytest.raises(UserError, match=r"HttpWebSearch\('brave'\) needs a key"):
        HttpWebSearch("brave")
    with pytest.raises(UserError, match=r"searxng: +is no http or https address"):
        HttpWebSearch("searxng")
    assert KEY not in repr(vars(HttpWebSearch("brave", KEY)))
