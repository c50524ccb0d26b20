"""A visit: redirects, robots.txt, pauses, bounds. Against a host of this machine."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from antiphon.errors import ToolError
from antiphon.tools.web.client import WebAnswer
from antiphon.tools.web.courtesy import Courtesy
from antiphon.tools.web.robots import robot_rules
from tests.unit.tools.web.site import Pauses, Site, guest, opened

HOME = "http://shop.test"


def on(pages: dict[str, object], scenario: Callable[[Site, str], Coroutine[Any, Any, Any]]) -> Any:
    """What a scenario gives that has the site and its address."""

    async def run() -> Any:
        async with opened(pages) as site:
            return await scenario(site, f"{HOME}:{site.port}")

    return asyncio.run(run())


def got(pages: dict[str, object], path: str = "/", **options: Any) -> tuple[WebAnswer, list[str]]:
    """What a visit gives, and what was asked for."""

    async def scenario(site: Site, home: str) -> tuple[WebAnswer, list[str]]:
        return await guest(**options).get(home + path), site.asked

    return on(pages, scenario)  # type: ignore[no-any-return]


def refused(pages: dict[str, object], path: str = "/", **options: Any) -> tuple[str, list[str]]:
    """Why a visit is refused, without the port, and what was asked for."""

    async def scenario(site: Site, home: str) -> tuple[str, list[str]]:
        with pytest.raises(ToolError) as caught:
            await guest(**options).get(home + path)
        return str(caught.value).replace(f":{site.port}", ""), site.asked

    return on(pages, scenario)  # type: ignore[no-any-return]


def test_a_page_is_given_with_where_it_stands_in_the_end() -> None:
    pages = {"/": (301, {"Location": "/new?a=1#part"}, b""), "/new?a=1": b"<p>here"}
    answer, asked = got(pages)
    assert (answer.url.path, answer.url.query, answer.url.fragment) == ("/new", b"a=1", "")
    assert (answer.kind, answer.body) == ("text/html", b"<p>here")
    assert asked == ["/robots.txt", "/", "/new?a=1"]


def test_redirects_end() -> None:
    pages = {"/": (302, {"Location": "/"}, b"")}
    assert refused(pages)[0] == "http://shop.test/ leads on and on: more than 5 redirects"
    assert refused({"/": (302, {"Location": "file:///etc/passwd"}, b"")})[0].startswith(
        "file:///etc/passwd: give"
    )
    assert refused({"/": (300, {}, b"")})[0] == "http://shop.test/ answered 300 Multiple Choices"


def test_what_is_not_there_says_so() -> None:
    assert refused({})[0] == "http://shop.test/ answered 404 Not Found"
    assert refused({"/": (999, {}, b"")})[0] == "http://shop.test/ answered 999"


ROBOTS = b"""
User-agent: *
Disallow: /private
Allow: /private/open
Crawl-delay: 3

User-agent: BadBot
Disallow: /
"""


def test_robots_txt_is_obeyed_and_asked_for_once() -> None:
    pages = {"/robots.txt": (200, {"Content-Type": "text/plain"}, ROBOTS), "/": b"a", "/private/open": b"b"}

    async def scenario(site: Site, home: str) -> tuple[list[str], list[float]]:
        pauses = Pauses()
        client = guest(pauses=pauses)
        await client.get(f"{home}/")
        with pytest.raises(
            ToolError, match=r"/private/a is not for programs: the robots\.txt of its host asks"
        ):
            await client.get(f"{home}/private/a")
        await client.get(f"{home}/private/open")
        return site.asked, pauses.slept

    assert on(pages, scenario) == (["/robots.txt", "/", "/private/open"], [3.0])
    assert refused(pages, "/", user_agent="badbot/2 (+https://example.test)")[0].endswith(
        "asks to leave it alone"
    )
    assert got(pages, "/private/open", obey_robots=False)[1] == ["/private/open"]


def test_a_redirect_is_asked_about_too() -> None:
    pages = {"/robots.txt": ROBOTS, "/": (302, {"Location": "/private/a"}, b""), "/private/a": b"secret"}
    assert refused(pages) == (
        "http://shop.test/private/a is not for programs: the robots.txt of its host asks to leave it alone",
        ["/robots.txt", "/"],
    )


def test_a_host_that_cannot_say_what_it_asks_for_is_left_alone() -> None:
    assert refused({"/robots.txt": (503, {}, b""), "/": b"a"})[1] == ["/robots.txt"]
    assert got({"/robots.txt": (403, {}, b""), "/": b"a"})[1] == ["/robots.txt", "/"]
    moved = {"/robots.txt": (301, {"Location": "/r"}, b""), "/r": b"User-agent: *\nDisallow: /", "/": b"a"}
    assert refused(moved)[1] == ["/robots.txt", "/r"]


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
        ("User-agent: *\nDisallow: /a*z$", "/abz", False),
        ("User-agent: *\nDisallow: /a*z$", "/abzc", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", True),
        ("User-agent: *\nDisallow: /a$", "/a", False),
        ("User-agent: *\nDisallow: /a$", "/ab", True),
        ("User-agent: *\nDisallow: /*a*a*a*", "/bababab", False),
        ("User-agent: *\nDisallow: /ab*b$", "/ab", True),
        ("User-agent: *\nDisallow: /caf%c3%a9", "/caf%C3%A9/menu", False),
        ("User-agent: *\nDisallow: /café", "/caf%C3%A9", False),
        ("User-agent: *\nDisallow: /%7Ejoe", "/~joe/x", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Antiphon\nAllow: /", "/a", True),
        ("User-agent: Antiphon\nUser-agent: Other\nDisallow: /\n\nUser-agent: *\nAllow: /", "/a", False),
        ("User-agent: antiphon/1.0\nDisallow: /a\n\nUser-agent: ANTIPHON\nDisallow: /b", "/b", False),
        ("Disallow: /", "/a", True),
        ("\ufeffUser-agent: * # all\nSitemap: x\nDisallow: /a # no", "/a", False),
        ("nonsense\n:::\nUser-agent\n\0", "/a", True),
    ],
)
def test_rules_of_robots_txt(rules: str, path: str, allowed: bool) -> None:
    assert robot_rules(rules, "Antiphon").allows(path) is allowed


def test_a_pattern_that_is_made_to_be_searched_for_ever_is_not() -> None:
    rules = robot_rules("User-agent: *\nDisallow: " + "/*a" * 5000 + "$", "Antiphon")
    assert rules.allows("/" + "a" * 5000)


def test_one_host_is_asked_with_a_pause_and_others_are_not_held_up() -> None:
    async def scenario(site: Site, home: str) -> list[float]:
        pauses = Pauses()
        client = guest(pauses=pauses, obey_robots=False, pause=2.0)
        for url in (f"{home}/", f"{home}/", f"http://other.test:{site.port}/", f"{home}/"):
            await client.get(url)
        return pauses.slept

    assert on({"/": b"a"}, scenario) == [2.0, 2.0]


def test_who_asks_to_come_later_is_asked_later() -> None:
    pages = {"/": (429, {"Retry-After": "120"}, b"slow down")}

    async def scenario(site: Site, home: str) -> tuple[list[str], list[str]]:
        client, told = guest(obey_robots=False), []
        for _ in range(2):
            with pytest.raises(ToolError) as caught:
                await client.get(f"{home}/")
            told.append(str(caught.value).replace(f":{site.port}", ""))
        return told, site.asked

    assert on(pages, scenario) == (
        [
            "http://shop.test/ answered 429 Too Many Requests, and asks not to be visited for 120 seconds",
            "shop.test asks not to be visited for the next 120 seconds; go on with something else",
        ],
        ["/"],
    )


def test_a_wait_that_is_given_up_is_nobody_else_s() -> None:
    pauses = Pauses()
    courtesy = Courtesy(pauses.now, pauses.sleep)

    async def scenario() -> None:
        for _ in range(21):
            await courtesy.turn("a", 1.0)

    asyncio.run(scenario())
    assert pauses.slept == [1.0] * 20


def test_a_crowd_is_sent_away_rather_than_kept() -> None:
    async def never(seconds: float) -> None:
        await asyncio.sleep(0)

    courtesy = Courtesy(lambda: 0.0, never)

    async def scenario() -> int:
        done = await asyncio.gather(*[courtesy.turn("a", 1.0) for _ in range(30)], return_exceptions=True)
        return sum(isinstance(each, ToolError) for each in done)

    assert asyncio.run(scenario()) == 9


def test_bodies_are_bounded_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    packed = {"Content-Encoding": "gzip"}
    told, _ = refused({"/": (200, packed, bomb)})
    assert told == "http://shop.test/ has more than 5,000,000 bytes"
    assert got({"/": (200, packed, gzip.compress(b"<p>small"))})[0].body == b"<p>small"
    told, _ = refused({"/": (200, {"Content-Encoding": "gzip, gzip"}, bomb)})
    assert told == "http://shop.test/ is packed in a way that was not asked for: gzip, gzip"
    assert refused({"/": (200, packed, b"no gzip")})[0].startswith("http://shop.test/ could not be read: ")


def test_a_host_that_says_nothing_is_given_up() -> None:
    told, _ = refused({"/": None}, obey_robots=False, seconds=0.05)
    assert told == "http://shop.test/ did not answer within 0.05 seconds"


def test_no_cookie_and_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def scenario(site: Site, home: str) -> list[str]:
        client = guest(obey_robots=False)
        await client.get(f"{home}/")
        await client.get(f"{home}/")
        return site.heads

    heads = on({"/": (200, {"Set-Cookie": "a=b"}, b"a")}, scenario)
    assert len(heads) == 2
    assert not any("cookie" in head.lower() for head in heads)
