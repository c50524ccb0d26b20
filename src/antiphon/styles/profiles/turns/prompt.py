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
from antiphon.values.tool.toolset import Toolset


def instructions(
    profile: Profile, tools: Sequence[Tool], toolsets: Mapping[str, str], provided: Sequence[Toolset] = ()
) -> str:
    """The segments that never change, joined by blank lines. toolsets: of each tool, by name. provided:
    those whose tools come and go, so that only their names are told here."""
    told = [f"- {each.name} ({toolsets.get(each.name, each.name)}): {each.description}" for each in tools]
    told += [f"- {', '.join(each.only) or 'all tools'} of {each.name}" for each in provided]
    parts = [_static(each, profile, told) for each in profile.segments if not is_dynamic(each, profile)]
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


def _template(segment: Segment, profile: Profile) -> Template | None:
    return profile.text_definitions.get(segment.content_key) if segment.content_key else segment.content


def _segment(segment: Segment, view: RuleContext) -> str:
    """What a segment says now; of one that fails the model is told."""
    try:
        if segment.condition is not None and not holds(segment.condition, view.world):
            return ""
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
