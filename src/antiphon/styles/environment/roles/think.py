"""think: how a model is asked which of a role's actions is due, and how its answer is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.styles.environment.roles.role import Role

SHOWN = 20
"""Messages of the role's memory that its model is shown, the newest."""
_NUMBER = re.compile(r"-?\d+")


def question(role: Role) -> str:
    """The question which action is due."""
    said = "\n".join(str(message) for message in role.rc.memory.get(SHOWN))
    states = "\n".join(role.states)
    now = f"The last one done was {role.rc.state}." if role.rc.state >= 0 else "None was done yet."
    return (
        f"This was said so far:\n{said}\n\nYou can do one of these:\n{states}\n\n{now} "
        f"Answer with a number from 0 to {len(role.states) - 1}: what you do next. "
        "Answer -1 when nothing is left to do. Say nothing but the number."
    )


def choice(said: str, count: int) -> int:
    """The number in an answer; -1 for none, or one that there is no action for."""
    found = _NUMBER.search(said)
    number = int(found[0]) if found and len(found[0]) < 10 else -1
    return number if 0 <= number < count else -1
