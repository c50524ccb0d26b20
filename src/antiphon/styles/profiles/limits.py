"""bounds: what keeps a team of profiles from growing without end."""

from __future__ import annotations

from antiphon.values.fields import AtLeastZero

REMEMBERED = 50
"""Launches that a team remembers, and dispatches; each the last ones."""


class ProfileLimits(AtLeastZero, frozen=True, gc=False):
    """Limits of this style, beside those of the run. `None` lifts one. Raises UserError as Limits do.

    steps: turns of one reaction; two before the last the agent is told, and in the last it is offered its
    finishing tools only. fan_out: assignments of one dispatch. deadline: seconds that dispatched work has.
    depth: nested agents. loops: turns without a call in a row that rules may ask for.
    item_turns: turns that a persistent inbox item is shown.
    briefing: tokens (UTF-8 bytes / 4) of what an agent is started with; inherited messages give way first.
    window: tokens that the model takes; warn, urge, close: the parts of it from which on an agent is told
    to be brief, is told to finish, and is offered its finishing tools only.
    archived: messages of an agent that its module keeps, the last ones.
    """

    steps: int | None = None
    fan_out: int | None = 8
    deadline: float | None = 900.0
    depth: int | None = 20
    loops: int = 3
    item_turns: int = 10
    briefing: int | None = 50_000
    window: int | None = None
    warn: float = 0.60
    urge: float = 0.75
    close: float = 0.85
    archived: int = 20
