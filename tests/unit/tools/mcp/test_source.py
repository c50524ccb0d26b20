"""An MCP server as a source of knowledge: what its search says, in whatever manner; what becomes of one
that fails."""

import asyncio
import sys

import pytest

from antiphon.errors import ToolError, UserError
from antiphon.tools.knowledge import Federation
from antiphon.tools.knowledge.scripted import ScriptedSource
from antiphon.tools.mcp import McpServer
from antiphon.tools.mcp.source import McpSource
from tests.unit.tools.mcp.conftest import HERE, PATIENCE

pytestmark = pytest.mark.slow  # a program that imports the SDK is started each time


def library(how, **fields):
    server = McpServer("library", sys.executable, (str(HERE / "library_server.py"), how))
    return McpSource(server, **fields)


def over(source, use, *more):
    """What is made of a federation of this source and others; its connection ends."""

    async def scenario():
        async with asyncio.timeout(PATIENCE):
            try:
                return await use(Federation([source, *more], seconds=PATIENCE))
            finally:
                await source.close()

    return asyncio.run(scenario())


def searched(source, query, limit=5):
    async def use(federation):
        return await federation.search(query, limit)

    found = over(source, use)
    assert not found.missing, found.missing
    return [(each.citation, each.passage.heading, each.passage.text) for each in found.passages]


def test_a_server_searches_and_reads():
    async def use(federation):
        found = await federation.search("moon sun")
        whole = await federation.read("library/p1")
        part = await federation.read("library/p1", 2, 40)
        with pytest.raises(ToolError, match="p1 has only 2 lines"):
            await federation.read("library/p1", 3)
        with pytest.raises(ToolError):
            await federation.read("library/nothing")
        return found, whole, part, await federation.about()

    found, whole, part, about = over(library("usual"), use)
    assert [each.citation for each in found.passages] == ["library/p1", "library/p2"]
    assert [each.passage.heading for each in found.passages] == ["On tides", "On suns"]
    assert found.passages[0].passage.text == "The moon pulls the sea."
    assert whole.lines == ((1, "The moon pulls the sea."), (2, "Twice a day it is high."))
    assert (part.lines, part.total) == (((2, "Twice a day it is high."),), 2)
    assert about == {"library": "MCP server: Search the papers."}


def test_other_names_are_found_in_what_the_tools_take_and_give():
    async def use(federation):
        found = await federation.search("moon sun", 1)
        return found, await federation.read("library/paper://p1")

    found, read = over(library("listed", search="look_up", name="library"), use)
    assert [(each.citation, each.passage.heading) for each in found.passages] == [
        ("library/paper://p1", "On tides")
    ]
    assert read.lines[1] == (2, "Twice a day it is high.")


def test_texts_are_passages_and_what_was_found_is_what_there_is_to_read():
    async def use(federation):
        found = await federation.search("pulls")
        return found, await federation.read("library/result 1")

    found, read = over(library("plain"), use)
    texts = [(each.citation, each.passage.text) for each in found.passages]
    assert texts == [
        ("library/result 1", "The moon pulls the sea."), ("library/result 2", "The sun pulls it, too."),
    ]  # fmt: skip
    assert read.lines == ((1, "The moon pulls the sea."),)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("numbers", [("library/7", "", "seven"), ("library/only a title", "only a title", "only a title")]),
        ("nothing", []),
        ("deep", [("library/a.md:3-9", "", "x")]),
        ("broken", [("library/result 1", "", '{"results": [')]),
    ],
)
def test_whatever_it_answers_becomes_passages_or_nothing(query, expected):
    assert searched(library("odd"), query) == expected


def test_what_is_too_much_is_cut():
    ((citation, _, text),) = searched(library("odd"), "long")
    assert (len(citation), len(text)) == (1000 + len("library/"), 8_000)
    assert len(searched(library("odd"), "many", 20)) == 20


def test_no_control_character_gets_through():
    ((citation, _, _),) = searched(library("odd"), "control")
    assert citation.isprintable()


def test_one_that_fails_is_named_and_the_others_answer():
    sea = ScriptedSource("sea", {"moon.md": "The moon pulls the sea."})

    async def use(federation):
        failed = await federation.search("moon")
        died = await federation.search(["die", "moon"][0])
        again = await federation.search("moon")
        return failed, died, again

    failed, died, again = over(library("failing"), use, sea)
    assert [each.citation for each in failed.passages] == ["sea/moon.md:1-1"]
    assert [each.source for each in failed.missing] == ["library"]
    assert "the index is being made" in failed.missing[0].text
    assert "can not be reached: " in died.missing[0].text
    # It is started again for the next search.
    assert "the index is being made" in again.missing[0].text


def test_one_that_does_not_answer_in_time_holds_nobody_up():
    sea = ScriptedSource("sea", {"moon.md": "The moon pulls the sea."})
    source = library("slow")

    async def scenario():
        try:
            # However slowly its program starts: it is connected to before anybody waits for it.
            await Federation([source], seconds=PATIENCE).about()
            return await Federation([source, sea], seconds=0.3).search("moon")
        finally:
            await source.close()

    found = asyncio.run(scenario())
    assert [each.citation for each in found.passages] == ["sea/moon.md:1-1"]
    assert found.missing[0].text == "gave no answer within 0.3 seconds"


def test_one_that_is_still_being_connected_says_so_and_is_there_later():
    source = library("usual")

    async def scenario():
        try:
            first = await Federation([source], seconds=0.05).search("moon")
            async with asyncio.timeout(PATIENCE):
                await Federation([source], seconds=PATIENCE).about()
            return first, await Federation([source], seconds=PATIENCE).search("moon")
        finally:
            await source.close()

    first, second = asyncio.run(scenario())
    assert first.missing[0].text in (
        "is being connected; search again in a while", "gave no answer within 0.05 seconds",
    )  # fmt: skip
    assert [each.citation for each in second.passages] == ["library/p1"]


def test_what_cannot_be_used_says_why():
    def told(source):
        async def use(federation):
            return (await federation.search("moon")).missing[0].text

        return over(source, use)

    assert told(library("usual", search="find")) == "it has no tool 'find'; its tools: search, fetch"
    nowhere = McpSource(McpServer("library", "no-such-program-here"))
    assert told(nowhere) == "can not be reached: 'no-such-program-here' was not found"
    with pytest.raises(UserError, match="A source is named by"):
        library("usual", name="a b")


def test_several_event_loops_one_after_the_other():
    source = library("usual")
    assert searched(source, "moon") == searched(source, "moon") != []
