"""Schemas, arguments as models write them, reasoning tags.

One test per case; tests/unit/values/schema goes into depth.
"""

import enum
import json
from typing import Annotated, Any, Literal

import pytest

from antiphon import Agent, tool
from antiphon.models.openai.tags import TagDivider, strip_reasoning
from antiphon.models.script import Script
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply
from antiphon.values.schema.arguments import Invalid, Repaired
from tests.transcript import recorded, results_shown


@tool(effect="read")
def anything(q: str = "", a: Any = None, t: Any = None) -> str:
    """Take what is given."""
    return ""


def given(raw: str) -> Any:
    """The arguments that a tool gets from a model's text, or the refusal; defaults left out."""
    read = anything.prepare(raw)
    if isinstance(read, Invalid):
        return read.text
    if isinstance(read, Repaired):
        read = read.text
    return {name: value for name, value in json.loads(read).items() if value not in ("", None)}


def test_the_schema_of_a_signature() -> None:
    @tool
    def f(a: Annotated[str, "d"], b: Literal["x", "y"] = "x", c: int = 3) -> None:
        """F."""

    assert f.parameters["properties"] == {
        "a": {"type": "string", "description": "d"},
        "b": {"type": "string", "enum": ["x", "y"], "default": "x"},
        "c": {"type": "integer", "default": 3},
    }
    assert f.parameters["required"] == ["a"]


def test_an_enumeration() -> None:
    class Size(enum.Enum):
        SMALL = 1
        LARGE = 2

    @tool
    def f(size: Size = Size.LARGE) -> None:
        """F."""

    schema = f.parameters["properties"]["size"]
    assert (schema["type"], sorted(schema["enum"]), schema["default"]) == ("integer", [1, 2], 2)


@pytest.mark.parametrize("raw", ["", "  \n", "null"])
def test_nothing_is_an_empty_object(raw: str) -> None:
    assert given('{"q":"AI"}') == {"q": "AI"}
    assert given('{"q":"t",}') == {"q": "t"}
    assert given(raw) == {}


@pytest.mark.parametrize("raw", ["42", '["a"]', "true", '"s"'])
def test_other_values_are_refused(raw: str) -> None:
    """DESIGN section 5: any non-object but null is an error result that the model can act on, not {}."""
    assert given(raw).startswith("Invalid arguments for tool 'anything': at $ expected an object, got ")
    model = Script([Reply("", (ToolCall("1", "anything", raw),), "calls"), "went on"])
    result, _ = recorded(Agent("a", tools=[anything]), "go", model=model)
    assert results_shown(model.requests[-1])[0].startswith("Error: Invalid arguments for tool 'anything'")
    assert result.output == "went on"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('```json\n{"q": "t"}\n```', {"q": "t"}),
        ('{"q": "te', {"q": "te"}),
        ('{"a": {"b": 1}', {"a": {"b": 1}}),
        ('{"t": ["a","b"', {"t": ["a", "b"]}),
    ],
)
def test_a_fence_or_a_cut_is_repaired(raw: str, expected: Any) -> None:
    assert given(raw) == expected


def test_brackets_are_closed_in_the_order_they_were_opened() -> None:
    assert given('{"a": [{"b": 1') == {"a": [{"b": 1}]}


@pytest.mark.parametrize(
    ("text", "outside", "inside"),
    [
        ("a <think>b</think> c", "a  c", "b"),
        ("a <think>b", "a", "b"),
        ("<think>1</think>x<reasoning>2</reasoning>y", "xy", "12"),
        ("a <think>b</reason> c", "a", "b</reason> c"),
        ("a < b", "a < b", ""),
    ],
    ids=["closed", "unclosed", "several", "mismatched", "none"],
)
def test_reasoning_tags(text: str, outside: str, inside: str) -> None:
    """Stripped from what counts as text; what was inside is kept apart, as the reply's reasoning."""
    assert strip_reasoning(text) == outside
    kept: list[str] = []
    divider = TagDivider(lambda _: None, kept.append)
    divider.feed(text)
    divider.close()
    assert "".join(kept) == inside
