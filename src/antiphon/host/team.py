"""A team as a host knows it: by a name, with how its runs are opened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import UnknownName, UserError
from antiphon.values.agent import Agent, AnyAgent, EndpointOptions, agents_of
from antiphon.values.fields import shown
from antiphon.values.limits import Limits
from antiphon.values.model import Model
from antiphon.values.policy import Policy, Preset

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
"""What teams, projects and owners are called: it stands in addresses and in labels."""


class SourceFinding(Struct, frozen=True):
    """What is wrong in a file, and what to do."""

    line: int
    """From 1; 0 for the whole file."""
    column: int
    """From 1; 0 for the whole line."""
    severity: str
    """`error` keeps what stands there from being used; `warning` does not."""
    text: str
    """What is wrong, what was expected, what to do."""


class SourceFile(Struct, frozen=True):
    """A file that a team was made of."""

    name: str
    """Below the team's folder, with `/`."""
    digest: str = ""
    """Of its bytes when it was loaded; empty when they could not be read."""
    findings: tuple[SourceFinding, ...] = ()
    """By line."""


class TeamSource(Struct, frozen=True):
    """Where a team comes from."""

    place: str
    """As it was named; of a team in code the line where that name stands too."""
    folder: Path
    """In which all files are; nothing outside of it is ever read."""
    files: tuple[SourceFile, ...] = ()
    """By name; none for a team made in code alone."""


class HostedTeam(Struct, frozen=True):
    """Agents that can be asked together, and how a run of them is opened; see `open_run`."""

    agents: tuple[Agent, ...]
    """The team; what stands for several agents is resolved already."""
    entry: str = ""
    """Who is asked where nobody is named. Default: the first agent."""
    model: str | Model | None = None
    """For every agent, instead of its own."""
    endpoints: Mapping[str, EndpointOptions] | None = None
    """How models from strings are asked."""
    policy: Policy | Preset | None = "guarded"
    """Rules on tools, for runs that begin here. Default: a person is asked before a tool acts."""
    limits: Limits | None = None
    """Of each request. None: the usual ones."""
    deps: Any = None
    """Handed to tools."""
    findings: tuple[str, ...] = ()
    """What is wrong with its files, errors first."""
    source: Any = None
    """What the agents come from, such as a ProfileTeam, for readers that know it."""
    origin: TeamSource | None = None
    """Where it is written; None where nobody has said it."""


Team = HostedTeam | AnyAgent | Iterable[AnyAgent]
"""What may be given as a team: as it is known, an agent, something that stands for agents, or a list."""


def teams_of(given: Mapping[str, Any]) -> dict[str, HostedTeam]:
    """Teams by name, checked. Raises UserError for a name that cannot stand in an address, or no team."""
    found = {}
    for name, team in given.items():
        check_label("team", name)
        found[name] = _team(name, team)
    return found


def check_label(what: str, name: Any) -> None:
    """Raise UserError for a text that cannot name a team, a project or an owner."""
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise UserError(
            f"A {what} is named by 1 to 40 letters, digits, dots, dashes, underscores; got {shown(name)}"
        )


def _team(name: str, given: Any) -> HostedTeam:
    team = given if isinstance(given, HostedTeam) else HostedTeam(_agents(given))
    agents = _agents(team.agents)
    if not agents or not all(isinstance(each, Agent) for each in agents):
        raise UserError(
            f"Team {name} is an Agent, what stands for agents, or a list of these; got {shown(given)}"
        )
    names = [each.name for each in agents]
    entry = team.entry or names[0]
    if entry not in names:
        raise UnknownName(f"agent of team {name}", entry, names)
    return replace(team, agents=agents, entry=entry)


def _agents(given: Any) -> tuple[Agent, ...]:
    one = isinstance(given, Agent) or not isinstance(given, Iterable)
    return tuple(agent for each in ((given,) if one else given) for agent in agents_of(each))
