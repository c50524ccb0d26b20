"""Asking the hooks that an event concerns, one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.assistant.hooks.file import HookCommand, HookEvent
from antiphon.assistant.hooks.scripts import run_script

BLOCKS = 2
"""The exit code that blocks; what is written to the error output is why."""
MAX_GIVEN = 1_000_000
"""Characters of a text that a hook is given."""
SHOWN = 100
"""Characters of a hook's line where it is named."""


class HookVerdict(Struct, frozen=True):
    """What the hooks of an event say. blocked: why not, empty where none blocks. output: what they wrote.
    notes: which of them went wrong otherwise."""

    blocked: str = ""
    output: str = ""
    notes: tuple[str, ...] = ()


class HookRunner:
    """The hooks of one folder."""

    def __init__(self, hooks: Sequence[HookCommand], folder: Path) -> None:
        self._hooks, self._folder = tuple(hooks), folder

    def has(self, *events: HookEvent) -> bool:
        """Whether there is a hook for one of these events."""
        return any(each.event in events for each in self._hooks)

    def concerns(self, event: HookEvent, tool: str) -> bool:
        """Whether there is a hook for an event of a tool."""
        return any(each.is_for(event, tool) for each in self._hooks)

    def ask(self, event: HookEvent, run_id: str, told: Mapping[str, Any], tool: str = "") -> HookVerdict:
        """Ask them; the first that blocks is the last. Takes as long as they do."""
        given = {
            "session_id": run_id, "cwd": str(self._folder), "hook_event_name": event,
            **({"tool_name": tool} if tool else {}), **{name: _cut(each) for name, each in told.items()},
        }  # fmt: skip
        text = msgspec.json.encode(given).decode()
        outputs: list[str] = []
        notes: list[str] = []
        for each in self._hooks:
            if not each.is_for(event, tool):
                continue
            end = run_script(each.command, text, self._folder, each.seconds)
            if end.code == BLOCKS:
                why = end.errors or f"the hook `{each.command[:SHOWN]}` blocks it and says no reason"
                return HookVerdict(why, "\n".join(outputs), tuple(notes))
            if end.code:
                said = end.errors.splitlines()[-1][:300] if end.errors else "it wrote nothing"
                notes.append(
                    f"the hook `{each.command[:SHOWN]}` ({each.origin}) failed with {end.code}: {said}"
                )
            elif end.output:
                outputs.append(end.output)
        return HookVerdict("", "\n".join(outputs), tuple(notes))


def _cut(value: Any) -> Any:
    return value[:MAX_GIVEN] if isinstance(value, str) else value
