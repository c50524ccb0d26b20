"""The call that a user may make himself: a change of the plan of a team of profiles."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import post
from litestar.params import JSONBody

from antiphon.host import Host
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.answers import receipt
from antiphon.server.routes.bodies import ModuleReceipt, WorkModuleChange
from antiphon.server.routes.loading import FromHost, FromRun, FromSubject
from antiphon.server.routes.reading import profiles_of
from antiphon.server.routes.runs import Key, once
from antiphon.server.subjects import Subject
from antiphon.styles.profiles.work.toolset import MANAGE
from antiphon.view import RunConnection


@post("/runs/{run_id:str}/work-modules", status_code=202, summary="Change the plan", **allowed("write"))
async def change_modules(
    data: JSONBody[WorkModuleChange], run: FromRun, host: FromHost, subject: FromSubject, key: Key = ""
) -> ModuleReceipt:
    """Create a work module of a run of profiles, change it, or set its status; no model is asked.

    It is checked as an agent's own call is, and refused with what is wrong.
    """
    return await changed_modules(host, subject, run, data, key)


async def changed_modules(
    host: Host, subject: Subject, run: RunConnection, change: WorkModuleChange, key: str = ""
) -> ModuleReceipt:
    """Post it as a command, and say what became of it. Raises Refusal when it was refused."""
    profiles = await profiles_of(run, host)
    planner = profiles.planner if profiles is not None else ""
    if not planner:
        raise Refusal(
            409,
            "no_plan",
            "The run has no work modules: only a team of profiles that is served here plans them",
        )
    posted_as = await once(host, run.run_id, key, change) if key else ""
    arguments: dict[str, Any] = {"actions": [msgspec.to_builtins(change)]}
    number = await run.call(planner, MANAGE, arguments, by=subject.name, key=posted_as)
    found = await receipt(run, number)
    if not found.taken:
        return ModuleReceipt(number, False)
    effect = (await run.tree()).effects[found.id]
    if effect.outcome != "completed":
        raise Refusal(
            409, "not_changed", effect.reason or f"The plan was not changed: {effect.outcome}",
            "Look at the modules as they are now, in the run's context",
        )  # fmt: skip
    return ModuleReceipt(number, True, found.id, effect.content)
