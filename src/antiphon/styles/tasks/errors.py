"""What this style refuses, as Antiphon's own errors and as the built-in ones that are prescribed."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon import UserError
from antiphon.errors import DuplicateName, UnknownName


class InvalidMessage(UserError, ValueError):
    """A message that cannot be read, or cannot be written; the text says where and what is expected."""


class InvalidArguments(UserError, ValueError):
    """Arguments that do not fit a tool; it was not called."""


class UnknownTool(UnknownName, ValueError):
    """No tool of that name is registered; lists those that the asker may use."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__("tool", name, known)


class DuplicateTool(DuplicateName, ValueError):
    """A tool of that name is registered already."""

    def __init__(self, name: str) -> None:
        super().__init__("tool", name)


class NotPermitted(UserError, PermissionError):
    """The agent may not use a tool of that name, whether or not there is one."""

    def __init__(self, agent: str, tool: str, permitted: Iterable[str]) -> None:
        listed = ", ".join(permitted) or "(none)"
        super().__init__(f"{agent!r} has no permission for a tool {tool!r:.80}. It may use: {listed}")
        self.agent, self.tool = agent, tool
