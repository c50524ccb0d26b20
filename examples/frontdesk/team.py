"""A front desk and four specialists: ask about the documents and files of a folder, sums, dates, units.

from team import team
entry, agents = team(Path("."))
result = await antiphon.run(entry=entry, agents=agents, message="How many words are in README.md?")
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from antiphon import Agent
from antiphon.tools import calculate, convert, date_tools, folder_tools
from antiphon.values.model import Example
from antiphon.values.tool import as_tool

GREETING = (
    "Hello! Ask me about the documents and files of this folder, or for a calculation, a date or a "
    "conversion of units."
)
GREETINGS = ["Hello!", "Hi there", "Good morning", "What can you do?", "Help", "Thanks!"]

DESK = """You receive every question and know who can answer it. Give each question to the one colleague \
whose description fits it, in the words it was asked in. Answer with what the colleague reports, without \
changing names, numbers or quotations."""

LIBRARIAN = """You find what is written in the documents of a folder. Search, then answer with the passage \
word for word and name its file and lines. If nothing fits, say so."""

ARCHIVIST = """You know the files of a folder: which there are, what is in them, how long they are. Use your \
tools for every figure."""

CALCULATOR = """You calculate exactly with your tool. Never calculate in your head."""

ALMANAC = """You answer questions about dates and convert units of measure, always with your tools."""


def team(folder: Path) -> tuple[Agent, list[Agent]]:
    """The entry agent and all agents, reading `folder` only. Raises `ConfigError` if it is no folder."""
    tools = {each.name: each for each in folder_tools(folder)}
    # Few tools an agent: a small local model chooses among them.
    files = [tools[name] for name in ("list_files", "folder_statistics", "read_lines", "count_text")]
    specialists = [
        Agent(
            "librarian",
            LIBRARIAN,
            tools=[tools["search_documents"]],
            description="searches the documents and quotes what they say about a subject",
            can_call=(),
        ),
        Agent(
            "archivist",
            ARCHIVIST,
            tools=files,
            description="lists and reads files, counts their words, lines and bytes",
            can_call=(),
        ),
        Agent(
            "calculator",
            CALCULATOR,
            tools=[calculate],
            description="calculates exactly: sums, products, fractions, percentages",
            can_call=(),
        ),
        Agent(
            "almanac",
            ALMANAC,
            tools=[*date_tools(), convert],
            description="knows dates, weekdays and the days between; converts units of measure",
            can_call=(),
        ),
    ]
    desk = Agent(
        "frontdesk",
        DESK,
        description="takes every question and passes it on",
        examples=(*_passed_on(specialists), *_greeted()),
        can_call=[agent.name for agent in specialists],
    )
    return desk, [desk, *specialists]


def _passed_on(specialists: Iterable[Agent]) -> Iterable[Example]:
    """Whatever a colleague's tool is an example for, the desk gives to that colleague, word for word."""
    for agent in specialists:
        for tool in agent.tools:
            for example in as_tool(tool).examples:
                asked = example.request
                yield Example(asked, "call_agent", {"agent_name": agent.name, "message": asked})


def _greeted() -> Iterable[Example]:
    return (Example(text, "finish", {"message": GREETING}) for text in GREETINGS)
