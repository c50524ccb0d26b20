"""AgentToolkit: tools, and which agent may use which. Nothing is permitted unless granted."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from antiphon import Tool, ToolContext, tool
from antiphon.errors import ToolDefinitionError
from antiphon.styles.tasks.errors import DuplicateTool, InvalidArguments, NotPermitted, UnknownTool
from antiphon.styles.tasks.toolkits.declared import ExecutableTool, declared_tool, is_executable
from antiphon.styles.tasks.toolkits.permissions import EVERY, AuditEntry, Permissions
from antiphon.values.tool import as_tool


class AgentToolkit:
    """Tools shared by agents, each of which sees and uses those it has a permission for.

    Safe to use from many threads; a tool itself runs outside of every lock.
    now: tells the time, in Unix seconds. audit_lines: how many lines of the audit trail are kept.
    """

    def __init__(self, now: Callable[[], float] = time.time, audit_lines: int = 10_000) -> None:
        self._permissions = Permissions(now, audit_lines)
        self._tools: dict[str, Tool] = {}
        self._lock = threading.Lock()

    # -- tools -----------------------------------------------------------------------------------

    def register_tool(
        self,
        tool: Tool | ExecutableTool | Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
    ) -> str:
        """Add a function, a Tool or an object with `execute`; returns the tool's name.

        name, description: of a plain function, where they differ from its own. Nobody may use the
        tool before it is granted, except those with `*`. Raises DuplicateTool, ToolDefinitionError.
        """
        added = _tool_of(tool, name, description)
        with self._lock:
            if added.name in self._tools:
                raise DuplicateTool(added.name)
            self._tools[added.name] = added
        return added.name

    def get_accessible_tools(self, agent: str) -> list[str]:
        """The names of the tools the agent may use now, in the order they were registered."""
        return [each.name for each in self.tools_of(agent)]

    def get_tool_descriptions(self, agent: str) -> list[dict[str, Any]]:
        """Name, description and parameters (JSON Schema) of each tool the agent may use now."""
        return [
            {
                "name": each.name,
                "description": each.description,
                "parameters": copy.deepcopy(each.parameters),
            }
            for each in self.tools_of(agent)
        ]

    def tools_of(self, agent: str) -> tuple[Tool, ...]:
        """The tools the agent may use now."""
        with self._lock:
            registered = list(self._tools.values())
        return tuple(each for each in registered if self._permissions.allow(agent, each.name))

    # -- permissions -----------------------------------------------------------------------------

    def grant_permission(self, agent: str, tool: str, *, expires: float | None = None, by: str = "") -> None:
        """Let the agent use a tool, or with `*` every tool but those that were revoked by name.

        expires: when it ends, Unix seconds. by: who grants it, for the audit trail. Raises UnknownTool.
        """
        self._check_registered(tool)
        self._permissions.grant(agent, tool, expires, by)

    def revoke_permission(self, agent: str, tool: str, *, by: str = "") -> None:
        """Take a tool from the agent until it is granted by name, whatever `*` says.

        `*` takes back all that was granted. Raises UnknownTool.
        """
        self._check_registered(tool)
        self._permissions.revoke(agent, tool, by)

    def has_permission(self, agent: str, tool: str) -> bool:
        """Whether the agent may use a tool of that name now; under `*` also one that is not there yet."""
        return self._permissions.allow(agent, tool)

    def audit_trail(self, agent: str | None = None) -> tuple[AuditEntry, ...]:
        """Who gave, took, used or was refused what, and when, the oldest first; of one agent, if asked."""
        return tuple(each for each in self._permissions.trail() if agent in (None, each.agent))

    def _check_registered(self, name: str) -> None:
        with self._lock:
            if name != EVERY and name not in self._tools:
                raise UnknownTool(name, self._tools)

    # -- use -------------------------------------------------------------------------------------

    def execute_tool(self, agent: str, tool: str, args: Mapping[str, Any] | None = None) -> Any:
        """Call a tool as an agent; what it returns, an awaitable of that for an async tool.

        The call stands outside of any run: nothing of it is in a journal, no policy is asked, and the
        tool's timeout does not apply. Raises, before the tool is called: NotPermitted, which does not
        tell whether there is such a tool; UnknownTool; InvalidArguments.
        """
        if not self._permissions.allow(agent, tool):
            self._permissions.note("refuse", agent, tool)
            raise NotPermitted(agent, tool, self.get_accessible_tools(agent))
        with self._lock:
            found = self._tools.get(tool)
        if found is None:
            raise UnknownTool(tool, self.get_accessible_tools(agent))
        arguments = found.prepare(arguments_json(tool, args or {}))
        if not isinstance(arguments, str):
            raise InvalidArguments(arguments.text)
        call = found.bind(arguments, ToolContext(agent=agent))
        self._permissions.note("use", agent, tool)
        return call()


def arguments_json(tool: str, args: Mapping[str, Any]) -> str:
    """Arguments as a model would write them: JSON, dates and the like as text.

    Raises InvalidArguments for what JSON cannot carry.
    """
    try:
        return str(msgspec.json.encode(dict(args), enc_hook=_as_text), "utf-8")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArguments(f"Invalid arguments for tool {tool!r}: {error}") from error


def _as_text(value: Any) -> Any:
    """msgspec's enc_hook: whatever has a path is written as that."""
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    raise TypeError(f"a {type(value).__qualname__} cannot be written as JSON")


def _tool_of(
    obj: Tool | ExecutableTool | Callable[..., Any], name: str | None, description: str | None
) -> Tool:
    if name is None and description is None:
        return declared_tool(obj) if is_executable(obj) else as_tool(obj)  # type: ignore[arg-type]
    if isinstance(obj, Tool) or is_executable(obj):
        raise ToolDefinitionError(f"{obj.name} has a name and a description of its own; register it without")
    return tool(name=name, description=description)(obj)  # type: ignore[arg-type]
