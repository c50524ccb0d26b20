"""Summary: a run in one line, for lists of runs. A cache: whoever folds the run gets the same."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from antiphon.kernel.facts.activation import OpenEffect
from antiphon.kernel.facts.events import ApprovalEffect, HumanInput, QuestionEffect
from antiphon.kernel.facts.state import RunState

TITLE = 120
"""Characters kept of the first message, and of a question."""
QUESTIONS = 3
"""Questions that are told; of more only the number."""
MODELS = 10
"""Models that are told."""


class AskedQuestion(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that a run asks a person."""

    id: str
    kind: Literal["question", "approval", "limit"]
    agent: str
    text: str = ""
    """The start of it."""
    tool: str = ""
    """Of an approval; of a question that is the call of an outside tool."""
    since: float = 0.0
    """Unix seconds."""


class RunSummary(Struct, frozen=True, gc=False, omit_defaults=True):
    """A run as it was when its record `seq` was the last one."""

    seq: int
    entry: str = ""
    """Whom the user asked last."""
    title: str = ""
    """The start of what was said."""
    state: Literal["open", "waiting", "idle", "closed"] = "idle"
    """`waiting`: a person must answer before an open request can go on."""
    outcome: str = ""
    """Of the request that ended last."""
    tokens: int = 0
    """Input and output."""
    nano_usd: int = 0
    unpriced: int = 0
    """Model calls whose cost is not known, and so not in `nano_usd`."""
    asked: int = 0
    """Questions, approvals and limits that wait for a person."""
    asked_since: float = 0.0
    """When the oldest of them was asked, Unix seconds."""
    questions: tuple[AskedQuestion, ...] = ()
    """The oldest of them, QUESTIONS at most."""
    activity: tuple[int, ...] = ()
    """Records in each span of time since the run began, 24 at most; empty before there was any."""
    activity_span: float = 0.0
    """Seconds of a span."""
    command: int | None = None
    """The newest command that was taken in; None in a summary of an earlier version."""
    models: tuple[str, ...] = ()
    """The names of the models that have answered, MODELS at most."""


def summary_of(run: RunState, seq: int) -> RunSummary:
    """The summary of a folded run."""
    # The user also tells and answers; only the message that a request's call carries opens it.
    asked = next((each.message for each in reversed(run.log) if each.message.id == each.request + ">"), None)
    user = run.activations.get(0)
    ended = list(user.done.values()) if user is not None else []
    asks = [each for each in run.open.values() if isinstance(each.detail, HumanInput)]
    busy: Literal["open", "waiting", "idle"] = "idle"
    if user is not None and user.open:
        busy = "waiting" if asks else "open"
    activity = run.totals.activity
    return RunSummary(
        seq,
        asked.receiver if asked is not None else "",
        asked.content[:TITLE] if asked is not None else "",
        "closed" if run.closed else busy,
        ended[-1].event.outcome if ended else "",
        sum(each.total for each in run.totals.usage.values()),
        run.totals.nano_usd,
        run.totals.unpriced,
        len(asks),
        min((each.since for each in asks), default=0.0),
        tuple(_question(run, each) for each in sorted(asks, key=_since)[:QUESTIONS]),
        tuple(activity.counts) if any(activity.counts) else (),
        activity.span if any(activity.counts) else 0.0,
        run.command,
        tuple(run.totals.usage)[:MODELS],
    )


def _since(opened: OpenEffect) -> float:
    return opened.since


def _question(run: RunState, opened: OpenEffect) -> AskedQuestion:
    detail, agent = opened.detail, run.activations[opened.activation].agent
    text = getattr(detail, "text", "")[:TITLE]
    if isinstance(detail, ApprovalEffect):
        return AskedQuestion(opened.id, "approval", agent, text, detail.name, opened.since)
    kind: Literal["question", "limit"] = "question" if isinstance(detail, QuestionEffect) else "limit"
    return AskedQuestion(opened.id, kind, agent, text, getattr(detail, "tool", ""), opened.since)


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(RunSummary).decode
