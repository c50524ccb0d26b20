"""All scenarios there are, and how one of them is played."""

from pathlib import Path

from tests.oracle import (
    actions,
    asking,
    calls,
    delegation,
    killed,
    limits,
    models,
    outside,
    rules,
    styles,
    toolsets,
)
from tests.oracle.stage import SCENARIOS, Stage

FILES = (actions, asking, calls, delegation, killed, limits, models, outside, rules, styles, toolsets)
"""The files with scenarios."""
STORED = Path(__file__).parent / "transcripts"


async def transcript(name: str, folder: Path) -> str:
    """Play a scenario: its transcript."""
    return await Stage(folder).transcript(SCENARIOS[name])
