"""A research team over a folder of documents, described in YAML: ask a question, get a report with sources.

    antiphon run examples/research/team.py:team "How do tides work?" --folder docs/

The partner talks with you and plans, the principal gives out the work and writes the report, readers search.
"""

from __future__ import annotations

from pathlib import Path

from antiphon import Agent
from antiphon.styles.profiles import Bounds, ProfileTeam
from antiphon.tools import folder_tools

HERE = Path(__file__).parent


def team(folder: Path) -> list[Agent]:
    """The partner, first, and its team, reading `folder` only. Raises `ConfigError` if it is no folder."""
    tools = {each.name: each for each in folder_tools(folder)}
    reading = [tools[name] for name in ("search_documents", "list_files", "read_lines")]
    return ProfileTeam(HERE, tools={"documents": reading}, bounds=Bounds(steps=20, fan_out=4)).agents()
