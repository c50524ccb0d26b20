"""A research team over a folder of documents, described in YAML: ask a question, get a report with sources.

    antiphon run examples/research "How do tides work?" --folder examples/research/documents

The partner talks with you and plans, the principal gives out the work and writes the report, readers search.
"""

from __future__ import annotations

from pathlib import Path

from antiphon.styles.profiles import ProfileLimits, ProfileTeam
from antiphon.tools import folder_tools

HERE = Path(__file__).parent


def team(folder: Path) -> ProfileTeam:
    """The partner, first, and its team, reading `folder` only. Raises `ConfigError` if it is no folder."""
    tools = {each.name: each for each in folder_tools(folder)}
    reading = {
        "documents": [tools["search_documents"]],
        "files": [tools["list_files"], tools["read_lines"]],
    }
    return ProfileTeam(HERE, tools=reading, bounds=ProfileLimits(steps=20, fan_out=4))
