"""From records and pieces of one run to the messages of those who follow it over a WebSocket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from antiphon.host import Host
from antiphon.kernel.facts import ids
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
from antiphon.server.streams.encodings import Encodings
from antiphon.server.streams.shared import SharedProjection
from antiphon.view import RunTree
from antiphon.view.changes import Change, DataChange, EffectEnd, EffectStart, TurnEnd
from antiphon.view.connection import open_questions
from antiphon.view.nodes import Cost
from antiphon.view.reading.projection import Make

View = Literal["all", "records", "turns"]
_KINDS: Mapping[str, Literal["content", "reasoning_content", "tool_name", "tool_args"]] = {
    "text": "content", "reasoning": "reasoning_content", "call_name": "tool_name",
    "call_arguments": "tool_args",
}  # fmt: skip
MODULES = "work_modules"
OVERHEAD = 200
"""Bytes that what is told of a record takes beside the messages."""
_encode = msgspec.json.Encoder().encode

Told = str | QuestionMessage
"""A message as it is sent; a question before it has the form of its answer."""


class RunUpdates:
    """What one connection is told of a run. after: what is known already is not told."""

    def __init__(self, host: Host, run_id: str, after: int, view: View, encodings: Encodings[str]) -> None:
        self._run_id, self._view, self._encodings, self._position = run_id, view, encodings, after
        self._derived = SharedProjection(host, "updates", run_id, _begin)

    async def of(self, items: Sequence[Record | ReplyDelta]) -> list[Told]:
        """The messages of these, which follow those before. Raises UnknownName, JournalError."""
        after = self._position
        self._position = next((each.seq for each in reversed(items) if isinstance(each, Record)), after)
        derived: Iterator[tuple[Told, ...]] = iter(())
        if self._view != "records" and self._position > after:
            derived = iter(await self._derived.between(after, self._position))
        found: list[Told] = []
        for item in items:
            if isinstance(item, ReplyDelta):
                if self._view == "all":
                    found.append(self._encodings.of(item, update_of, self._run_id))
                continue
            if self._view != "turns":
                found.append(self._encodings.of(item, update_of, self._run_id))
            found += next(derived, ())
        return found


def update_of(item: Record | ReplyDelta, run_id: str) -> str:
    """The message of a record or a piece."""
    if isinstance(item, Record):
        return encode(RecordMessage(run_id, item))
    kind = _KINDS.get(item.kind)
    if kind is None:
        what: Literal["tool", "queued"] = "queued" if item.kind == "queued" else "tool"
        return encode(
            ProgressMessage(run_id, item.effect_id, item.agent, what, item.text, item.locations, item.diffs)
        )
    place = ids.place_of(item.effect_id)
    attempt = int(place[1:]) if place[:1] == "m" and place[1:].isdigit() else 0
    return encode(
        ReplyChunk(run_id, item.effect_id, attempt, item.activation, item.agent, kind, item.text, item.index)
    )


def encode(message: Any) -> str:
    """A message as it is sent."""
    return _encode(message).decode()


def _begin() -> Make[tuple[Told, ...]]:
    return _Deriving().add


class _Deriving:
    """What follows from the records of a run, beside them."""

    def __init__(self) -> None:
        self._tree = RunTree(recent=True)
        self._modules: dict[str, Any] = {}

    def add(self, record: Record) -> tuple[tuple[Told, ...], int]:
        found: list[Told] = []
        for change in self._tree.add(record):
            for message in self._derived(record.run_id, record.seq, change):
                found.append(message if isinstance(message, QuestionMessage) else encode(message))
        return tuple(found), OVERHEAD + sum(len(each) for each in found if isinstance(each, str))

    def _derived(self, run_id: str, seq: int, change: Change) -> Iterator[RunUpdate]:
        match change:
            case TurnEnd(activation, turn) if activation.id:
                yield TurnCompleted(run_id, seq, activation.id, activation.agent, turn.number)
            case EffectStart(_, effect) if effect.asks_person:
                asked = next((each for each in open_questions(self._tree) if each.id == effect.id), None)
                if asked is not None:
                    yield QuestionMessage(run_id, seq, asked)
            case EffectEnd(_, effect) if effect.asks_person:
                by = effect.wait.by if effect.wait is not None else ""
                yield QuestionSettled(run_id, seq, effect.id, effect.outcome, effect.content, by)
            case EffectEnd(activation, effect) if effect.model is not None:
                totals = self._tree.models.values()
                cost = sum((each.cost for each in totals), Cost())
                yield TokenUsageUpdate(
                    run_id, seq, effect.id, activation.agent, effect.name, effect.model.usage,
                    effect.model.cost.usd, sum(each.usage.total for each in totals), cost.usd,
                )  # fmt: skip
            case DataChange(activation, set=values) if not activation.id and MODULES in values:
                yield from self._module_changes(run_id, seq, values[MODULES])

    def _module_changes(self, run_id: str, seq: int, now: Any) -> Iterator[RunUpdate]:
        known = now if isinstance(now, Mapping) else {}
        for module_id in sorted({*known, *self._modules}):
            if known.get(module_id) != self._modules.get(module_id):
                yield WorkModuleUpdated(run_id, seq, module_id, known.get(module_id))
        self._modules = dict(known)
