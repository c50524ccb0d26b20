"""A tool as a record: all that models, rules and permissions know of it, without the code that it runs.

The tools of a toolset come and go with its provider. What was offered is on record, so that a run is led by
the same tools when it is read, replayed or taken up where the provider is gone. How a tool becomes a record
and back stands in `offered.py`, since events need no more than this.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Effect = Literal["read", "idempotent", "once"]
ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""What a tool is for, as the Agent Client Protocol knows kinds: readers choose pictures and words by it. It
decides nothing, `effect` does; but for `fetch`: whoever is fetched from is told what for."""


class ToolOffer(Struct, frozen=True, omit_defaults=True):
    """What a toolset offers: one tool. The fields are those of `Tool`."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect = "once"
    timeout: float = 60.0
    requires_approval: bool = False
    finishes: bool = False
    labels: tuple[str, ...] = ()
    exclusive: bool = False
    trusted: bool = True
    version: str = ""
    kind: ToolKind = "other"
    title: str = ""
    resumes: bool = False
    """One that waited when the process died goes on, see `Tool.reconcile`."""
