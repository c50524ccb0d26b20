"""routing: what a call of one of this style's tools becomes. Other tools are run as ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from antiphon.errors import UserError
from antiphon.styles.profiles.conditions.grammar import ExpressionError
from antiphon.styles.profiles.turns.flow import leave
from antiphon.styles.profiles.work.dispatch import assign
from antiphon.styles.profiles.work.launch import directive, launch, status
from antiphon.styles.profiles.work.modules import ModuleAction, ModuleRejected, manage
from antiphon.styles.profiles.work.toolset import SHARED
from antiphon.styles.profiles.world.binding import ProfileBinding
from antiphon.styles.profiles.world.world import RuleContext, delivered
from antiphon.values.hooks import DirectResult, PlannedCall, TurnContext

SUMMARY = """Write the summary of your work now, as your next reply and without calling a tool:
- what was asked, in one sentence;
- what you found, with the source of every fact (file and line, or address);
- what is open or uncertain.
Write what the reader needs and nothing else.{focus} When it is written, end your task."""
REPORT = """Write the report now, as your next reply, in Markdown and without calling a tool:
- begin with `# {title}`;
- one section for each work module that has a result, in an order that tells a story;
- after every statement its source in brackets, as the associates gave it;
- end with `## Sources`: every source once, and `## Open questions` if there are any.
Take nothing in that no associate has reported.{audience}"""


def route(
    seat: ProfileBinding, context: TurnContext, name: str, arguments: str
) -> DirectResult | PlannedCall | None:
    """What a call with these arguments (canonical JSON) becomes; None runs the tool."""
    if name not in _ROUTES:
        return None
    given: dict[str, Any] = msgspec.json.decode(arguments)
    return _ROUTES[name](
        RuleContext(seat, context, {"type": name, "tool_name": name, "parameters": given}), given
    )


def _manage(view: RuleContext, given: Mapping[str, Any]) -> DirectResult:
    actions = msgspec.convert(given.get("actions", []), list[ModuleAction])
    next_id = int(view.team.values.get("_work_module_next_id", 1))
    try:
        plan = manage(view.team.values.get("work_modules", {}), next_id, actions, view.context.at)
    except ModuleRejected as error:
        return DirectResult(str(error), "failed", run_data={"_work_module_next_id": error.next_id})
    changed = {"work_modules": plan.modules, "_work_module_next_id": plan.next_id}
    return DirectResult("\n".join(plan.said) or "There was nothing to do.", run_data=changed)


def _dispatch(view: RuleContext, given: Mapping[str, Any]) -> DirectResult | PlannedCall:
    return assign(view, given.get("assignments", []), given.get(SHARED, ""))


def _finish(view: RuleContext, given: Mapping[str, Any]) -> DirectResult:
    reason = given.get("reason", "")
    said = given.get("summary") or delivered(view.context.messages) or reason
    if reason:
        view.private.put("finish_reason", reason)
    leave(view, said)
    return DirectResult(said, finishes=True, activation_data=view.private.changed, run_data=view.team.changed)


def _summary(view: RuleContext, given: Mapping[str, Any]) -> DirectResult:
    focus = given.get("focus", "")
    told = SUMMARY.replace("{focus}", f" Above all: {focus}." if focus else "")
    return DirectResult(_with(told, "What you have found", given.get("current_associate_findings", "")))


def _markdown(view: RuleContext, given: Mapping[str, Any]) -> DirectResult:
    title, audience = (
        given.get("title") or view.team.values.get("question") or "Report",
        given.get("audience", ""),
    )
    said = REPORT.replace("{audience}", f" It is for {audience}." if audience else "").replace(
        "{title}", title
    )
    return DirectResult(_with(said, "What you said it comes to", given.get("principal_final_synthesis", "")))


def _with(instructions: str, title: str, text: str) -> str:
    """Instructions, and after them what the agent itself has said already."""
    return f"{instructions}\n\n## {title}\n{text}" if text else instructions


def _launch(view: RuleContext, given: Mapping[str, Any]) -> DirectResult | PlannedCall:
    try:
        return launch(view, given)
    except (UserError, ExpressionError) as error:
        return DirectResult(f"the principal cannot be launched: {error}", "failed")


_ROUTES: Mapping[str, Callable[[RuleContext, Mapping[str, Any]], DirectResult | PlannedCall]] = {
    "manage_work_modules": _manage,
    "dispatch_submodules": _dispatch,
    "finish_flow": _finish,
    "generate_message_summary": _summary,
    "generate_markdown_report": _markdown,
    "LaunchPrincipalExecutionTool": _launch,
    "GetPrincipalStatusSummaryTool": lambda view, given: status(view),
    "SendDirectiveToPrincipalTool": lambda view, given: directive(
        view, given.get("directive_type", ""), given.get("content", ""), given.get("payload") or {}
    ),
}
