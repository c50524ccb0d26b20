"""Team: an environment with a budget and a number of rounds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Self

from antiphon import Agent, Result, RunFailed
from antiphon.styles.environment.context import Context
from antiphon.styles.environment.environment import Environment
from antiphon.styles.environment.message import Message
from antiphon.styles.environment.metagpt.cost import NoMoneyException
from antiphon.styles.environment.metagpt.serialize import SavedTeam, fill, read, saved_environment, write
from antiphon.styles.environment.roles.action import Action
from antiphon.styles.environment.roles.memory import Memory
from antiphon.styles.environment.roles.role import Role
from antiphon.view.graph import Graph


class Team:
    """Hire roles, invest money, give them a project, let them work.

    env: an environment of your own, instead of one made with the other options (see Environment).
    investment: US dollars all model calls may cost together, None for no limit. idea: the project.
    result: how the last run ended.
    """

    def __init__(
        self,
        context: Context | None = None,
        env: Environment | None = None,
        roles: Iterable[Role | Agent] = (),
        *,
        investment: float | None = 10.0,
        idea: str = "",
        **options: Any,
    ) -> None:
        self.env = env if env is not None else Environment(context=context, **options)
        self.investment, self.idea = investment, idea
        self.result: Result | None = None
        self.hire(roles)
        self.invest(investment)

    def agents(self) -> list[Agent]:
        """See `Environment.agents`."""
        return self.env.agents()

    def graph(self) -> Graph:
        """See `Environment.graph`."""
        return self.env.graph()

    def hire(self, roles: Iterable[Role | Agent]) -> None:
        """Add roles."""
        self.env.add_roles(roles)

    def invest(self, investment: float | None) -> None:
        """From now on all model calls together may cost this many US dollars; None for any amount."""
        self.investment = investment
        self.env.context.cost_manager.max_budget = investment

    def run_project(self, idea: str, send_to: Any = "") -> None:
        """Give the team a project: to one role, or to all that watch what users require."""
        self.idea = idea
        self.env.publish_message(Message(idea, send_to=send_to))

    async def run(
        self, n_round: int | None = 3, idea: str = "", send_to: Any = "", auto_archive: bool = True
    ) -> Memory:
        """Do up to `n_round` rounds; all that was published. `result` says how it ended.

        None does as many as there is something to do; then the environment's `laps` ends circles. Raises
        NoMoneyException when the investment is used up, RunFailed when a role failed.
        """
        if idea:
            self.run_project(idea, send_to)
        await self.env.open()
        costs = self.env.context.cost_manager
        costs.check_balance()
        left = None if self.investment is None else self.investment - costs.total_cost
        try:
            self.result = await self.env.run(n_round, until_idle=n_round is None, usd=left)
        except RunFailed as failed:
            self.result = failed.result
            raise
        except NoMoneyException as ended:
            self.result = ended.result
            raise NoMoneyException(costs.total_cost, self.investment, str(ended), ended.result) from None
        return self.env.history

    def serialize(self, path: str | os.PathLike[str]) -> None:
        """Write the team as one JSON file, see `Environment.serialize`."""
        write(SavedTeam(self.idea, self.investment, saved_environment(self.env)), path)

    @classmethod
    def deserialize(
        cls, path: str | os.PathLike[str], roles: Iterable[type[Role] | Agent] = (Role,),
        actions: Iterable[type[Action]] = (), **options: Any,
    ) -> Self:  # fmt: skip
        """The team of a file, see `Environment.deserialize`; what it spent is spent of its investment."""
        saved = read(path, SavedTeam)
        kept = saved.environment
        env = Environment(**{"desc": kept.desc, "name": kept.name, "laps": kept.laps, **options})
        fill(env, kept, roles, actions)
        return cls(env=env, investment=saved.investment, idea=saved.idea)
