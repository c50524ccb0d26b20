"""Roles, plain agents and calls between them in one run: `chief` calls an environment as it calls anybody.

Host, a role, has an expert outside of the environment look at the matter; poet, an agent with a topic, reacts
to the expert's opinion, and Critic, a role again, to the poet.
"""

from __future__ import annotations

from collections.abc import Sequence

from antiphon import Agent, Topics
from antiphon.styles.environment import Action, Environment, Message, Role


class Consult(Action):
    """Asks the expert, an agent that is part of no environment."""

    async def run(self, with_messages: Sequence[Message] = (), **kwargs: object) -> Message:
        said = await self.ctx.call("expert", f"What do you know about this? {with_messages[-1].content}")
        return Message(said, cause_by="opinion")


class Criticise(Action):
    """Has the role's model judge what was said last."""

    async def run(self, with_messages: Sequence[Message] = (), **kwargs: object) -> str:
        return await self._aask(f"Judge this in one sentence: {with_messages[-1].content}")


def team() -> tuple[Agent, list[Agent]]:
    """The entry agent and all agents."""
    chief = Agent(
        "chief", "Let the stage discuss the question, then say what came of it.", can_call=["stage"]
    )
    stage = Environment(
        "discusses a question: an expert's opinion, a rhyme on it, and a critic's word",
        name="stage",
        roles=[
            Role(name="Host", profile="host", actions=[Consult]),
            Agent("poet", "Make a rhyme of what you are told.", topics=Topics(watch=["opinion"])),
            Role(name="Critic", profile="critic", actions=[Criticise], watch=["poet"]),
        ],
        agents=[Agent("expert", "You know a lot. Answer in two sentences.", can_call=())],
    )
    return chief, [chief, *stage.agents()]
