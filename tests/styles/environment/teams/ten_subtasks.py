"""The worked example of the design document: one splits, one does, one compiles, one reviews, three times.

`team` needs no model: its actions are plain Python. In `thinking` the same roles ask one. Nobody says when to
stop: the limit of laps does.
"""

from __future__ import annotations

from collections.abc import Sequence

from antiphon import Agent
from antiphon.styles.environment import (
    MESSAGE_ROUTE_TO_NONE,
    Action,
    Environment,
    Message,
    Role,
    UserRequirement,
)

SUBTASKS = 10
LAPS = 3


class Split(Action):
    """Splits what is required into subtasks."""

    async def run(self, with_messages: Sequence[Message] = (), **kwargs: object) -> list[str]:
        return [f"part {number} of: {with_messages[-1].content}" for number in range(1, SUBTASKS + 1)]


class Do(Action):
    """Does one subtask, or does it again after a review."""

    verb = "do"

    async def run(self, with_messages: Sequence[Message] = (), **kwargs: object) -> Message:
        news = with_messages[-1].content
        said = await self._aask(f"{self.verb}: {news}") if self.i_context else f"{self.verb} ({news})"
        return Message(said)


class Compile(Do):
    """Puts into shape what was done."""

    verb = "compile"


class Review(Do):
    """Says what is to be better next time."""

    verb = "review"


class Splitter(Role):
    """Publishes every subtask as a message of its own."""

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.set_actions([Split])
        self._watch({UserRequirement})

    async def _act(self) -> Message:
        for subtask in await self.rc.todo.run(self.rc.history):
            self.publish_message(Message(subtask, cause_by=Split))
        return Message("split", send_to=MESSAGE_ROUTE_TO_NONE)


def environment(thinks: bool = False) -> Environment:
    """The four roles; `thinks`: their actions ask a model."""
    return Environment(
        "splits what is asked for into ten subtasks, and works on each three times",
        roles=[
            Splitter(name="A"),
            Role(name="B", actions=[Do(i_context=thinks)], watch=[Split, Review]),
            Role(name="C", actions=[Compile(i_context=thinks)], watch=[Do]),
            Role(name="D", actions=[Review(i_context=thinks)], watch=[Compile]),
        ],
        laps=LAPS,
    )


def team() -> list[Agent]:
    """The team without a model; who is asked comes first."""
    return environment().agents()


def thinking() -> list[Agent]:
    """The team with one."""
    return environment(thinks=True).agents()
