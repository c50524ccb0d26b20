"""How a call of a tool ends: with files that it attached and changed, undone, or in doubt."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.kernel.facts.activation import OpenEffect
from antiphon.kernel.facts.events import EffectFinished, Event, FilesChanged, ToolEffect
from antiphon.kernel.run.actions import Given
from antiphon.kernel.run.tools.unshown import unshown
from antiphon.values.message import Attachment, ToolResult
from antiphon.values.tool import ToolContext

ToolEnd = EffectFinished | Given
"""How a call of a tool ended; with the files that it changed, what records both."""


def ended(opened: OpenEffect, name: str, found: ToolResult, known: ToolContext | None) -> ToolEnd:
    """The end of a call that failed by its own word, that changed files or gave some."""
    effect_id, detail = opened.id, opened.detail
    finishes = found.finishes or (type(detail) is ToolEffect and detail.finishes)
    # With an answer they go to whoever asked, and to no model.
    files = found.attachments if finishes and not found.is_error else unshown(found.attachments)
    if found.is_error:
        end = EffectFinished(
            effect_id, "failed", attachments=files, reason=f"[{name}] {found.content}",
            labels=found.labels,
        )  # fmt: skip
    else:
        end = EffectFinished(
            effect_id, content=found.content, attachments=files, finishes=found.finishes,
            files=attached(known), labels=found.labels,
        )  # fmt: skip
    return with_changes(end, found)


def with_changes(end: EffectFinished, found: ToolResult) -> ToolEnd:
    """The end of a call with the files that it changed."""
    if not found.changes:
        return end

    def given(emit: Callable[[Event], None]) -> None:
        emit(FilesChanged(end.id, found.changes))
        emit(end)

    return given


def attached(context: ToolContext | None) -> tuple[Attachment, ...]:
    """What a call attached that has completed."""
    return () if context is None else tuple(context.attached)


def not_begun(opened: OpenEffect, reason: str) -> EffectFinished:
    """The end of an acting effect that did not begin here; before a crash it may have."""
    if opened.crashes:
        return in_doubt(opened.id, f"{reason} once more, after a crash")
    return EffectFinished(opened.id, "failed", reason=reason)


def left_undone(effect_id: str, reason: str) -> EffectFinished:
    """The end of an acting effect that began nowhere: an earlier owner left before."""
    return EffectFinished(effect_id, "failed", reason=f"{reason}; it was not done")


def in_doubt(effect_id: str, reason: str) -> EffectFinished:
    """The end of an acting effect of which nobody can say whether it took place."""
    return EffectFinished(effect_id, "unknown", reason=f"{reason}; it may or may not have taken effect")
