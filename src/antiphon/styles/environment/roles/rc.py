"""RoleContext: what a role knows and is about; its durable part is recorded after every reaction."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from antiphon.errors import UserError
from antiphon.styles.environment.message import Message
from antiphon.styles.environment.roles.memory import Memory
from antiphon.styles.environment.roles.queue import MessageQueue
from antiphon.styles.environment.topic import USER_REQUIREMENT

if TYPE_CHECKING:
    from antiphon.styles.environment.roles.action import Action


class RoleReactMode(StrEnum):
    """How a role chooses what to do: by its model, in order, or by a plan that it makes."""

    REACT = "react"
    BY_ORDER = "by_order"
    PLAN_AND_ACT = "plan_and_act"

    @classmethod
    def values(cls) -> list[str]:
        """The three modes as text."""
        return [mode.value for mode in cls]

    @classmethod
    def of(cls, mode: str) -> RoleReactMode:
        """The mode of that name. Raises UserError, listing the three."""
        try:
            return cls(mode)
        except ValueError:
            raise UserError(f"react mode is one of {', '.join(cls.values())}; got {mode!r}") from None


class RoleContext:
    """env: where it publishes. msg_buffer: delivered and not observed yet. memory: observed and said.

    working_memory: of the task at hand. state: which action is next, -1 for none; todo: that action.
    watch: the topics it reacts to. news: what it observed last. max_react_loop: actions of one reaction.
    """

    def __init__(self) -> None:
        self.env: Any = None
        self.msg_buffer = MessageQueue()
        self.memory = Memory()
        self.working_memory = Memory()
        self.state = -1
        self.todo: Action | None = None
        self.watch: set[str] = {USER_REQUIREMENT}
        self.news: list[Message] = []
        self.react_mode = RoleReactMode.REACT
        self.max_react_loop = 1

    @property
    def history(self) -> Sequence[Message]:
        """All that is remembered, oldest first; not to be changed."""
        return self.memory.storage

    @property
    def important_memory(self) -> list[Message]:
        """What is remembered of the topics watched."""
        return self.memory.get_by_actions(self.watch)
