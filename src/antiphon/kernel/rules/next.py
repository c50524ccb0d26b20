"""What a rule says of its activation when it has emitted what follows."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Literal

from antiphon.kernel.facts.events import Event
from antiphon.values.hooks import Return


class Following(Enum):
    """Whether there is more to do at once."""

    AGAIN = "again"
    WAIT = "wait"


AGAIN: Final = Following.AGAIN
"""Look at its phase again."""
WAIT: Final = Following.WAIT
"""It waits for the world, or for others."""

Next = Literal[Following.AGAIN, Following.WAIT] | Return
"""A Return ends the activation."""
Emit = Callable[[Event], None]
"""Applies an event, and notes it for the row."""
