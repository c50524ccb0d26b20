"""What a reply says: its type, the calls behind its results, whose result it is; and how far tasks are."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, RunFailed, open_run
from antiphon.models.script import Script, call
from antiphon.styles.tasks import Controller, MessageType, StructuredMessage, ToolCapableAgent, Worker
from antiphon.values.actions import ActionContext

SILENT = Script([])


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def adder(*replies: Any, name: str = "adder") -> ToolCapableAgent:
    agent = ToolCapableAgent(name, "sums", model=Script(list(replies)))
    agent.register_tool(add)
    return agent


def asked(type_: str, to: str = "adder", **fields: Any) -> StructuredMessage:
    message = StructuredMessage("How much?", {"type": type_}, **fields)
    message.source_agent, message.target_agent = "user", to
    return message


def hand_over(to: str) -> Any:
    return call("call_agent", agent_name=to, message="Go on", handoff=True)


# -- types --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "answer"),
    [
        (MessageType.QUERY, "response"),
        (MessageType.TASK, "result"),
        (MessageType.TOOL_REQUEST, "tool_response"),
        (MessageType.RESULT, "response"),
        ("unheard of", "response"),
    ],
)
def test_the_type_of_an_answer_is_that_of_what_was_asked(type_: str, answer: str) -> None:
    assert adder("Three.").process_structured_message(asked(type_)).message_type == answer


def test_a_controllers_answers_are_results_but_to_tool_requests() -> None:
    controller = Controller([adder("Three.", "Three.")])
    for type_, answer in ((MessageType.QUERY, "result"), (MessageType.TOOL_REQUEST, "tool_response")):
        message = asked(type_, tool_calls=[{"name": "add", "arguments": {"a": 1}}])
        (reply,) = asyncio.run(controller.run_tasks([message]))
        assert (reply.message_type, reply.tool_results[0]["result"]) == (answer, 3)


@pytest.mark.parametrize("type_", [MessageType.STATUS, MessageType.ERROR])
def test_nobody_works_on_what_only_tells_something(type_: str) -> None:
    message = asked(type_, tool_calls=[{"name": "add", "arguments": {"a": 1}}])
    agent = adder("Three.")
    controller = Controller([agent], SILENT)
    replies = [
        agent.process_structured_message(message),
        controller.process_structured_message(message),
        *asyncio.run(controller.run_tasks([message])),
    ]
    assert agent.agent.model.asked == SILENT.asked == 0  # type: ignore[union-attr]
    for reply in replies:
        assert (reply.message_type, reply.tool_results, reply.task_id) == ("status", [], message.task_id)
        assert (reply.metadata["outcome"], reply.metadata["status"]) == ("skipped", "noted")
        assert reply.content == f"Noted; a message of type {type_} is not worked on"
        assert reply.target_agent == "user"


def test_tasks_beside_a_notice_are_done_and_the_replies_keep_their_order() -> None:
    first = asked("task")
    tasks = [first, StructuredMessage.create_status("half done", first), asked("task")]
    replies = asyncio.run(Controller([adder("One.", "Two.")]).run_tasks(tasks))
    assert [each.message_type for each in replies] == ["result", "status", "result"]
    assert [each.task_id for each in replies] == [each.task_id for each in tasks]


def test_in_a_run_of_ones_own_a_notice_is_no_task() -> None:
    controller = Controller([adder("Three.")])

    async def play() -> None:
        async with open_run(controller.agents()) as run:
            await run.result(await controller.post(run, [asked("error")]))

    with pytest.raises(RunFailed, match="A message of type error is no task; nobody works on it"):
        asyncio.run(play())


# -- calls --------------------------------------------------------------------------------------


def test_a_reply_carries_the_calls_that_its_agent_made() -> None:
    fenced = '```json\n{"tool_calls": [{"name": "add", "arguments": {"a": 5}, "id": "mine"}]}\n```'
    replies = [call("add", a=1), fenced, call("nothing"), "Done."]
    message = asked("task", tool_calls=[{"name": "add", "arguments": {"a": 0}, "id": "given"}])
    own = adder(*replies).process_structured_message(message)
    assert [(each["name"], each["arguments"]) for each in own.tool_calls] == [
        ("add", {"a": 1}),
        ("add", {"a": 5}),
        ("nothing", {}),
    ]
    ids = [each["id"] for each in own.tool_calls]
    assert [each["call_id"] for each in own.tool_results] == ["given", *ids]
    assert own.open_tool_calls == []
    (reply,) = asyncio.run(Controller([adder(call("add", a=1), "Done.")]).run_tasks([message]))
    assert [each["arguments"] for each in reply.tool_calls] == [{"a": 1}]
    assert [each["result"] for each in reply.tool_results] == [2, 3]


def test_results_stand_in_the_order_of_their_calls_whichever_was_faster() -> None:
    async def slow() -> str:
        """Take a while."""
        await quick_is_done.wait()
        return "slow"

    async def quick() -> str:
        """Take no time."""
        quick_is_done.set()
        return "quick"

    quick_is_done = asyncio.Event()
    model = Script([[call("slow"), call("quick")], "Done."])
    worker = Agent("worker", model=model, tools=[slow, quick])
    (reply,) = asyncio.run(Controller([worker]).run_tasks([asked("task", "worker")]))
    assert [each["name"] for each in reply.tool_calls] == ["slow", "quick"]
    assert [each["result"] for each in reply.tool_results] == ["slow", "quick"]


# -- whose result it is -------------------------------------------------------------------------


def test_a_result_that_was_handed_over_is_from_whoever_gave_it() -> None:
    model = Script({"a": [hand_over("b")], "b": [call("add", a=1), hand_over("c")], "c": ["The report."]})
    workers = [Agent("a", model=model), Agent("b", model=model, tools=[add]), Agent("c", model=model)]
    (reply,) = asyncio.run(Controller(workers).run_tasks([asked("task", "a")]))
    assert (reply.content, reply.source_agent, reply.target_agent) == ("The report.", "c", "user")
    assert reply.metadata["why"] == "handed over to b"
    assert [(each["name"], each["result"]) for each in reply.tool_results] == [("add", 3)]


def test_a_model_that_routes_hands_over_too() -> None:
    model = Script({"controller": [hand_over("b")], "b": ["The report."]})
    reply = Controller([Agent("b", model=model)], model).process_structured_message(
        StructuredMessage("Report")
    )
    assert (reply.content, reply.source_agent) == ("The report.", "b")


def test_a_call_that_was_not_handed_over_leaves_the_result_its_own() -> None:
    model = Script({"a": [call("call_agent", agent_name="b", message="x"), "Mine."], "b": ["Theirs."]})
    workers = [Agent("a", model=model), Agent("b", model=model)]
    (reply,) = asyncio.run(Controller(workers).run_tasks([asked("task", "a")]))
    assert (reply.content, reply.source_agent) == ("Mine.", "a")


# -- how far tasks are --------------------------------------------------------------------------


def test_a_controller_tells_how_far_its_tasks_are() -> None:
    async def store(ctx: ActionContext) -> str:
        if ctx.new_messages[0].content == "break":
            raise RuntimeError("out of order")
        return "stored"

    told: list[StructuredMessage] = []
    tasks = [
        StructuredMessage.create_task(text, "user", worker, task_id=task_id)
        for task_id, text, worker in (("1", "x", "archive"), ("2", "break", "archive"), ("3", "x", "nobody"))
    ]
    replies = asyncio.run(Controller([Worker("archive", act=store)]).run_tasks(tasks, on_status=told.append))
    assert [each.message_type for each in replies] == ["result", "error", "error"]
    assert {each.message_type for each in told} == {"status"}
    states: dict[str, list[str]] = {}
    for each in told:
        states.setdefault(each.task_id, []).append(each.metadata["state"])
    assert states == {
        "1": ["pending", "in_progress", "completed"],
        "2": ["pending", "in_progress", "failed"],
        "3": ["failed"],
    }
    assert (told[0].source_agent, told[0].target_agent, told[0].metadata["in_reply_to"]) == (
        "controller",
        "user",
        told[0].task_id,
    )
    assert told[-1].metadata["worker"] in ("archive", "nobody")


def test_a_status_is_an_answer_in_the_thread() -> None:
    message = asked("task")
    status = StructuredMessage.create_status("half done", message, {"done": 0.5, "type": "other"})
    assert status.metadata == {"type": "status", "in_reply_to": message.task_id, "done": 0.5}
    assert (status.task_id, status.source_agent, status.is_notice) == (message.task_id, "adder", True)
