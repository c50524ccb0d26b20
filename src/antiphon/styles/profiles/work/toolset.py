"""toolset: the tools of this style, as models are shown them.

None of them is ever run: what they change is the team's state, which is part of the run, so `routing` says
what each call becomes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from antiphon import Tool, ToolError, tool
from antiphon.styles.profiles.files.protocol import Protocol
from antiphon.styles.profiles.work.modules import ModuleAction
from antiphon.styles.profiles.work.parameters import ToolParameter, declared, merged, object_of

DirectiveType = Literal["ADD_CONTEXT", "USER_QUERY_FOR_PRINCIPAL", "MODIFY_SUB_TASK"]
IterationMode = Literal["start_fresh", "continue_from_previous"]


class Assignment(Struct, frozen=True):
    """Work for one associate: what this style itself makes of an assignment; a protocol may declare more.

    module_id_to_assign: the module. agent_profile_logical_name: who does it. assigned_role_name: what the
    associate is called for it. assignment_specific_instructions: what to do;
    principal_provided_context_for_assignment is another name of it.
    shared_context_for_all_assignments: instead of that of the whole call.
    inherit_messages_from: modules whose conversations the associate is shown.
    inherit_deliverables_from: modules whose last results it is shown.
    """

    module_id_to_assign: str
    agent_profile_logical_name: str
    assigned_role_name: str = ""
    assignment_specific_instructions: Any = ""
    principal_provided_context_for_assignment: Any = ""
    shared_context_for_all_assignments: Any = ""
    inherit_messages_from: tuple[str, ...] = ()
    inherit_deliverables_from: tuple[str, ...] = ()


INSTRUCTIONS = "assignment_specific_instructions"
SHARED = "shared_context_for_all_assignments"
EITHER: Mapping[str, str] = {
    INSTRUCTIONS: "give it, or principal_provided_context_for_assignment",
    SHARED: "give it to the whole call, or to each assignment",
}
"""Keys of an assignment that have two places; whether one is given is known when both have been read."""
_MODULES = list[str]
_ASSIGNMENT = (
    ToolParameter("module_id_to_assign", str, "The module, such as WM_1.", True),
    ToolParameter("agent_profile_logical_name", str, "The profile of the associate that does it.", True),
    ToolParameter(
        "assigned_role_name", str, "What the associate is called for it, such as Market Researcher."
    ),
    ToolParameter(INSTRUCTIONS, str, "What to do."),
    ToolParameter("inherit_messages_from", _MODULES, "Modules whose conversations the associate is shown."),
    ToolParameter(
        "inherit_deliverables_from", _MODULES, "Modules whose last results the associate is shown."
    ),
    ToolParameter("principal_provided_context_for_assignment", str, f"Another name of {INSTRUCTIONS}."),
    ToolParameter(SHARED, str, "What this one must know, instead of what the whole call says."),
)
_FIXED = (
    "module_id_to_assign", "agent_profile_logical_name", "assigned_role_name", "inherit_messages_from",
    "inherit_deliverables_from",
)  # fmt: skip
MANAGE = "manage_work_modules"
"""The tool that changes the team's plan."""
BRIEFING = "initial_briefing_for_principal"
CONFIRMED = "confirmed_associate_profiles_details_list"
DIRECTIVES = "new_directives_for_iteration"
_LAUNCH = (
    ToolParameter("briefing", str, "What it should know beside the question and the plan."),
    ToolParameter(
        BRIEFING, dict[str, Any] | str, "What is asked, your notes, the language: the start of its work."
    ),
    ToolParameter(CONFIRMED, list[str], "Names of the associates that it should give work to."),
    ToolParameter(DIRECTIVES, dict[str, Any] | str, "What changes: user_query_adjustment, additional_notes."),
)


class DirectivePayload(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the principal is told, as the user would say it; the task that is meant; notes for it alone.

    user_facing_message is another name of user_facing_message_for_principal.
    """

    user_facing_message_for_principal: str = ""
    user_facing_message: str = ""
    target_task_id: str = ""
    internal_notes_for_principal_llm: str = ""


def _never(name: str) -> ToolError:
    return ToolError(f"{name} changes the state of a team of profiles; it can only be used in one")


@tool(effect="read")
async def manage_work_modules(actions: list[ModuleAction]) -> str:
    """Plan the team's work: create modules, change them, set their status. All of the actions, or none.

    Args:
        actions: The changes, in order.
    """
    raise _never("manage_work_modules")


@tool(effect="read", finishes=True)
async def finish_flow(summary: str = "", reason: str = "") -> str:
    """End your task and hand back its result.

    Args:
        summary: The result; without one, the report or summary that you wrote, or else your last text.
        reason: Why it ends; the result when there is no text at all.
    """
    raise _never("finish_flow")


@tool(effect="read")
async def generate_message_summary(current_associate_findings: str = "", focus: str = "") -> str:
    """Get instructions for the summary of your work; follow them in your next reply.

    Args:
        current_associate_findings: What you have found.
        focus: What the summary is about above all.
    """
    raise _never("generate_message_summary")


@tool(effect="read")
async def generate_markdown_report(
    principal_final_synthesis: str = "", title: str = "", audience: str = ""
) -> str:
    """Get instructions for a Markdown report on the team's work; follow them in your next reply.

    Args:
        principal_final_synthesis: What all results come to, and how the report should be built.
        title: The title of the report.
        audience: Who will read it.
    """
    raise _never("generate_markdown_report")


@tool(effect="read", name="GetPrincipalStatusSummaryTool")
async def principal_status() -> str:
    """See what the principal is doing, and how far the modules are."""
    raise _never("GetPrincipalStatusSummaryTool")


@tool(effect="read", name="SendDirectiveToPrincipalTool")
async def send_directive(
    directive_type: DirectiveType, payload: DirectivePayload | None = None, content: str = ""
) -> str:
    """Tell the principal something while it works; it reads it before its next step.

    Args:
        directive_type: What kind of word it is.
        payload: What it is told.
        content: What it is told, in one text, instead of the payload.
    """
    raise _never("SendDirectiveToPrincipalTool")


def dispatch_tool(protocol: Protocol | None = None) -> Tool:
    """The tool that gives out work; what the protocol wants to be said joins each assignment."""
    said = declared(protocol.context_parameters) if protocol is not None else []
    eased = [replace(each, required=each.required and each.name not in EITHER) for each in said]
    item = object_of(merged(_ASSIGNMENT, eased, _FIXED), "Assignment")
    required = [each.name for each in said if each.required and each.name == SHARED]
    return _offered(
        "dispatch_submodules",
        "Have associates work on modules, all at the same time, and wait for their results.",
        [
            ToolParameter("assignments", list[item], "Who does what, each module once.", True),  # type: ignore[valid-type]
            ToolParameter(
                SHARED,
                str,
                "What all of them must know." + (f" Required: {EITHER[SHARED]}." if required else ""),
            ),
            ToolParameter(
                "tool_name", Literal["dispatch_submodules"], "The name of this tool; may be left out."
            ),
        ],
    )


def launch_tool(protocol: Protocol | None = None) -> Tool:
    """The tool that starts the principal; what the protocol wants to be said joins its parameters."""
    said = declared(protocol.context_parameters) if protocol is not None else []
    modes = "Whether it begins anew (the default) or knows what it did before."
    force = "Whether one that works already is stopped first; else it is left alone."
    own = (
        ToolParameter("iteration_mode", IterationMode, modes),
        ToolParameter("force_terminate_and_relaunch", bool, force),
        *_LAUNCH,
    )
    fixed = ("iteration_mode", "force_terminate_and_relaunch", CONFIRMED)
    return _offered(
        "LaunchPrincipalExecutionTool",
        "Have the principal carry out the plan. It works in the background; you are told when it has ended.",
        merged(own, said, fixed),
    )


class _LeftOut:
    """The default of a parameter that is not there when it was not given."""


def _offered(name: str, says: str, parameters: Sequence[ToolParameter]) -> Tool:
    """A tool with these parameters."""

    async def never(**given: Any) -> str:
        raise _never(name)

    never.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=Annotated[each.type, each.says],
                default=inspect.Parameter.empty if each.required else _LeftOut(),
            )
            for each in parameters
        ]
    )
    return tool(effect="read", name=name, description=says)(never)


TOOLS: Mapping[str, Tool] = {
    each.name: each
    for each in (
        manage_work_modules, dispatch_tool(), finish_flow, generate_message_summary,
        generate_markdown_report, launch_tool(), principal_status, send_directive,
    )
}  # fmt: skip
_MADE: Mapping[str, Callable[[Protocol], Tool]] = {
    "dispatch_submodules": dispatch_tool,
    "LaunchPrincipalExecutionTool": launch_tool,
}


def with_protocol(given: Tool, protocol: Protocol | None) -> Tool:
    """The tool with what a handover protocol wants to be said; a tool of another kind as it is."""
    make = _MADE.get(given.name)
    return make(protocol) if make is not None and protocol is not None else given
