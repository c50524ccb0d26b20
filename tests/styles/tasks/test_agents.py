"""Workers that answer messages, case by case."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon import ModelError, Policy, UserError, tool
from antiphon.models.script import Script, call
from antiphon.styles.tasks import (
    AgentToolkit,
    InvalidArguments,
    MessageType,
    StructuredMessage,
    ToolCapableAgent,
)
from antiphon.styles.tasks.agent import GO_ON, ROUNDS
from antiphon.styles.tasks.messages.blocks import call_blocks
from tests.transcript import results_shown, shown


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "temp": 22}


def digits(number: int) -> str:
    """A number as text."""
    return str(number)


def tell(about: str):
    """Whatever is known, in a type that nobody promised."""
    return {"nothing": None, "text": "plain text"}[about]


def broken() -> str:
    """Fail."""
    raise RuntimeError("out of order")


def worker(*replies: Any, permitted: str = "*", **options: Any) -> tuple[ToolCapableAgent, Script]:
    toolkit = AgentToolkit()
    for each in (add, weather, digits, tell, broken):
        toolkit.register_tool(each)
    toolkit.grant_permission("worker", permitted)
    model = Script(list(replies))
    return ToolCapableAgent("worker", "sums", toolkit=toolkit, model=model, **options), model


def query(*calls: dict[str, Any], text: str = "How much?") -> StructuredMessage:
    message = StructuredMessage(text, {"type": MessageType.QUERY}, tool_calls=calls)
    message.source_agent, message.target_agent = "controller", "worker"
    return message


def asks(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def fenced(*calls: Any) -> str:
    return f"```json\n{json.dumps({'tool_calls': calls}, indent=1)}\n```"


def outcomes(results: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(each["status"], each["result"]) for each in results]


# -- tasks --------------------------------------------------------------------------------------


def test_a_task_with_two_calls() -> None:
    agent, _ = worker("Seven, and it is warm.")
    task = {"task_id": "t1", "tool_calls": [asks("add", a=3, b=4), asks("weather", city="Bern")]}
    done = agent.process_task(task)
    assert (done["status"], done["task_id"], done["worker_id"]) == ("completed", "t1", "worker")
    assert outcomes(done["tool_results"]) == [("success", 7), ("success", {"city": "Bern", "temp": 22})]
    assert (done["result"], done["error"]) == ("Seven, and it is warm.", None)


def test_a_task_whose_only_call_is_invalid() -> None:
    agent, _ = worker("I could not add that.")
    done = agent.process_task({"query": "Add", "tool_calls": [asks("add", a=3)]})
    (result,) = done["tool_results"]
    assert (result["status"], result["result"]) == ("error", None)
    assert "Invalid arguments" in result["error"]
    assert (done["status"], done["result"]) == ("failed", "I could not add that.")


def test_a_task_of_whose_calls_one_fails() -> None:
    agent, _ = worker("ok")
    done = agent.process_task({"tool_calls": [asks("broken"), asks("add", a=3, b=4)]})
    assert done["status"] == "partial"
    assert done["tool_results"][0]["error"] == "[broken] out of order"
    assert outcomes(done["tool_results"]) == [("error", None), ("success", 7)]


def test_a_task_without_calls() -> None:
    agent, _ = worker("Four.")
    done = agent.process_task({"task_id": "t1", "query": "Two and two?"})
    assert done == {
        "task_id": "t1",
        "worker_id": "worker",
        "status": "completed",
        "result": "Four.",
        "tool_results": [],
        "error": None,
    }


def test_a_task_without_a_query() -> None:
    agent, model = worker()
    done = agent.process_task({"task_id": "t1"})
    assert (done["status"], done["task_id"], done["result"]) == ("failed", "t1", None)
    assert "neither a 'query' nor 'tool_calls'" in done["error"]
    assert model.requests == []


def test_a_task_whose_model_cannot_be_asked() -> None:
    agent, _ = worker(ModelError("auth", "no such key"))
    done = agent.process_task({"query": "Two and two?"})
    assert (done["status"], done["result"]) == ("failed", "")
    assert "no such key" in done["error"]


# -- calls in the model's text ------------------------------------------------------------------


def test_calls_in_fences_are_done_and_all_else_is_ignored() -> None:
    text = "\n".join(
        [
            "First:",
            fenced({"name": "add", "arguments": {"a": 1, "b": 2}, "id": "mine"}, 5, {"arguments": {}}),
            '```json\n{"tool_calls": [{"name": "add", "arg\n```',
            "```json\n7\n```",
            "```json\n[1]\n```",
            "and:",
            fenced({"name": "weather", "arguments": {"city": "Bern"}}),
        ]
    )
    agent, model = worker(text, "Three, and it is warm.")
    reply = agent.process_structured_message(query())
    assert (reply.message_type, reply.content) == ("response", "Three, and it is warm.")
    assert outcomes(reply.tool_results) == [("success", 3), ("success", {"city": "Bern", "temp": 22})]
    assert reply.tool_results[0]["call_id"] == "mine"
    assert shown(model.requests[1])[2:4] == [f"user: {GO_ON}", "assistant: [add, weather]"]
    assert results_shown(model.requests[1]) == ["3", '{"city":"Bern","temp":22}']


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no fence",
        "```json\n```",
        '```json\n{"tool_calls": 5}\n```',
        '```json\n{"tool_calls": [{"name": 5}, {"name": "add", "arguments": [1]}, null]}\n```',
        '```json\n{"tool_calls": [{"name": "add"}]} and more\n```',
        '```json\n{"tool_calls": [{"name": "add"}]}',
        "```json\n" + "[" * 100_000,
        '```python\n{"tool_calls": [{"name": "add"}]}\n```',
    ],
)
def test_what_is_no_call_block(text: str) -> None:
    assert call_blocks(text) == []


def test_a_fence_inside_of_an_argument_ends_nothing() -> None:
    text = fenced({"name": "note", "arguments": {"text": "```json\n1\n```"}}) + fenced({"name": "add"})
    assert call_blocks(text) == [
        {"name": "note", "arguments": {"text": "```json\n1\n```"}, "id": None},
        {"name": "add", "arguments": {}, "id": None},
    ]


def test_calls_of_one_id_are_told_apart() -> None:
    agent, _ = worker(
        fenced(asks("digits", number=1) | {"id": "x"}, asks("digits", number=2) | {"id": "x"}), "ok"
    )
    results = agent.process_structured_message(query()).tool_results
    assert [each["result"] for each in results] == ["1", "2"]
    assert results[0]["call_id"] == "x"
    assert results[1]["call_id"] not in ("", "x")


def test_a_model_that_never_stops_asking() -> None:
    agent, model = worker(*[fenced(asks("add", a=1, b=1))] * (ROUNDS + 1))
    reply = agent.process_structured_message(query())
    assert len(model.requests) == ROUNDS + 1
    assert (reply.message_type, reply.metadata["outcome"]) == ("error", "no_progress")
    assert len(reply.tool_results) == ROUNDS


# -- calls in the message -----------------------------------------------------------------------


def test_calls_of_a_message_are_done_before_the_model_is_asked() -> None:
    agent, model = worker(call("digits", number=7), "It is 7, and warm.")
    message = query(asks("add", a=3, b=4), asks("weather", city="Bern"))
    reply = agent.process_structured_message(message)
    assert shown(model.requests[0])[:2] == ["user: How much?", "assistant: [add, weather]"]
    assert results_shown(model.requests[0]) == ["7", '{"city":"Bern","temp":22}']
    assert reply.content == "It is 7, and warm."
    assert reply.metadata == {
        "type": "response",
        "in_reply_to": message.task_id,
        "outcome": "completed",
        "status": "completed",
    }
    assert (reply.task_id, reply.source_agent, reply.target_agent) == (
        message.task_id,
        "worker",
        "controller",
    )
    assert [each["name"] for each in reply.tool_results] == ["add", "weather", "digits"]
    assert outcomes(reply.tool_results) == [
        ("success", 7),
        ("success", {"city": "Bern", "temp": 22}),
        ("success", "7"),
    ]
    given = [each["id"] for each in message.tool_calls]
    assert [each["call_id"] for each in reply.tool_results[:2]] == given


def test_a_result_is_the_value_that_the_tool_gave_back() -> None:
    agent, _ = worker("ok")
    asked = [asks("digits", number=7), asks("tell", about="nothing"), asks("tell", about="text")]
    reply = agent.process_structured_message(query(*asked))
    assert [each["result"] for each in reply.tool_results] == ["7", None, "plain text"]


def test_a_call_that_is_not_permitted_is_not_done() -> None:
    done: list[int] = []

    @tool
    def note(number: int) -> int:
        """Write a number down."""
        done.append(number)
        return number

    agent, model = worker("I may not.", permitted="add")
    agent.toolkit.register_tool(note)
    reply = agent.process_structured_message(
        query(asks("note", number=1), asks("nothing"), asks("add", a=1, b=1))
    )
    assert done == []
    assert [each["status"] for each in reply.tool_results] == ["error", "error", "success"]
    said = [each["error"].replace(each["name"], "…") for each in reply.tool_results[:2]]
    assert said[0] == said[1] == "Unknown tool: …. Available tools: add"
    assert [each.name for each in model.requests[0].tools] == ["add"]
    assert reply.metadata["status"] == "partial"


def test_a_permission_taken_during_the_work_holds_at_once() -> None:
    def lose(_: object) -> Any:
        agent.toolkit.revoke_permission("worker", "add")
        return call("add", a=1, b=1)

    agent, _ = worker(lose, "I may no longer.")
    (result,) = agent.process_structured_message(query()).tool_results
    assert (result["status"], result["error"]) == (
        "error",
        "permission denied: worker has no permission for add",
    )


def test_the_run_has_a_policy_of_its_own() -> None:
    agent, _ = worker("I may not.", policy=Policy(ask=("add",), deny=("weather",)))
    reply = agent.process_structured_message(query(asks("add", a=1, b=1), asks("weather", city="Bern")))
    assert [each["error"] for each in reply.tool_results] == [
        "permission denied: add needs approval, and nobody is there to ask",
        "permission denied: the policy denies weather",
    ]


def test_a_failure_is_an_error_message_with_the_results_that_there_were() -> None:
    agent, _ = worker(ModelError("auth", "no such key"))
    reply = agent.process_structured_message(query(asks("add", a=3, b=4)))
    assert (reply.message_type, reply.metadata["outcome"], reply.metadata["status"]) == (
        "error",
        "failed",
        "failed",
    )
    assert "no such key" in reply.content
    assert outcomes(reply.tool_results) == [("success", 7)]


def test_a_reply_says_who_wrote_it_though_the_message_was_to_nobody() -> None:
    agent, _ = worker("Four.")
    reply = agent.process_structured_message(StructuredMessage("Two and two?"))
    assert (reply.source_agent, reply.target_agent) == ("worker", None)


def test_arguments_that_json_cannot_carry() -> None:
    agent, model = worker("x")
    with pytest.raises(InvalidArguments, match="'add'"):
        agent.process_structured_message(query(asks("add", a=object())))
    assert model.requests == []


def test_inside_of_an_event_loop_it_is_awaited() -> None:
    agent, _ = worker("Four.", "Five.")

    async def inside() -> None:
        with pytest.raises(UserError, match="await aprocess_structured_message"):
            agent.process_structured_message(query())
        with pytest.raises(UserError, match="await aprocess_task"):
            agent.process_task({"query": "x"})
        assert (await agent.aprocess_structured_message(query())).content == "Four."
        assert (await agent.aprocess_task({"query": "x"}))["result"] == "Five."

    asyncio.run(inside())


def test_what_the_model_is_told_of_itself(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("You add.", "utf-8")
    plain = ToolCapableAgent("worker", "sums", capabilities=["add", "multiply"])
    assert plain.agent.instructions == 'You are "worker", specialized in sums. You can: add, multiply.'
    assert ToolCapableAgent("worker", "sums").agent.instructions == 'You are "worker", specialized in sums.'
    assert ToolCapableAgent("worker", "sums", prompt).agent.instructions == "You add."
    with pytest.raises(UserError, match="cannot be read"):
        ToolCapableAgent("worker", "sums", tmp_path)
