"""The todo list: a part of the run, where readers find work modules, so that the page's board shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from antiphon import ToolError, tool
from antiphon.values.hooks import DirectResult, TurnContext

KEPT = "work_modules"
"""Where a run keeps it."""
STATUSES: Mapping[str, str] = {"todo": "pending", "doing": "ongoing", "done": "completed"}
"""The words of the list, and of work modules."""


class TodoItem(Struct, frozen=True, forbid_unknown_fields=True):
    """One step. text: what is done in it."""

    text: Annotated[str, Meta(min_length=1, max_length=300)]
    status: Literal["todo", "doing", "done"] = "todo"


class _TodoArguments(Struct, frozen=True):
    items: list[TodoItem]


@tool(effect="read", kind="think", title="Todo list")
def todo(items: Annotated[list[TodoItem], Meta(max_length=50)]) -> str:
    """Write the todo list anew: all its steps in order, done ones too. Your user sees it.

    Args:
        items: the steps; at most one is `doing`.
    """
    raise ToolError("the list is part of a run; no run has called the tool")


def write_list(context: TurnContext, arguments: str) -> DirectResult:
    """The list that a call of `todo` makes of the one there is."""
    items = msgspec.json.decode(arguments, type=_TodoArguments).items
    if sum(each.status == "doing" for each in items) > 1:
        return DirectResult("Nothing was written: at most one step is `doing`", "failed")
    known = {each["name"]: each for each in _modules(context.run_data)}
    written: dict[str, Any] = {}
    for number, each in enumerate(items, 1):
        name, before = f"WM_{number}", known.get(each.text, {})
        status = STATUSES[each.status]
        same = before.get("status") == status
        written[name] = {
            "module_id": name, "name": each.text, "description": "", "status": status,
            "created_at": before.get("created_at", context.at),
            "updated_at": before["updated_at"] if same else context.at,
        }  # fmt: skip
    return DirectResult(_told(items), run_data={KEPT: written})


def _modules(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    kept = data.get(KEPT)
    found = kept.values() if isinstance(kept, Mapping) else ()
    return [each for each in found if isinstance(each, Mapping) and {"name", "updated_at"} <= each.keys()]


def _told(items: Sequence[TodoItem]) -> str:
    if not items:
        return "The list is empty"
    left = [each.text for each in items if each.status != "done"]
    doing = next((each.text for each in items if each.status == "doing"), "")
    told = f"{len(items) - len(left)} of {len(items)} done"
    return f"{told}; doing: {doing}" if doing else told
