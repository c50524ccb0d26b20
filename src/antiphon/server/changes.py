"""The messages of the WebSocket that change a run itself: its name, its project, its plan."""

from __future__ import annotations

from msgspec import Struct

from antiphon.server.routes.bodies import ModuleReceipt, RunLine, WorkModuleChange


class ChangeRunRequest(Struct, frozen=True, tag="change_run", tag_field="type", forbid_unknown_fields=True):
    """Rename a run, or move it to another project. As PATCH /runs/{id}."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""
    name: str | None = None
    """What people call it; empty takes the name away."""
    project: str | None = None
    """What it is a part of; empty: of nothing."""


class ManageWorkModules(
    Struct, frozen=True, tag="manage_work_modules_request", tag_field="type", forbid_unknown_fields=True
):
    """Change the plan of a run of profiles, without a model; `manage_work_modules_response` is the reply."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""
    change: WorkModuleChange
    """The change, as POST /runs/{id}/work-modules takes it."""
    key: str = ""
    """Makes it once, however often it is sent: an idempotency key."""


class ChangeRunReply(Struct, frozen=True, tag="change_run_response", tag_field="type"):
    """The run is renamed or moved."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    run: RunLine
    """As it is now."""


class ManageWorkModulesReply(Struct, frozen=True, tag="manage_work_modules_response", tag_field="type"):
    """The plan is changed, or the change waits for the run's owner."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    receipt: ModuleReceipt
    """What became of it."""
