"""toolset: the tools of this style, as models are shown them.

None of them is ever run: what they change is the team's state, which is part of the run, so `routing` says
what each call becomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon import Tool, ToolError, tool
from antiphon.styles.profiles.files.protocol import Protocol
from antiphon.styles.profiles.work.modules import ModuleAction

DirectiveType = Literal["ADD_CONTEXT", "USER_QUERY_FOR_PRINCIPAL", "MODIFY_SUB_TASK"]
IterationMode = Literal["start_fresh", "continue_from_previous"]


class Assignment(Struct, frozen=True):
    """Work for one associate.

    module_id_to_assign: the module. agent_profile_logical_name: who does it. assigned_role_name: what the
    associate is called for it. assignment_specific_instructions: what to do.
    inherit_messages_from: modules whose conversations the associate is shown.
    inherit_deliverables_from: modules whose last results it is shown. context: what else it is told.
    """

    module_id_to_assign: str
    agent_profile_logical_name: str
    assigned_role_name: str = ""
    assignment_specific_instructions: str = ""
    inherit_messages_from: tuple[str, ...] = ()
    inherit_deliverables_from: tuple[str, ...] = ()
    context: dict[str, Any] = {}


def _never(name: str) -> ToolError:
    return ToolError(f"{name} changes the state of a team of profiles; it can only be used in one")


@tool(effect="read")
async def manage_work_modules(actions: list[ModuleAction]) -> str:
    """Plan the team's work: create modules, change them, set their status. All of the actions, or none.

    Args:
        actions: The changes, in order.
    """
    raise _never("manage_work_modules")


@tool(effect="read")
async def dispatch_submodules(
    assignments: list[Assignment], shared_context_for_all_assignments: str = ""
) -> str:
    """Have associates work on modules, all at the same time, and wait for their results.

    Args:
        assignments: Who does what, each module once.
        shared_context_for_all_assignments: What all of them must know.
    """
    raise _never("dispatch_submodules")


@tool(effect="read", finishes=True)
async def finish_flow(summary: str = "") -> str:
    """End your task and hand back its result.

    Args:
        summary: The result; without one, the last text that you wrote.
    """
    raise _never("finish_flow")


@tool(effect="read")
async def generate_message_summary(focus: str = "") -> str:
    """Get instructions for the summary of your work; follow them in your next reply.

    Args:
        focus: What the summary is about above all.
    """
    raise _never("generate_message_summary")


@tool(effect="read")
async def generate_markdown_report(title: str = "", audience: str = "") -> str:
    """Get instructions for a Markdown report on the team's work; follow them in your next reply.

    Args:
        title: The title of the report.
        audience: Who will read it.
    """
    raise _never("generate_markdown_report")


@tool(effect="read", name="LaunchPrincipalExecutionTool")
async def launch_principal(
    iteration_mode: IterationMode = "start_fresh",
    force_terminate_and_relaunch: bool = False,
    briefing: str = "",
    context: dict[str, Any] = {},  # noqa: B006 - a default that is never changed, and part of the schema
) -> str:
    """Have the principal carry out the plan. It works in the background; you are told when it has ended.

    Args:
        iteration_mode: Whether it begins anew or knows what it did before.
        force_terminate_and_relaunch: Whether one that works already is stopped first; else it is left alone.
        briefing: What it should know beside the question and the plan.
        context: What else it is told.
    """
    raise _never("LaunchPrincipalExecutionTool")


@tool(effect="read", name="GetPrincipalStatusSummaryTool")
async def principal_status() -> str:
    """See what the principal is doing, and how far the modules are."""
    raise _never("GetPrincipalStatusSummaryTool")


@tool(effect="read", name="SendDirectiveToPrincipalTool")
async def send_directive(directive_type: DirectiveType, content: str) -> str:
    """Tell the principal something while it works; it reads it before its next step.

    Args:
        directive_type: What kind of word it is.
        content: What it is told.
    """
    raise _never("SendDirectiveToPrincipalTool")


TOOLS: Mapping[str, Tool] = {
    each.name: each
    for each in (
        manage_work_modules, dispatch_submodules, finish_flow, generate_message_summary,
        generate_markdown_report, launch_principal, principal_status, send_directive,
    )
}  # fmt: skip


def with_context(given: Tool, protocol: Protocol | None) -> Tool:
    """The tool with what a handover protocol wants to be said beyond its own parameters, as its `context`."""
    parameters = msgspec.json.decode(msgspec.json.encode(given.parameters), type=dict[str, Any])
    if not _mentions(parameters, "context"):
        return given
    said = protocol.context_parameters if protocol is not None else {}
    wanted = {
        name: _plain(schema)
        for name, schema in said.get("properties", {}).items()
        if not _mentions(parameters, name)
    }
    required = [name for name in said.get("required", ()) if name in wanted]
    _say(parameters, wanted, required)
    return replace(given, spec=replace(given.spec, parameters=parameters))


def _mentions(schema: Any, name: str) -> bool:
    """Whether a schema has a property of that name, at any depth."""
    if isinstance(schema, list):
        return any(_mentions(each, name) for each in schema)
    if not isinstance(schema, dict):
        return False
    return name in schema.get("properties", {}) or any(_mentions(each, name) for each in schema.values())


def _say(schema: Any, wanted: Mapping[str, Any], required: list[str]) -> None:
    """Put these parameters in the place of every `context` of a schema; without any it goes."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties.pop("context", None) is not None and wanted:
            properties["context"] = {"type": "object", "properties": dict(wanted), "required": required}
            if required:
                schema["required"] = [*schema.get("required", []), "context"]
        for each in schema.values():
            _say(each, wanted, required)
    elif isinstance(schema, list):
        for each in schema:
            _say(each, wanted, required)


def _plain(schema: Any) -> Any:
    """A schema without the keys that are for rendering only."""
    if isinstance(schema, Mapping):
        return {key: _plain(each) for key, each in schema.items() if not key.startswith("x-")}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema
