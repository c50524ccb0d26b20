"""Action: one thing a role can do; a subclass says how, in `run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from antiphon.errors import UserError
from antiphon.styles.environment.topic import OwnTopic

if TYPE_CHECKING:
    from antiphon.styles.environment.context import Context
    from antiphon.styles.environment.message import Message
    from antiphon.styles.environment.roles.acting import ActingRole
    from antiphon.values.actions import ActionContext


class Action(OwnTopic):
    """What a role does with the messages it remembers. Subclass it and write `run`.

    name: the class's name, unless given. desc: what a model that chooses between actions is told.
    instruction: what its model is asked in place of a `run`. i_context: the user's own.
    llm_name_or_type: the model that this action asks instead of its role's: a name from the settings'
    `models`, or a model string.
    """

    name: str = ""
    desc: str = ""
    instruction: str = ""
    i_context: Any = None
    prefix: str = ""
    llm_name_or_type: str | None = None
    role: ActingRole | None = None

    def __init__(self, **fields: Any) -> None:
        for key, value in fields.items():
            setattr(self, key, value)
        self.name = self.name or type(self).__name__

    async def run(self, with_messages: Sequence[Message] | None = None, **kwargs: Any) -> Any:
        """Do it: a text, a Message, or None for an empty text. `with_messages`: all the role remembers.

        With an `instruction` the model is shown these messages and asked that.
        """
        if not self.instruction:
            raise NotImplementedError(f"{type(self).__name__} has no `run`")
        said = [f"{each.sent_from or each.role}: {each.content}" for each in with_messages or ()]
        return await self._aask("\n".join([*said, "", self.instruction] if said else [self.instruction]))

    @property
    def topic(self) -> str:
        """What its messages are about: the path of its class, or the name of one that has no class."""
        return self.name if type(self) is Action and self.name != Action.__name__ else super().topic

    @property
    def ctx(self) -> ActionContext:
        """The reaction this is part of: its steps, calls and questions are kept over a crash."""
        if self.role is None:
            raise UserError(f"{self.name} belongs to no role; give it to one with set_actions")
        return self.role.ctx

    @property
    def context(self) -> Context | None:
        """What the roles of the environment share."""
        return self.role.context if self.role is not None else None

    async def _aask(self, prompt: str, system_msgs: list[str] | None = None) -> str:
        """Ask the role's model, or this action's own; a human role is asked itself."""
        if self.role is None:
            raise UserError(f"{self.name} belongs to no role and so has no model to ask")
        return await self.role._aask(prompt, system_msgs, action=self)

    aask = _aask

    def set_prefix(self, prefix: str) -> Action:
        """Say who acts; the role does, when it is given the action."""
        self.prefix = prefix
        return self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class UserRequirement(Action):
    """The topic of what a user wants; no role does it."""
