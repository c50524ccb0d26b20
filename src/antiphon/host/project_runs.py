"""The runs of a project: whether one is at work, and the rules that hold in it."""

from __future__ import annotations

import asyncio

from antiphon.errors import UnknownName, UserError
from antiphon.host.hosted import HostedRun
from antiphon.host.projects import Projects
from antiphon.host.summaries import current_summary
from antiphon.journal import Journal
from antiphon.journal.listing import Labels, RunInfo
from antiphon.kernel.run.run import Run
from antiphon.kernel.run.standing import rules_for
from antiphon.values.policy import StandingRule


async def is_idle(run: Run) -> bool:
    """Whether nothing is to be done in a run that is driven here, and no request is open."""
    return run.at_rest and not await run.open_requests()


async def is_at_work(info: RunInfo, hosted: HostedRun | None) -> bool:
    """Whether a request of a run is open, and somebody drives it or would take it up."""
    if hosted is not None and hosted.run is not None:
        return bool(await hosted.run.open_requests())
    known = current_summary(info)
    asked = known is None or known.state in ("open", "waiting")
    return asked and (bool(info.owner) or (hosted is not None and not hosted.is_done))


async def rules_in_project(
    journal: Journal, projects: Projects | None, run_id: str, labels: Labels | None, *, new: bool = False
) -> tuple[StandingRule, ...]:
    """The rules for a run: those kept for it, its project and its owner, and of the project's file.

    labels: None for its own. new: it is not there yet, and so is refused in a project that is not there.
    Raises JournalError, UnknownName; UserError for rules that cannot be read, since nobody knows what they
    deny.
    """
    known = labels if labels is not None else (await journal.info(run_id)).labels
    kept = await rules_for(journal, run_id, known)
    if not known.project or projects is None:
        return kept
    try:
        found = await asyncio.to_thread(projects.get, known.project)
    except UnknownName:
        if new:
            raise
        return kept
    if found.findings:
        raise UserError(
            f"The rules of project {known.project} cannot be read, so nobody knows what they deny: "
            f"{found.findings[0]}"
        )
    return (*kept, *found.rules)
