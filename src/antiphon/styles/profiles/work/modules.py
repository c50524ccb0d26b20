"""modules: the team's work modules, and what changes them. Pure: from modules to modules.

A module is planned (`pending`), worked on (`ongoing`), looked at (`pending_review`) and then `completed` or
`deprecated`. Only a dispatch makes one ongoing, and only its end makes it one to be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from antiphon.errors import UserError

STATUSES = ("pending", "ongoing", "pending_review", "completed", "deprecated")
SETTABLE = ("pending", "completed", "deprecated")
"""What a planner may set; the others come about."""
DISPATCHABLE = ("pending", "pending_review")
ALIASES: Mapping[str, str] = {"in_progress": "ongoing"}

Modules = Mapping[str, Mapping[str, Any]]


class ModuleAction(Struct, frozen=True):
    """One change of the plan.

    action: `create` needs name and description, `update` a module_id and what differs, `status_change` a
    module_id and the new status.
    """

    action: Literal["create", "update", "status_change"]
    module_id: str = ""
    name: str = ""
    description: str = ""
    status: str = ""


class ModuleRejected(UserError):
    """A change of the plan that cannot be. next_id: the number of the next module, used up or not."""

    def __init__(self, text: str, next_id: int) -> None:
        super().__init__(text)
        self.next_id = next_id


class ModuleChanges(Struct, frozen=True):
    """The modules after some changes. said: what came of each, in order."""

    modules: dict[str, dict[str, Any]]
    next_id: int
    said: tuple[str, ...]


def manage(modules: Modules, next_id: int, actions: Sequence[ModuleAction], at: float) -> ModuleChanges:
    """Make all of the changes, or raise Refused with the first that cannot be."""
    changed = {name: dict(each) for name, each in modules.items()}
    said: list[str] = []
    for index, action in enumerate(actions):
        try:
            if action.action == "create":
                said.append(_create(changed, next_id, action, at))
                next_id += 1
            elif action.action == "update":
                said.append(_update(changed, action, at))
            else:
                said.append(_set_status(changed, action, at))
        except UserError as error:
            raise ModuleRejected(
                f"actions[{index}] ({action.action}): {error}. Nothing was changed", next_id
            ) from None
    return ModuleChanges(changed, next_id, tuple(said))


def find(modules: Modules, module_id: str) -> Mapping[str, Any]:
    """A module. Raises UserError that lists the known."""
    if module_id not in modules:
        raise UserError(f"unknown module {module_id!r}. Known: {', '.join(modules) or '(none)'}")
    return modules[module_id]


def status_of(module: Mapping[str, Any]) -> str:
    """A module's status in the words of STATUSES."""
    found = str(module.get("status", ""))
    return ALIASES.get(found, found)


def _create(modules: dict[str, dict[str, Any]], number: int, action: ModuleAction, at: float) -> str:
    if not action.name.strip():
        raise UserError("a module needs a name")
    module_id = f"WM_{number}"
    modules[module_id] = {
        "module_id": module_id,
        "name": action.name,
        "description": action.description,
        "status": "pending",
        "created_at": at,
        "updated_at": at,
    }
    return f"{module_id} created"


def _update(modules: dict[str, dict[str, Any]], action: ModuleAction, at: float) -> str:
    module = find(modules, action.module_id)
    given = {key: value for key in ("name", "description") if (value := getattr(action, key))}
    if not given:
        raise UserError("nothing is given that differs; give name or description")
    modules[action.module_id] = {**module, **given, "updated_at": at}
    return f"{action.module_id} updated: {', '.join(given)}"


def _set_status(modules: dict[str, dict[str, Any]], action: ModuleAction, at: float) -> str:
    module, status = find(modules, action.module_id), ALIASES.get(action.status, action.status)
    if status not in SETTABLE:
        known = ", ".join(SETTABLE)
        raise UserError(f"the status {action.status!r} cannot be set; it is one of: {known}")
    if status_of(module) == "ongoing":
        raise UserError(f"{action.module_id} is being worked on; wait for its end")
    modules[action.module_id] = {**module, "status": status, "updated_at": at}
    return f"{action.module_id} is {status}"
