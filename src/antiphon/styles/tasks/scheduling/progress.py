"""Progress: how far the tasks of a run are, read off its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct, field

from antiphon import Record, ToolCall
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, StateChanged, TurnStarted
from antiphon.styles.tasks.scheduling.schedule import lane_name
from antiphon.styles.tasks.scheduling.task import TaskEnd

TaskState = Literal["pending", "in_progress", "completed", "failed"]


class TaskStatus(Struct, frozen=True):
    """How far one task is. state: `failed` for every end but `completed`.

    outcome: how it ended, empty until then; result: what came of it, or what there was; why: the
    reason of any other outcome than `completed`, and to whom it was handed over. activation: its
    worker's, 0 while none has begun. deadline: Unix seconds.
    """

    task_id: str
    worker: str
    state: TaskState
    outcome: str = ""
    result: str = ""
    why: str = ""
    activation: int = 0
    deadline: float | None = None


class _Followed(Struct):
    """A task as it is being read. under: activations of the controller and of the lane that keep it."""

    end: TaskEnd
    under: set[int]
    activation: int = 0

    @property
    def status(self) -> TaskStatus:
        """How far it is."""
        end = self.end
        state: TaskState = "in_progress" if self.activation else "pending"
        if end.outcome:
            state = "completed" if end.outcome == "completed" else "failed"
        return TaskStatus(
            end.task_id, end.worker, state, end.outcome, end.content, end.why, self.activation, end.until
        )


class _Asked(Struct):
    task_id: str = ""


_asked = msgspec.json.Decoder(_Asked).decode


class _Reader(Struct):
    """Reads records in order. calls: the task that a worker is called for, by the call's effect."""

    dealer: str
    lanes: Collection[str]
    tasks: dict[str, _Followed] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)
    callees: dict[str, int] = field(default_factory=dict)
    born: int = 0

    def take(self, record: Record) -> None:
        """The next record."""
        event = record.event
        if isinstance(event, StateChanged) and record.agent == self.dealer:
            self._dealt(event, record.activation)
        elif isinstance(event, TurnStarted):
            turn = self.turns[record.activation] = self.turns.get(record.activation, 0) + 1
            if record.agent in self.lanes:
                self._given(event.calls or (), record.activation, turn)
        elif isinstance(event, EffectStarted) and event.kind == "call":
            self.born += not event.continues
            self.callees[event.id] = event.continues or self.born
            if event.id in self.calls:
                self.tasks[self.calls[event.id]].activation = self.callees[event.id]
        elif isinstance(event, EffectFinished):
            self._finished(event)

    def _dealt(self, event: StateChanged, dealer: int) -> None:
        for task_id, said in event.set.items():
            end = msgspec.convert(said, TaskEnd)
            if task_id not in self.tasks or not end.outcome:
                self.tasks[task_id] = _Followed(end, {dealer})

    def _given(self, calls: Iterable[ToolCall], lane: int, turn: int) -> None:
        for number, call in enumerate(calls, 1):
            task_id = _asked(call.arguments).task_id
            self.calls[f"{lane}/{turn}.c{number}"] = task_id
            self.tasks[task_id].under.add(lane)

    def _finished(self, event: EffectFinished) -> None:
        task_id = self.calls.get(event.id)
        if task_id is not None:
            self._end([self.tasks[task_id]], event)
        elif event.outcome != "completed" and event.id in self.callees:
            broken_off = self.callees[event.id]
            self._end([each for each in self.tasks.values() if broken_off in each.under], event)

    def _end(self, tasks: Iterable[_Followed], event: EffectFinished) -> None:
        for each in tasks:
            if not each.end.outcome:
                each.end = each.end.ended(event.outcome, event.content, event.why)


def progress(
    records: Iterable[Record], controller: str, dealer: str, workers: Iterable[str]
) -> Mapping[str, TaskStatus]:
    """How far each task is, by id, in the order the controller took them."""
    reader = _Reader(dealer, {lane_name(controller, each) for each in workers})
    for record in records:
        reader.take(record)
    return {task_id: each.status for task_id, each in reader.tasks.items()}
