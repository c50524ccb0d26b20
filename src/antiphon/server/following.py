"""From records and pieces of one run to the messages of those who follow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.server.messages import (
    ProgressMessage,
    QuestionMessage,
    QuestionSettled,
    RecordMessage,
    ReplyChunk,
    RunUpdate,
    TokenUsageUpdate,
    TurnCompleted,
    WorkModuleUpdated,
)
from antiphon.view import OpenQuestion, RunTree
from antiphon.view.changes import Change, DataChange, EffectEnd, EffectStart, TurnEnd
from antiphon.view.connection import open_questions
from antiphon.view.nodes import Cost

View = Literal["all", "records", "turns"]
_KINDS: Mapping[str, Literal["content", "reasoning_content", "tool_name", "tool_args"]] = {
    "text": "content", "reasoning": "reasoning_content", "call_name": "tool_name",
    "call_arguments": "tool_args",
}  # fmt: skip
MODULES = "work_modules"


class Follower:
    """Reads one run in order, and says what is told of it. after: what is known already is not told."""

    def __init__(self, run_id: str, after: int, view: View) -> None:
        self._run_id, self._after, self._view = run_id, after, view
        self._tree = RunTree(recent=True)
        self._modules: dict[str, Any] = {}

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """What is open as of the last record."""
        return tuple(open_questions(self._tree))

    def read(self, item: Record | ReplyDelta) -> Iterator[RunUpdate]:
        """What is told of a record or a piece."""
        if isinstance(item, ReplyDelta):
            if self._view == "all":
                yield self._piece(item)
            return
        changes = self._tree.add(item)
        told = item.seq > self._after
        if told and self._view != "turns":
            yield RecordMessage(self._run_id, item)
        for change in changes:
            for each in self._derived(item.seq, change):
                if told and self._view != "records":
                    yield each

    def _piece(self, piece: ReplyDelta) -> RunUpdate:
        kind = _KINDS.get(piece.kind)
        if kind is None:
            what: Literal["tool", "queued"] = "queued" if piece.kind == "queued" else "tool"
            return ProgressMessage(self._run_id, piece.effect_id, piece.agent, what, piece.text)
        known = self._tree.effects.get(piece.effect_id)
        attempt = known.attempt if known is not None else 0
        return ReplyChunk(
            self._run_id,
            piece.effect_id,
            attempt,
            piece.activation,
            piece.agent,
            kind,
            piece.text,
            piece.index,
        )

    def _derived(self, seq: int, change: Change) -> Iterator[RunUpdate]:
        match change:
            case TurnEnd(activation, turn) if activation.id:
                yield TurnCompleted(self._run_id, seq, activation.id, activation.agent, turn.number)
            case EffectStart(_, effect) if effect.asks_person:
                asked = next((each for each in self.questions if each.id == effect.id), None)
                if asked is not None:
                    yield QuestionMessage(self._run_id, seq, asked)
            case EffectEnd(_, effect) if effect.asks_person:
                by = effect.wait.by if effect.wait is not None else ""
                yield QuestionSettled(self._run_id, seq, effect.id, effect.outcome, effect.content, by)
            case EffectEnd(activation, effect) if effect.model is not None:
                totals = self._tree.models.values()
                cost = sum((each.cost for each in totals), Cost())
                yield TokenUsageUpdate(
                    self._run_id, seq, effect.id, activation.agent, effect.name, effect.model.usage,
                    effect.model.cost.usd, sum(each.usage.total for each in totals), cost.usd,
                )  # fmt: skip
            case DataChange(activation, set=values) if not activation.id and MODULES in values:
                yield from self._module_changes(seq, values[MODULES])

    def _module_changes(self, seq: int, now: Any) -> Iterator[RunUpdate]:
        known = now if isinstance(now, Mapping) else {}
        for module_id in sorted({*known, *self._modules}):
            if known.get(module_id) != self._modules.get(module_id):
                yield WorkModuleUpdated(self._run_id, seq, module_id, known.get(module_id))
        self._modules = dict(known)
