"""The web as a source of knowledge: what a search finds is cited by its address, which is read there."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.errors import ToolError
from antiphon.tools.knowledge import Federation
from antiphon.tools.web.search import ScriptedWebSearch, WebHit
from antiphon.tools.web.source import WebSource
from tests.unit.tools.web.site import guest, opened

PAGE = "<h1>Tides</h1><p>Twice a day." + "<p>More of it." * 3


def test_pages_are_found_and_read_by_their_addresses() -> None:
    async def scenario() -> None:
        async with opened({"/tides": PAGE}) as site:
            url = f"http://shop.test:{site.port}/tides"
            search = ScriptedWebSearch(
                {"": [WebHit(url, "Tides", "Twice a day."), WebHit("https://b.test/", "B")]}
            )
            web = Federation([WebSource("web", search, guest(obey_robots=False), description="all of it")])
            found = await web.search("tides", 1)
            assert [(each.citation, each.passage.text) for each in found.passages] == [
                (f"web/{url}", "Twice a day.")
            ]
            part = await web.read(f"web/{url}", 1, 2)
            assert (part.lines, part.total) == (((1, "Tides"), (2, "Twice a day.")), 5)
            assert (await web.read(f"web/{url}", 5)).lines == ((5, "More of it."),)
            assert site.asked == ["/tides"]
            with pytest.raises(ToolError, match="has only 5 lines"):
                await web.read(f"web/{url}", 6)
            await web.read(f"web/{url}")
            assert site.asked == ["/tides", "/tides"]
            with pytest.raises(ToolError, match=r"leads to this machine|begins with https"):
                await web.read("web/file:///etc/passwd")
            assert await web.about() == {"web": "the web, searched by scripted"}

    asyncio.run(scenario())


def test_a_search_that_fails_is_named() -> None:
    async def scenario() -> str:
        web = Federation([WebSource("web", ScriptedWebSearch({}, error="no credit"))])
        return (await web.search("tides")).missing[0].text

    assert asyncio.run(scenario()) == "no credit"
