"""Options: what a run is started with and keeps when it is resumed."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from antiphon.values.limits import DEFAULTS, OUTPUTS, Limits, OutputLimits, RunLimits
from antiphon.values.policy import OPEN, Policy


class Options(Struct, frozen=True, omit_defaults=True):
    """What a run was started with. Part of its first record."""

    limits: Limits = DEFAULTS
    """Of each request."""
    policy: Policy = OPEN
    interactive: bool = False
    """Somebody can answer questions and approvals."""
    background: bool = False
    """Agents may call without waiting."""
    extra: str = ""
    """Instructions added to prompts."""
    extra_scope: Literal["entry", "all"] = "entry"
    """Whose: of the agents that the user asks, or of all."""
    disabled: tuple[str, ...] = ()
    """Built-in calls that agents do not have."""
    extra_for: tuple[tuple[str, str], ...] = ()
    """Instructions by agent."""
    outputs: OutputLimits = OUTPUTS
    run_limits: RunLimits | None = None
    """Of all requests together."""
    model: str = ""
    """The model string that every agent asks instead of its own, where the run was started with one."""
