"""The rules of a project for a run of the command line: those of the journal, and those of project.yaml."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError, UnknownName
from antiphon.journal import Journal
from antiphon.journal.listing import NO_LABELS, Labels
from antiphon.values.policy import StandingRule

if TYPE_CHECKING:
    from antiphon.host.projects import Project, Projects

Command = TypeVar("Command", bound=Callable[..., Any])
PROJECTS = "ANTIPHON_PROJECTS"
"""The folder of projects where `--projects` does not name it."""

projects_option = click.option(
    "--projects",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help=f"The folder of projects: the rules in a run's project.yaml hold for it. [default: ${PROJECTS}]",
)


async def run_rules(
    journal: Journal, folder: str | None, run_id: str, labels: Labels = NO_LABELS, *, declared: bool = True
) -> tuple[tuple[StandingRule, ...], str]:
    """The rules that hold for a run, and what is worth knowing of them.

    folder: of the projects, see PROJECTS for None. labels: of a new run, for which `run_id` is empty.
    declared: its project stands in that folder; False for one that only the journal knows. Raises ConfigError
    for a folder that is not there, UnknownName, and as `rules_in_project` does.
    """
    # Most runs are of no project, and hosts take long to import.
    from antiphon.host.project_runs import rules_in_project

    projects = folder_of_projects(folder) if declared else None
    try:
        found = await rules_in_project(journal, projects, run_id, None if run_id else labels, new=not run_id)
    except UnknownName as error:
        if error.what != "project" or projects is None:
            raise
        # The folder is the caller's own, so what is in it is no secret.
        raise UnknownName("project", error.name, [each.id for each in projects.all()]) from None
    if projects is not None or not run_id:
        return found, ""
    known = (await journal.info(run_id)).labels
    if not (known.project and known.team):
        return found, ""
    # A server has started it, and may have read more rules than are known here.
    said = f"of the rules for project {known.project} only those in the journal hold here; --projects DIR or"
    return found, f"{said} {PROJECTS} names the folder with its project.yaml"


def folder_of_projects(given: str | None) -> Projects | None:
    """The projects in that folder, or in that of the environment. Raises ConfigError for one not there."""
    folder = given or environment().get(PROJECTS, "").strip()
    if not folder:
        return None
    if not os.path.isdir(folder):
        raise ConfigError("is no folder of projects", folder)
    from antiphon.host.projects import Projects

    return Projects(folder, _no_team)


def _no_team(path: Path, project: Project) -> NoReturn:
    """Teams are loaded from the command line."""
    raise ConfigError("is not loaded as a team here", str(path))
