"""Routes on teams: what can be started, with its agents, tools, graph and findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from litestar import get
from litestar.params import FromPath, QueryParameter

from antiphon.host import Host, HostedTeam
from antiphon.journal.listing import Labels
from antiphon.server.permissions import allowed
from antiphon.server.routes.bodies import AgentView, TeamLine, Teams, TeamView, ToolView
from antiphon.server.routes.loading import FromHost, FromSubject
from antiphon.server.routes.projects import visible_project
from antiphon.server.subjects import Subject
from antiphon.values.agent import ALL, Agent
from antiphon.values.policy import Policy
from antiphon.values.tool import as_tool
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
    policy = team.policy.preset if isinstance(team.policy, Policy) else team.policy or "open"
    return TeamView(
        name, team.entry, [_agent(each) for each in team.agents],
        [(each.source, each.target) for each in drawn.edges], [*team.findings, *drawn.findings], policy,
    )  # fmt: skip


def _agent(agent: Agent[Any, Any]) -> AgentView:
    tools = []
    for each in map(as_tool, agent.tools):
        tools.append(ToolView(each.name, each.description, each.effect, dict(each.spec.parameters)))
    model = agent.model if isinstance(agent.model, str) else getattr(agent.model, "name", "") or ""
    can_call = None if agent.can_call is ALL or "*" in agent.can_call else list(agent.can_call)
    return AgentView(agent.name, agent.description, model, tools, can_call)
