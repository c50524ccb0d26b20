"""Routes on projects: list, create, show, rename, delete."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter

from antiphon.config.dotenv import environment
from antiphon.errors import UnknownName
from antiphon.host import Host
from antiphon.host.project_runs import rules_in_project
from antiphon.host.projects import Project, Projects
from antiphon.journal.listing import Labels, RunFilter
from antiphon.models.rates import named_rates
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies.projects import (
    ChangeProject,
    CreateProject,
    ModelChoices,
    ProjectBody,
    ProjectList,
    ProjectView,
)
from antiphon.server.routes.loading import FromHost, FromSubject
from antiphon.server.subjects import Subject


def projects_of(host: Host) -> Projects:
    """The projects of a host. Raises Refusal where there are none."""
    if host.known.projects is None:
        raise Refusal(
            409, "no_projects", "This server has no folder for projects", "Start it with --projects DIR"
        )
    return host.known.projects


async def visible_project(host: Host, subject: Subject, project: str) -> Project:
    """A project that the subject may see. Raises UnknownName, of a hidden one as of none."""
    found = await host.known.project(project)
    if not (subject.sees_all or (found.owner and found.owner == subject.name)):
        raise UnknownName("project", project)
    return found


async def check_project(host: Host, subject: Subject, project: str) -> None:
    """Raise UnknownName for the project of a run that is not there for the subject; where the server has no
    projects it is a mere label."""
    if project and host.known.projects is not None:
        await visible_project(host, subject, project)


@get("/projects", summary="List projects", **allowed("read"))
async def list_projects(host: FromHost, subject: FromSubject) -> ProjectList:
    """The projects that the subject may see, by id."""
    if host.known.projects is None:
        return ProjectList([])
    found = await asyncio.to_thread(host.known.projects.all)
    mine = [each for each in found if subject.sees_all or (each.owner and each.owner == subject.name)]
    return ProjectList([await _line(host, subject, each) for each in mine])


@post("/projects", status_code=201, summary="Create a project", **allowed("write"))
async def create_project(data: JSONBody[CreateProject], host: FromHost, subject: FromSubject) -> ProjectBody:
    """Make a project, which is the subject's; whole, or not at all."""
    found = await asyncio.to_thread(projects_of(host).create, data.project, data.name.strip(), subject.name)
    return await _line(host, subject, found)


@get("/projects/{project:str}", summary="Show a project", **allowed("read"))
async def show_project(project: FromPath[str], host: FromHost, subject: FromSubject) -> ProjectView:
    """A project, with the rules for its runs."""
    found = await visible_project(host, subject, project)
    line = await _line(host, subject, found)
    rules = (
        ()
        if found.findings
        else await rules_in_project(host.journal, host.known.projects, "", Labels(project))
    )
    return ProjectView(
        line.project, line.name, line.owner, line.teams, line.runs, line.files, line.findings,
        sorted(rules, key=lambda each: each.created_at),
    )  # fmt: skip


@patch("/projects/{project:str}", summary="Rename a project", **allowed("write"))
async def change_project(
    data: JSONBody[ChangeProject], project: FromPath[str], host: FromHost, subject: FromSubject
) -> ProjectBody:
    """Give a project another name. Its id stays, which is what runs know it by."""
    await visible_project(host, subject, project)
    found = await asyncio.to_thread(projects_of(host).rename, project, data.name)
    return await _line(host, subject, found)


@delete("/projects/{project:str}", summary="Delete a project", **allowed("write"))
async def delete_project(
    project: FromPath[str], host: FromHost, subject: FromSubject,
    confirm: Annotated[str, QueryParameter(max_length=200)] = "",
) -> None:  # fmt: skip
    """Remove a project with its files and rules. `confirm` repeats its id. Its runs stay; it is refused while
    one of them is at work."""
    await visible_project(host, subject, project)
    if confirm != project:
        raise Refusal(
            409,
            "unconfirmed",
            f"Deleting {project} removes its files for good",
            f"Repeat it with ?confirm={project}",
        )
    await host.delete_project(project)


@get("/models", summary="List models", **allowed("read"))
async def list_models(host: FromHost) -> ModelChoices:
    """Models that a run may be started with instead of its agents' own."""
    prices = {each: named_rates(each, environment()).dearest_token for each in host.models}
    return ModelChoices(list(host.models), prices)


async def _line(host: Host, subject: Subject, project: Project) -> ProjectBody:
    """A project in a list."""
    teams, found = await host.known.names(project)
    files = await asyncio.to_thread(project.files.list)
    where = RunFilter(project.id, None if subject.sees_all else subject.name)
    runs = await host.journal.count(where)
    return ProjectBody(found.id, found.name, found.owner, teams, runs, len(files), list(found.findings))


ROUTES: tuple[Any, ...] = (
    list_projects, create_project, show_project, change_project, delete_project, list_models,
)  # fmt: skip
