"""Events of the loop: what one agent did, as a projection of its run's records.

    for event in loop_events(await conversation.records()): ...

The order within an iteration is the seed's: reasoning, text, then for each call its start, the call,
its result and its end; `FinalResponseEvent` closes a request. Times are Unix seconds, durations
milliseconds.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from antiphon import Attachment, Record, ToolCall
from antiphon.kernel.context.output_store import DONE
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    HistoryCompacted,
    PermissionDecided,
    TurnFinished,
    TurnStarted,
)

MARKER = "[Max Iterations Reached]"
"""What the answer begins with when the iterations are used up."""
NO_SUMMARY = f"{MARKER}\nThe task was stopped before it was done, and no summary of it could be made."


class TextEvent(Struct, frozen=True, tag="text"):
    """What the model said beside calls, or before it was told to go on."""

    content: str
    timestamp: float


class ReasoningEvent(Struct, frozen=True, tag="reasoning"):
    """What the model thought, where the provider tells."""

    content: str
    timestamp: float


class LlmRetryEvent(Struct, frozen=True, tag="llm.retry"):
    """A failed model call will be made again after `delay_ms`. `status`: as in HTTP, 0 for none."""

    provider: str
    failure_kind: str
    next_attempt: int
    max_attempts: int
    delay_ms: int
    delay_source: Literal["provider", "backoff"]
    status: int
    timestamp: float


class StepStartEvent(Struct, frozen=True, tag="step_start"):
    """A call is taken up; `step_number` counts from 1 in every iteration."""

    step_id: str
    title: str
    step_number: int
    timestamp: float


class ToolCallEvent(Struct, frozen=True, tag="tool_call"):
    """The call as the model wrote it. `args` is `{"_raw": text}` when that is no JSON object."""

    tool: str
    args: dict[str, Any]
    tool_call_id: str
    timestamp: float
    raw_args: str = ""


class PermissionPreviewEvent(Struct, frozen=True, tag="permission.preview"):
    """Somebody must allow the call first: `effect_id` is what to answer. `arguments`: JSON that binds."""

    tool: str
    arguments: str
    summary: str
    effect_id: str
    tool_call_id: str
    timestamp: float


class PermissionReadyEvent(Struct, frozen=True, tag="permission.ready"):
    """The call was ruled on."""

    tool: str
    allowed: bool
    tool_call_id: str
    timestamp: float


class ToolResultEvent(Struct, frozen=True, tag="tool_result"):
    """What the model is told of a call; files are shown as `[image]`, `[document]` and the like."""

    tool: str
    result: str
    tool_call_id: str
    timestamp: float
    is_error: bool = False


class StepCompleteEvent(Struct, frozen=True, tag="step_complete"):
    """A call is over."""

    step_id: str
    status: Literal["completed", "error"]
    duration_ms: int
    timestamp: float


class CompactionStartEvent(Struct, frozen=True, tag="compaction_start"):
    """The model is asked to sum the conversation up."""

    timestamp: float


class CompactionCompleteEvent(Struct, frozen=True, tag="compaction_complete"):
    """It has been; without `compacted` the conversation stayed as it was."""

    compacted: bool
    timestamp: float


class HiddenUserMessageEvent(Struct, frozen=True, tag="hidden_user_message"):
    """Something the model was told in the user's place: to go on, or what was wrong."""

    content: str
    timestamp: float


class FinalResponseEvent(Struct, frozen=True, tag="final"):
    """The answer to the request."""

    content: str
    timestamp: float


LoopEvent = (
    TextEvent | ReasoningEvent | LlmRetryEvent | StepStartEvent | ToolCallEvent | PermissionPreviewEvent
    | PermissionReadyEvent | ToolResultEvent | StepCompleteEvent | CompactionStartEvent
    | CompactionCompleteEvent | HiddenUserMessageEvent | FinalResponseEvent
)  # fmt: skip


class _Step(Struct):
    """A call under way."""

    call: ToolCall
    number: int
    since: float
    arguments: str = ""


class Projection(Struct):
    """Reads records in order and says what each means. max_attempts: of one model, for `llm.retry`."""

    max_attempts: int = 3
    calls: dict[str, ToolCall] = field(default_factory=dict)
    steps: dict[str, _Step] = field(default_factory=dict)
    models: dict[str, EffectStarted] = field(default_factory=dict)
    failure: EffectFinished | None = None
    attempts: int = 0
    asked: str = ""
    text: str = ""
    summary: str | None = None

    def take(self, record: Record) -> Iterator[LoopEvent]:
        """The events of the next record."""
        event, at = record.event, record.at
        if isinstance(event, TurnStarted) and event.activation:
            self.attempts, self.text, self.summary = 0, "", None
            self.calls.clear()
        elif isinstance(event, EffectStarted):
            yield from self._started(event, at)
        elif isinstance(event, EffectFinished):
            yield from self._finished(event, at)
        elif isinstance(event, PermissionDecided) and event.id in self.steps:
            step = self.steps[event.id]
            yield PermissionReadyEvent(step.call.name, event.allowed, step.call.id, at)
        elif isinstance(event, HistoryCompacted) and not event.trimmed:
            yield CompactionCompleteEvent(bool(event.retain or event.summary), at)
        elif isinstance(event, TurnFinished) and event.activation:
            if event.more and self.text:
                yield TextEvent(self.text, at)
            self.text = ""
            if event.nudge:
                yield HiddenUserMessageEvent(event.nudge, at)

    def _started(self, event: EffectStarted, at: float) -> Iterator[LoopEvent]:
        if event.kind == "model":
            self.models[event.id] = event
            if event.purpose == "compact":
                yield CompactionStartEvent(at)
            elif event.purpose == "":
                self.attempts = self.attempts + 1 if self.asked == event.name else 1
                self.asked = event.name
        elif event.purpose == "retry" and self.failure is not None:
            failure = self.failure
            yield LlmRetryEvent(
                self.asked,
                failure.why.partition(":")[0],
                self.attempts + 1,
                self.max_attempts,
                round((event.until - at) * 1000),
                "backoff" if failure.retry_after is None else "provider",
                failure.status,
                at,
            )
        elif event.purpose == "approval":
            step = yield from self._step(event.id.removesuffix("?"), at)
            yield PermissionPreviewEvent(
                step.call.name, event.arguments, event.text, event.id, step.call.id, at
            )
        elif event.id in self.calls:
            step = yield from self._step(event.id, at)
            step.since = at

    def _step(self, effect_id: str, at: float) -> Generator[LoopEvent, None, _Step]:
        known = self.steps.get(effect_id)
        if known is not None:
            return known
        number = int(effect_id.rpartition(".c")[2])
        call = self.calls[effect_id]
        step = self.steps[effect_id] = _Step(call, number, at)
        yield StepStartEvent(effect_id, call.name, number, at)
        args = arguments_of(call.arguments)
        yield ToolCallEvent(call.name, args, call.id, at, call.arguments if "_raw" in args else "")
        return step

    def _finished(self, event: EffectFinished, at: float) -> Iterator[LoopEvent]:
        model = self.models.pop(event.id, None)
        if model is not None:
            yield from self._replied(model, event, at)
        elif event.id.startswith("0/"):
            yield from self._answered(event, at)
        elif event.id in self.calls and event.outcome != "skipped":
            step = yield from self._step(event.id, at)
            del self.steps[event.id]
            failed = event.outcome != "completed"
            yield ToolResultEvent(step.call.name, shown(event), step.call.id, at, failed)
            took = max(round((at - step.since) * 1000), 0)
            yield StepCompleteEvent(event.id, "error" if failed else "completed", took, at)

    def _replied(self, model: EffectStarted, event: EffectFinished, at: float) -> Iterator[LoopEvent]:
        reply = event.reply
        if model.purpose == "final":
            self.summary = reply.content.strip() if reply is not None else ""
        elif model.purpose == "" and reply is None:
            self.failure = event
        elif model.purpose == "" and reply is not None:
            place = event.id.rpartition(".")[0]
            self.calls = {f"{place}.c{index}": call for index, call in enumerate(reply.calls, 1)}
            if reply.reasoning:
                yield ReasoningEvent(reply.reasoning, at)
            if reply.calls and reply.content:
                yield TextEvent(reply.content, at)
            else:
                self.text = reply.content

    def _answered(self, event: EffectFinished, at: float) -> Iterator[LoopEvent]:
        if event.outcome == "completed":
            yield FinalResponseEvent(event.content.strip(), at)
        elif self.summary is not None and event.outcome == "limit":
            yield FinalResponseEvent(f"{MARKER}\n{self.summary}" if self.summary else NO_SUMMARY, at)
        elif event.outcome not in ("cancelled", "failed"):
            said = event.content.strip()
            yield FinalResponseEvent("\n\n".join(filter(None, (said, f"[{event.outcome}] {event.why}"))), at)


def loop_events(records: Iterable[Record], *, max_attempts: int = 3) -> Iterator[LoopEvent]:
    """The events of a run's records, from the first on."""
    projection = Projection(max_attempts)
    for record in records:
        yield from projection.take(record)


def shown(event: EffectFinished) -> str:
    """A call's end as a person is shown it: the text the model gets, files by their kind."""
    text = event.content if event.outcome == "completed" else f"Error: {event.why}"
    if event.ends and event.outcome == "completed" and not text:
        text = DONE
    return text + "".join(map(_placeholder, event.attachments))


def _placeholder(file: Attachment) -> str:
    if file.media_type.startswith("image/"):
        return "[image]"
    return "[document]" if file.media_type == "application/pdf" else f"[other:{file.media_type}]"


def arguments_of(text: str) -> dict[str, Any]:
    """A call's arguments as JSON; `{"_raw": text}` when they are none."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text.strip() else {}
    except msgspec.DecodeError:
        return {"_raw": text}
