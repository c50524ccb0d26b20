"""Plan: tasks that depend on each other, done one after the other.

plan = Plan("Ship it", tasks=[Task("1", ["2"], "test"), Task("2", [], "build")])
plan.current_task.instruction     # build
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from antiphon.errors import DuplicateName, UnknownName, UserError


class TaskResult(Struct):
    """What came of working on a task."""

    code: str = ""
    result: str = ""
    is_success: bool = False


class Task(Struct):
    """One task of a plan. dependent_task_ids: the tasks that must be finished before it."""

    task_id: str = ""
    dependent_task_ids: list[str] = []
    instruction: str = ""
    task_type: str = ""
    code: str = ""
    result: str = ""
    is_success: bool = False
    is_finished: bool = False
    assignee: str = ""

    def reset(self) -> None:
        """Forget what came of it."""
        self.code = self.result = ""
        self.is_success = self.is_finished = False

    def update_task_result(self, done: TaskResult) -> None:
        """Add what came of it to what came before; the newest says whether it succeeded."""
        self.code = "\n".join(filter(None, (self.code, done.code)))
        self.result = "\n".join(filter(None, (self.result, done.result)))
        self.is_success = done.is_success


class Plan(Struct):
    """Tasks, each behind those it depends on and otherwise in the order given.

    Raises UnknownName for a dependency that is no task, DuplicateName for two tasks of one id, and
    UserError for tasks that wait for each other, which it names; the plan then stays as it was.
    """

    goal: str = ""
    context: str = ""
    tasks: list[Task] = []

    def __post_init__(self) -> None:
        self.tasks = in_order(self.tasks)

    @property
    def task_map(self) -> dict[str, Task]:
        """The tasks by id."""
        return {task.task_id: task for task in self.tasks}

    @property
    def current_task(self) -> Task | None:
        """The first unfinished task; None when all are finished."""
        return next((task for task in self.tasks if not task.is_finished), None)

    @property
    def current_task_id(self) -> str:
        """The id of the first unfinished task; empty when all are finished."""
        return task.task_id if (task := self.current_task) is not None else ""

    def has_task_id(self, task_id: str) -> bool:
        """Whether there is a task of that id."""
        return any(task.task_id == task_id for task in self.tasks)

    def add_tasks(self, tasks: Iterable[Task]) -> None:
        """Go on with a new list of tasks; none changes nothing.

        From the beginning on, a task of the same id and instruction as in the plan so far stays as
        it is, finished or not; from the first difference on, the new tasks replace the old.
        """
        new = in_order(tasks)
        if not new:
            return
        same = 0
        for old, task in zip(self.tasks, new, strict=False):
            if (old.task_id, old.instruction) != (task.task_id, task.instruction):
                break
            same += 1
        self.tasks = in_order([*self.tasks[:same], *new[same:]])

    def append_task(self, task: Task) -> None:
        """Put a task at the end; it may depend on any task before it."""
        self.tasks = in_order([*self.tasks, task])

    def replace_task(self, task: Task) -> None:
        """Put a task in the place of the one of its id; those that depend on it start anew."""
        if not self.has_task_id(task.task_id):
            raise UnknownName("task", task.task_id, self.task_map)
        self.tasks = in_order([task if task.task_id == old.task_id else old for old in self.tasks])
        for dependant in self._dependants(task.task_id):
            dependant.reset()

    def reset_task(self, task_id: str) -> None:
        """Start a task and all that depend on it anew; an unknown id changes nothing."""
        if (task := self.task_map.get(task_id)) is not None:
            task.reset()
            for dependant in self._dependants(task_id):
                dependant.reset()

    def finish_current_task(self) -> None:
        """The current task is finished; the next one is current."""
        if (task := self.current_task) is not None:
            task.is_finished = True

    def is_plan_finished(self) -> bool:
        """Whether every task is finished."""
        return self.current_task is None

    def get_finished_tasks(self) -> list[Task]:
        """The finished tasks, in order."""
        return [task for task in self.tasks if task.is_finished]

    def dump(self) -> str:
        """The plan as JSON; `load` reads it."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def load(text: str) -> Plan:
        """The plan in a JSON text. Raises UserError that says what is wrong, and where."""
        try:
            return msgspec.json.decode(text, type=Plan)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise UserError(f"Expected a plan as JSON: {error}") from error

    def _dependants(self, task_id: str) -> list[Task]:
        """All that depend on a task, through others too: they stand behind it."""
        reached, found = {task_id}, []
        for task in self.tasks:
            if not reached.isdisjoint(task.dependent_task_ids):
                reached.add(task.task_id)
                found.append(task)
        return found


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """The tasks in the order given, but for what a task depends on: that comes right before it.

    Raises UnknownName, DuplicateName, and UserError with the tasks that wait for each other.
    """
    known: dict[str, Task] = {}
    for task in tasks:
        if task.task_id in known:
            raise DuplicateName("task", task.task_id)
        known[task.task_id] = task
    for task in known.values():
        for needed in task.dependent_task_ids:
            if needed not in known:
                raise UnknownName(f"task (needed by {task.task_id})", needed, known)
    placed: dict[str, Task] = {}
    for task_id in known:
        _place(task_id, known, placed)
    return list(placed.values())


def _place(task_id: str, known: Mapping[str, Task], placed: dict[str, Task]) -> None:
    """Place a task behind what it depends on; `path` is a stack, so that depth costs no recursion."""
    path: dict[str, Iterator[str]] = {task_id: iter(known[task_id].dependent_task_ids)}
    while path:
        current, needs = next(reversed(path.items()))
        needed = next((each for each in needs if each not in placed), None)
        if needed is None:
            placed[current] = known[current]
            del path[current]
        elif needed in path:
            names = list(path)
            cycle = " → ".join([*names[names.index(needed) :], needed])
            raise UserError(f"Tasks wait for each other: {cycle}. Take one of these dependencies out")
        else:
            path[needed] = iter(known[needed].dependent_task_ids)
