"""Routes on teams: what can be started, with its agents, tools, graph and findings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, get_args

from litestar import get
from litestar.params import FromPath, QueryParameter
from msgspec.structs import replace

from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError
from antiphon.host import Host, HostedTeam
from antiphon.host.sources import texts_of
from antiphon.journal.listing import Labels
from antiphon.kernel.run.toolsets.provider import known_provider
from antiphon.models import default_model
from antiphon.models.rates import named_rates, rates_of
from antiphon.server.permissions import allowed
from antiphon.server.routes.bodies import (
    AgentView,
    TeamLine,
    Teams,
    TeamSourceView,
    TeamView,
    ToolsetView,
    ToolView,
)
from antiphon.server.routes.loading import FromHost, FromSubject
from antiphon.server.routes.projects.projects import visible_project
from antiphon.server.subjects import Subject
from antiphon.values.agent import ALL, Agent, own_tools
from antiphon.values.limits import Limits
from antiphon.values.policy import Policy, Preset, rule, strictest
from antiphon.values.tool import Tool
from antiphon.values.tool.toolset import Toolset
from antiphon.view.graph import graph_of

InProject = Annotated[str, QueryParameter(name="project", max_length=200)]


@get("/teams", summary="List teams", **allowed("read"))
async def list_teams(host: FromHost, subject: FromSubject, in_project: InProject = "") -> Teams:
    """What can be started, or with `project` what can be started there."""
    found: Mapping[str, HostedTeam] = host.teams
    if in_project:
        project = await visible_project(host, subject, in_project)
        names, _ = await host.known.names(project)
        found = {each: await host.known.to_start(Labels(in_project, team=each)) for each in names}
    return Teams([
        TeamLine(name, each.entry, [one.name for one in each.agents], list(each.findings))
        for name, each in sorted(found.items())
    ])  # fmt: skip


@get("/teams/{name:str}", summary="Show a team", **allowed("read"))
async def show_team(
    name: FromPath[str], host: FromHost, subject: FromSubject, in_project: InProject = ""
) -> TeamView:
    """A team: agents, tools, who reaches whom, what is wrong with its files. With `project` one that can be
    started there."""
    return team_view(name, await startable(host, subject, name, in_project))


@get("/teams/{name:str}/source", summary="Show where a team is written", **allowed("read"))
async def show_source(
    name: FromPath[str], host: FromHost, subject: FromSubject, in_project: InProject = ""
) -> TeamSourceView:
    """The files of a team as they are now, with what was wrong in them when it was loaded, and at which line.
    Secrets are `***`; of a file its first 256 KiB. A team that is made in code has a place and no files."""
    origin = (await startable(host, subject, name, in_project)).origin
    if origin is None:
        return TeamSourceView("", [], 0)
    files, left_out = await asyncio.to_thread(texts_of, origin, environment())
    return TeamSourceView(origin.place, files, left_out)


async def startable(host: Host, subject: Subject, name: str, project: str) -> HostedTeam:
    """A team of the server, or one that can be started in a project. Raises UnknownName."""
    if not project:
        return host.team(name)
    await visible_project(host, subject, project)
    return await host.known.to_start(Labels(project, team=name))


def team_view(name: str, team: HostedTeam) -> TeamView:
    """A team as it is sent."""
    drawn = (
        team.source.graph()
        if callable(getattr(team.source, "graph", None))
        else graph_of(team.agents, team.entry)
    )
    own, limits = policy_of(team.policy), team.limits or Limits()
    return TeamView(
        name, team.entry, [_agent(each, team, own) for each in team.agents],
        [(each.source, each.target) for each in drawn.edges], [*team.findings, *drawn.findings], own.preset,
        limits.tokens if limits.cached_share is None else None, limits.usd, limits.on_breach,
        limits.breach_target,
    )  # fmt: skip


def policy_of(given: Policy | Preset | None) -> Policy:
    """A policy, however it was given."""
    return given if isinstance(given, Policy) else Policy(given or "open")


def _agent(agent: Agent[Any, Any], team: HostedTeam, policy: Policy) -> AgentView:
    tools = [_tool(each, agent, policy) for each in own_tools(agent)]
    toolsets = [_toolset(each, agent, policy) for each in agent.toolsets]
    model = agent.model if isinstance(agent.model, str) else getattr(agent.model, "name", "") or ""
    can_call = None if agent.can_call is ALL or "*" in agent.can_call else list(agent.can_call)
    dearest = _dearest(agent, team)
    return AgentView(agent.name, agent.description, model, tools, can_call, dearest, toolsets)


def _tool(tool: Tool[Any, Any], agent: Agent[Any, Any], policy: Policy) -> ToolView:
    rulings = _rulings(tool, agent, policy)
    parameters = dict(tool.spec.parameters)
    return ToolView(
        tool.name, tool.description, tool.effect, parameters, rulings, tool.kind, tool.title
    )  # fmt: skip


def _toolset(toolset: Toolset, agent: Agent[Any, Any], policy: Policy) -> ToolsetView:
    """As its provider is known here: looking at a team opens none."""
    provider = known_provider(toolset)
    if provider is None or provider.unreached:
        return ToolsetView(toolset.name, toolset.required, None, "")
    taken = [each for each in provider.tools.values() if not toolset.only or each.name in toolset.only]
    tools = [_tool(each, agent, policy) for each in taken]
    return ToolsetView(toolset.name, toolset.required, tools, provider.reason)


def _dearest(agent: Agent[Any, Any], team: HostedTeam) -> float | None:
    """What a token of an agent's models costs at most, in USD; None where a price is unknown."""
    env, prices = environment(), list[float | None]()
    for given in (team.model or agent.model, *agent.asking.fallback_models):
        try:
            model = default_model(env) if given is None else given
        except ConfigError:
            # Who has no model asks none.
            model = "script"
        rates = named_rates(model, env) if isinstance(model, str) else rates_of(model, env)
        prices.append(rates.dearest_token)
    return None if None in prices else max(each for each in prices if each is not None)


def _rulings(tool: Tool[Any, Any], agent: Agent[Any, Any], policy: Policy) -> dict[str, str]:
    """What becomes of calls of a tool, by the run's policy: with its agent's own, the stricter counts."""
    found: dict[str, str] = {}
    presets = {preset: replace(policy, preset=preset) for preset in get_args(Preset)}
    for name, each in {"": policy, **presets}.items():
        both = [each] if agent.policy is None else [each, policy_of(agent.policy)]
        found[name] = strictest((*rule(one, tool), "") for one in both)[0]
    return found
