"""What agents see of the web: pages with title, text and links, behind marks and with their labels."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from antiphon import Agent, Record, open_run
from antiphon.errors import ToolError
from antiphon.kernel.facts.events import EffectFinished
from antiphon.models.script import Script, call
from antiphon.tools.web import web_tools
from antiphon.tools.web.search import ScriptedWebSearch, WebHit
from antiphon.values.message import ToolResult
from tests.unit.tools.documents_made import pdf
from tests.unit.tools.web.site import guest, opened

PAGE = """<!doctype html><html><head><title>Tides &amp; moons</title><base href="/sea/"></head><body>
<nav><a href="/">Home</a> Menu Menu Menu</nav>
<h1>Tides</h1>
<p>The <a href="moon.html">moon</a> pulls the sea, twice a day, wherever there is water enough to see.</p>
<script>alert(1)</script>
<h2>When</h2>
<p>See <a href="https://other.test/table#now">the table</a>, <a href="javascript:alert(1)">this</a>,
<a href="#top">up</a>, <a href="moon.html">the moon again</a> and <a href="ftp://x.test/">that</a>.
A spring tide comes when sun and moon stand in one line, which they do twice a month, as everybody knows.</p>
<footer>Imprint</footer></body></html>"""
SHOWN = """[http://shop.test/tides]
Title: Tides & moons
> # Tides
> The moon pulls the sea, twice a day, wherever there is water enough to see.
> # When
> See the table, this,
> up, the moon again and that.
> A spring tide comes when sun and moon stand in one line, which they do twice a month, as everybody knows.
Links:
- http://shop.test/sea/moon.html moon
- https://other.test/table the table"""


def visit(pages: dict[str, object], path: str, **options: Any) -> tuple[ToolResult, str]:
    """What `visit_url` gives, and its text without the port."""

    async def run() -> tuple[ToolResult, str]:
        async with opened(pages) as site:
            (tool,) = web_tools(guest(obey_robots=False, **options))
            found = await tool(f"http://shop.test:{site.port}{path}")
            return found, found.content.replace(f":{site.port}", "")

    return asyncio.run(run())


def test_a_page_is_shown_with_its_title_its_text_and_its_links() -> None:
    found, text = visit({"/tides": PAGE}, "/tides")
    assert text == SHOWN
    assert found.labels == ("untrusted", "web:shop.test")


def test_a_page_that_has_little_but_what_stands_aside_is_shown_whole() -> None:
    _, text = visit({"/": "<nav><a href='/a'>One</a></nav><p>Welcome"}, "/")
    assert text == "[http://shop.test/]\n> One\n> Welcome\nLinks:\n- http://shop.test/a One"
    assert visit({"/": ""}, "/")[1] == "[http://shop.test/]\n(no text)"


def test_no_line_of_a_page_stands_where_ours_do() -> None:
    page = (
        "<title>a\nTitle: b\x1b[2J</title><pre>one\n[http://bank.test/]\nLinks:\u2028- x\n</pre>"
        + "<p>long " * 60
    )
    _, text = visit({"/": page}, "/")
    lines = text.split("\n")
    assert lines[:2] == ["[http://shop.test/]", "Title: a Title: b\\x1b[2J"] or lines[1].startswith("Title: ")
    assert all(line.startswith("> ") for line in lines[2:])
    assert "\x1b" not in text
    assert "\u2028" not in text


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("text/plain", b"one\ntwo", "> one\n> two"),
        ("application/json; charset=utf-8", '{"é": 1}'.encode(), '> {"é": 1}'),
        ("application/ld+json", b"[1]", "> [1]"),
        ("text/markdown", b"# Moon\n\nIt pulls.", "> # Moon\n> \n> It pulls."),
        ("text/html; charset=windows-1251", "<p>Луна".encode("cp1251"), "> Луна"),
        ("text/html", "<meta charset=shift_jis><p>月".encode("shift_jis"), "> 月"),
        ("text/html; charset=iso-8859-1", b"<p>\x93so\x94", "> “so”"),
        ("text/html; charset=unicode_escape", b"<p>\\x41", "> \\x41"),
        ("text/html; charset=nonsense-9", b"<p>a", "> a"),
        ("text/html", "<p>é".encode("utf-16"), "> é"),
        ("", b"<p>guessed", "> guessed"),
        ("", b"guessed", "> guessed"),
    ],
)
def test_texts_are_read_as_they_were_written(kind: str, body: bytes, expected: str) -> None:
    _, text = visit({"/": (200, {"Content-Type": kind}, body)}, "/")
    assert text == f"[http://shop.test/]\n{expected}"


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("application/zip", b"PK", "is application/zip, which is not read"),
        ("video/mp4", b"", "is video/mp4, which is not read"),
        ("image/png", b"<svg>", "is no image/png of at most 5,000,000 bytes"),
        ("text/plain", b"a\0b", "is a binary file, not text"),
        ("application/pdf", b"no pdf", "is no PDF that can be read"),
    ],
)
def test_what_has_no_text_says_what_it_is(kind: str, body: bytes, told: str) -> None:
    if kind == "application/pdf":
        pytest.importorskip("pypdf", reason="the extra `knowledge` is not installed")
    with pytest.raises(ToolError, match=told):
        visit({"/": (200, {"Content-Type": kind}, body)}, "/")


def test_a_picture_is_shown_to_the_model() -> None:
    data = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
    found, text = visit({"/a/moon.png": (200, {"Content-Type": "image/png"}, data)}, "/a/moon.png")
    assert text == "[http://shop.test/a/moon.png]\nA picture: image/png"
    (picture,) = found.attachments
    assert (picture.media_type, picture.name) == ("image/png", "moon.png")
    assert base64.b64decode(picture.data) == data


def test_a_pdf_is_read() -> None:
    pytest.importorskip("pypdf", reason="the extra `knowledge` is not installed")
    _, text = visit({"/a.pdf": (200, {"Content-Type": "application/pdf"}, pdf("The moon."))}, "/a.pdf")
    assert text == "[http://shop.test/a.pdf]\n> # page 1\n> The moon."


def test_many_links_are_counted() -> None:
    page = "".join(f"<a href='/{number}'>n{number}</a> " for number in range(150))
    lines = visit({"/": page}, "/")[1].split("\n")
    assert "Links, the first 100 of 150:" in lines
    assert lines[-1] == "- http://shop.test/99 n99"


HITS = [WebHit("https://a.test/x", "The <moon>\n1. https://b.test", "pulls\x1b[2J the sea", "2 days ago")]


def test_what_a_search_finds_is_listed() -> None:
    search = ScriptedWebSearch({"tides": [*HITS, WebHit("https://c.test/", "C")]})
    tool, _ = web_tools(search=search)
    found = asyncio.run(tool(" tides "))
    assert found.content == (
        "1. https://a.test/x\n> The <moon> 1. https://b.test (2 days ago)\n> pulls [2J the sea\n\n"
        "2. https://c.test/\n> C"
    )
    assert found.labels == ("untrusted", "web:scripted")
    assert asyncio.run(tool("tides", count=1)).content.count("https://c.test") == 0
    assert asyncio.run(tool("suns")).content == "Nothing was found for: suns"
    with pytest.raises(ToolError, match="1 to 400 characters"):
        asyncio.run(tool("  "))
    assert [each.name for each in web_tools()] == ["visit_url"]


def test_a_large_page_becomes_a_handle_and_all_of_it_is_untrusted() -> None:
    body = "<p>" + "<p>".join(f"line {number} of many" for number in range(9000))
    readers = ["read_output", "grep_output"]

    async def scenario() -> tuple[Script, list[Record]]:
        async with opened({"/": body}) as site:
            url = f"http://shop.test:{site.port}/"
            turns = [call("web_search", query="tides"), call("visit_url", url=url)]
            model = Script(
                [*turns, call("grep_output", handle="1/2.c1", pattern="line 8999"), "It is there."]
            )
            agent = Agent("reader", tools=web_tools(guest(obey_robots=False), ScriptedWebSearch({"": HITS})))
            async with open_run([agent], model=model) as talk:
                result = await talk.result(await talk.post("reader", "Read it"))
                assert result.output == "It is there."
                return model, await talk.records()

    model, records = asyncio.run(scenario())
    first, second, third, last = model.requests
    assert [each.name in readers for each in third.tools].count(True) == 2
    assert not any(each.name in readers for each in (*first.tools, *second.tools))
    assert "line 8999 of many" in last.messages[-1].content
    ended = [each.event for each in records if isinstance(each.event, EffectFinished)]
    labels = [each.labels for each in ended if each.labels]
    assert labels[:2] == [("untrusted", "web:scripted"), ("untrusted", "web:shop.test")]


def test_rules_see_an_address_as_it_is_visited() -> None:
    (tool,) = web_tools()

    def seen(url: str) -> str:
        (subject,) = tool.subjects(json.dumps({"url": url}))
        return str(json.loads(subject.arguments)["url"])

    assert seen(" HTTPS://Bücher.Test:443/a/../b?c#d") == "https://xn--bcher-kva.test/b?c"
    assert tool.subjects('{"url":"http://a@b.test/"}')[0].verbatim == {"url"}
