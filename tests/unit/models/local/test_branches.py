"""What a reply may be: the branches, and what each of them means."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")

from antiphon.errors import ModelError
from antiphon.models.local.branches import (
    AT_A_LOSS,
    MAX_COMBINATIONS,
    arguments_of,
    branches,
    quote,
    read,
    scene,
    schema_of,
)
from antiphon.values.message import ToolCall
from antiphon.values.model import ChatMessage, Example, ModelRequest, ToolSpec


def spec(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    return ToolSpec(
        name, name, {"type": "object", "properties": properties, "required": list(required or properties)}
    )


TEXT = {"type": "string"}
CALL = spec("call_agent", agent_name=TEXT, message=TEXT)
FINISH = spec("finish", message=TEXT)
COUNT = spec("count", path=TEXT)
COUNTED = Example("Count a.md", "count", {"path": "a.md"})
SYSTEM = 'You are "desk".\n\nAvailable agents:\n- ann: finds things\n- bob: counts\n\nUse call_agent.'


def ask(
    text: str,
    *tools: ToolSpec,
    examples: tuple[Example, ...] = (),
    more: tuple[ChatMessage, ...] = (),
    **fields: Any,
) -> list[tuple[str, dict[str, Any]]]:
    request = ModelRequest(
        "m", fields.pop("system", ""), [ChatMessage("user", text), *more], tools, examples=examples, **fields
    )
    return [(branch.call, branch.arguments) for branch in branches(request, scene(request.messages))]


def done(
    name: str, arguments: dict[str, Any], result: str, *, error: bool = False
) -> tuple[ChatMessage, ...]:
    call = ToolCall("1", name, json.dumps(arguments))
    return (
        ChatMessage("assistant", "", (call,)),
        ChatMessage("tool", result, call_id="1", name=name, is_error=error),
    )


def test_one_branch_per_colleague_with_the_message_copied() -> None:
    found = ask("Count it", CALL, FINISH, system=SYSTEM)
    assert found == [
        ("call_agent", {"agent_name": "ann", "message": "Count it"}),
        ("call_agent", {"agent_name": "bob", "message": "Count it"}),
    ]
    named = spec("call_agent", agent_name={"enum": ["zoe"]}, message=TEXT)
    assert ask("x", named)[0][1]["agent_name"] == "zoe"
    assert ask("x", spec("call_agent", agent_name={"const": "al"}, message=TEXT))[0][1]["agent_name"] == "al"


def test_arguments_are_copied_or_enumerated() -> None:
    assert ask("How long is b.txt or c.txt?", COUNT, examples=(COUNTED,)) == [
        ("count", {"path": "b.txt"}),
        ("count", {"path": "c.txt"}),
    ]
    flag = spec("flag", on={"type": "boolean"}, level={"type": "integer"}, kind={"enum": ["big", "small"]})
    found = ask("a small one at 7", flag)
    assert found == [
        ("flag", {"on": True, "level": 7, "kind": "small"}),
        ("flag", {"on": False, "level": 7, "kind": "small"}),
    ]
    assert [call[1] for call in ask("x", spec("k", kind={"enum": ["a", "b"]}))] == [
        {"kind": "a"},
        {"kind": "b"},
    ]
    assert ask("x", spec("k", kind={"const": 3})) == [("k", {"kind": 3})]
    fitting = spec("p", path={"type": "string", "pattern": r"\.py$"})
    example = Example("Count a.md", "p", {"path": "a.md"})
    assert ask("a.md b.py", fitting, examples=(example,)) == [("p", {"path": "b.py"})]


def test_optional_arguments_follow_the_examples() -> None:
    tool = ToolSpec("ls", "", {"type": "object", "properties": {"path": TEXT, "depth": {"type": "integer"}}})
    dot, named = Example("List all", "ls", {"path": "."}), Example("List docs/", "ls", {"path": "docs/"})
    assert ask("List lib/ 3", tool, examples=(dot, named)) == [("ls", {"path": "lib/"})]
    assert ask("What is here?", tool, examples=(dot, named)) == [("ls", {"path": "."})]
    assert ask("What is here?", tool) == [("ls", {})]


def test_texts_of_one_shape_keep_their_order() -> None:
    tool = spec("between", start=TEXT, end=TEXT)
    example = Example(
        "from 2020-01-01 to 2020-02-02", "between", {"start": "2020-01-01", "end": "2020-02-02"}
    )
    until = Example("until 2020-02-02", "between", {"start": "today", "end": "2020-02-02"})
    assert ask("2021-01-01 and 2021-03-03", tool, examples=(example, until)) == [
        ("between", {"start": "2021-01-01", "end": "2021-03-03"})
    ]


def test_without_anything_to_copy_a_tool_is_not_offered() -> None:
    assert ask("hello", COUNT, FINISH, examples=(COUNTED,)) == [("finish", {"message": AT_A_LOSS})]
    assert ask("hello", FINISH) == [("finish", {})], "free text, under a schema without digits"


def test_finishing_needs_a_result_or_an_example() -> None:
    hello = Example("Hi", "finish", {"message": "Hello!"})
    assert ask("Count b.md", COUNT, FINISH, examples=(COUNTED,)) == [("count", {"path": "b.md"})]
    assert ask("x", CALL, FINISH, examples=(hello,), system=SYSTEM)[-1] == ("finish", {"message": "Hello!"})
    more = done("count", {"path": "b.md"}, "b.md: 7 words")
    assert ask("Count b.md", COUNT, FINISH, examples=(COUNTED,), more=more) == [
        ("finish", {"message": "b.md: 7 words"})
    ]
    assert ask("Count b.md", COUNT, examples=(COUNTED,), more=more) == [
        ("answer", {"message": "b.md: 7 words"})
    ]


def test_a_typed_answer_is_filled_in_and_not_quoted() -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}}
    assert ask("The sky?", CALL, FINISH, output_schema=schema) == []
    assert ask("Count b.md", COUNT, FINISH, examples=(COUNTED,), output_schema=schema) == [
        ("count", {"path": "b.md"})
    ]
    found = done("count", {"path": "b.md"}, "b.md: 7 words")
    assert ask("Count b.md", COUNT, FINISH, examples=(COUNTED,), more=found, output_schema=schema) == []


def test_a_further_step_is_offered_when_it_is_named() -> None:
    more = done("call_agent", {"agent_name": "ann", "message": "x"}, "found")
    assert ask("Ask ann, then bob.", CALL, FINISH, system=SYSTEM, more=more) == [
        ("call_agent", {"agent_name": "bob", "message": "Ask ann, then bob."}),
        ("finish", {"message": "found"}),
    ]
    assert [call for call, _ in ask("Look", CALL, FINISH, system=SYSTEM, more=more)] == ["finish"]


def test_an_error_that_suggests_something_is_tried_once() -> None:
    error = done("count", {"path": "REDME"}, "There is no file REDME. Near: README.md", error=True)
    found = ask("Count REDME", COUNT, FINISH, examples=(COUNTED,), more=error)
    assert found == [("count", {"path": "README.md"})]
    again = (*error, *done("count", {"path": "README.md"}, "README.md can not be read: a.md", error=True))
    assert [call for call, _ in ask("Count REDME", COUNT, FINISH, examples=(COUNTED,), more=again)] == [
        "finish"
    ]


def test_tool_choice() -> None:
    tools = (COUNT, spec("other", x={"const": 1}), FINISH)
    assert [call for call, _ in ask("b.md", *tools, examples=(COUNTED,), tool_choice="other")] == ["other"]
    assert ask("b.md", *tools, tool_choice="none") == []


TAGS = {"type": "array", "items": TEXT}
SEND = spec("send", to=TEXT, tags=TAGS)
STATUS = spec("status")


def test_a_call_that_would_have_to_be_written_may_be_chosen_and_is_an_error() -> None:
    request = ModelRequest("m", "", [ChatMessage("user", "Tag 'b.md'")], (SEND, COUNT))
    send, count = branches(request, scene(request.messages))
    assert (send.said, send.unknown, count.unknown) == ({"call": "send"}, ("tags",), ())
    chosen, _ = read('{"call":"send"}', [send, count])
    with pytest.raises(
        ModelError, match=r"tags of send would have to be written.*Ask a larger model"
    ) as caught:
        chosen.made()
    assert caught.value.kind == "validation"
    assert not caught.value.retryable
    count.made()


def test_a_number_that_nobody_said_is_not_made_up() -> None:
    wait = spec("wait", seconds={"type": "integer"})
    assert ask("Wait 5 seconds", wait) == [("wait", {"seconds": 5})]
    with pytest.raises(ModelError, match="seconds of wait would have to be written"):
        ask("Wait a while", wait)


def test_when_all_that_is_left_would_be_a_guess_it_is_beyond_it() -> None:
    mode = spec("mode", kind={"enum": ["fast", "slow"]})
    for tools in ((SEND,), (SEND, STATUS), (STATUS, SEND, mode, FINISH)):
        with pytest.raises(ModelError, match="tags of send"):
            ask("How do tides work?", *tools)


def test_what_has_to_do_with_the_request_is_not_beyond_it() -> None:
    def offered(text: str, *tools: ToolSpec, **fields: Any) -> list[str]:
        return [call for call, _ in ask(text, *tools, **fields)]

    mode = spec("mode", kind={"enum": ["fast", "slow"]})
    assert offered("Be slow", SEND, mode) == ["send", "mode"], "it holds a word of it"
    shown = Example("How is it?", "status", {})
    assert offered("What now?", SEND, STATUS, examples=(shown,)) == ["send", "status"], "an example shows it"
    assert offered("x", SEND, CALL, system=SYSTEM) == ["send", "call_agent", "call_agent"]
    hello = Example("Hi", "finish", {"message": "Hello!"})
    assert offered("x", SEND, FINISH, examples=(hello,)) == ["send", "finish"]
    assert offered("What now?", STATUS) == ["status"], "nothing would have to be written"


def test_after_a_result_what_it_cannot_write_is_not_in_the_way() -> None:
    found = done("status", {}, "all is well")
    assert ask("What now?", SEND, STATUS, more=found) == [("answer", {"message": "all is well"})]
    error = done("count", {"path": "b.md"}, "There is no file b.md; send it", error=True)
    assert ask("Count b.md", COUNT, SEND, FINISH, examples=(COUNTED,), more=error) == [
        ("finish", {"message": "There is no file b.md; send it"})
    ]


def test_many_combinations_are_chosen_one_by_one() -> None:
    many = spec("many", **{f"n{at}": {"enum": list(range(9))} for at in range(3)})
    request = ModelRequest("m", "", [ChatMessage("user", "x")], (many,))
    assert MAX_COMBINATIONS < 9**3
    (branch,) = branches(request, scene(request.messages))
    chosen, arguments = read('{"call":"many","with":{"n0":1,"n1":2,"n2":3}}', [branch])
    assert (chosen.call, arguments) == ("many", {"n0": 1, "n1": 2, "n2": 3})


def test_reading() -> None:
    request = ModelRequest("m", SYSTEM, [ChatMessage("user", "x")], (CALL,))
    offered = branches(request, scene(request.messages))
    assert read('{"ask":"bob"}', offered)[1]["agent_name"] == "bob"
    assert len(schema_of(offered)["anyOf"]) == 2
    for text in ("", "no", '{"ask":"eve"}', "[1]"):
        with pytest.raises(ModelError):
            read(text, offered)


def test_scene_and_quote() -> None:
    more = (*done("a", {}, "bad", error=True), *done("b", {}, " good "))
    notice = ChatMessage("user", "[system] You did not finish.")
    now = scene([ChatMessage("user", "old"), ChatMessage("user", "new"), *more, notice])
    assert now.asked == "new"
    assert not now.failed
    assert quote(now.results) == "good"
    assert quote(now.results[:1]) == "bad"
    assert scene([]).asked == ""


def test_arguments_of_an_older_call() -> None:
    assert arguments_of('{"a":1}') == {"a": 1}
    assert arguments_of("") == arguments_of("[1]") == arguments_of("{") == {}


def test_an_error_that_names_another_tool_leads_there() -> None:
    error = done("count", {"path": "a/"}, "a is a folder; try list_all", error=True)
    listing = spec("list_all", path=TEXT)
    example = Example("List b/", "list_all", {"path": "b/"})
    found = ask("How big is a/?", COUNT, listing, FINISH, examples=(COUNTED, example), more=error)
    assert found == [("list_all", {"path": "a/"})]
