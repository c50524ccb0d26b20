"""Answers of people: whether one fits what was asked, and what it then binds."""

from __future__ import annotations

from antiphon.kernel.facts.activation import OpenEffect
from antiphon.kernel.facts.events import VERDICTS, ApprovalEffect, Ruling
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.team.compiled import CompiledTeam
from antiphon.schema.arguments import Invalid


def check_answer(
    run: RunState, team: CompiledTeam, opened: OpenEffect, content: str, arguments: str = ""
) -> tuple[str, str] | Invalid:
    """An answer as it binds: the content, and of an approval the arguments as canonical JSON.

    arguments: as edited; empty for those that were shown. Invalid: why it is no answer, so that the question
    stays.
    """
    detail = opened.detail
    if not isinstance(detail, Ruling):
        if arguments:
            return Invalid(
                "a question is answered by its content; arguments come with a tool's approval only"
            )
        return content, ""
    if content not in VERDICTS:
        return Invalid(f"an approval is answered yes, no or always; got {content!r:.80}")
    if type(detail) is not ApprovalEffect:
        if arguments:
            return Invalid("a higher limit has no arguments; they come with a tool's approval only")
        return content, ""
    # An answer binds the arguments that were shown, whatever the tool would make of them later.
    if not arguments:
        return content, detail.arguments
    if content == "no":
        return Invalid("arguments come with `yes` or `always`: what is not allowed is not run with others")
    member = team.members.get(run.activations[opened.activation].agent)
    tool = member.tools.get(detail.name) if member is not None else None
    if tool is None or tool.digest != detail.digest:
        # Whatever it would be run with: it is not the tool that was asked for, and so will be refused.
        return content, arguments
    bound = tool.revalidate(arguments)
    return bound if isinstance(bound, Invalid) else (content, bound)
