"""prompt: what an agent is told beside its conversation.

Segments that say the same in every turn are its instructions, which a provider may keep in its cache; the
others are made anew in each turn and stand after the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from antiphon import Tool
from antiphon.styles.profiles.conditions.expression import constant, holds
from antiphon.styles.profiles.conditions.grammar import ExpressionError
from antiphon.styles.profiles.files.profile import Profile, Segment
from antiphon.styles.profiles.files.template import Template
from antiphon.styles.profiles.turns.inbox import SYSTEM
from antiphon.styles.profiles.world.world import RuleContext
from antiphon.values.tool.offer import ToolOffer

MAX_TOLD = 8_000
"""Characters on the tools of one toolset; of one with more it is told how many there are."""


def tool_lines(tools: Sequence[Tool], toolsets: Mapping[str, str]) -> tuple[str, ...]:
    """A line on each of an agent's own tools. toolsets: of each tool, by name."""
    return tuple([_line(each, toolsets.get(each.name, each.name)) for each in tools])


def _line(tool: Tool | ToolOffer, toolset: str) -> str:
    return f"- {tool.name} ({toolset}): {tool.description}"


def instructions(profile: Profile, tools: Sequence[str]) -> str:
    """The segments that never change, joined by blank lines. tools: a line on each of the agent's own."""
    parts = [_static(each, profile, tools) for each in profile.segments if not is_dynamic(each, profile)]
    return "\n\n".join(part for part in parts if part.strip())


def is_dynamic(segment: Segment, profile: Profile) -> bool:
    """Whether a segment depends on what happens."""
    if segment.condition is not None and constant(segment.condition) is None:
        return True
    template = _template(segment, profile)
    return segment.type == "state_value" or (template is not None and bool(template.slots))


def dynamic_text(view: RuleContext) -> list[str]:
    """The segments that depend on what happens, as they are now, and what is said of the agent's bounds."""
    return [text for text in (_segment(each, view) for each in view.seat.segments) if text.strip()]


def _static(segment: Segment, profile: Profile, tools: Sequence[str]) -> str:
    if segment.condition is not None and not constant(segment.condition):
        return ""
    if segment.type == "tool_description":
        return "\n".join(["Your tools:", *tools]) if tools else ""
    template = _template(segment, profile)
    return template.text if segment.type == "static_text" and template is not None else ""


def _offered(view: RuleContext) -> list[str]:
    """What the agent's toolsets offer in this turn."""
    lines: list[str] = []
    for toolset in view.seat.provided:
        offered = view.context.toolsets.get(toolset.name, ())
        found = [
            _line(each, toolset.name) for each in offered if not toolset.only or each.name in toolset.only
        ]
        if sum(map(len, found)) > MAX_TOLD:
            found = [f"- {len(found):,} tools of {toolset.name}"]
        lines += found
    return lines


def _template(segment: Segment, profile: Profile) -> Template | None:
    return profile.text_definitions.get(segment.content_key) if segment.content_key else segment.content


def _segment(segment: Segment, view: RuleContext) -> str:
    """What a segment says now; of one that fails the model is told."""
    try:
        if segment.condition is not None and not holds(segment.condition, view.world):
            return ""
        if segment.type == "tool_description":
            own = view.seat.tools if is_dynamic(segment, view.seat.profile) else ()
            lines = [*own, *_offered(view)]
            return (
                "\n".join(["Your tools:" if own else "Your tools now, beside others:", *lines])
                if lines
                else ""
            )
        if segment.type == "static_text":
            template = _template(segment, view.seat.profile)
            return view.filled(template) if template is not None else ""
        value = view.at(segment.source_state_path)
        if value is None or value in ("", [], {}):
            return ""
        ingestor = view.seat.ingestors[segment.ingestor_id or "markdown_formatter"]
        return ingestor.write(value, segment.ingestor_params, view)
    except ExpressionError as error:
        said = str(error)
    except Exception as error:  # noqa: BLE001 - an ingestor is the user's own; the agent goes on
        said = f"{type(error).__name__}: {error}"
    return f"{SYSTEM}[error] The part {segment.id!r} of your instructions could not be made: {said}"
