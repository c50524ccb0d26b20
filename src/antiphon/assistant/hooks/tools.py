"""Hooks around tools: a call is blocked before the function runs, its result is commented after it has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from antiphon import Tool, ToolContext, ToolError, ToolResult
from antiphon.assistant.hooks.runner import HookRunner
from antiphon.values.tool import as_tool, result_of
from antiphon.values.tool.toolset import Offered, Toolset, ToolsetLink


def hooked(tool: Tool, runner: HookRunner) -> Tool:
    """The tool with the hooks that concern it around it; the same one where none does.

    What it is, and so what is asked before it is used, stays as it was. A hook may be asked again for a call
    that is made again after a crash.
    """
    concerned = any(runner.concerns(each, tool.name) for each in ("PreToolUse", "PostToolUse"))
    if not concerned or tool.outside:
        return tool
    call: Callable[..., Any] = tool.function
    guard = _ToolHooks(tool, runner)
    if tool.is_async:

        async def waited(*args: Any, **named: Any) -> Any:
            await asyncio.to_thread(guard.before, args, named)
            result = await call(*args, **named)
            return await asyncio.to_thread(guard.after, args, named, result)

        return replace(tool, function=waited)

    def done(*args: Any, **named: Any) -> Any:
        guard.before(args, named)
        return guard.after(args, named, call(*args, **named))

    return replace(tool, function=done)


def hooked_toolset(toolset: Toolset, runner: HookRunner) -> Toolset:
    """The toolset whose tools have hooks around them, those that it offers later too."""
    if not runner.has("PreToolUse", "PostToolUse"):
        return toolset

    def around(offered: Offered) -> list[Tool]:
        return [hooked(as_tool(each), runner) for each in offered]

    async def opened(link: ToolsetLink) -> Offered:
        return around(await toolset.open(_HookedLink(link, around)))

    # It shares no provider with others, whose tools would go without.
    return replace(toolset, open=opened, key=("hooked", id(runner), toolset.provider))


class _HookedLink:
    """A link that puts hooks around what is offered."""

    def __init__(self, link: ToolsetLink, around: Callable[[Offered], list[Tool]]) -> None:
        self._link, self._around = link, around

    @property
    def session(self) -> Any:
        """Whatever `close` needs of `open`."""
        return self._link.session

    @session.setter
    def session(self, value: Any) -> None:
        self._link.session = value

    def offer(self, tools: Offered) -> None:
        """From now on these tools are offered."""
        self._link.offer(self._around(tools))

    def lost(self, reason: str) -> None:
        """The provider has gone."""
        self._link.lost(reason)


class _ToolHooks:
    """What happens before and after one tool."""

    def __init__(self, tool: Tool, runner: HookRunner) -> None:
        self._tool, self._runner = tool, runner
        self._names = list(tool.parameters.get("properties", {}))

    def before(self, args: Sequence[Any], named: dict[str, Any]) -> None:
        """Raises ToolError where a hook blocks the call."""
        told = {"tool_input": self._input(args, named)}
        found = self._runner.ask("PreToolUse", _run_of(args, named), told, self._tool.name)
        if found.blocked:
            raise ToolError(f"A hook of the user's blocked this call, and nothing was done: {found.blocked}")

    def after(self, args: Sequence[Any], named: dict[str, Any], result: Any) -> Any:
        """The result, with what hooks say to it."""
        if not self._runner.concerns("PostToolUse", self._tool.name):
            return result
        found: ToolResult = result_of(result)
        told = {"tool_input": self._input(args, named), "tool_response": found.content}
        said = self._runner.ask("PostToolUse", _run_of(args, named), told, self._tool.name)
        lines = [f"[a hook of the user's says: {said.blocked}]"] if said.blocked else []
        lines += [f"[{each}]" for each in said.notes]
        return replace(found, content="\n".join([found.content, *lines])) if lines else found

    def _input(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """The arguments as the model gave them, by name."""
        given = [each for each in args if not isinstance(each, ToolContext)]
        if self._tool._shape.whole:
            return given[0] if given else {}
        found = dict(zip(self._names, given, strict=False))
        return found | {name: each for name, each in named.items() if not isinstance(each, ToolContext)}


def _run_of(args: Sequence[Any], named: dict[str, Any]) -> str:
    held = [each for each in (*args, *named.values()) if isinstance(each, ToolContext)]
    return held[0].run_id if held else ""
