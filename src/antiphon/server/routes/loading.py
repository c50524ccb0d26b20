"""The one way to a run: whoever may not see it is told what is told of a run that is not there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from litestar import Request
from litestar.di import NamedDependency
from litestar.params import FromPath
from msgspec.structs import replace

from antiphon.errors import UnknownName, UserError
from antiphon.host import Host
from antiphon.journal.listing import Labels, RunFilter
from antiphon.journal.port import check_id
from antiphon.server.problems import Refusal
from antiphon.server.served import Served
from antiphon.server.subjects import Subject
from antiphon.view import RunConnection

FromHost: TypeAlias = NamedDependency[Host]
"""The host, as a parameter `host` of a route."""
FromServed: TypeAlias = NamedDependency[Served]
"""What the routes share, as a parameter `served`."""
FromSubject: TypeAlias = NamedDependency[Subject]
"""Who asks, as a parameter `subject` of a route that is not public."""
FromRun: TypeAlias = NamedDependency[RunConnection]
"""The run that `run_id` in the address names, as a parameter `run`."""
TAKEN_SECONDS = 2.0
"""How long a reply waits for what was posted to be taken in."""


def may_see(subject: Subject, labels: Labels) -> bool:
    """Whether a run is the subject's."""
    return subject.sees_all or labels.owner == subject.name


def visible(subject: Subject, where: RunFilter) -> RunFilter | None:
    """The filter as it is for a subject, who may not find runs of others; None where nothing can be found."""
    if subject.sees_all:
        return where
    return replace(where, owner=subject.name) if where.owner in (None, subject.name) else None


async def check_owner(host: Host, subject: Subject, run_id: str) -> None:
    """Raise UnknownName unless the run is there and the subject may see it."""
    try:
        check_id("run_id", run_id)
        labels = (await host.info(run_id)).labels
    except UserError:
        # What cannot be an id is the id of no run.
        raise UnknownName("run", run_id) from None
    if not may_see(subject, labels):
        raise UnknownName("run", run_id)


@asynccontextmanager
async def loaded(host: Host, subject: Subject, run_id: str) -> AsyncGenerator[RunConnection]:
    """A connection to a run that the subject may see. Raises UnknownName."""
    await check_owner(host, subject, run_id)
    async with host.connect(run_id) as run:
        yield run


async def check_room(served: Served, subject: Subject) -> None:
    """Raise Refusal where as many of the subject's runs are at work as may be."""
    host, most = served.host, served.rates.bounds.runs
    if sum(each.state in ("queued", "running") for each in host.runs.values()) < most:
        # Not so many of anybody's.
        return
    if len(await host.journal.runs(RunFilter(owner=subject.name, states=("open",)), 0, most)) >= most:
        raise Refusal(
            429, "runs", f"{most:,} runs of {subject.name} are at work, which is as many as may be",
            "Wait until some have ended, or stop them",
        )  # fmt: skip


# -- what routes take, by the names of their parameters ------------------------------------------------


def subject_of(request: Request[Any, Any, Any]) -> Subject:
    """Who asks; of a route that is not public."""
    found: Subject = request.user
    return found


async def run_of(
    run_id: FromPath[str], host: FromHost, subject: FromSubject
) -> AsyncGenerator[RunConnection]:
    """The run of an address."""
    async with loaded(host, subject, run_id) as run:
        yield run
