"""Answers of people: whether one fits what was asked, and what it then binds."""

from __future__ import annotations

from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import VERDICTS, ApprovalEffect, HumanInput, LimitEffect, QuestionEffect
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.team.compiled import CompiledTeam, at_work
from antiphon.values.form import RESULT_AND_REASON, fitted
from antiphon.values.schema.arguments import Invalid


def deadline_of(run: RunState, activation: Activation, asked: float | None = None) -> float | None:
    """When what is asked of people now ends without an answer: as asked, or as the limits say, if earlier."""
    found = asked
    for scope in activation.scopes:
        seconds = scope.limits.answer_seconds
        if seconds is not None and (found is None or run.at + seconds < found):
            found = run.at + seconds
    return found


def unanswered(opened: OpenEffect) -> str:
    """Why something that people were asked ended at its deadline."""
    seconds = max((getattr(opened.detail, "deadline", None) or 0.0) - opened.since, 0.0)
    return f"nobody answered within {seconds:,.0f} s; go on without it"


def check_answer(
    run: RunState, team: CompiledTeam, opened: OpenEffect, content: str, arguments: str = "", at: float = 0.0,
    reason: str = "",
) -> tuple[str, str] | Invalid:  # fmt: skip
    """An answer as it binds: the content, and of an approval the arguments as canonical JSON.

    arguments: as edited; empty for those that were shown. at: the time, Unix seconds. reason: of an outside
    tool that failed, why. Invalid: why it is no answer, so that the question stays.
    """
    detail = opened.detail
    if not isinstance(detail, HumanInput):
        return Invalid(f"{opened.id} is not an open question")
    if detail.deadline is not None and at >= detail.deadline:
        return Invalid(f"the answer comes too late: {unanswered(opened).partition(';')[0]}")
    if type(detail) is QuestionEffect:
        if arguments:
            return Invalid(
                "a question is answered by its content; arguments come with a tool's approval only"
            )
        if detail.tool and reason:
            return Invalid(RESULT_AND_REASON) if content else ("", "")
        try:
            return fitted(content, detail.options, detail.schema), ""
        except ValueError as error:
            return Invalid(str(error))
    if content not in VERDICTS:
        return Invalid(f"an approval is answered yes, no or always; got {content!r:.80}")
    if type(detail) is not ApprovalEffect:
        if type(detail) is LimitEffect and detail.joins:
            return Invalid(f"{opened.id} joins the question {detail.joins}; answer that")
        if arguments:
            return Invalid("a higher limit has no arguments; they come with a tool's approval only")
        return content, ""
    return _ruled(run, team, opened, detail, content, arguments)


def _ruled(
    run: RunState, team: CompiledTeam, opened: OpenEffect, detail: ApprovalEffect, content: str,
    arguments: str,
) -> tuple[str, str] | Invalid:  # fmt: skip
    # An answer binds the arguments that were shown, whatever the tool would make of them later.
    if not arguments:
        return content, detail.arguments
    if content == "no":
        return Invalid("arguments come with `yes` or `always`: what is not allowed is not run with others")
    activation = run.activations[opened.activation]
    member = team.members.get(activation.agent)
    tool = at_work(member, activation).tools.get(detail.name) if member is not None else None
    if tool is None or tool.digest != detail.digest:
        # Whatever it would be run with: it is not the tool that was asked for, and so will be refused.
        return content, arguments
    bound = tool.revalidate(arguments)
    return bound if isinstance(bound, Invalid) else (content, bound)
