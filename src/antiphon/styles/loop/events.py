"""Events of the loop: what one agent did, as a projection of its run's records.

    for event in loop_events(await conversation.records()): ...

The order within an iteration is prescribed: reasoning, text, then for each call its start, the call,
its result and its end; `FinalResponseEvent` closes a request. Times are Unix seconds, durations
milliseconds.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from antiphon import Attachment, Record, ToolCall
from antiphon.kernel.context.output_store import DONE
from antiphon.kernel.facts import ids
from antiphon.values.model import Reply
from antiphon.view import RunTree
from antiphon.view.changes import (
    Change,
    DecisionMade,
    EffectEnd,
    EffectStart,
    TranscriptChange,
    TurnEnd,
    TurnStart,
)
from antiphon.view.nodes import ActivationNode, EffectNode

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


class Projection:
    """Says what each change of a run's tree means to a loop. max_attempts: of one model, for `llm.retry`."""

    def __init__(self, max_attempts: int = 3) -> None:
        self._max_attempts = max_attempts
        self._steps: dict[str, _Step] = {}
        self._model, self._attempts = "", 0
        self._text = ""
        self._summary: str | None = None

    def take(self, change: Change, at: float) -> Iterator[LoopEvent]:
        """The events of the next change."""
        match change:
            case TurnStart(activation) if activation.id:
                self._attempts, self._text, self._summary = 0, "", None
            case EffectStart(activation, effect):
                yield from self._started(activation, effect, at)
            case EffectEnd(activation, effect):
                yield from self._ended(activation, effect, at)
            case DecisionMade(_, effect_id, decision) if effect_id in self._steps:
                call = self._steps[effect_id].call
                yield PermissionReadyEvent(call.name, decision.allowed, call.id, at)
            case TranscriptChange(_, trimmed, compacted) if not trimmed:
                yield CompactionCompleteEvent(compacted, at)
            case TurnEnd(activation, turn) if activation.id:
                if turn.another_turn and self._text:
                    yield TextEvent(self._text, at)
                self._text = ""
                if turn.reminder:
                    yield HiddenUserMessageEvent(turn.reminder, at)

    def _started(self, activation: ActivationNode, effect: EffectNode, at: float) -> Iterator[LoopEvent]:
        if effect.model is not None:
            if effect.purpose == "compact":
                yield CompactionStartEvent(at)
            elif effect.is_reply:
                self._attempts = self._attempts + 1 if self._model == effect.name else 1
                self._model = effect.name
        elif effect.wait is not None and effect.failure is not None:
            failure = effect.failure
            yield LlmRetryEvent(
                self._model,
                failure.kind,
                self._attempts + 1,
                self._max_attempts,
                round((effect.wait.due_at - at) * 1000),
                "backoff" if failure.retry_after is None else "provider",
                failure.status,
                at,
            )
        elif activation.id and effect.call is not None:
            asks = effect.is_approval
            step = yield from self._step(ids.parent_of(effect.id) if asks else effect.id, effect.call, at)
            if asks:
                yield PermissionPreviewEvent(
                    step.call.name, effect.arguments, effect.text, effect.id, step.call.id, at
                )
            else:
                step.since = at

    def _step(self, effect_id: str, call: ToolCall, at: float) -> Generator[LoopEvent, None, _Step]:
        known = self._steps.get(effect_id)
        if known is not None:
            return known
        step = self._steps[effect_id] = _Step(call, ids.index_of(effect_id) + 1, at)
        yield StepStartEvent(effect_id, call.name, step.number, at)
        args = arguments_of(call.arguments)
        yield ToolCallEvent(call.name, args, call.id, at, call.arguments if "_raw" in args else "")
        return step

    def _ended(self, activation: ActivationNode, effect: EffectNode, at: float) -> Iterator[LoopEvent]:
        if effect.model is not None:
            yield from self._replied(effect, effect.model.reply, at)
        elif not activation.id:
            yield from self._answered(effect, at)
        elif effect.is_call and effect.call is not None and effect.outcome != "skipped":
            step = yield from self._step(effect.id, effect.call, at)
            del self._steps[effect.id]
            failed = effect.outcome != "completed"
            yield ToolResultEvent(step.call.name, shown(effect), step.call.id, at, failed)
            took = max(round((at - step.since) * 1000), 0)
            yield StepCompleteEvent(effect.id, "error" if failed else "completed", took, at)

    def _replied(self, effect: EffectNode, reply: Reply | None, at: float) -> Iterator[LoopEvent]:
        if effect.purpose == "final":
            self._summary = reply.content.strip() if reply is not None else ""
        elif effect.is_reply and reply is not None:
            if reply.reasoning:
                yield ReasoningEvent(reply.reasoning, at)
            if reply.calls and reply.content:
                yield TextEvent(reply.content, at)
            else:
                self._text = reply.content

    def _answered(self, effect: EffectNode, at: float) -> Iterator[LoopEvent]:
        said = effect.content.strip()
        if effect.outcome == "completed":
            yield FinalResponseEvent(said, at)
        elif self._summary is not None and effect.outcome == "limit":
            yield FinalResponseEvent(f"{MARKER}\n{self._summary}" if self._summary else NO_SUMMARY, at)
        elif effect.outcome not in ("cancelled", "failed"):
            told = f"[{effect.outcome}] {effect.reason}"
            yield FinalResponseEvent("\n\n".join(filter(None, (said, told))), at)


def loop_events(records: Iterable[Record], *, max_attempts: int = 3) -> Iterator[LoopEvent]:
    """The events of a run's records, from the first on."""
    tree, projection = RunTree(recent=True), Projection(max_attempts)
    for record in records:
        for change in tree.add(record):
            yield from projection.take(change, record.at)


def shown(effect: EffectNode) -> str:
    """A call's end as a person is shown it: the text the model gets, files by their kind."""
    text = effect.content if effect.outcome == "completed" else f"Error: {effect.reason}"
    if effect.finishes and effect.outcome == "completed" and not text:
        text = DONE
    return text + "".join(map(_placeholder, effect.attachments))


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
