"""changing: an agent's own state and the team's, while a rule reads and changes them.

What a rule is shown is never changed: every change is made to a copy along its path, and `changed` says
which keys must be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class EditableData:
    """A mapping of JSON data under change.

    values: as it is now; changed: the keys that differ; changes: how often something was changed.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values: dict[str, Any] = dict(values)
        self.changed: dict[str, Any] = {}
        self.changes = 0

    def put(self, key: str, value: Any) -> None:
        """Replace the value of a key; nothing is to be recorded when it is the same."""
        if key not in self.values or self.values[key] != value:
            self.values[key] = self.changed[key] = value
            self.changes += 1

    def set(self, path: str, value: Any) -> None:
        """Replace what stands at a path of keys and dots."""
        self._replace(path, lambda old: value)

    def increment(self, path: str) -> None:
        """Add 1 to the number at a path; anything else counts as 0."""
        self._replace(path, lambda old: (old if _is_number(old) else 0) + 1)

    def _replace(self, path: str, change: Callable[[Any], Any]) -> None:
        key, *rest = path.removeprefix("state.").split(".")
        self.put(key, _replaced(self.values.get(key), rest, change))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _replaced(value: Any, rest: list[str], change: Callable[[Any], Any]) -> Any:
    """A copy of a value with what stands at `rest` in it changed; mappings on the way are made."""
    if not rest:
        return change(value)
    under = dict(value) if isinstance(value, dict) else {}
    under[rest[0]] = _replaced(under.get(rest[0]), rest[1:], change)
    return under
