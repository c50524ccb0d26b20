"""vocabulary: the words profiles are written in, as the documented generation has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SOURCES: Mapping[str, int] = {
    "TOOL_RESULT": 0,
    "OBSERVER_FAILURE": 5,
    "AGENT_STARTUP_BRIEFING": 8,
    "PARTNER_DIRECTIVE": 10,
    "PRINCIPAL_COMPLETED": 10,
    "INTERNAL_DIRECTIVE": 15,
    "SELF_REFLECTION_PROMPT": 20,
    "WORK_MODULES_STATUS_UPDATE": 90,
    "PRINCIPAL_ACTIVITY_UPDATE": 90,
    "ALL_WORK_COMPLETED_PROMPT": 99,
    "FIM_INSTRUCTION": 99,
    "JSON_HISTORY_FOR_LLM": 99,
    "ORIGINAL_QUESTION": 99,
    "PROFILES_UPDATED_NOTIFICATION": 99,
    "TOOL_INPUTS_BRIEFING": 99,
    "USER_PROMPT": 100,
}
"""Where inbox items come from, and their priority: the lowest is taken first."""
OTHER_SOURCE = 99
"""The priority of a source of one's own."""

INGESTORS: Sequence[str] = (
    "available_associates",
    "dispatch_result",
    "generic_message",
    "json_history",
    "markdown_formatter",
    "observer_failure",
    "principal_history_summary",
    "protocol_aware",
    "tagged_content",
    "templated_content",
    "tool_result",
    "user_prompt",
    "work_modules",
)
"""What turns a payload into text; files may say `_ingestor` after each name."""

INGESTOR_PARAMS: Mapping[str, Sequence[str]] = {
    "available_associates": ("title",),
    "dispatch_result": (),
    "generic_message": ("content_template",),
    "json_history": ("title",),
    "markdown_formatter": ("title", "key_renames", "exclude_keys"),
    "observer_failure": (),
    "principal_history_summary": ("title", "max_messages"),
    "protocol_aware": ("title", "key_renames", "exclude_keys"),
    "tagged_content": ("tag", "wrapper_tags"),
    "templated_content": ("content_key", "wrapper_tags"),
    "tool_result": (),
    "user_prompt": (),
    "work_modules": ("title",),
}
"""What each ingestor can be told."""
STRATEGY_PARAMS: Sequence[str] = ("role", "is_persistent_in_memory")
"""What an inbox strategy can be told, whatever its ingestor."""

TOOLSETS: Mapping[str, Sequence[str]] = {
    "planning_tools": ("manage_work_modules", "dispatch_submodules"),
    "reporting_tools": ("generate_markdown_report",),
    "flow_control_end": ("finish_flow",),
    "flow_control_summary": ("generate_message_summary",),
    "monitoring_tools": ("GetPrincipalStatusSummaryTool",),
    "intervention_tools": ("SendDirectiveToPrincipalTool",),
    "LaunchPrincipalExecutionTool": ("LaunchPrincipalExecutionTool",),
}
"""The toolsets of this style, and the tools in each. A tool without a toolset is one of its own."""
GIVEN: Mapping[str, Sequence[str]] = {
    "rag_tools": ("rag_query", "list_rag_sources"),
    "file_system_tools": ("write_file", "review_workspace_files", "read_lines"),
    "jina_search_and_visit": ("web_search", "visit_url"),
}
"""Toolsets that come with Antiphon but need a folder, sources or a search: the command line gives them,
code does."""
