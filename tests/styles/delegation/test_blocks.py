"""What its document shows is what happens here.

Each section number is the design document's. Blocks of Python and JSON stand as they are in it; its
pseudo-code (the loop's diagram, the gather, the chain of calls) is run as cases.
"""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from antiphon import Agent, Message, ToolCall, run, tool
from antiphon.models.script import Script, call, finish
from antiphon.values.message import USER
from tests.transcript import effects, recorded, results_shown, sent, shown


def ask(name: str, message: str = "m") -> ToolCall:
    return call("call_agent", agent_name=name, message=message)


def names_of(type_: Any) -> set[str]:
    return {field.name for field in msgspec.structs.fields(type_)}


# -- 1. message types ---------------------------------------------------------------------------


def test_a_forward_message() -> None:
    sent_message = Message(
        type="forward", sender="researcher", receiver="writer", content="이 정보로 보고서 작성해줘: ..."
    )
    assert (sent_message.type, sent_message.sender, sent_message.receiver) == (
        "forward",
        "researcher",
        "writer",
    )
    assert sent_message.content == "이 정보로 보고서 작성해줘: ..."


def test_a_return_message() -> None:
    answer = Message(type="return", sender="writer", receiver="researcher", content="보고서: ...")
    assert (answer.type, answer.sender, answer.receiver) == ("return", "writer", "researcher")
    assert answer.content == "보고서: ..."


def test_rule_1_a_return_goes_to_the_caller_alone() -> None:
    a, b, c = Agent("a"), Agent("b"), Agent("c")
    model = Script(
        {
            "a": [[ask("b"), ask("c")], finish("A")],
            "b": [ask("c"), finish("B")],
            "c": [finish("C"), finish("C")],
        }
    )
    result, _ = recorded(a, "go", agents=[a, b, c], model=model)
    callers = {each.call_id: each.sender for each in result.messages if each.type == "forward"}
    returns = [each for each in result.messages if each.type == "return"]
    assert len(returns) == len(callers) == 4
    assert all(callers[each.call_id] == each.receiver for each in returns)


def test_rule_2_there_is_no_third_type() -> None:
    encoded = msgspec.json.encode(Message("forward", "a", "b", "text")).replace(b"forward", b"system")
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(encoded, type=Message)


# -- 3 and 4. the two tools ---------------------------------------------------------------------

CALL_AGENT = """
{
  "name": "call_agent",
  "description": "Call another agent. The agent will process your message and return a result when done.",
  "parameters": {
    "type": "object",
    "properties": {
      "agent_name": {"type": "string", "description": "Name of the agent to call"},
      "message": {"type": "string", "description": "Message to send to the agent"}
    },
    "required": ["agent_name", "message"]
  }
}
"""

FINISH = """
{
  "name": "finish",
  "description": "Finish the current task and return a result to the caller. The caller may be a user or another agent.",
  "parameters": {
    "type": "object",
    "properties": {
      "message": {"type": "string", "description": "Result message to return"}
    },
    "required": ["message"]
  }
}
"""  # noqa: E501


@pytest.mark.parametrize(("place", "text"), [(0, CALL_AGENT), (1, FINISH)], ids=["call_agent", "finish"])
def test_sections_3_and_4_the_schemas_a_model_is_shown(place: int, text: str) -> None:
    model = Script([finish("done")])
    recorded(Agent("a"), "go", model=model)
    assert msgspec.to_builtins(model.requests[0].tools[place]) == json.loads(text)


def test_call_agent_is_recursion_with_a_context_of_its_own() -> None:
    a, writer = Agent("a"), Agent("writer")
    model = Script({"a": [ask("writer", "..."), finish("done")], "writer": [finish("result")]})
    _, records = recorded(a, "go", agents=[a, writer], model=model)
    asked_a, asked_writer, asked_a_again = model.requests
    assert shown(asked_writer) == ["user: ..."]
    assert shown(asked_a_again) == [*shown(asked_a), "assistant: [call_agent]", "tool: result"]
    assert effects(records, "c") == [
        "0/1.c1 call a started",
        "1/1.c1 call writer started",
        "2/1.c1 completed: result",
        "1/1.c1 completed: result",
        "1/2.c1 completed: done",
        "0/1.c1 completed: done",
    ]


def test_finish_returns_its_message() -> None:
    result, _ = recorded(Agent("a"), "go", model=Script([finish(message="최종 결과: ...")]))
    assert result.output == "최종 결과: ..."


def test_a_text_without_calls_is_the_result() -> None:
    result, _ = recorded(Agent("a"), "go", model=Script(["response.content"]))
    assert result.output == "response.content"


def test_the_text_that_counts_is_that_of_the_reply_without_calls() -> None:
    """`response.content` is the last reply's, also when that is empty and an earlier one was not."""
    from antiphon.values.model import Reply

    replies = [Reply("let me look", (ask("b"),), "calls"), finish("found"), ""]
    a, b = Agent("a"), Agent("b")
    result, _ = recorded(a, "go", agents=[a, b], model=Script(replies))
    assert result.output == ""


# -- 5. the loop --------------------------------------------------------------------------------


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    return f"seen {what}"


@pytest.mark.parametrize(
    ("replies", "transcript"),
    [
        (["content"], ["1/1.m1 model started", "1/1.m1 completed: content"]),
        (
            [finish("message")],
            ["1/1.m1 model started", "1/1.m1 completed: [finish]", "1/1.c1 completed: message"],
        ),
        (
            [[call("look", what="x"), ask("b")], finish("from b"), "content"],
            [
                "1/1.m1 model started",
                "1/1.m1 completed: [look, call_agent]",
                "1/1.c1 tool look started",
                "1/1.c2 call b started",
                "2/1.m1 model started",
                "1/1.c1 completed: seen x",
                "2/1.m1 completed: [finish]",
                "2/1.c1 completed: from b",
                "1/1.c2 completed: from b",
                "1/2.m1 model started",
                "1/2.m1 completed: content",
            ],
        ),
    ],
    ids=["no calls", "finish", "calls"],
)
def test_the_branches_of_the_diagram(replies: list[Any], transcript: list[str]) -> None:
    async def look_(what: str) -> str:
        return f"seen {what}"

    agent = Agent("a", tools=[tool(effect="read", name="look")(look_)])
    _, records = recorded(agent, "go", agents=[agent, Agent("b")], model=Script(replies))
    assert effects(records)[1:-1] == transcript


def test_messages_gather_within_one_loop_only() -> None:
    a, b = Agent("a"), Agent("b")
    model = Script({"a": [ask("b", "first"), ask("b", "second"), "end"], "b": [finish("1"), finish("2")]})
    recorded(a, "go", agents=[a, b], model=model)
    of_b = [shown(request) for request in model.requests if request.system.startswith('You are "b"')]
    assert of_b == [["user: first"], ["user: second"]]
    assert shown(model.requests[-1]) == [
        "user: go", "assistant: [call_agent]", "tool: 1", "assistant: [call_agent]", "tool: 2",
    ]  # fmt: skip


# -- 6. parallel calls --------------------------------------------------------------------------


def test_three_agents_at_once_and_three_results_together() -> None:
    """All three are asked before any has answered; their results come back in the order of the calls."""
    asked: list[str] = []
    all_asked = asyncio.Event()

    def colleague(name: str) -> Any:
        async def answer(request: object) -> ToolCall:
            asked.append(name)
            if len(asked) == 3:
                all_asked.set()
            await all_asked.wait()
            return finish(f"from {name}")

        return answer

    names = ["B", "C", "D"]
    script: dict[str, Any] = {"A": [[ask(name, "...") for name in names], "judged"]}
    model = Script(script | {name: [colleague(name)] for name in names})
    team = [Agent(name) for name in ["A", *names]]
    result, _ = recorded(team[0], "go", agents=team, model=model)
    assert sorted(asked) == names
    assert results_shown(model.requests[-1]) == ["from B", "from C", "from D"]
    assert model.asked == 5
    assert result.output == "judged"


def test_a_failure_is_a_text_and_leaves_the_others_alone() -> None:
    team = [Agent("A"), Agent("B"), Agent("C")]
    script = {"A": [[ask("B"), ask("C")], "judged"], "B": [RuntimeError("no luck")], "C": [finish("fine")]}
    model = Script(script)
    result, _ = recorded(team[0], "go", agents=team, model=model)
    failed, fine = results_shown(model.requests[-1])
    assert failed.startswith("Error: ")
    assert "no luck" in failed
    assert (fine, result.output) == ("fine", "judged")


# -- 7. the system prompt -----------------------------------------------------------------------

PROMPT = """You are "researcher". 정보를 찾는 연구원.

Available agents:
- writer: 글을 잘 쓰는 작가.
- reviewer: 품질 검토 전문가.

Use call_agent to delegate work to other agents.
Use finish to complete your task and return the result."""


def test_the_system_prompt() -> None:
    researcher = Agent("researcher", "정보를 찾는 연구원.", tools=[look], model="not shown")
    team = [researcher, Agent("writer", "글을 잘 쓰는 작가."), Agent("reviewer", "품질 검토 전문가.")]
    model = Script(["done"])
    recorded(researcher, "go", agents=team, model=model)
    assert model.requests[0].system == PROMPT


def test_an_agent_alone_has_no_list() -> None:
    model = Script(["done"])
    recorded(Agent("hermit", "You live alone."), "go", model=model)
    assert model.requests[0].system == (
        'You are "hermit". You live alone.\n\n'
        "Use call_agent to delegate work to other agents.\n"
        "Use finish to complete your task and return the result."
    )


# -- 8. the user --------------------------------------------------------------------------------


def test_the_call_of_the_seed() -> None:
    researcher = Agent("researcher", "You find facts.")

    async def main() -> str:
        result = await run(entry=researcher, message="...", model=Script([finish("facts")]))
        return str(result)

    assert asyncio.run(main()) == "facts"


def test_the_user_is_an_agent_without_a_model() -> None:
    """A user's request and an agent's call leave the same records; ids and names tell them apart."""
    researcher, lead = Agent("researcher"), Agent("lead")
    team = [researcher, lead]
    _, alone = recorded(researcher, "...", agents=team, model=Script({"researcher": [finish("facts")]}))
    script = {"lead": [ask("researcher", "..."), "end"], "researcher": [finish("facts")]}
    result, nested = recorded(lead, "go", agents=team, model=Script(script))

    def one_deeper(text: str) -> str:
        return text.replace("1/1.", "2/1.").replace("0/1.c1", "1/1.c1")

    by_user = [one_deeper(text) for text in effects(alone)]
    assert [text for text in effects(nested) if text in by_user] == by_user
    assert sent(result) == [
        f"forward {USER}>lead: go",
        "forward lead>researcher: ...",
        "return researcher>lead: facts",
        f"return lead>{USER}: end",
    ]


# -- 9. self and circular calls -----------------------------------------------------------------


def test_the_chain() -> None:
    """A(call B) → B(call A) → A(call A) → A(finish) → A(finish) → B(finish) → A(finish)."""
    a, b = Agent("A"), Agent("B")
    replies = [
        ask("B", "1"),
        ask("A", "2"),
        ask("A", "3"),
        finish("4"),
        finish("5"),
        finish("6"),
        finish("7"),
    ]
    model = Script(replies)
    result, records = recorded(a, "0", agents=[a, b], model=model)
    assert result.output == "7"
    assert effects(records, "c") == [
        "0/1.c1 call A started",
        "1/1.c1 call B started",
        "2/1.c1 call A started",
        "3/1.c1 call A started",
        "4/1.c1 completed: 4", "3/1.c1 completed: 4",
        "3/2.c1 completed: 5", "2/1.c1 completed: 5",
        "2/2.c1 completed: 6", "1/1.c1 completed: 6",
        "1/2.c1 completed: 7", "0/1.c1 completed: 7",
    ]  # fmt: skip
    assert [shown(request)[0] for request in model.requests[:4]] == [f"user: {n}" for n in range(4)]
    assert all(len(request.messages) == 1 for request in model.requests[:4])
