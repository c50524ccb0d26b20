"""Calls of tools that a model has found by a search, and whose definitions do not stand in its prompt."""

from __future__ import annotations

from msgspec.structs import replace

from antiphon.kernel.context.tool_search import CALL_TOOL, SEARCH_TOOLS, meant
from antiphon.kernel.facts.agent_call import CALL_AGENT
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, ToolEffect
from antiphon.kernel.rules.builtins import BUILTINS
from antiphon.kernel.rules.team.compiled import CompiledAgent
from antiphon.values.message import ToolCall
from antiphon.values.schema.arguments import Invalid
from antiphon.values.tool import Tool


def meant_call(member: CompiledAgent, call: ToolCall) -> ToolCall | Invalid:
    """The call that another one means: what `call_tool` was given, where the agent has that."""
    return meant(call) if member.hidden and call.name == CALL_TOOL else call


def meant_tool(member: CompiledAgent, call: ToolCall) -> Tool | None:
    """The tool that a call means, if the agent has it."""
    found = meant_call(member, call)
    return None if isinstance(found, Invalid) else member.tools.get(found.name)


def in_turn(member: CompiledAgent, offered: tuple[str, ...], name: str) -> bool:
    """Whether a turn that offers these tools offers one: what is found by a search brings the search."""
    return name in offered or (name == SEARCH_TOOLS and not member.hidden.isdisjoint(offered))


def with_arguments(begun: EffectStarted | EffectFinished, call: ToolCall) -> EffectStarted | EffectFinished:
    """What begins by `call_tool`: its arguments are not those that the turn has on record."""
    if type(begun) is EffectStarted and type(begun.detail) is ToolEffect and not begun.detail.arguments:
        return EffectStarted(begun.id, replace(begun.detail, arguments=call.arguments))
    return begun


def no_such_tool(member: CompiledAgent, name: str) -> str:
    """What a model is told that calls what its agent does not have."""
    if name in member.disabled:
        return f"{name} is disabled in this run"
    if name in member.callable and CALL_AGENT in member.builtins:
        return f'{name} is an agent, not a tool; use call_agent(agent_name="{name}", message="...")'
    listed = [each for each in member.tools if each not in member.hidden]
    known = ", ".join([*listed, *(each for each in BUILTINS if each in member.builtins)])
    found = f"; {SEARCH_TOOLS} finds others" if member.hidden else ""
    return f"Unknown tool: {name}. Available tools: {known or '(none)'}{found}"
