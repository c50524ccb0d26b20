"""Frames: a run for a program that draws it and knows nothing of events, in whatever language.

    reader = FrameReader()
    for record in await run.records():
        send(encode(reader.add(record)))

A frame is one record: what it changed, as flat JSON whose parts name each other by number and id. Who keeps
what the frames say has the run as of any record. Long texts come cut, with their whole length: whoever wants
all of one asks for its effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import RunStarted
from antiphon.kernel.facts.records import Record
from antiphon.values.limits import Limits, RunLimits
from antiphon.values.message import Attachment, Message, ToolCall
from antiphon.values.model import Usage
from antiphon.values.result import Failure
from antiphon.view import changes
from antiphon.view.nodes import ActivationNode, DeadLetter, Decision, EffectNode, TurnNode, WaitDetail
from antiphon.view.tree import RunTree

TEXT = 4_000
"""Characters of a text in a frame; of a longer one the beginning, and its whole length."""
VALUE = 16_384
"""Bytes of a value of an activation's data in a frame, as JSON; of a larger one only its size."""


class CutText(Struct, frozen=True, gc=False, omit_defaults=True):
    """A text, or its beginning."""

    text: str = ""
    length: int = 0
    """Characters of all of it, where it was cut; else 0."""


class FileFrame(Struct, frozen=True, gc=False, omit_defaults=True):
    """A file beside a text."""

    media_type: str
    name: str = ""
    url: str = ""
    bytes: int = 0
    data: str = ""
    """What it holds as base64, where the reader was to have that and it is not too long; else empty."""


class CallFrame(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call that a model or a plan wrote."""

    id: str
    name: str
    arguments: CutText


class MessageFrame(Struct, frozen=True, omit_defaults=True):
    """A message between agents, or from the user."""

    id: str
    kind: str
    """`forward` or `return`."""
    sender: str
    receiver: str
    content: CutText
    call_id: str = ""
    task_id: str = ""
    intent: str = ""
    topic: str = ""
    source: str = ""
    files: tuple[FileFrame, ...] = ()
    labels: tuple[str, ...] = ()
    """What it carries, such as `untrusted`."""


class CalleeFrame(Struct, frozen=True, omit_defaults=True):
    """The activation that a call is."""

    number: int
    agent: str
    path: str
    """The places of the calls that led to it; the same in every replay."""
    opening: MessageFrame
    task_id: str = ""
    reactivated: bool = False
    """It was dormant before, and goes on with its transcript and its data."""


class ReplyFrame(Struct, frozen=True, omit_defaults=True):
    """What a model answered."""

    content: CutText
    reasoning: CutText = CutText()
    calls: tuple[CallFrame, ...] = ()
    stop: str = ""
    model: str = ""
    """As the provider names it."""


class RunStartFrame(Struct, frozen=True, tag="run_started", omit_defaults=True):
    """The run began."""

    run_id: str
    limits: Limits
    """Of each request."""
    run_limits: RunLimits | None = None
    policy: str = "open"
    """The preset that rules on tools."""


class RunResumeFrame(Struct, frozen=True, tag="run_resumed", omit_defaults=True):
    """A new owner took the run over; or a fork begins here."""

    run_id: str = ""
    """Of a fork, its own id: what came before was taken over from `origin`, up to the record `seq`."""
    origin: str = ""
    seq: int = 0


class RunDrainFrame(Struct, frozen=True, tag="run_drained"):
    """The owner leaves in good order: nothing new starts until the run is resumed."""


class RunCloseFrame(Struct, frozen=True, tag="run_closed", omit_defaults=True):
    """The run was closed; nothing follows."""

    reason: str = ""


class ArrivalFrame(Struct, frozen=True, tag="message_arrived"):
    """A message entered an inbox, other than the one that a call opens with."""

    activation: int
    message: MessageFrame


class DeadLetterFrame(Struct, frozen=True, tag="dead_letter"):
    """A message could not be delivered."""

    activation: int
    message: MessageFrame
    reason: str


class TurnStartFrame(Struct, frozen=True, tag="turn_started", omit_defaults=True):
    """A turn began."""

    activation: int
    turn: int
    messages: tuple[MessageFrame, ...] = ()
    """Those that it took from the inbox."""
    planned: bool = False
    acts: bool = False
    suffix: CutText = CutText()
    """Text that the model is shown in this turn only."""
    begun_by: str = ""
    """The hook that said how it begins: `plan_turn` or `prepare_input`."""
    rules: tuple[str, ...] = ()
    """Which of its own rules that hook followed, each as `id (file:line)`."""


class TurnEndFrame(Struct, frozen=True, tag="turn_ended", omit_defaults=True):
    """A turn ended."""

    activation: int
    turn: int
    another_turn: bool = False
    reminder: str = ""
    """What the model was told, to make it continue."""
    ended_by: str = ""
    """The hook that said what follows: `end_turn`."""
    rules: tuple[str, ...] = ()
    """Which rules its hooks followed, those of its beginning first."""


class OutsideCallFrame(Struct, frozen=True, gc=False, omit_defaults=True):
    """The call of an outside tool: whoever runs the request does it, and answers with its result."""

    tool: str
    call_id: str = ""
    """As the model numbered it."""
    finishes: bool = False
    """Its result ends the agent's task."""


class EffectStartFrame(Struct, frozen=True, tag="effect_started", omit_defaults=True):
    """An effect started. A request that waits for those before it has no `callee`; it comes once more, with
    one, when it begins."""

    activation: int
    turn: int
    id: str
    kind: str
    name: str = ""
    purpose: str = ""
    text: CutText = CutText()
    """What a person is asked; of a retry, which attempt follows."""
    arguments: CutText = CutText()
    callee: CalleeFrame | None = None
    background: bool = False
    held_tokens: int = 0
    prefix: str = ""
    """Of a model call: the digest of its system prompt and tools, a blob of the run."""
    due_at: float = 0.0
    """When a timer ends, or a person's time to answer, Unix seconds; 0 for never."""
    options: tuple[str, ...] = ()
    """Of a question: one of these is the answer."""
    schema: dict[str, Any] | None = None
    """Of a question: the JSON Schema that the answer must fit."""
    decision: Decision | None = None
    failure: Failure | None = None
    """Of a retry, why the attempt before it gave no reply."""
    rule: str = ""
    """Of an approval: the hook or the policy that wants a person asked."""
    joins: str = ""
    """Of a limit: the open question whose answer is this one's too."""
    outside: OutsideCallFrame | None = None
    """Of a question that is the call of an outside tool, with its `arguments`; the answer is its result."""


class EffectEndFrame(Struct, frozen=True, tag="effect_ended", omit_defaults=True):
    """An effect ended; one that never started says here what it was."""

    activation: int
    turn: int
    id: str
    kind: str
    name: str = ""
    purpose: str = ""
    outcome: str = ""
    reason: str = ""
    content: CutText = CutText()
    arguments: CutText = CutText()
    """Of a call that never started."""
    files: tuple[FileFrame, ...] = ()
    failure: Failure | None = None
    decision: Decision | None = None
    reply: ReplyFrame | None = None
    usage: Usage | None = None
    """As the provider reported it; None when it did not."""
    nano_usd: int = 0
    unpriced: bool = False
    """Its price is not known."""
    by: str = ""
    """The person who answered."""
    finishes: bool = False
    labels: tuple[str, ...] = ()
    """What its result carries, such as `untrusted` and `private`."""


class DecisionFrame(Struct, frozen=True, tag="decided"):
    """Somebody decided whether a call may be done, or a rule did after it was asked for."""

    activation: int
    id: str
    """The effect that the call is, or would be."""
    decision: Decision


class DataFrame(Struct, frozen=True, tag="data_changed", omit_defaults=True):
    """The data of an activation changed; of activation 0 it is the whole run's."""

    activation: int
    set: Mapping[str, Any] = {}
    append: Mapping[str, list[Any]] = {}
    left_out: Mapping[str, int] = {}
    """Values that are too large for a frame, and their size in bytes of JSON."""
    by: str = ""
    """The hook that changed them; empty for an action."""


class TranscriptFrame(Struct, frozen=True, tag="transcript_changed", omit_defaults=True):
    """What a model is shown was shortened."""

    activation: int
    trimmed: int = 0
    compacted: bool = False


class ToolsetFrame(Struct, frozen=True, tag="toolset_changed", omit_defaults=True):
    """A toolset offers other tools, or its provider has come up or gone."""

    name: str
    tools: tuple[str, ...] = ()
    """What it offers; while it cannot be reached, what it offered last."""
    reason: str = ""
    """Why it cannot be reached; empty: it can."""


class CancelFrame(Struct, frozen=True, tag="cancel_requested", omit_defaults=True):
    """Somebody wants an effect and all below it to stop; without a target, every request."""

    target: str = ""
    reason: str = ""


ChangeFrame = (
    RunStartFrame | RunResumeFrame | RunDrainFrame | RunCloseFrame | ArrivalFrame | DeadLetterFrame
    | TurnStartFrame | TurnEndFrame | EffectStartFrame | EffectEndFrame | DecisionFrame | DataFrame
    | TranscriptFrame | CancelFrame | ToolsetFrame
)  # fmt: skip
"""What a record changed; `type` says which."""


class Frame(Struct, frozen=True):
    """One record."""

    seq: int
    at: float
    """Unix seconds."""
    changes: tuple[ChangeFrame, ...]


encode = msgspec.json.Encoder().encode
"""A frame as JSON."""


class FrameReader:
    """Makes frames of a run's records, given from the first one on, each once.

    text: characters of a text before it is cut; value: bytes of a value before it is left out; files:
    characters of what a file holds, as base64, before that is left out.
    """

    def __init__(self, *, text: int = TEXT, value: int = VALUE, files: int = 0) -> None:
        self._tree, self._painter = RunTree(recent=True), _Painter(text, value, files)

    @property
    def seq(self) -> int:
        """The number of the last record."""
        return self._tree.seq

    def add(self, record: Record) -> Frame:
        """The frame of the next record. Raises JournalCorrupt for one that cannot follow."""
        event = record.event
        started = event if isinstance(event, RunStarted) else None
        # Of files the page draws the calls.
        drawn = [each for each in self._tree.add(record) if type(each) is not changes.FilesChange]
        found = [self._painter.change(each, started) for each in drawn]
        return Frame(record.seq, record.at, tuple(found))


class _Painter:
    """What a change is in a frame, with texts, values and files up to a size."""

    def __init__(self, text: int, value: int, files: int) -> None:
        self._text, self._value, self._files = text, value, files

    def change(self, change: changes.Change, started: RunStarted | None) -> ChangeFrame:
        match change:
            case changes.CallQueued(activation, effect) | changes.EffectStart(activation, effect):
                return self.effect_start(activation, effect)
            case changes.EffectEnd(activation, effect, labels):
                return self.effect_end(activation, effect, labels)
            case changes.TurnStart(activation, turn):
                return self.turn_start(activation, turn)
            case changes.TurnEnd(activation, turn):
                return TurnEndFrame(
                    activation.id, turn.number, turn.another_turn, turn.reminder, turn.ended_by, turn.rules
                )
            case changes.MessageArrival(activation, message):
                return ArrivalFrame(activation.id, self.message(message))
            case DeadLetter(number, message, reason):
                return DeadLetterFrame(number, self.message(message), reason)
            case changes.DecisionMade(activation, effect_id, decision):
                return DecisionFrame(activation.id, effect_id, decision)
            case changes.DataChange(activation, replaced, appended, by):
                return self.data(activation, replaced, appended, by)
            case changes.TranscriptChange(activation, trimmed, compacted):
                return TranscriptFrame(activation.id, trimmed, compacted)
            case changes.CancelRequest(target, reason):
                return CancelFrame(target, reason)
            case changes.RunStart() if started is not None:
                options = started.options
                return RunStartFrame(
                    started.run_id, options.limits, options.run_limits, options.policy.preset
                )
            case changes.RunClose(reason):
                return RunCloseFrame(reason)
            case changes.RunDrain():
                return RunDrainFrame()
            case changes.RunResume(run_id, fork) if fork is not None:
                return RunResumeFrame(run_id, fork.origin, fork.seq)
            case changes.ToolsetChange(toolset):
                return ToolsetFrame(toolset.name, toolset.tools, toolset.reason)
            case _:
                return RunResumeFrame()

    def effect_start(self, activation: ActivationNode, effect: EffectNode) -> EffectStartFrame:
        callee, use, wait = effect.callee, effect.model, effect.wait
        return EffectStartFrame(
            activation.id, ids.turn_of(effect.id), effect.id, effect.kind, effect.name, effect.purpose,
            self.cut(effect.text),
            self.cut(effect.arguments or (effect.call.arguments if effect.call is not None else "")),
            callee=self.callee(callee) if callee is not None else None,
            background=effect.background, held_tokens=use.held_tokens if use is not None else 0,
            prefix=use.prefix if use is not None else "",
            due_at=wait.due_at if wait is not None else 0.0,
            options=wait.options if wait is not None else (),
            schema=wait.schema if wait is not None else None,
            decision=effect.decision, failure=effect.failure,
            rule=wait.rule if wait is not None else "", joins=wait.joins if wait is not None else "",
            outside=_outside(effect, wait) if wait is not None and wait.tool else None,
        )  # fmt: skip

    def callee(self, callee: ActivationNode) -> CalleeFrame:
        opening = (
            callee.opening if callee.opening is not None else Message("forward", "", callee.agent, "", id="")
        )
        return CalleeFrame(
            callee.id, callee.agent, callee.path, self.message(opening), callee.task_id, callee.reactivated
        )

    def effect_end(
        self, activation: ActivationNode, effect: EffectNode, labels: tuple[str, ...]
    ) -> EffectEndFrame:
        use, wait, never = effect.model, effect.wait, effect.started_at is None
        reply = use.reply if use is not None else None
        return EffectEndFrame(
            activation.id, ids.turn_of(effect.id), effect.id, effect.kind, effect.name, effect.purpose,
            effect.outcome, effect.reason, self.cut(effect.content),
            self.cut(effect.arguments) if never else CutText(),
            tuple(map(self.file, effect.attachments)), effect.failure, effect.decision,
            reply=None if reply is None else ReplyFrame(
                self.cut(reply.content), self.cut(reply.reasoning), tuple(map(self.call, reply.calls)),
                reply.stop, reply.model,
            ),
            usage=use.usage if use is not None else None,
            nano_usd=use.cost.nano_usd if use is not None else 0,
            unpriced=use is not None and use.cost.unpriced > 0,
            by=wait.by if wait is not None else "", finishes=effect.finishes, labels=labels,
        )  # fmt: skip

    def turn_start(self, activation: ActivationNode, turn: TurnNode) -> TurnStartFrame:
        messages = tuple(map(self.message, turn.messages))
        return TurnStartFrame(
            activation.id, turn.number, messages, turn.planned, turn.acts, self.cut(turn.suffix),
            turn.begun_by, turn.rules,
        )  # fmt: skip

    def data(
        self, activation: ActivationNode, replaced: Mapping[str, Any], appended: Mapping[str, list[Any]],
        by: str,
    ) -> DataFrame:  # fmt: skip
        sizes = {name: len(encode(value)) for name, value in (*replaced.items(), *appended.items())}
        large = {name: size for name, size in sizes.items() if size > self._value}
        return DataFrame(
            activation.id,
            {name: value for name, value in replaced.items() if name not in large},
            {name: value for name, value in appended.items() if name not in large},
            large,
            by,
        )

    def message(self, message: Message) -> MessageFrame:
        return MessageFrame(
            message.id, message.type, message.sender, message.receiver, self.cut(message.content),
            message.call_id, message.task_id, message.intent, message.topic, message.source,
            tuple(map(self.file, message.attachments)), message.labels,
        )  # fmt: skip

    def call(self, call: ToolCall) -> CallFrame:
        return CallFrame(call.id, call.name, self.cut(call.arguments))

    def file(self, file: Attachment) -> FileFrame:
        data = file.data if len(file.data) <= self._files else ""
        return FileFrame(file.media_type, file.name, file.url, len(file.data) * 3 // 4, data)

    def cut(self, text: str) -> CutText:
        return CutText(text) if len(text) <= self._text else CutText(text[: self._text], len(text))


def _outside(effect: EffectNode, wait: WaitDetail) -> OutsideCallFrame:
    call_id = effect.call.id if effect.call is not None else ""
    return OutsideCallFrame(wait.tool, call_id, effect.finishes)
