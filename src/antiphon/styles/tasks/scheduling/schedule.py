"""The schedule: which task begins when. Two rules without a model, and their whole memory is the journal.

A controller deals the tasks out, to one lane per worker; a lane gives them to its worker, the most
urgent first, so many at once as the worker takes:

    controller ─┬─ controller/analyst ─┬─ analyst   task 2, high
                │                      └─ analyst   task 1
                └─ controller/writer ──── writer    task 3

What they know of a task is in their activation's data, under its id: how it ended, or that it has
not. A worker under whom a person is asked holds no place; the next task begins meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from antiphon import Agent, Hooks, LoopOptions, Message, UserError
from antiphon.styles.tasks.messages.message import MessageType
from antiphon.styles.tasks.scheduling.task import Task, TaskEnd, read_task, task_id_of
from antiphon.values.hooks import CallResult, Continue, PlannedCall, Return, TurnContext, TurnPlan
from antiphon.values.result import Outcome


def lane_name(controller: str, worker: str) -> str:
    """The name of the agent that keeps a worker's tasks."""
    return f"{controller}/{worker}"


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Tasks as they begin: the higher priority first, of equal ones the earlier."""
    return sorted(tasks, key=lambda task: -task.priority)


def lane(controller: str, worker: str, at_once: int) -> Agent:
    """The agent that gives its worker one task after the other, `at_once` at the same time."""

    def plan(context: TurnContext) -> TurnPlan:
        found = [read_task(each, controller, (worker,), context.at) for each in context.new_messages]
        return TurnPlan(
            [_call(task) for task in in_order(found)], {each.task_id: _open(each) for each in found}
        )

    def decide(context: TurnContext) -> Return:
        known = _known(context.data)
        fresh = {
            each.task_id: known[each.task_id].as_in(each)
            for each in (*context.results, *context.background_results)
            if each.outcome != "skipped"
        }
        ends = {**known, **fresh}
        changed = _described(fresh) if _any_open(ends) else {}
        return Return(output=msgspec.json.encode(list(ends.values())).decode(), activation_data=changed)

    return Agent(
        lane_name(controller, worker),
        description=f"keeps the tasks of {worker}",
        can_call=(worker,),
        loop=LoopOptions(max_parallel_calls=at_once),
        hooks=Hooks(plan_turn=plan, end_turn=decide),
    )


def dealer(name: str, controller: str, workers: Sequence[str]) -> Agent:
    """The agent that reads tasks, deals them out to the lanes and says how they ended."""

    def plan(context: TurnContext) -> TurnPlan:
        tasks, refused = _sorted_out(context, controller, workers)
        known = {each.task_id: _open(each) for each, _ in tasks}
        dealt: dict[str, list[int]] = {}
        for each, position in tasks:
            dealt.setdefault(each.worker, []).append(position)
        calls = [PlannedCall(lane_name(controller, each), forward=tuple(dealt[each])) for each in dealt]
        return TurnPlan(calls, {**known, **_described(refused)})

    def decide(context: TurnContext) -> Continue | Return:
        known = _known(context.data)
        fresh: dict[str, TaskEnd] = {}
        for each in (*context.results, *context.background_results):
            fresh.update(_ends_of(each, controller, known))
        ends = {**known, **fresh}
        if context.inbox:
            return Continue(activation_data=_described(fresh))
        return _report(list(ends.values()), _described(fresh) if _any_open(ends) else {})

    return Agent(
        name,
        description=_description(workers),
        can_call=[lane_name(controller, each) for each in workers],
        hooks=Hooks(plan_turn=plan, end_turn=decide),
    )


def _description(workers: Sequence[str]) -> str:
    task = '{"content": "…", "target_agent": "…", "metadata": {"priority": "high", "deadline": "2h"}}'
    return f"gives a task to the worker it is for ({', '.join(workers)}); send it as JSON: {task}"


def _call(task: Task) -> PlannedCall:
    return PlannedCall(
        task.worker,
        task.content,
        task_id=task.task_id,
        intent=MessageType.TASK,
        calls=task.calls,
        data=task.data,
        deadline=task.until,
    )


def _sorted_out(
    context: TurnContext, controller: str, workers: Sequence[str]
) -> tuple[list[tuple[Task, int]], dict[str, TaskEnd]]:
    """The tasks among the messages taken, most urgent first, with their positions; and what is none."""
    positions: dict[str, int] = {}
    tasks: list[Task] = []
    refused: dict[str, TaskEnd] = {}
    for position, message in enumerate(context.new_messages):
        try:
            task = read_task(message, controller, workers, context.at)
        except UserError as error:
            refused[task_id_of(message)] = _refused(message, error)
        else:
            tasks.append(task)
            positions[task.task_id] = position
    return [(task, positions[task.task_id]) for task in in_order(tasks)], refused


def _refused(message: Message, error: UserError) -> TaskEnd:
    return TaskEnd(task_id_of(message), message.receiver, "invalid", why=str(error))


def _open(task: Task) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(TaskEnd(task.task_id, task.worker, until=task.until))
    return found


def _known(data: Mapping[str, Any]) -> dict[str, TaskEnd]:
    return {task_id: msgspec.convert(each, TaskEnd) for task_id, each in data.items()}


def _described(ends: Mapping[str, TaskEnd]) -> dict[str, Any]:
    return {task_id: msgspec.to_builtins(each) for task_id, each in ends.items()}


def _any_open(ends: Mapping[str, TaskEnd]) -> bool:
    return any(not each.outcome for each in ends.values())


_read_ends = msgspec.json.Decoder(list[TaskEnd]).decode


def _ends_of(lane_call: CallResult, controller: str, known: Mapping[str, TaskEnd]) -> dict[str, TaskEnd]:
    """What a lane's end says of its tasks: how each ended, or, when it broke off, that none was done."""
    if lane_call.outcome == "skipped":
        return {}
    if lane_call.outcome == "completed":
        return {each.task_id: each for each in _read_ends(lane_call.content)}
    mine = [each for each in known.values() if lane_name(controller, each.worker) == lane_call.agent]
    return {each.task_id: each.as_in(lane_call) for each in mine if not each.outcome}


def _report(ends: Sequence[TaskEnd], changed: Mapping[str, Any]) -> Return:
    """One task's own end; of several a list as JSON, which has only completed when each of them has."""
    if len(ends) == 1:
        (only,) = ends
        return Return(_of_call(only.outcome), only.content, only.why, changed)
    value = msgspec.json.encode(ends).decode()
    failed = [each for each in ends if each.outcome != "completed"]
    if not failed:
        return Return("completed", value, activation_data=changed)
    named = "; ".join(f"{each.task_id} ({each.outcome}: {each.why})" for each in failed)
    how = "failed" if len(failed) == len(ends) else "partial"
    return Return("failed", value, f"{how}: {len(failed)} of {len(ends)} tasks failed: {named}", changed)


def _of_call(outcome: str) -> Outcome:
    """The outcome of the controller's own call: one that says that a call never ran is a failure."""
    return _OUTCOMES.get(outcome, "failed")


_OUTCOMES: Mapping[str, Outcome] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "limit": "limit",
    "budget": "budget",
    "no_progress": "no_progress",
    "interrupted": "interrupted",
}
