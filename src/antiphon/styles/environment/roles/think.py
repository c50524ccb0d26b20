"""think: how a model is asked which of a role's actions is due, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from antiphon.styles.environment.roles.rc import RoleContext

SHOWN = 20
"""Messages of the role's memory that its model is shown, the newest."""
_NUMBER = re.compile(r"-?\d+")


def question(rc: RoleContext, states: Sequence[str]) -> str:
    """The question which of the actions that `states` lists is due."""
    said = "\n".join(str(message) for message in rc.memory.get(SHOWN))
    listed = "\n".join(states)
    now = f"The last one done was {rc.state}." if rc.state >= 0 else "None was done yet."
    return (
        f"This was said so far:\n{said}\n\nYou can do one of these:\n{listed}\n\n{now} "
        f"Answer with a number from 0 to {len(states) - 1}: what you do next. "
        "Answer -1 when nothing is left to do. Say nothing but the number."
    )


def choice(said: str, count: int) -> int:
    """The number in an answer; -1 for none, or one that there is no action for."""
    found = _NUMBER.search(said)
    number = int(found[0]) if found and len(found[0]) < 10 else -1
    return number if 0 <= number < count else -1
