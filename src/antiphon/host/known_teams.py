"""Which team a run is of: one that the host was given by name, or one of the run's project."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Set

from antiphon.errors import UnknownName, UserError
from antiphon.host.choices import enclosed
from antiphon.host.projects import Project, Projects
from antiphon.host.team import HostedTeam
from antiphon.journal.listing import Labels
from antiphon.values.message import Attachment


class KnownTeams:
    """The teams of a host, and of its projects. served: by name; they go before a project's own."""

    def __init__(self, served: Mapping[str, HostedTeam], projects: Projects | None) -> None:
        self.served, self.projects = served, projects

    async def project(self, name: str) -> Project:
        """A project. Raises UnknownName, also where there are no projects."""
        if self.projects is None:
            raise UnknownName("project", name)
        return await asyncio.to_thread(self.projects.get, name)

    async def names(self, project: Project) -> tuple[list[str], Project]:
        """The teams that can be started in a project, and the project with what is wrong with the others."""
        if self.projects is None:
            return sorted(self.served), project
        return await asyncio.to_thread(self.projects.teams, project, self.served)

    async def enclosed(self, project: str, files: Iterable[str]) -> tuple[Attachment, ...]:
        """Files of a project as they go with a request. Raises UnknownName, UserError for too much."""
        named = tuple(files)
        if not named:
            return ()
        if not project:
            raise UserError("files are those of a project; say which one, or send attachments")
        return await asyncio.to_thread(enclosed, await self.project(project), named)

    async def to_start(self, labels: Labels) -> HostedTeam:
        """The team for a new run. Raises UnknownName, UserError for one that cannot be loaded."""
        if self.projects is None or not labels.project:
            if labels.team not in self.served:
                raise UnknownName("team", labels.team, self.served)
            return self.served[labels.team]
        project = await self.project(labels.project)
        known = self.served if project.served is None else project.served
        if labels.team in self.served and labels.team in known:
            return self.served[labels.team]
        if labels.team in project.own:
            return await self._own(project, labels.team)
        usable = [each for each in known if each in self.served]
        raise UnknownName(f"team of project {project.id}", labels.team, [*usable, *project.own])

    async def of(self, labels: Labels) -> HostedTeam:
        """The team of a run that is there. Raises UserError that says why there is none."""
        if labels.team in self.served:
            return self.served[labels.team]
        said = f"It is a run of the team {labels.team}"
        if labels.project and self.projects is not None:
            said += f" in the project {labels.project}"
            try:
                project = await self.project(labels.project)
            except UnknownName:
                raise UserError(f"{said}, and that project is not here") from None
            if labels.team in project.own:
                return await self._own(project, labels.team)
            if project.findings:
                raise UserError(f"{said}, whose file is wrong: {project.findings[0]}")
        served = ", ".join(sorted(self.served)) or "(none)"
        raise UserError(f"{said}, which is not here. Here: {served}")

    def guess(self, run_id: str, agents: Set[str]) -> str:
        """The only team that was given by name and has all agents of a run. Raises UserError."""
        fits = [name for name, each in self.served.items() if agents <= {one.name for one in each.agents}]
        if len(fits) != 1:
            raise UserError(
                f"Not resumed: {len(fits)} teams have the agents of run {run_id}; say which one it is of:"
                f" {', '.join(sorted(self.served))}"
            )
        return fits[0]

    def is_own(self, labels: Labels) -> bool:
        """Whether a run is of a team that its project alone has, or had."""
        return bool(labels.team and labels.project) and labels.team not in self.served

    async def _own(self, project: Project, name: str) -> HostedTeam:
        if self.projects is None:
            raise UnknownName("project", project.id)
        return await asyncio.to_thread(self.projects.team, project, name)
