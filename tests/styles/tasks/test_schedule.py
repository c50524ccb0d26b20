"""Which task begins when, and how each of them ends."""

import asyncio
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import Agent, RunFailed, UserError, open_run
from antiphon.errors import DuplicateName
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import ActionEffect, EffectStarted
from antiphon.kernel.run.rows import read
from antiphon.styles.tasks import Controller, InvalidMessage, StructuredMessage, Worker
from antiphon.styles.tasks.scheduling.deadline import LAST, instant
from antiphon.styles.tasks.scheduling.task import read_priority
from antiphon.testing.clock import VirtualClock
from antiphon.values.actions import ActionContext

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
START = NOON.timestamp()
HOUR = 3_600.0


def task(task_id: str, worker: str, content: str = "1", **data: Any) -> StructuredMessage:
    return StructuredMessage.create_task(content, "user", worker, data, task_id)


class Office:
    """Workers that take as many seconds as a task's content says; `began`: what work began, and when."""

    def __init__(self, **concurrency: int) -> None:
        self.clock = VirtualClock(START)
        self.journal = MemoryJournal()
        self.began: list[tuple[str, str, float]] = []
        self.busy: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        workers = [Worker(name, act=self.work, concurrency=most) for name, most in concurrency.items()]
        self.controller = Controller(workers, clock=self.clock, journal=self.journal)

    async def work(self, ctx: ActionContext) -> str:
        (message,) = ctx.new_messages
        self.busy[ctx.agent] += 1
        self.most[ctx.agent] = max(self.most[ctx.agent], self.busy[ctx.agent])
        try:
            await self.clock.sleep_until(self.clock.now() + float(message.content))
        finally:
            self.busy[ctx.agent] -= 1
        return f"{message.task_id} is done"

    def run(self, *tasks: StructuredMessage) -> list[StructuredMessage]:
        return asyncio.run(self._run(tasks))

    async def _run(self, tasks: tuple[StructuredMessage, ...]) -> list[StructuredMessage]:
        replies = await self.controller.run_tasks(tasks, run_id="run")
        records = await read(self.journal, "run")
        at_work = {each.activation: each for each in self.controller.status(records).values()}
        for record in records:
            if isinstance(record.event, EffectStarted) and isinstance(record.event.detail, ActionEffect):
                done = at_work[record.activation]
                self.began.append((done.worker, done.task_id, record.at - START))
        return replies

    def order(self, worker: str) -> list[str]:
        return [task_id for name, task_id, _ in self.began if name == worker]


def outcomes(replies: list[StructuredMessage]) -> dict[str, str]:
    return {each.task_id: each.metadata["outcome"] for each in replies}


# -- priority and concurrency -------------------------------------------------------------------


def test_the_higher_priority_begins_first_and_equal_ones_in_their_order() -> None:
    office = Office(w=1)
    said = {"a": "low", "b": None, "c": "high", "d": 2.5, "e": "medium", "f": -7, "g": "HIGH", "h": 0}
    replies = office.run(*(task(each, "w", priority=priority) for each, priority in said.items()))
    assert office.order("w") == ["d", "c", "g", "b", "e", "h", "a", "f"]
    assert [each.task_id for each in replies] == list(said)
    assert [each.content for each in replies] == [f"{each} is done" for each in said]


def test_a_worker_does_no_more_at_once_than_it_takes_and_none_waits_for_another_worker() -> None:
    office = Office(one=1, two=2)
    office.run(*(task(f"{worker}{number}", worker) for number in range(5) for worker in ("one", "two")))
    assert office.most == {"one": 1, "two": 2}
    assert [at for worker, _, at in office.began if worker == "one"] == [0, 1, 2, 3, 4]
    assert [at for worker, _, at in office.began if worker == "two"] == [0, 0, 1, 1, 2]


def test_what_is_no_priority() -> None:
    for said in ("urgent", True, float("nan"), float("inf"), [1]):
        with pytest.raises(InvalidMessage, match="a number or one of high, medium, low; got"):
            read_priority(said)


# -- deadlines ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [
        ("2h", START + 2 * HOUR),
        ("30m", START + HOUR / 2),
        ("1d 4h", START + 28 * HOUR),
        (" 1w2d 3 h 4min 5.5s ", START + (9 * 24 + 3) * HOUR + 245.5),
        ("2030-01-01T14:00:00Z", START + 2 * HOUR),
        ("2030-01-01T14:00:00+02:00", START),
        ("2030-01-01 14:00", START + 2 * HOUR),
        ("2030-01-02", START + 12 * HOUR),
        (START, START),
        (0, 0.0),
        (timedelta(hours=1), START + HOUR),
        (NOON, START),
        (NOON.replace(tzinfo=None), START),
        (date(2030, 1, 2), START + 12 * HOUR),
    ],
)
def test_a_deadline_is_an_instant_or_how_long_it_may_take(deadline: Any, expected: float) -> None:
    assert instant(deadline, START) == expected


@pytest.mark.parametrize(
    "deadline",
    ["", "2", "soon", "2 hours", "2h later", "-2h", "h", "1.h", "٣h", "2030-13-01", "9" * 400 + "h",
     "1h" * 40, True, [], {}, float("nan"), float("inf"), -1, LAST * 1_000, timedelta.max,
     timedelta(days=-40_000)],
)  # fmt: skip
def test_what_is_no_deadline_is_refused_with_the_forms_there_are(deadline: Any) -> None:
    with pytest.raises(InvalidMessage, match=r'deadline: expected a duration such as "2h".*; got ') as caught:
        instant(deadline, START)
    assert len(str(caught.value)) < 400


def test_a_missed_deadline_is_that_tasks_outcome_and_the_rest_go_on() -> None:
    office = Office(w=1)
    replies = office.run(
        task("in time", "w", "10", deadline="11s"),
        task("too long", "w", "100", deadline="1m"),
        task("never begun", "w", "1", deadline=NOON + timedelta(seconds=59)),
        task("long past", "w", "1", deadline="1999-01-01"),
        task("after all", "w", "1"),
    )
    assert outcomes(replies) == {
        "in time": "completed",
        "too long": "limit",
        "never begun": "limit",
        "long past": "limit",
        "after all": "completed",
    }
    assert office.began == [("w", "in time", 0), ("w", "too long", 10), ("w", "after all", 60)]
    assert replies[1].message_type == "error"
    assert replies[1].content.endswith("s is used up; its deadline was 2030-01-01T12:01:00+00:00")


# -- what is no task ----------------------------------------------------------------------------


def test_a_task_that_cannot_be_done_says_why_and_keeps_none_of_the_others() -> None:
    office = Office(w=1, v=1)
    replies = office.run(
        task("unknown", "nobody"),
        task("bad deadline", "w", deadline="soon"),
        task("bad priority", "w", priority="very"),
        task("empty", "w", ""),
        task("nameless", ""),
        task("good", "w"),
    )
    assert [each.metadata["status"] for each in replies] == ["failed"] * 5 + ["completed"]
    said = [each.content for each in replies[:5]]
    assert said[0] == "Unknown worker: nobody. Known: v, w"
    assert said[1].startswith("deadline: expected")
    assert said[2].startswith("priority: expected")
    assert said[3] == "The task has neither content nor tool calls; give it one"
    assert said[4] == 'The task names no worker: say "target_agent". Known: w, v'
    assert [each.source_agent for each in replies] == ["controller", "w", "w", "w", "controller", "w"]


def test_no_task_at_all_is_no_reply() -> None:
    assert Office(w=1).run() == []


def test_two_tasks_of_one_id_are_refused() -> None:
    with pytest.raises(InvalidMessage, match="Two tasks have the id 'same'"):
        Office(w=1).run(task("same", "w"), task("same", "w"))


def test_a_task_may_be_a_dictionary() -> None:
    (reply,) = asyncio.run(Office(w=1).controller.run_tasks([task("1", "w").to_dict()]))
    assert (reply.content, reply.target_agent) == ("1 is done", "user")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Controller([]), "at least one worker"),
        (lambda: Worker("w"), "an agent, or a name and what it does"),
        (lambda: Worker(Agent("w"), act=Office(w=1).work), "an agent, or a name and what it does"),
        (lambda: Worker(Agent("w"), concurrency=0), "a whole number from 1 on; got 0"),
        (lambda: Worker(Agent("w"), concurrency=True), "a whole number from 1 on; got True"),
        (lambda: Controller([Agent("w"), Worker(Agent("w"))]), "Two workers are named 'w'"),
    ],
)
def test_a_controller_that_cannot_be(make: Any, text: str) -> None:
    with pytest.raises(UserError, match=text) as caught:
        make()
    assert isinstance(caught.value, DuplicateName) == text.startswith("Two")


# -- how far it is ------------------------------------------------------------------------------


def test_the_journal_shows_how_far_each_task_is() -> None:
    office = Office(w=1, v=1)
    tasks = [task("1", "w", "3", priority="low"), task("2", "w", "2"), task("3", "v", "9", deadline="5s")]

    async def watch() -> list[dict[str, str]]:
        seen = []
        async with open_run(office.controller.agents(), clock=office.clock) as opened:
            call = await office.controller.post(opened, tasks)
            for second in (0.5, 2.5, 5.5):
                await office.clock.sleep_until(START + second)
                status = office.controller.status(await opened.records())
                seen.append({task_id: each.state for task_id, each in status.items()})
                replies = office.controller.replies(tasks, await opened.records())
                assert {each.task_id for each in replies} == {
                    task_id for task_id, each in status.items() if each.state in ("completed", "failed")
                }
            with pytest.raises(RunFailed, match=r"1 of 3 tasks failed: 3 .limit: "):
                await opened.result(call)
        return seen

    assert asyncio.run(watch()) == [
        {"2": "in_progress", "3": "in_progress", "1": "pending"},
        {"2": "completed", "3": "in_progress", "1": "in_progress"},
        {"2": "completed", "3": "failed", "1": "completed"},
    ]


# -- any tasks at all ---------------------------------------------------------------------------


class Given(NamedTuple):
    worker: str
    priority: int
    seconds: int
    deadline: int | None

    def late(self, number: int) -> float | None:
        """When it is too late for task `number`: no other task's deadline, or end, is at that context."""
        return None if self.deadline is None else self.deadline + (number + 1) / 16


TEAM = {"one": 1, "two": 2, "three": 3}
SOME = st.builds(
    Given,
    st.sampled_from(sorted(TEAM)),
    st.integers(-2, 2),
    st.integers(0, 6),
    st.none() | st.integers(-1, 20),
)


def expected(tasks: list[Given]) -> tuple[set[tuple[str, str, float]], dict[str, str]]:
    """When each task begins and how it ends, worked out on paper: one desk after the other."""
    began, ended = set(), {}
    for worker, places in TEAM.items():
        waiting = [(number, each) for number, each in enumerate(tasks) if each.worker == worker]
        waiting.sort(key=lambda one: (-one[1].priority, one[0]))
        free = [0.0] * places
        for number, each in waiting:
            place = free.index(min(free))
            now, late = free[place], each.late(number)
            if late is not None and late <= now:
                ended[str(number)] = "limit"
                continue
            began.add((worker, str(number), now))
            done = now + each.seconds
            ended[str(number)] = "limit" if late is not None and late < done else "completed"
            free[place] = min(done, late) if late is not None else done
    return began, ended


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(SOME, max_size=12))
def test_any_tasks_begin_and_end_as_on_paper(tasks: list[Given]) -> None:
    messages = []
    for number, each in enumerate(tasks):
        late = each.late(number)
        data = {} if late is None else {"deadline": START + late}
        messages.append(task(str(number), each.worker, str(each.seconds), priority=each.priority, **data))
    began, ended = expected(tasks)
    first, again = Office(**TEAM), Office(**TEAM)
    assert outcomes(first.run(*messages)) == ended
    assert set(first.began) == began
    for worker in TEAM:
        paper = sorted(
            (at, -tasks[int(each)].priority, int(each)) for name, each, at in began if name == worker
        )
        assert first.order(worker) == [str(number) for _, _, number in paper]
    assert outcomes(again.run(*messages)) == ended
    assert again.began == first.began
