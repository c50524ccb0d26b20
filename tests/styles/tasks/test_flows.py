"""How messages flow between a controller, its workers and their tools, and what may go wrong."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon import (
    Agent,
    Limits,
    Message,
    ModelOptions,
    Policy,
    Result,
    Run,
    RunFailed,
    UserError,
    open_run,
    run,
    tool,
)
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import ApprovalEffect, EffectFinished, EffectStarted
from antiphon.models.script import Script, call, finish
from antiphon.styles.loop.options import AgentOptions, agent_of
from antiphon.styles.tasks import (
    AgentToolkit,
    Controller,
    MessageType,
    StructuredMessage,
    ToolCapableAgent,
    Worker,
)
from antiphon.testing.clock import VirtualClock
from antiphon.values.actions import ActionContext
from antiphon.values.tool import as_tool
from tests.transcript import Gate, effects, results_shown, sent, shown


def query(text: str, to: str | None = None) -> StructuredMessage:
    message = StructuredMessage(text, {"type": MessageType.QUERY}, task_id="thread")
    message.source_agent, message.target_agent = "user", to
    return message


def task(task_id: str, worker: str, content: str = "Do it", **data: Any) -> StructuredMessage:
    return StructuredMessage.create_task(content, "user", worker, data, task_id)


def hand_over(to: str, text: str) -> Any:
    return call("call_agent", agent_name=to, message=text, handoff=True)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adder(toolkit: AgentToolkit | None = None, **options: Any) -> ToolCapableAgent:
    agent = ToolCapableAgent("adder", "sums", toolkit=toolkit, **options)
    if toolkit is None:
        agent.register_tool(add)
    return agent


async def store(ctx: ActionContext) -> str:
    (message,) = ctx.new_messages
    if message.content == "break":
        raise RuntimeError("out of order")
    return f"stored {message.content}"


def talk(result: Result) -> list[tuple[str, str]]:
    return [(said, each.task_id) for said, each in zip(sent(result), result.messages, strict=True)]


SILENT = Script([])


async def played(controller: Controller, *tasks: StructuredMessage) -> tuple[Result, list[Any]]:
    """The controller's own result for some tasks, and the records."""
    async with open_run(controller.agents()) as opened:
        asked = await controller.post(opened, tasks)
        try:
            result = await opened.result(asked)
        except RunFailed as failed:
            result = failed.result
        records = await opened.records()
        await opened.close()
        return result, records


# -- the four patterns --------------------------------------------------------------------------


def test_request_and_response() -> None:
    controller = Controller([Agent("weather", model=Script(["Sunny, 22 °C."]))])
    message = query("What's the weather?", to="weather")
    reply = controller.process_structured_message(message)
    assert (reply.content, reply.metadata["status"]) == ("Sunny, 22 °C.", "completed")
    assert (reply.source_agent, reply.target_agent, reply.task_id) == ("weather", "user", "thread")
    assert reply.metadata["in_reply_to"] == message.task_id


def test_delegation() -> None:
    controller = Controller(
        [Agent("analyst", model=Script(["Mostly happy."])), Agent("writer", model=SILENT)]
    )
    work = task("reviews", "analyst", "Analyze these reviews", priority="high", deadline="2h")
    result, _ = asyncio.run(played(controller, work))
    assert talk(result) == [
        ("forward controller/analyst>analyst: Analyze these reviews", "reviews"),
        ("return analyst>controller/analyst: Mostly happy.", "reviews"),
        (f"return controller/analyst>controller: {result.messages[2].content}", "reviews"),
        ("return controller>user: Mostly happy.", "reviews"),
    ]
    forward = result.messages[0]
    assert (forward.intent, forward.data["priority"]) == ("task", "high")
    assert (result.outcome, result.output) == ("completed", "Mostly happy.")


def test_several_steps_with_tools() -> None:
    model = Script([call("add", a=3, b=3), "Six."])
    work = task("sum", "adder", "Three and three?")
    work.add_tool_call("add", {"a": 1, "b": 2}, "mine")
    (reply,) = asyncio.run(Controller([adder(model=model)]).run_tasks([work]))
    assert (reply.message_type, reply.content) == ("result", "Six.")
    assert [(each["call_id"], each["result"]) for each in reply.tool_results] == [
        ("mine", 3),
        ("call_1_1", 6),
    ]
    assert [results_shown(request) for request in model.requests] == [["3"], ["3", "6"]]


def collaborators(last: Any = "The report.") -> Controller:
    model = Script({"a": [hand_over("b", "Intermediate: 42")], "b": [last]})
    return Controller([Agent("a", model=model), Agent("b", model=model)])


def test_collaboration() -> None:
    result, _ = asyncio.run(played(collaborators(), task("both", "a", "Begin")))
    assert talk(result)[:4] == [
        ("forward controller/a>a: Begin", "both"),
        ("forward a>b: Intermediate: 42", "both"),
        ("return b>a: The report.", "both"),
        ("return a>controller/a: The report.", "both"),
    ]
    assert (result.output, result.reason) == ("The report.", "handed over to b")
    assert {each.task_id for each in result.messages} == {"both"}
    (reply,) = asyncio.run(collaborators().run_tasks([task("both", "a", "Begin")]))
    assert (reply.content, reply.metadata["why"]) == ("The report.", "handed over to b")
    assert (reply.task_id, reply.tool_results) == ("both", [])


def test_workers_know_their_fellows_and_nobody_else() -> None:
    seen: list[str] = []

    def watch(request: Any) -> str:
        seen.append(request.system)
        return "done"

    controller = Controller(
        [
            Agent("a", "A.", model=Script(watch)),
            Agent("b", "B.", model=SILENT),
            Agent("c", "C.", model=SILENT, can_call=()),
        ]
    )
    asyncio.run(controller.run_tasks([task("1", "a")]))
    assert seen == [
        'You are "a". A.\n\nAvailable agents:\n- b: B.\n- c: C.\n\n'
        "Use call_agent to delegate work to other agents.\n"
        "Use finish to complete your task and return the result."
    ]


# -- a controller with a model ------------------------------------------------------------------


def test_a_model_routes_what_names_no_worker() -> None:
    model = Script(
        {
            "boss": [call("call_agent", agent_name="b", message="Count"), finish("b counted 3")],
            "a": ["a is here"],
            "b": ["3"],
        }
    )
    workers = [Agent("a", "Sings.", model=model), Agent("b", "Counts.", model=model)]
    boss = Controller(workers, model, name="boss")
    reply = boss.process_structured_message(query("How many?"))
    assert (reply.content, reply.source_agent, reply.message_type) == ("b counted 3", "boss", "response")
    assert "- b: Counts." in model.requests[0].system
    assert "boss/" not in model.requests[0].system
    # What names a worker is scheduled, and no model is asked where it goes.
    assert boss.process_structured_message(query("Here?", to="a")).content == "a is here"


def test_a_model_that_cannot_be_asked_is_an_error() -> None:
    boss = Controller([Agent("a", model=SILENT)], Script([]), name="boss")
    reply = boss.process_structured_message(query("Hello?"))
    assert (reply.message_type, reply.source_agent, reply.metadata["status"]) == ("error", "boss", "failed")


# -- a controller in a team ---------------------------------------------------------------------


def led(*replies: Any, workers: Sequence[Worker]) -> tuple[Result, Script]:
    model = Script(list(replies))
    lead = Agent("lead", "You lead.", model=model, can_call=["controller"])
    try:
        return asyncio.run(run(lead, "Go", agents=[lead, *Controller(workers).agents()])), model
    except RunFailed as failed:
        return failed.result, model


WORKERS = (Worker("archive", act=store), Worker("attic", act=store))


def test_any_agent_calls_a_controller_with_a_task_as_json() -> None:
    asked = json.dumps({"content": "this", "target_agent": "attic", "metadata": {"deadline": "2h"}})
    result, model = led(call("call_agent", agent_name="controller", message=asked), "ok", workers=WORKERS)
    assert result.output == "ok"
    assert results_shown(model.requests[-1]) == ["stored this"]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ("store this", 'The task names no worker: say "target_agent". Known: archive, attic'),
        ("{store this", "Not JSON: "),
        ('{"$antiphon": "set", "value": []}', "A message is a dictionary; got set"),
        ('{"target_agent": "attic"}', "The message has no 'content'"),
        ('{"content": "x", "target_agent": "cellar"}', "Unknown worker: cellar. Known: archive, attic"),
        (
            '{"content": "x", "target_agent": "attic", "tool_calls": 5}',
            "tool_calls: expected a list, got int",
        ),
    ],
)
def test_a_call_that_is_no_task_is_answered_with_what_is_wrong(asked: str, error: str) -> None:
    _, model = led(call("call_agent", agent_name="controller", message=asked), "ok", workers=WORKERS)
    (shown,) = results_shown(model.requests[-1])
    assert shown.startswith(f"Error: {error}")


def test_the_only_worker_is_the_one_that_is_meant() -> None:
    _, model = led(call("call_agent", agent_name="controller", message="this"), "ok", workers=WORKERS[:1])
    assert results_shown(model.requests[-1]) == ["stored this"]


def test_tasks_that_come_while_others_are_done_are_done_too() -> None:
    clock = VirtualClock()

    async def slow(ctx: ActionContext) -> str:
        await clock.sleep_until(clock.now() + 10)
        return await store(ctx)

    controller = Controller([Worker("archive", act=slow)])

    async def play() -> tuple[Result, list[str]]:
        async with open_run(controller.agents(), clock=clock) as opened:
            asked = await controller.post(opened, [task("1", "archive", "this")])
            await opened.post(asked, Message("forward", "user", "archive", "that", task_id="2"))
            result = await opened.result(asked)
            return result, list(controller.status(await opened.records()))

    result, known = asyncio.run(play())
    assert [(each["task_id"], each["content"]) for each in json.loads(result.output)] == [
        ("1", "stored this"),
        ("2", "stored that"),
    ]
    assert known == ["1", "2"]


# -- what may go wrong --------------------------------------------------------------------------


def test_a_part_that_failed_is_never_completed() -> None:
    controller = Controller(WORKERS)
    good, bad = task("good", "attic"), task("bad", "archive", "break")
    partial, _ = asyncio.run(played(controller, good, bad))
    assert (partial.outcome, partial.reason) == (
        "failed", "partial: 1 of 2 tasks failed: bad (failed: RuntimeError: out of order)",
    )  # fmt: skip
    assert [each["content"] for each in json.loads(partial.output)] == ["stored Do it", ""]
    failed, _ = asyncio.run(played(controller, bad))
    assert (failed.outcome, failed.reason) == ("failed", "RuntimeError: out of order")
    both, _ = asyncio.run(played(controller, bad, task("worse", "attic", "break")))
    assert both.reason.startswith("failed: 2 of 2 tasks failed: bad (")
    all_well, _ = asyncio.run(played(controller, good, task("2", "archive")))
    assert (all_well.outcome, all_well.reason) == ("completed", "")


@pytest.mark.impure("a permission is withdrawn while the task is worked on")
def test_a_denied_tool_is_in_the_reply() -> None:
    toolkit = AgentToolkit()
    toolkit.register_tool(add)
    toolkit.grant_permission("adder", "add")

    def revoke(request: Any) -> Any:
        toolkit.revoke_permission("adder", "add")
        return call("add", a=1, b=2)

    worker = adder(toolkit, model=Script([revoke, "I may not."]))
    work = task("sum", "adder")
    work.add_tool_call("add", {"a": 1, "b": 1})
    work.add_tool_call("take_away", {"a": 1})
    (reply,) = asyncio.run(Controller([worker]).run_tasks([work]))
    assert [each["status"] for each in reply.tool_results] == ["success", "error", "error"]
    assert "adder has no permission for add" in reply.tool_results[2]["error"]
    assert (reply.metadata["status"], reply.metadata["outcome"]) == ("partial", "completed")


def test_a_workers_own_limits_hold_and_are_its_tasks_outcome_alone() -> None:
    endless = Script(lambda request: call("add", a=1, b=1))
    limited = adder(model=endless, limits=Limits(turns=2))
    replies = asyncio.run(
        Controller([limited, WORKERS[0]]).run_tasks([task("1", "adder"), task("2", "archive")])
    )
    assert [each.metadata["outcome"] for each in replies] == ["limit", "completed"]
    assert "2 turns" in replies[0].content
    assert "deadline" not in replies[0].content


def test_a_workers_own_policy_holds_for_its_tasks_too() -> None:
    strict = adder(model=Script([call("add", a=1, b=1), "Refused."]), policy=Policy("strict"))
    (reply,) = asyncio.run(Controller([strict]).run_tasks([task("1", "adder")]))
    (result,) = reply.tool_results
    assert (result["status"], reply.content) == ("error", "Refused.")
    assert "permission denied" in result["error"]


def test_every_task_begins_anew() -> None:
    model = Script(["one", "two"])
    asyncio.run(
        Controller([adder(model=model)]).run_tasks([task("1", "adder", "a"), task("2", "adder", "b")])
    )
    assert [shown(request) for request in model.requests] == [["user: a"], ["user: b"]]


def test_an_agent_of_another_style_is_a_worker_too() -> None:
    looping = agent_of(AgentOptions(llm=Script([call("add", a=1, b=2), "Three."]), tools=[as_tool(add)]))
    (reply,) = asyncio.run(Controller([looping]).run_tasks([task("1", looping.name)]))
    assert (reply.content, reply.tool_results[0]["result"]) == ("Three.", 3)


def test_a_budget_that_is_used_up_is_the_outcome_of_the_tasks_it_did_not_reach() -> None:
    model = Script({"a": ["cheap"], "b": ["dear"]})
    cap = {"a": 10, "b": 10_000}
    workers = [Agent(name, model=model, asking=ModelOptions(max_output_tokens=cap[name])) for name in cap]
    controller = Controller(workers, limits=Limits(tokens=5_000))
    replies = asyncio.run(controller.run_tasks([task("1", "a"), task("2", "b")]))
    assert [each.metadata["outcome"] for each in replies] == ["completed", "budget"]


def test_cancelled_in_the_middle_each_task_has_its_outcome() -> None:
    stop = asyncio.Event()
    journal = MemoryJournal()

    async def stuck(ctx: ActionContext) -> str:
        stop.set()
        await asyncio.Event().wait()
        return ""

    workers = [Worker("archive", act=store), Worker("stuck", act=stuck)]
    controller = Controller(workers, journal=journal)
    tasks = [task("1", "archive", "this"), task("2", "stuck"), task("3", "stuck"), task("4", "nobody")]

    async def play() -> tuple[list[StructuredMessage], tuple[str, ...]]:
        replies = await controller.run_tasks(tasks, signal=stop, run_id="run")
        async with open_run(controller.agents(), journal=journal, run_id="run") as opened:
            return replies, await opened.open_requests()

    replies, left = asyncio.run(play())
    assert [(each.metadata["outcome"], each.metadata["why"]) for each in replies[1:]] == [
        ("cancelled", "the caller ended"),
        ("cancelled", "the caller ended"),
        ("invalid", "Unknown worker: nobody. Known: archive, stuck"),
    ]
    assert left == ()


@tool(effect="once", requires_approval=True)
async def wire(amount: int) -> str:
    """Wire money."""
    return f"wired {amount}"


def test_an_approval_holds_its_own_task_only() -> None:
    model = Script(_teller)
    controller = Controller([Agent("bank", model=model, tools=[wire]), WORKERS[0]])
    tasks = [
        task("held", "bank", "wire"),
        task("also", "bank", "wire"),
        task("free", "bank", "talk"),
        task("other", "archive"),
    ]

    async def play() -> Result:
        async with open_run(controller.agents(), interactive=True) as opened:
            call_id = await controller.post(opened, tasks)
            states = {"held": "in_progress", "also": "in_progress", "free": "completed", "other": "completed"}
            questions = await reached(states, controller, opened)
            await opened.answer(questions[0], "yes")
            (question,) = await reached({**states, "held": "completed"}, controller, opened)
            await opened.answer(question, "no")
            result = await opened.result(call_id)
            known = controller.status(await opened.records())
            # What the controller noted meanwhile takes nothing from what is known of a task.
            assert all(each.activation for each in known.values())
            return result

    result = asyncio.run(play())
    assert result.outcome == "completed"
    assert {each["task_id"]: each["content"] for each in json.loads(result.output)} == {
        "held": "wired 5",
        "also": "Error: permission denied by user: refused",
        "free": "talked",
        "other": "stored Do it",
    }


def _teller(request: Any) -> Any:
    """Wires when it is told to, and answers with what came of it."""
    last = request.messages[-1]
    if last.role == "tool":
        return last.content
    return call("wire", amount=5) if last.content == "wire" else "talked"


async def reached(states: dict[str, str], controller: Controller, opened: Run) -> tuple[str, ...]:
    """Once the tasks are in these states: the approvals that are waited for."""
    async with asyncio.timeout(10):
        async for _ in opened.events(deltas=False):
            records = await opened.records()
            if {each.task_id: each.state for each in controller.status(records).values()} == states:
                break
    started = {each.event.id: each.event for each in records if isinstance(each.event, EffectStarted)}
    ended = {each.event.id for each in records if isinstance(each.event, EffectFinished)}
    return tuple(e for e in started if e not in ended and type(started[e].detail) is ApprovalEffect)


def test_nobody_is_there_to_approve_unless_the_controller_is_attended() -> None:
    model = Script([call("wire", amount=5), "It was refused."])
    (reply,) = asyncio.run(
        Controller([Agent("bank", model=model, tools=[wire])]).run_tasks([task("1", "bank")])
    )
    assert [each["status"] for each in reply.tool_results] == ["error"]


def test_the_same_tasks_given_again_go_on_where_they_were() -> None:
    journal, gate, asked = MemoryJournal(), Gate("late, but done"), asyncio.Event()

    def slow(request: Any) -> Any:
        asked.set()
        return gate

    model = Script({"quick": ["done", "done again"], "slow": slow})
    controller = Controller([Agent("quick", model=model), Agent("slow", model=model)], journal=journal)
    tasks = [task("1", "quick"), task("2", "slow")]

    async def play() -> list[StructuredMessage]:
        lost = asyncio.ensure_future(controller.run_tasks(tasks, run_id="nightly"))
        await asked.wait()
        lost.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lost
        gate.open.set()
        return await controller.run_tasks([*tasks, task("3", "quick")], run_id="nightly")

    replies = asyncio.run(play())
    assert [each.content for each in replies] == ["done", "late, but done", "done again"]
    assert model.asked == 4


def test_an_event_loop_that_runs_is_said() -> None:
    async def play() -> None:
        with pytest.raises(UserError, match="await aprocess_structured_message"):
            Controller(WORKERS).process_structured_message(query("?"))

    asyncio.run(play())


def test_the_journal_of_tasks_reads_as_it_should() -> None:
    _, records = asyncio.run(played(Controller(WORKERS[:1]), task("1", "archive", "this")))
    end = '"worker":"archive","outcome":"completed","content":"stored this","why":"","until":null'
    assert effects(records) == [
        "0/1.c1 call controller started",
        "1/1.c1 call controller/archive started",
        "2/1.c1 call archive started",
        "3/1.x action archive started",
        "3/1.x completed: stored this",
        "2/1.c1 completed: stored this",
        f'1/1.c1 completed: [{{"task_id":"1",{end}}}]',
        "0/1.c1 completed: stored this",
    ]
