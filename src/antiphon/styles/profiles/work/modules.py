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
SETTABLE = ("pending", "completed", "deprecated", "pending_review")
"""What a planner may set; the others come about."""
DISPATCHABLE = ("pending", "pending_review")
ALIASES: Mapping[str, str] = {"in_progress": "ongoing"}

Modules = Mapping[str, Mapping[str, Any]]


class ModuleAction(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change of the plan.

    action: `create` needs name and description, `update` a module_id and what differs, `status_change` a
    module_id and the new status, as new_status or status. notes_from_principal: what else is to be known of
    the module; with any action.
    """

    action: Literal["create", "update", "status_change"]
    module_id: str = ""
    name: str = ""
    description: str = ""
    new_status: str = ""
    status: str = ""
    notes_from_principal: str = ""

    @property
    def wanted(self) -> str:
        """The status to be set, empty for none. Raises UserError: two that differ."""
        if self.new_status and self.status and self.new_status != self.status:
            raise UserError(f"new_status is {self.new_status!r} and status {self.status!r}; give one of them")
        return ALIASES.get(self.new_status or self.status, self.new_status or self.status)


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
            else:
                said.append(_change(changed, action, at))
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
    wanted = _settable(action) if action.wanted else "pending"
    module_id = f"WM_{number}"
    modules[module_id] = {
        "module_id": module_id,
        "name": action.name,
        "description": action.description,
        "status": wanted,
        "created_at": at,
        "updated_at": at,
    }
    if action.notes_from_principal:
        modules[module_id]["notes_from_principal"] = action.notes_from_principal
    return f"{module_id} created"


def _change(modules: dict[str, dict[str, Any]], action: ModuleAction, at: float) -> str:
    module = find(modules, action.module_id)
    given = {key: value for key in _TEXTS if (value := getattr(action, key))}
    said = [f"updated: {', '.join(given)}"] if given else []
    if action.action == "status_change" or action.wanted:
        given["status"] = _settable(action)
        if status_of(module) == "ongoing":
            raise UserError(f"{action.module_id} is being worked on; wait for its end")
        said.append(f"is {given['status']}")
    if not given:
        raise UserError("nothing is given that differs; give name or description, or notes")
    modules[action.module_id] = {**module, **given, "updated_at": at}
    return f"{action.module_id} {', and '.join(said)}"


def _settable(action: ModuleAction) -> str:
    """The status that a planner wants. Raises UserError for one that comes about by itself."""
    if action.wanted not in SETTABLE:
        given = action.new_status or action.status
        raise UserError(f"the status {given!r} cannot be set; it is one of: {', '.join(SETTABLE)}")
    return action.wanted


_TEXTS = ("name", "description", "notes_from_principal")
