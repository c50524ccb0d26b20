"""acting: the role as its actions and its planner know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from antiphon.styles.environment.context import Context
    from antiphon.values.actions import ActionContext


class ActingRole(Protocol):
    """Who acts: its name, what its model is told of it, what it remembers (`rc`), and its model."""

    name: str
    profile: str
    goal: str
    rc: Any
    auto_run: bool
    context: Context | None

    @property
    def key(self) -> str:
        """What it is called in its environment."""

    @property
    def ctx(self) -> ActionContext:
        """The reaction at hand. Raises UserError between reactions."""

    async def _aask(self, prompt: str, system_msgs: list[str] | None = None, action: Any = None) -> str:
        """Ask its model, or that of the action."""
