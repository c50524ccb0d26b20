"""Tools whose arguments somebody described with a JSON Schema."""

import asyncio
import sys
from types import FrameType
from typing import Any

import pytest

from antiphon import Agent, run
from antiphon.errors import ToolDefinitionError
from antiphon.models.script import Script, call
from antiphon.values.schema.arguments import Invalid
from antiphon.values.tool import ToolContext, tool_from

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "page-size": {"type": "integer", "default": 10},
        "class": {"$ref": "#/$defs/class"},
        "ctx": {"type": "string"},
    },
    "required": ["class"],
    "$defs": {"class": {"oneOf": [{"const": "first"}, {"type": "integer", "minimum": 1}]}},
}


def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer", "minimum": 0},
        "all": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "order": {"enum": ["up", "down"]},
    },
    "required": ["name", "count"],
    "additionalProperties": False,
}


@pytest.mark.unwatched
def test_a_flat_object_of_five_is_checked_in_a_few_calls() -> None:
    """5 µs: with 174 calls, by the whole check, it took 45."""
    known = tool_from("list", "List.", FLAT, echo)
    raw, count = '{"name":"a","count":3,"all":true,"tags":["p","q"],"order":"up"}', 0

    def counted(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call"

    known.prepare(raw)
    sys.setprofile(counted)
    try:
        assert known.prepare(raw) == raw
    finally:
        sys.setprofile(None)
    assert count <= 30
    assert isinstance(known.prepare(raw.replace("up", "aside")), Invalid)


def test_the_model_is_shown_the_schema_as_it_is_written() -> None:
    assert tool_from("find", "Find it.", SCHEMA, echo).spec.parameters == SCHEMA


def test_arguments_are_bound_as_canonical_json_in_the_order_of_the_schema() -> None:
    offered = tool_from("find", "", SCHEMA, echo)
    prepared = offered.prepare('{"ctx": "mine", "class": 2.0, "more": [1]}')
    assert prepared == '{"page-size":10,"class":2,"ctx":"mine","more":[1]}'
    assert offered.bind(prepared)() == {"page-size": 10, "class": 2, "ctx": "mine", "more": [1]}


def test_a_fault_says_where_and_what_was_expected() -> None:
    found = tool_from("find", "", SCHEMA, echo).prepare('{"class": 1, "ctx": 5}')
    assert isinstance(found, Invalid)
    assert "at $.ctx expected string" in found.text


def test_a_call_may_take_the_context_first_and_a_property_may_be_called_so() -> None:
    async def find(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        return f"{ctx.agent} {arguments['ctx']} {arguments['class']}"

    script = Script([call("find", **{"class": "first", "ctx": "mine"}), "done"])
    offered = tool_from("find", "Find it.", SCHEMA, find, effect="read")
    result = asyncio.run(run(Agent("clerk", tools=[offered], model=script), "Go"))
    assert result.output == "done"
    assert "clerk mine first" in str(script.requests[-1].messages)


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        found = {"items": found}
    return {"properties": {"a": found}}


@pytest.mark.parametrize(
    ("parameters", "call", "said"),
    [
        ([], echo, "must be a JSON Schema of type object"),
        ({"type": "array"}, echo, "must be a JSON Schema of type object"),
        ({"properties": {"a": {"$ref": "https://example.org/a.json"}}}, echo, "leads out of the schema"),
        ({"properties": {"a": {"enum": "ab"}}}, echo, "expected a list, got string"),
        ({"properties": {"a": {"const": object()}}}, echo, "it is not JSON"),
        ({"required": [["a"]]}, echo, "#/required: expected names"),
        ({"description": "x" * 300_000}, echo, "300,0.. bytes, and 262,144 are allowed"),
        (nested(60), echo, None),
        (nested(100), echo, "nested deeper than 64 levels"),
        (nested(100_000), echo, "nested deeper than 64 levels"),
        (SCHEMA, lambda: None, "takes its arguments as one dictionary"),
        (SCHEMA, lambda a, b: None, "takes its arguments as one dictionary"),
        (SCHEMA, "echo", "call is a function of the arguments"),
        (SCHEMA, dict, "a class cannot be a tool"),
    ],
)
def test_what_cannot_be_a_tool_is_refused(parameters: Any, call: Any, said: str | None) -> None:
    if said is None:
        assert tool_from("find", "", parameters, call).name == "find"
        return
    with pytest.raises(ToolDefinitionError, match=said):
        tool_from("find", "", parameters, call)


def test_options_are_those_of_tool() -> None:
    made = tool_from("find", "", SCHEMA, echo, effect="idempotent", timeout=5, labels=("untrusted",))
    assert (made.effect, made.timeout, made.labels) == ("idempotent", 5.0, ("untrusted",))
    with pytest.raises(ToolDefinitionError, match="tool has no 'efect'; did you mean effect"):
        tool_from("find", "", SCHEMA, echo, efect="read")  # type: ignore[call-arg]
    with pytest.raises(ToolDefinitionError, match="a raw tool takes a text"):
        tool_from("find", "", SCHEMA, echo, raw=True)
    with pytest.raises(ToolDefinitionError, match="cannot be a tool's name"):
        tool_from("find it", "", SCHEMA, echo)


def test_what_a_schema_says_is_part_of_the_digest() -> None:
    changed = {**SCHEMA, "required": []}
    assert tool_from("find", "", SCHEMA, echo).digest != tool_from("find", "", changed, echo).digest
