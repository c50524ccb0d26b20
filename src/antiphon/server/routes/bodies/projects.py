"""What comes and goes over HTTP of projects, as Structs."""

from __future__ import annotations

from msgspec import Struct

from antiphon.server.routes.bodies.asked import GivenGrant
from antiphon.values.policy import Ruling, Scope, StandingRule


class CreateProject(Struct, frozen=True, forbid_unknown_fields=True):
    """A new project."""

    project: str
    """Its id, for good: 1 to 40 letters, digits, dots, dashes and underscores."""
    name: str = ""
    """What people call it. Default: its id."""


class ChangeProject(Struct, frozen=True, forbid_unknown_fields=True):
    """What may be changed of a project."""

    name: str
    """What people call it; empty: its id."""


class ProjectBody(Struct, frozen=True):
    """A project in a list."""

    project: str
    """Its id."""
    name: str
    """What people call it."""
    owner: str
    """Whose it is; empty: seen by those alone who see everything."""
    teams: list[str]
    """What can be started in it."""
    runs: int
    """Its runs that the subject may see."""
    files: int
    """Its files."""
    findings: list[str]
    """What is wrong with its own file, and with teams that it names."""


class ProjectList(Struct, frozen=True):
    """The projects that the subject may see."""

    projects: list[ProjectBody]
    """By id."""


class ProjectView(ProjectBody, frozen=True):
    """A project."""

    rules: list[StandingRule]
    """What holds for tools in its runs: of its own file, then what was remembered of approvals."""


class CreateRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A new rule on tools."""

    scope: Scope
    """What it holds for: one run, the runs of a project, or those of an owner."""
    key: str
    """The run's id, or the name of the project or owner."""
    tool: str
    """Name of the tool; `*` and `?` match as in file names."""
    verdict: Ruling
    grant: GivenGrant = GivenGrant()
    """How far it reaches: arguments, agent, until when."""


class RuleList(Struct, frozen=True):
    """Rules that are kept beside the runs."""

    rules: list[StandingRule]
    """Oldest first."""


class FileBody(Struct, frozen=True):
    """A file of a project."""

    path: str
    """Relative to the project's files, with `/`."""
    size: int
    """Bytes."""
    modified: float
    """Unix seconds (UTC)."""


class FileList(Struct, frozen=True):
    """The files of a project."""

    files: list[FileBody]
    """By path."""


class ModelChoices(Struct, frozen=True):
    """Models that a run may be started with."""

    models: list[str]
    """Each a model string for `model` of POST /runs; without one every agent asks its own."""
    usd_per_token: dict[str, float | None]
    """What a token of each costs at most; None where the price is unknown."""
