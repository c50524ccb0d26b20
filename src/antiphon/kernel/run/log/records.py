"""Log records of a run, for who operates it: made from its events, in this one place.

The logger `antiphon.run` has a record for whatever an operator looks for, each with `run_id`, `agent` and
`effect_id`, the last two empty where there is none. They hold names, kinds and numbers: no text of a
message, a model, a tool or a person, and so no secret. What fails in user code is in `failures`.

A run asks once, when it is opened, whether anybody listens: where nobody does, its events are not looked at.
A record is written when its event is: before it is known to be durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from antiphon.errors import AntiphonError, JournalError
from antiphon.journal.files.notice import fields
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CallEffect,
    CancelRequested,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    Event,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    QuestionEffect,
    RoomEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    TimerEffect,
    ToolEffect,
    ToolsetOffered,
    TranscriptCompacted,
)
from antiphon.kernel.facts.records import ActivationIndex, whose
from antiphon.kernel.facts.state import RunState
from antiphon.values.codec import visible

LOG = logging.getLogger("antiphon.run")
INFO, WARNING, ERROR = logging.INFO, logging.WARNING, logging.ERROR
SHOWN = 200
"""Characters of a name in a record."""
_EXPECTED = ("completed", "cancelled", "limit")
"""Ends of a request that its user chose: rounds and turns are often how long something is to go on."""


def say(
    level: int, text: str, run_id: str, *given: object, agent: str = "", effect_id: str = "",
    error: BaseException | None = None, without_content: str = "",
) -> None:  # fmt: skip
    """Write a record, if anybody listens; `text` takes the run's id first. error: told with its traceback.

    without_content: the record's field of that name, for logs that must not hold what an error says.
    """
    if LOG.hasHandlers():
        shown = [_line(each) if isinstance(each, str) else each for each in (run_id, *given)]
        about = fields(run_id, _line(agent), _line(effect_id))
        if without_content:
            about["without_content"] = without_content
        LOG.log(level, text, *shown, extra=about, exc_info=error)


def _line(text: str) -> str:
    """A name as one line: what stands in it may be an outsider's."""
    return visible(text[:SHOWN]).replace("\n", "␊")


def suspended(run_id: str, error: BaseException) -> None:
    """A run stopped without an outcome: its lease is lost, its journal failed, or a rule has a fault."""
    # Only a journal's own words are known to hold nothing that anybody said.
    text = f": {error}" if isinstance(error, JournalError) else ""
    level, fault = (WARNING, None) if isinstance(error, AntiphonError) else (ERROR, error)
    say(level, "Run %s is suspended: %s%s", run_id, type(error).__name__, text, error=fault)


def left(state: RunState, run_id: str) -> None:
    """A run was given up by its owner; nothing of one that never began."""
    user = state.activations.get(0)
    if user is not None:
        say(INFO, "Run %s was left, requests open: %d", run_id, len(user.open))


def still_runs(run_id: str, what: Sequence[str]) -> None:
    """A run was left, and something of it goes on."""
    if what:
        text = "Run %s was left, and nothing can stop what still runs of it: %s"
        say(WARNING, text, run_id, ", ".join(what))


def gave_up_thread(run_id: str, tool: str) -> None:
    """A tool's function is not waited for any more, and keeps its thread."""
    say(WARNING, "Run %s: %s still runs in a thread that nothing can stop", run_id, tool)


class RunLog:
    """The records of one run while one owner has it; made where `LOG` has handlers."""

    def __init__(self, state: RunState, run_id: str, index: ActivationIndex) -> None:
        self._run_id, self._index, self._state = run_id, index, state
        self._open = {each.id: each.detail for each in state.open.values() if type(each.detail) in _NAMED}

    def note(self, events: Sequence[Event]) -> None:
        """Tell what an operator looks for; the events have been applied, and calls been learned."""
        for event in events:
            tell = _TOLD.get(type(event))
            if tell is not None:
                tell(self, event)

    def _say(self, level: int, event: Event, text: str, *given: object, agent: str = "") -> None:
        number = whose(event)
        who = agent or (self._index.agent(number) if number else "")
        effect_id = getattr(event, "id", "") or getattr(event, "effect", "")
        say(level, f"Run %s: {text}", self._run_id, *given, agent=who, effect_id=effect_id)

    # -- the run ------------------------------------------------------------------------------

    def _started(self, event: RunStarted) -> None:
        self._say(INFO, event, "started")

    def _resumed(self, event: RunResumed) -> None:
        self._say(INFO, event, "resumed, effects in flight: %d", len(self._state.open))

    def _drained(self, event: DrainStarted) -> None:
        self._say(INFO, event, "is drained, effects in flight: %d", len(self._state.open))

    def _toolset(self, event: ToolsetOffered) -> None:
        # Why is its provider's word, which `antiphon.toolsets` says.
        level, state = (WARNING, "down") if event.reason else (INFO, "up")
        self._say(level, event, "toolset %s is %s", event.name, state)

    def _closed(self, event: RunClosed) -> None:
        self._say(INFO, event, "closed")

    def _cancel(self, event: CancelRequested) -> None:
        self._say(INFO, event, "cancel of %s was requested", event.target or "every request")

    def _message(self, event: MessagePosted) -> None:
        if event.begins:
            name = event.message.receiver
            self._say(INFO, event, "request %s of %s began", event.begins, name, agent=name)
        elif event.dead_letter and event.command:
            # Why is in the journal alone: it may quote what somebody answered.
            self._say(WARNING, event, "command %d was refused", event.command)
        elif event.dead_letter:
            self._say(INFO, event, "a message could not be delivered: %s", event.dead_letter)

    def _compacted(self, event: TranscriptCompacted) -> None:
        if event.trimmed:
            self._say(INFO, event, "old tool results are shown as handles only: %d", event.trimmed)
        elif event.summary or event.retain or event.next:
            self._say(INFO, event, "the conversation was compacted")
        else:
            self._say(WARNING, event, "the conversation was not compacted, the summary was of no use")

    # -- effects ------------------------------------------------------------------------------

    def _effect(self, event: EffectStarted) -> None:
        detail = event.detail
        if type(detail) in _NAMED:
            self._open[event.id] = detail
        tell = _BEGUN.get(type(detail))
        if tell is not None:
            tell(self, event, detail)

    def _call(self, event: EffectStarted, detail: CallEffect) -> None:
        if detail.breach:
            self._say(WARNING, event, "%s, %s goes on", detail.breach, detail.agent)
        elif not whose(event):
            text = "request %s of %s waits for those before it" if detail.queued else "request %s of %s began"
            self._say(INFO, event, text, event.id, detail.agent, agent=detail.agent)

    def _timer(self, event: EffectStarted, detail: TimerEffect) -> None:
        # A deadline has no text.
        if detail.text:
            wait = max(detail.due_at - self._state.at, 0.0)
            self._say(INFO, event, "the model is asked again in %.1f s, %s", wait, detail.text)

    def _model(self, event: EffectStarted, detail: ModelEffect) -> None:
        if detail.purpose == "final":
            self._say(WARNING, event, "a limit is reached, %s is asked for a last word", detail.model)
        elif detail.fallback:
            self._say(INFO, event, "%s is asked instead of the first model", detail.model)

    def _room(self, event: EffectStarted, detail: RoomEffect) -> None:
        self._say(INFO, event, "waits for room in a budget, tokens: %d", detail.tokens)

    def _person(self, event: EffectStarted, detail: ApprovalEffect | QuestionEffect) -> None:
        self._say(INFO, event, "a person is asked")

    def _limit(self, event: EffectStarted, detail: LimitEffect) -> None:
        if detail.joins:
            self._say(INFO, event, "a limit is reached, waits for the answer to %s", detail.joins)
        else:
            self._say(WARNING, event, "a limit is reached, a person is asked whether to go on")

    def _finished(self, event: EffectFinished) -> None:
        detail, outcome = self._open.pop(event.id, None), event.outcome
        if outcome == "denied":
            self._say(INFO, event, "a call was denied")
        elif type(detail) is ToolEffect:
            # An exception is in the log already.
            if outcome in ("unknown", "interrupted"):
                self._say(WARNING, event, "%s may or may not have taken effect", detail.name)
            elif outcome == "failed" and not event.trace:
                self._say(INFO, event, "%s failed", detail.name)
        elif type(detail) is CallEffect and not whose(event):
            level = INFO if outcome in _EXPECTED else WARNING
            self._say(
                level,
                event,
                "request %s of %s ended: %s",
                event.id,
                detail.agent,
                outcome,
                agent=detail.agent,
            )
        elif type(detail) is CallEffect and outcome != "completed":
            self._say(INFO, event, "%s ended: %s", detail.agent, outcome, agent=detail.agent)


_NAMED = frozenset({CallEffect, ToolEffect})
"""Effects whose end is told by their name."""
_TOLD: Mapping[type, Callable[[RunLog, Any], None]] = {
    RunStarted: RunLog._started,
    RunResumed: RunLog._resumed,
    DrainStarted: RunLog._drained,
    ToolsetOffered: RunLog._toolset,
    RunClosed: RunLog._closed,
    CancelRequested: RunLog._cancel,
    MessagePosted: RunLog._message,
    TranscriptCompacted: RunLog._compacted,
    EffectStarted: RunLog._effect,
    EffectFinished: RunLog._finished,
}
_BEGUN: Mapping[type, Callable[[RunLog, Any, Any], None]] = {
    CallEffect: RunLog._call,
    TimerEffect: RunLog._timer,
    ModelEffect: RunLog._model,
    RoomEffect: RunLog._room,
    ApprovalEffect: RunLog._person,
    QuestionEffect: RunLog._person,
    LimitEffect: RunLog._limit,
}
