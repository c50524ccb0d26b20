"""Progress: how far the tasks of a run are, read off its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from antiphon import Record
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.agent_call import read_call
from antiphon.styles.tasks.scheduling.schedule import lane_name
from antiphon.styles.tasks.scheduling.task import TaskEnd
from antiphon.view import RunTree
from antiphon.view.changes import DataChange, EffectEnd, EffectStart, TurnStart
from antiphon.view.nodes import ActivationNode, EffectNode, TurnNode

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


class ProgressReader:
    """Reads records in order: what the controller was given, and which calls are for which task."""

    def __init__(self, controller: str, dealer: str, workers: Iterable[str]) -> None:
        lanes = {lane_name(controller, each) for each in workers}
        self.tasks: dict[str, _Followed] = {}
        self._dealer, self._lanes = dealer, lanes
        self._tree = RunTree(recent=True)
        self._calls: dict[str, str] = {}
        self.requests_ended: set[str] = set()
        self._touched: dict[str, None] = {}
        self._said: dict[str, str] = {}

    def changed(self, record: Record) -> list[TaskStatus]:
        """The tasks that the next record brought into another state, as they are now."""
        self.take(record)
        found = [self.tasks[task_id].status for task_id in self._touched]
        news = [each for each in found if self._said.get(each.task_id) != each.state]
        self._said.update((each.task_id, each.state) for each in news)
        return news

    def take(self, record: Record) -> None:
        """The next record."""
        self._touched.clear()
        for change in self._tree.add(record):
            match change:
                case DataChange(activation) if activation.agent == self._dealer:
                    self._dealt(change)
                case TurnStart(activation, turn) if activation.agent in self._lanes:
                    self._given(activation, turn)
                case EffectStart(_, effect) if effect.callee is not None and effect.id in self._calls:
                    self._touched[self._calls[effect.id]] = None
                    self.tasks[self._calls[effect.id]].activation = effect.callee.id
                case EffectEnd(by, effect):
                    if not by.id:
                        self.requests_ended.add(effect.id)
                    self._ended(effect)

    def _dealt(self, change: DataChange) -> None:
        for task_id, said in change.set.items():
            end = msgspec.convert(said, TaskEnd)
            if task_id not in self.tasks or not end.outcome:
                self.tasks[task_id] = _Followed(end, {change.activation.id})
                self._touched[task_id] = None

    def _given(self, lane: ActivationNode, turn: TurnNode) -> None:
        """A lane plans the calls of its worker; the task of one that never starts has ended too."""
        for index, call in enumerate(turn.calls):
            task_id = read_call(call.arguments).task_id
            self._calls[ids.call_id(lane.id, turn.number, index)] = task_id
            self.tasks[task_id].under.add(lane.id)

    def _ended(self, effect: EffectNode) -> None:
        task_id, callee = self._calls.get(effect.id), effect.callee
        if task_id is not None:
            self._end([self.tasks[task_id]], effect)
        elif effect.outcome != "completed" and callee is not None:
            self._end([each for each in self.tasks.values() if callee.id in each.under], effect)

    def _end(self, tasks: Iterable[_Followed], effect: EffectNode) -> None:
        for each in tasks:
            if not each.end.outcome:
                each.end = each.end.ended(effect.outcome, effect.content, effect.reason)
                self._touched[each.end.task_id] = None


def progress(reader: ProgressReader, records: Iterable[Record]) -> Mapping[str, TaskStatus]:
    """How far each task is, by id, in the order the controller took them."""
    for record in records:
        reader.take(record)
    return {task_id: each.status for task_id, each in reader.tasks.items()}
