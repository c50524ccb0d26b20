"""What comes with a message beside its text reaches whoever works on it: metadata and tool results."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from antiphon import Agent, Hooks, open_run
from antiphon.models.script import Script, call
from antiphon.styles.tasks import Controller, InvalidMessage, StructuredMessage, ToolCapableAgent, Worker
from antiphon.values.actions import ActionContext
from antiphon.values.hooks import ModelInput, TurnContext
from antiphon.values.model import ChatMessage
from tests.transcript import shown

SILENT = Script([])
WEATHER = {"temp": 22, "conditions": "sunny"}


def with_results(text: str = "Is it warm?", **metadata: Any) -> StructuredMessage:
    """A message whose first call is done, and whose second failed."""
    message = StructuredMessage.create_task(text, "controller", "worker", metadata, "thread")
    done = message.add_tool_call("get_weather", {"location": "London"})
    message.add_tool_result("get_weather", WEATHER, done)
    message.add_tool_result("get_weather", None, "elsewhere", "error", "API connection timeout")
    return message


SEEN = (
    "user: Tool results that come with the message:\n"
    '{"name": "get_weather", "arguments": {"location": "London"}, "status": "success", '
    '"result": {"temp": 22, "conditions": "sunny"}}\n'
    '{"name": "get_weather", "status": "error", "error": "API connection timeout"}'
)


def test_tool_results_that_come_with_a_message_are_shown() -> None:
    model = Script(["Yes."])
    ToolCapableAgent("worker", "weather", model=model).process_structured_message(with_results())
    assert shown(model.requests[0]) == [SEEN, "user: Is it warm?"]


@pytest.mark.parametrize(
    "kind", [Agent, lambda name, **options: ToolCapableAgent(name, "weather", **options)]
)
def test_a_controllers_worker_is_shown_them_too(kind: Any) -> None:
    model = Script(["Yes."])
    asyncio.run(Controller([kind("worker", model=model)]).run_tasks([with_results()]))
    assert shown(model.requests[0]) == [SEEN, "user: Is it warm?"]


def test_in_a_team_of_ones_own_it_is_shown_as_well() -> None:
    model = Script(["Yes."])
    controller = Controller([Agent("worker", model=model)])

    async def play() -> None:
        async with open_run(controller.agents()) as run:
            await run.result(await controller.post(run, [with_results()]))

    asyncio.run(play())
    assert shown(model.requests[0]) == [SEEN, "user: Is it warm?"]


def test_a_task_may_consist_of_results_alone() -> None:
    model = Script(["Yes."])
    asyncio.run(Controller([Agent("worker", model=model)]).run_tasks([with_results("")]))
    assert shown(model.requests[0]) == [SEEN]


def test_a_call_whose_result_comes_with_it_is_not_done_again() -> None:
    done: list[str] = []

    def get_weather(location: str) -> str:
        """The weather at a place."""
        done.append(location)
        return "rain"

    message = with_results()
    message.add_tool_call("get_weather", {"location": "Bern"})
    agent = ToolCapableAgent("worker", "weather", model=Script(["Rain in Bern."]))
    agent.register_tool(get_weather)
    reply = agent.process_structured_message(message)
    assert done == ["Bern"]
    assert [(each["result"], each["status"]) for each in reply.tool_results] == [("rain", "success")]
    asyncio.run(Controller([agent]).run_tasks([message]))
    assert done == ["Bern", "Bern"]


def test_a_reply_may_be_handed_on_as_the_next_task() -> None:
    def get_weather(location: str) -> dict[str, Any]:
        """The weather at a place."""
        return WEATHER

    first = ToolCapableAgent("a", "weather", model=Script([call("get_weather", location="Bern"), "Warm."]))
    first.register_tool(get_weather)
    result = first.process_structured_message(StructuredMessage("Is it warm?", {"type": "task"}))
    model = Script(["It is warm in Bern."])
    ToolCapableAgent("b", "reports", model=model).process_structured_message(result)
    (before, text) = shown(model.requests[0])
    assert '"arguments": {"location": "Bern"}, "status": "success", "result": {"temp": 22' in before
    assert text == "user: Warm."


def test_metadata_is_shown_but_for_what_is_for_programs() -> None:
    model = Script(["Yes."])
    metadata = {
        "type": "query",
        "in_reply_to": "x",
        "_trace": "secret",
        "priority": "high",
        "due": datetime(2030, 1, 1, tzinfo=UTC),
        "within": timedelta(hours=2),
        "for": {"Zoë"},
        7: (1, 2),
    }
    message = StructuredMessage("Is it warm?", metadata)
    ToolCapableAgent("worker", "weather", model=model).process_structured_message(message)
    assert shown(model.requests[0]) == [
        'user: About the message: {"priority": "high", "due": "2030-01-01T00:00:00+00:00", '
        '"within": "2:00:00", "for": ["Zoë"], "7": [1, 2]}',
        "user: Is it warm?",
    ]


def test_it_is_shown_once_however_often_the_agent_goes_on() -> None:
    model = Script(['```json\n{"tool_calls": [{"name": "nothing"}]}\n```', "Yes."])
    agent = ToolCapableAgent("worker", "weather", model=model)
    agent.process_structured_message(with_results(customer="ACME"))
    assert sum("ACME" in each for each in shown(model.requests[1])) == 1


def test_metadata_with_keys_of_any_kind_still_says_the_priority() -> None:
    done: list[str] = []

    async def work(ctx: ActionContext) -> str:
        done.append(ctx.new_messages[0].content)
        return ""

    tasks = [
        StructuredMessage.create_task(each, "user", "worker", {"priority": each, 1: "one"})
        for each in ("low", "high")
    ]
    asyncio.run(Controller([Worker("worker", act=work)]).run_tasks(tasks))
    assert done == ["high", "low"]


def test_a_coroutine_has_the_whole_message() -> None:
    taken: list[StructuredMessage] = []

    async def work(ctx: ActionContext) -> str:
        taken.extend(map(StructuredMessage.from_message, ctx.new_messages))
        return "ok"

    message = with_results(due=datetime(2030, 1, 1, tzinfo=UTC))
    message.add_tool_call("get_weather", {"location": "Bern"}, "open")
    asyncio.run(Controller([Worker("worker", act=work)]).run_tasks([message]))
    (found,) = taken
    assert (found.content, found.metadata) == (message.content, message.metadata)
    assert (found.tool_calls, found.tool_results) == (message.tool_calls, message.tool_results)
    assert (found.task_id, found.target_agent) == ("thread", "worker")


def test_an_agent_with_a_hook_of_its_own_gets_it_with_the_text() -> None:
    def prepare(context: TurnContext) -> ModelInput:
        return ModelInput([ChatMessage("user", f"<{each.content}>") for each in context.new_messages])

    model = Script(["Yes."])
    worker = Agent("worker", model=model, hooks=Hooks(prepare_input=prepare))
    asyncio.run(Controller([worker]).run_tasks([with_results()]))
    assert shown(model.requests[0]) == [f"user: <{SEEN.removeprefix('user: ')}\n\nIs it warm?>"]


def test_a_model_that_routes_sees_it_too() -> None:
    model = Script(["Nobody knows."])
    message = with_results()
    message.target_agent = None
    reply = Controller([Agent("worker", model=SILENT)], model).process_structured_message(message)
    assert shown(model.requests[0]) == [SEEN, "user: Is it warm?"]
    assert reply.content == "Nobody knows."


def test_a_name_that_is_taken_is_refused() -> None:
    agent = ToolCapableAgent("worker", "weather", model=SILENT)
    with pytest.raises(InvalidMessage, match=r"'\$tool_results' is a name of Antiphon's own"):
        agent.process_structured_message(StructuredMessage("x", {"$tool_results": 1}))
