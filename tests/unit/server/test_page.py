"""The web page: its own files and nothing else, for anybody; what it shows it asks for with a token."""

import re

import pytest

from tests.unit.server.teams import desk, in_time, served


@pytest.mark.usefixtures("built_page")
def test_the_page_and_its_files_are_for_anybody_and_say_their_policy():
    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            page = await client.as_("")("GET", "/")
            assert page.status == 200
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert "script-src 'self'" in page.headers["content-security-policy"]
            assert "unsafe" not in page.headers["content-security-policy"]
            names = re.findall(r'"\./assets/([^"]+)"', page.body.decode())
            assert len(names) == 2
            for name in names:
                found = await client.as_("")("GET", f"/assets/{name}")
                assert (found.status, found.headers["x-content-type-options"]) == (200, "nosniff")
                assert "immutable" in found.headers["cache-control"]

    in_time(work)


def test_no_other_file_comes_out():
    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            for name in ("..", "%2e%2e%2findex.html", "nothing.js", ".hidden", "a%00.js", "x" * 300):
                assert (await client.as_("")("GET", f"/assets/{name}")).status in (400, 404), name

    in_time(work)
