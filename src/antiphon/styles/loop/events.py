"""Events of the loop: what one agent did, as a projection of its run's records.

    for event in loop_events(await conversation.records()): ...

The order within an iteration is prescribed: reasoning, text, then for each call its start, the call,
its result and its end, also where calls ran side by side; `FinalResponseEvent` closes a request. Times are
Unix seconds, durations milliseconds. `DeltaEvent` and `ToolProgressEvent` come live only: nothing records
them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from antiphon import Attachment, Record, ReplyDelta, ToolCall
from antiphon.kernel.context.output_store import DONE
from antiphon.kernel.facts import ids
from antiphon.values.model import Reply
from antiphon.values.progress import FileDiff, FileLocation
from antiphon.values.result import Failure
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
from antiphon.view.nodes import ActivationNode, DeadLetter, EffectNode

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


class DeltaEvent(Struct, frozen=True, tag="delta"):
    """A piece of a reply that is being written; who ignores it misses nothing.

    effect_id: names the attempt; what a failed one said is void, and the kind `void` says so. index: tells
    the calls of a reply apart.
    """

    kind: Literal["text", "reasoning", "call_name", "call_arguments", "void"]
    content: str
    effect_id: str
    timestamp: float
    index: int = 0


class ToolProgressEvent(Struct, frozen=True, tag="tool_progress"):
    """How far a tool says that it has come (`ctx.report_progress`)."""

    tool: str
    content: str
    tool_call_id: str
    timestamp: float
    locations: tuple[FileLocation, ...] = ()
    diffs: tuple[FileDiff, ...] = ()


class AgentEvent(Struct, frozen=True, tag="agent_event"):
    """An event of an agent that was called; `tool_call_id` is the call, `event` what that agent did."""

    agent: str
    tool_call_id: str
    event: LoopEvent
    timestamp: float


LoopEvent = (
    TextEvent | ReasoningEvent | LlmRetryEvent | StepStartEvent | ToolCallEvent | PermissionPreviewEvent
    | PermissionReadyEvent | ToolResultEvent | StepCompleteEvent | CompactionStartEvent
    | CompactionCompleteEvent | HiddenUserMessageEvent | FinalResponseEvent | DeltaEvent | ToolProgressEvent
    | AgentEvent
)  # fmt: skip


class _Step(Struct):
    """A call under way. held: events that wait until the calls before it are told."""

    call: ToolCall
    number: int
    since: float
    held: list[LoopEvent] = field(default_factory=list)
    over: bool = False


class _Line:
    """The events of one agent at work on one call, in the prescribed order.

    parent: the line of the agent that made the call, None where the user did.
    """

    def __init__(self, agent: str, call: str, parent: _Line | None, max_attempts: int) -> None:
        self.agent, self.call, self._parent, self._max_attempts = agent, call, parent, max_attempts
        # In the order of the calls; the first one is being told.
        self._steps: dict[str, _Step] = {}
        self._model, self._attempts = "", 0
        self._text = ""
        self.summary: str | None = None

    def take(self, change: Change, at: float) -> Iterator[LoopEvent]:
        """The events of a change of this agent."""
        match change:
            case TurnStart():
                self._attempts, self._text, self.summary = 0, "", None
            case EffectStart(_, effect):
                yield from self._started(effect, at)
            case EffectEnd(_, effect):
                yield from self._ended(effect, at)
            case DecisionMade(_, effect_id, decision) if effect_id in self._steps:
                call = self._steps[effect_id].call
                yield from self._tell(
                    PermissionReadyEvent(call.name, decision.allowed, call.id, at), effect_id
                )
            case TranscriptChange(_, trimmed, compacted) if not trimmed:
                yield from self._tell(CompactionCompleteEvent(compacted, at))
            case TurnEnd(_, turn):
                if turn.another_turn and self._text:
                    yield from self._tell(TextEvent(self._text, at))
                self._text = ""
                if turn.reminder:
                    yield from self._tell(HiddenUserMessageEvent(turn.reminder, at))

    def delta(self, delta: ReplyDelta, effect: EffectNode, at: float) -> Iterator[LoopEvent]:
        """The event of something that is only said live."""
        kind: Any = delta.kind
        if effect.model is not None:
            # A place in the line before the model is no part of its reply.
            if effect.purpose != "compact" and kind != "queued":
                yield from self._tell(DeltaEvent(kind, delta.text, effect.id, at, delta.index))
        elif effect.call is not None and effect.id in self._steps:
            said = ToolProgressEvent(
                effect.call.name, delta.text, effect.call.id, at, delta.locations, delta.diffs
            )
            yield from self._tell(said, effect.id)

    def _tell(self, event: LoopEvent, step: str = "") -> Iterator[LoopEvent]:
        """Say something of this agent, or of one of its calls, when it is that call's time."""
        if step and step != next(iter(self._steps)):
            self._steps[step].held.append(event)
        elif self._parent is None:
            yield event
        else:
            yield from self._parent.told_by(self, event)

    def told_by(self, callee: _Line, event: LoopEvent) -> Iterator[LoopEvent]:
        """Pass on what an agent that was called here did."""
        step = self._steps.get(callee.call)
        if step is not None:
            told = AgentEvent(callee.agent, step.call.id, event, event.timestamp)
            yield from self._tell(told, callee.call)

    def _started(self, effect: EffectNode, at: float) -> Iterator[LoopEvent]:
        if effect.model is not None:
            if effect.purpose == "compact":
                yield from self._tell(CompactionStartEvent(at))
            elif effect.is_reply:
                self._attempts = self._attempts + 1 if self._model == effect.name else 1
                self._model = effect.name
        elif effect.wait is not None and effect.failure is not None:
            yield from self._tell(self._retry(effect, effect.failure, effect.wait.due_at, at))
        elif effect.call is not None and not effect.background:
            asks = effect.is_approval
            effect_id = ids.parent_of(effect.id) if asks else effect.id
            step = yield from self._step(effect_id, effect.call, at)
            if asks:
                preview = PermissionPreviewEvent(
                    step.call.name, effect.arguments, effect.text, effect.id, step.call.id, at
                )
                yield from self._tell(preview, effect_id)
            else:
                step.since = at

    def _retry(self, effect: EffectNode, failure: Failure, due_at: float, at: float) -> LlmRetryEvent:
        return LlmRetryEvent(
            self._model,
            failure.kind,
            self._attempts + 1,
            self._max_attempts,
            round((due_at - at) * 1000),
            "backoff" if failure.retry_after is None else "provider",
            failure.status,
            at,
        )

    def _step(self, effect_id: str, call: ToolCall, at: float) -> Generator[LoopEvent, None, _Step]:
        known = self._steps.get(effect_id)
        if known is not None:
            return known
        step = self._steps[effect_id] = _Step(call, ids.index_of(effect_id) + 1, at)
        yield from self._tell(StepStartEvent(effect_id, call.name, step.number, at), effect_id)
        args = arguments_of(call.arguments)
        raw = call.arguments if "_raw" in args else ""
        yield from self._tell(ToolCallEvent(call.name, args, call.id, at, raw), effect_id)
        return step

    def _ended(self, effect: EffectNode, at: float) -> Iterator[LoopEvent]:
        if effect.model is not None:
            yield from self._replied(effect, effect.model.reply, at)
        elif effect.is_call and effect.call is not None and effect.outcome != "skipped":
            step = yield from self._step(effect.id, effect.call, at)
            failed = effect.outcome != "completed"
            result = ToolResultEvent(step.call.name, shown(effect), step.call.id, at, failed)
            yield from self._tell(result, effect.id)
            took = max(round((at - step.since) * 1000), 0)
            complete = StepCompleteEvent(effect.id, "error" if failed else "completed", took, at)
            yield from self._tell(complete, effect.id)
            step.over = True
            yield from self._next_steps()

    def _next_steps(self) -> Iterator[LoopEvent]:
        """Tell what was held of the calls whose time has come."""
        while self._steps:
            effect_id, step = next(iter(self._steps.items()))
            held, step.held = step.held, []
            for event in held:
                yield from self._tell(event, effect_id)
            if not step.over:
                return
            del self._steps[effect_id]

    def _replied(self, effect: EffectNode, reply: Reply | None, at: float) -> Iterator[LoopEvent]:
        if effect.purpose == "final":
            self.summary = reply.content.strip() if reply is not None else ""
        elif effect.is_reply and reply is not None:
            if reply.reasoning:
                yield from self._tell(ReasoningEvent(reply.reasoning, at))
            if reply.calls and reply.content:
                yield from self._tell(TextEvent(reply.content, at))
            else:
                self._text = reply.content


class Projection:
    """Says what the changes of a run's tree mean to a loop, whichever requests they are of.

    max_attempts: of one model, for `llm.retry`.
    """

    def __init__(self, max_attempts: int = 3) -> None:
        self._max_attempts = max_attempts
        self._lines: dict[int, _Line] = {}

    def take(self, change: Change, at: float) -> Iterator[LoopEvent]:
        """The events of the next change."""
        activation = _whose(change)
        if activation is None:
            return
        if activation.id:
            yield from self._line(activation).take(change, at)
        if isinstance(change, EffectEnd) and not activation.id:
            callee = change.effect.callee
            line = self._lines.pop(callee.id, None) if callee is not None else None
            yield from _answered(change.effect, line.summary if line is not None else None, at)

    def delta(self, delta: ReplyDelta, tree: RunTree) -> Iterator[LoopEvent]:
        """The event of something that is only said live, while its effect runs."""
        activation, effect = tree.activations.get(delta.activation), tree.effects.get(delta.effect_id)
        if activation is not None and effect is not None:
            yield from self._line(activation).delta(delta, effect, tree.at)

    def _line(self, activation: ActivationNode) -> _Line:
        line = self._lines.get(activation.id)
        if line is None or line.call != activation.call:
            caller = self._lines.get(activation.caller)
            line = _Line(activation.agent, activation.call, caller, self._max_attempts)
            self._lines[activation.id] = line
        return line


def _whose(change: Change) -> ActivationNode | None:
    """Whose change it is; None for one of the whole run."""
    return None if isinstance(change, DeadLetter) else getattr(change, "activation", None)


def request_of(change: Change) -> str:
    """The id of the user's request that a change belongs to; empty for one of the whole run."""
    activation = _whose(change)
    if activation is None:
        return ""
    if activation.id:
        return activation.request
    return change.effect.id if isinstance(change, EffectStart | EffectEnd) else ""


def _answered(effect: EffectNode, summary: str | None, at: float) -> Iterator[LoopEvent]:
    said = effect.content.strip()
    if effect.outcome == "completed":
        yield FinalResponseEvent(said, at)
    elif summary is not None and effect.outcome == "limit":
        yield FinalResponseEvent(f"{MARKER}\n{summary}" if summary else NO_SUMMARY, at)
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
