"""Plans of tasks that depend on each other."""

import pytest

from antiphon import UserError
from antiphon.errors import DuplicateName, UnknownName
from antiphon.styles.environment.metagpt.plan import Plan, Task, TaskResult


def task(task_id: str, *needs: str, say: str = "") -> Task:
    return Task(task_id, list(needs), say or f"do {task_id}")


def ids(plan: Plan) -> list[str]:
    return [each.task_id for each in plan.tasks]


def finished(plan: Plan) -> list[str]:
    return [each.task_id for each in plan.get_finished_tasks()]


def test_a_task_comes_after_what_it_needs() -> None:
    plan = Plan("goal")
    plan.add_tasks([task("1", "2", "3"), task("2"), task("3", "2")])
    assert ids(plan) == ["2", "3", "1"]
    assert plan.current_task_id == "2"
    assert plan.current_task is plan.task_map["2"]


def test_the_order_given_is_kept_otherwise() -> None:
    plan = Plan("goal", tasks=[task("c"), task("a", "z"), task("b"), task("z")])
    assert ids(plan) == ["c", "z", "a", "b"]
    plan.tasks = plan.tasks[::-1]
    plan.append_task(task("d"))
    assert ids(plan) == ["b", "z", "a", "c", "d"]


def test_depth_costs_no_recursion() -> None:
    count = 5_000
    plan = Plan("goal", tasks=[task(str(n), *([str(n + 1)] if n < count else [])) for n in range(count + 1)])
    assert ids(plan)[:2] == [str(count), str(count - 1)]
    plan.reset_task(str(count))


def test_a_common_beginning_is_kept() -> None:
    plan = Plan("goal", tasks=[task("1", "2", "3"), task("2"), task("3", "2")])
    plan.finish_current_task()
    plan.finish_current_task()
    assert (plan.current_task_id, finished(plan)) == ("1", ["2", "3"])
    plan.add_tasks([task("4", "3"), task("2"), task("3", "2")])
    assert ids(plan) == ["2", "3", "4"]
    assert finished(plan) == ["2", "3"]
    assert plan.current_task_id == "4"


def test_another_instruction_is_another_task() -> None:
    plan = Plan("goal", tasks=[task("1"), task("2"), task("3")])
    for _ in plan.tasks:
        plan.finish_current_task()
    plan.add_tasks([task("1"), task("2", say="otherwise"), task("3")])
    assert finished(plan) == ["1"]


def test_without_a_common_beginning_everything_is_new() -> None:
    plan = Plan("goal", tasks=[task("1"), task("2")])
    plan.finish_current_task()
    plan.add_tasks([task("2"), task("1")])
    assert ids(plan) == ["2", "1"]
    assert finished(plan) == []
    plan.add_tasks([])
    assert ids(plan) == ["2", "1"]


def test_what_is_not_there_is_refused_and_changes_nothing() -> None:
    plan = Plan("goal", tasks=[task("1"), task("2")])
    plan.finish_current_task()
    with pytest.raises(UnknownName, match=r"Unknown task \(needed by 3\): 9. Known: 1, 2, 3"):
        plan.append_task(task("3", "9"))
    with pytest.raises(UnknownName, match=r"Unknown task: 3. Known: 1, 2"):
        plan.replace_task(task("3"))
    with pytest.raises(UnknownName, match=r"\(needed by 1\): 2"):
        plan.add_tasks([task("1", "2")])
    with pytest.raises(DuplicateName, match="Two tasks are named '1'"):
        plan.append_task(task("1"))
    plan.reset_task("3")
    assert ids(plan) == ["1", "2"]
    assert finished(plan) == ["1"]
    plan.append_task(task("3", "1"))
    assert ids(plan) == ["1", "2", "3"]


def test_who_depends_on_a_replaced_task_starts_anew() -> None:
    plan = Plan("goal", tasks=[task("1"), task("2", "1"), task("3", "2"), task("4")])
    for each in list(plan.tasks):
        each.update_task_result(TaskResult("code", "result", True))
        plan.finish_current_task()
    assert plan.is_plan_finished()
    assert (plan.current_task, plan.current_task_id) == (None, "")
    plan.replace_task(task("1", say="better"))
    assert plan.task_map["1"].instruction == "better"
    assert finished(plan) == ["4"]
    assert plan.current_task_id == "1"
    two = plan.task_map["2"]
    assert (two.code, two.result, two.is_success, two.instruction) == ("", "", False, "do 2")


def test_a_reset_goes_as_far_as_the_dependencies() -> None:
    plan = Plan("goal", tasks=[task("1"), task("2", "1"), task("3", "2"), task("4")])
    for _ in plan.tasks:
        plan.finish_current_task()
    plan.reset_task("2")
    assert finished(plan) == ["1", "4"]


def test_a_cycle_is_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"wait for each other: 2 → 3 → 4 → 2\."):
        Plan("goal", tasks=[task("1", "2"), task("2", "3"), task("3", "4"), task("4", "2")])
    plan = Plan("goal", tasks=[task("1"), task("2", "1")])
    with pytest.raises(UserError, match="1 → 2 → 1"):
        plan.replace_task(task("1", "2"))
    assert plan.task_map["1"].dependent_task_ids == []
    with pytest.raises(UserError, match="3 → 3"):
        plan.append_task(task("3", "3"))


def test_results_of_a_task_add_up() -> None:
    one = task("1")
    one.update_task_result(TaskResult("a", "first", True))
    one.update_task_result(TaskResult("", "second", False))
    assert (one.code, one.result, one.is_success) == ("a", "first\nsecond", False)


def test_a_plan_round_trips() -> None:
    plan = Plan("goal", "context", [task("1", "2"), task("2")])
    plan.finish_current_task()
    loaded = Plan.load(plan.dump())
    assert loaded == plan
    assert loaded.current_task_id == "1"
    loaded.finish_current_task()
    assert loaded != plan
    with pytest.raises(UserError, match=r"a plan as JSON: .*\$\.tasks\[0\]"):
        Plan.load('{"tasks": [1]}')
    with pytest.raises(UserError, match="1 → 1"):
        Plan.load('{"tasks": [{"task_id": "1", "dependent_task_ids": ["1"]}]}')
