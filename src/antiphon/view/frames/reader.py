"""Records in, frames out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import RunStarted
from antiphon.kernel.facts.records import Record
from antiphon.values.message import Attachment, FileChange, Message, ToolCall
from antiphon.view import changes
from antiphon.view.frames.files import changed_file
from antiphon.view.frames.frame import (
    ArrivalFrame,
    CalleeFrame,
    CallFrame,
    CancelFrame,
    ChangeFrame,
    CutText,
    DataFrame,
    DeadLetterFrame,
    DecisionFrame,
    EffectEndFrame,
    EffectStartFrame,
    FileFrame,
    FilesFrame,
    Frame,
    MessageFrame,
    OutsideCallFrame,
    ReplyFrame,
    RunCloseFrame,
    RunDrainFrame,
    RunResumeFrame,
    RunStartFrame,
    ToolsetFrame,
    TranscriptFrame,
    TurnEndFrame,
    TurnStartFrame,
)
from antiphon.view.nodes import ActivationNode, DeadLetter, EffectNode, TurnNode, WaitDetail
from antiphon.view.tree import RunTree

TEXT = 4_000
"""Characters of a text in a frame; of a longer one the beginning, and its whole length."""
VALUE = 16_384
"""Bytes of a value of an activation's data in a frame, as JSON; of a larger one only its size."""
FILES = 50
"""Changed files in a frame; of more only how many there are."""

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
        found = [self._painter.change(each, started) for each in self._tree.add(record)]
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
            case changes.FilesChange(effect, files):
                return self.changed_files(effect, files)
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

    def changed_files(self, effect: EffectNode, files: tuple[FileChange, ...]) -> FilesFrame:
        shown = files if self._text > TEXT else files[:FILES]
        return FilesFrame(
            ids.activation_of(effect.id), effect.id,
            tuple([changed_file(each, self.cut) for each in shown]), len(files) - len(shown),
        )  # fmt: skip

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
