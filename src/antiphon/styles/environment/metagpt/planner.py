"""Planner: has a role's model make a plan, and leads the role through it."""

from __future__ import annotations

from typing import Any

import msgspec

from antiphon.errors import AntiphonError, UserError
from antiphon.styles.environment.metagpt.plan import Plan, Task, TaskResult
from antiphon.styles.environment.roles.acting import ActingRole

CONFIRM = ("confirm", "continue", "c", "yes", "y")
REDO = "redo"
EXIT = "exit"
TRIES = 3
"""How often a model is asked for a plan that can be read."""


class ReviewEnded(AntiphonError):
    """Whoever reviews the plan ended the work with `exit`."""


class Planner:
    """The plan of one role. Its model makes it; a person reviews, unless the role has `auto_run`."""

    def __init__(self, role: ActingRole) -> None:
        self._role = role
        self.plan = Plan()

    @property
    def current_task(self) -> Task | None:
        """The task that is due, None when all are done."""
        return self.plan.current_task

    async def update_plan(self, goal: str = "", max_tasks: int = 3) -> None:
        """Have the model plan, or plan anew. Raises UserError when no answer can be read as a plan."""
        self.plan.goal = goal or self.plan.goal
        wrong = said = ""
        while True:
            for _ in range(TRIES):
                said = await self._role._aask(self._question(max_tasks, wrong))
                try:
                    self.plan.add_tasks(_read(said, max_tasks))
                    break
                except (UserError, msgspec.DecodeError) as error:
                    wrong = f"Your last answer could not be used: {error}"
            else:
                raise UserError(f"{self._role.key} got no plan from its model in {TRIES} tries. {wrong}")
            review = await self._review("plan", said)
            if not review:
                return
            wrong = f"The plan was not accepted: {review}"

    async def process_task_result(self, result: TaskResult) -> None:
        """Take what came of the task that was due, and have it reviewed."""
        task = self.current_task
        if task is None:
            raise UserError(f"{self._role.key} has no task that this result could be of")
        review = await self._review(f"result of task {task.task_id}", result.result)
        if review == REDO:
            task.reset()
        elif review:
            task.update_task_result(result)
            await self.update_plan()
        else:
            task.update_task_result(result)
            self.plan.finish_current_task()

    def summary(self) -> str:
        """What came of the finished tasks, one paragraph each."""
        done = [f"{task.instruction}\n{task.result}".strip() for task in self.plan.get_finished_tasks()]
        return "\n\n".join(done)

    def dump(self) -> Any:
        """The plan as JSON data."""
        return msgspec.to_builtins(self.plan)

    def load(self, data: Any) -> None:
        """Take up a plan that `dump` gave."""
        self.plan = msgspec.convert(data, Plan)

    async def _review(self, what: str, said: str) -> str:
        """What a person says of it, empty when all is well. Raises ReviewEnded."""
        if self._role.auto_run:
            return ""
        ways = f"({', '.join(CONFIRM)}; redo; exit; or what to change)"
        asked = f"{self._role.key}: is this {what} right?\n{said}\n{ways}"
        answer = (await self._role.ctx.ask_user(asked)).strip()
        if answer.lower() == EXIT:
            raise ReviewEnded(f"the review of the {what} ended the work")
        return "" if answer.lower() in CONFIRM else (REDO if answer.lower() == REDO else answer)

    def _question(self, most: int, wrong: str) -> str:
        finished = "\n".join(f"{task.task_id}: {task.instruction}" for task in self.plan.get_finished_tasks())
        parts = [
            f"Goal: {self.plan.goal}",
            f"Already done:\n{finished}" if finished else "",
            f"Split what is to be done into at most {most} tasks. Answer with a JSON list of objects with "
            '"task_id" (text), "dependent_task_ids" (list), "instruction", "task_type", and nothing else.',
            wrong,
        ]
        return "\n\n".join(filter(None, parts))


def _read(said: str, most: int) -> list[Task]:
    start, end = said.find("["), said.rfind("]")
    if start < 0 or end < start:
        raise UserError("it holds no JSON list")
    tasks = msgspec.json.decode(said[start : end + 1].encode(), type=list[Task])
    if not 0 < len(tasks) <= most:
        raise UserError(f"between 1 and {most} tasks are wanted, not {len(tasks)}")
    return tasks
