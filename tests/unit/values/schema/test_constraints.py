"""What may be said of a parameter beside its type, in the words of msgspec, annotated_types and pydantic."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import re
import subprocess
import sys
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import annotated_types as at
import msgspec
import pytest
from msgspec import Meta, Struct

from antiphon.errors import ToolDefinitionError
from antiphon.values.schema.arguments import Invalid
from antiphon.values.tool import Tool, as_tool

pydantic = pytest.importorskip("pydantic", reason="its idiom is tested with it")
Field = pydantic.Field
Sku = Annotated[str, Meta(pattern="^[A-Z]{2}-[0-9]+$")]
T = TypeVar("T")
NOTHING: Any = object()


def taking(annotation: Any, default: Any = NOTHING) -> Tool:
    """A tool with one argument."""

    def take(value: Any) -> Any:
        return value

    take.__annotations__["value"] = annotation
    take.__defaults__ = None if default is NOTHING else (default,)
    return as_tool(take)


def shown(tool: Tool) -> dict[str, Any]:
    found: dict[str, Any] = tool.parameters["properties"]["value"]
    return found


def received(tool: Tool, value: Any = NOTHING) -> Any:
    arguments = tool.prepare("{}" if value is NOTHING else json.dumps({"value": value}))
    assert isinstance(arguments, str), arguments
    return tool.bind(arguments)()


def refusal(tool: Tool, value: Any) -> str:
    found = tool.prepare(json.dumps({"value": value}))
    assert isinstance(found, Invalid), found
    return found.text


CRASH = """
import gc, msgspec
from typing import Annotated
from antiphon import tool
Sku = Annotated[str, msgspec.Meta(pattern="^[A-Z]+$")]
for _ in range(300):
    def stock(sku: Sku | list[Sku]) -> str:
        return "7"
    made = tool(stock)
    assert made.prepare('{"sku":"AB"}') == '{"sku":"AB"}'
    assert made.prepare('{"sku":["AB"]}') == '{"sku":["AB"]}'
    assert not isinstance(made.prepare('{"sku":["ab"]}'), str)
    del made, stock
    gc.collect()
"""


@pytest.mark.slow
def test_a_pattern_inside_a_union_does_not_end_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@dataclasses.dataclass
class Data(Generic[T]):
    sku: Sku | list[Sku]
    held: T
    many: Annotated[int, at.Ge(1)] = 1


@dataclasses.dataclass
class Box(Generic[T]):
    held: T


class Plain(Struct, tag="plain"):
    sku: Sku | list[Sku]
    inner: list[Plain] = []


class Typed(TypedDict, total=False):
    sku: Sku | list[Sku]


class Row(NamedTuple):
    sku: Sku | list[Sku]
    many: int = 1


@pytest.mark.parametrize(
    ("kind", "good", "made", "bad", "place"),
    [
        (
            Data[Sku],
            {"sku": "AB-1", "held": "AB-2"},
            Data("AB-1", "AB-2", 1),
            {"sku": "ab", "held": "AB-2"},
            ".sku",
        ),
        (
            Data[int],
            {"sku": ["AB-1"], "held": 2},
            Data(["AB-1"], 2, 1),
            {"sku": [], "held": 1, "many": 0},
            ".many",
        ),
        (
            Plain,
            {"type": "plain", "sku": "AB-1", "inner": [{"type": "plain", "sku": ["AB-2"]}]},
            Plain("AB-1", [Plain(["AB-2"])]),
            {"type": "plain", "sku": "AB-1", "inner": [{"type": "plain", "sku": ["x"]}]},
            ".inner[0].sku",
        ),
        (Typed, {"sku": "AB-1"}, {"sku": "AB-1"}, {"sku": "x"}, ".sku"),
        (Row, ["AB-1"], Row("AB-1"), ["x", 1], ".sku"),
        (list[Row], [["AB-1", 2]], [Row("AB-1", 2)], [[]], "[0]"),
        (dict[Sku, int], {"AB-1": 1}, {"AB-1": 1}, {"x": 1}, ""),
        (dict[int, Sku], {"1": "AB-1"}, {1: "AB-1"}, {"1": "x"}, ".1"),
    ],
)
def test_a_pattern_in_a_field_of_a_class_is_checked_there(
    kind: Any, good: Any, made: Any, bad: Any, place: str
) -> None:
    tool = taking(kind)
    assert received(tool, good) == made
    assert f"at $.value{place} " in refusal(tool, bad)


def test_a_class_of_attrs_with_a_pattern_in_a_union_is_refused_before_it_is_looked_into() -> None:
    class Made:
        __attrs_attrs__ = ()
        sku: Sku | list[Sku]

    with pytest.raises(ToolDefinitionError, match="expected a dataclass"):
        taking(Made)


@pytest.mark.parametrize(
    ("annotation", "schema", "good", "bad"),
    [
        (Annotated[int, Field(ge=1, le=7)], {"type": "integer", "minimum": 1, "maximum": 7}, 7, 8),
        (Annotated[int, at.Ge(1), at.Le(7)], {"type": "integer", "minimum": 1, "maximum": 7}, 1, 0),
        (Annotated[int, at.Interval(gt=0, lt=3)], {"exclusiveMinimum": 0, "exclusiveMaximum": 3}, 2, 3),
        (Annotated[float, at.MultipleOf(0.01)], {"multipleOf": 0.01}, 0.07, 0.075),
        (Annotated[float, Field(multiple_of=0.01)], {"multipleOf": 0.01}, 1.15, 1.155),
        (Annotated[float, Meta(multiple_of=0.01)], {"multipleOf": 0.01}, 0.29, 0.295),
        (Annotated[str, at.MinLen(2), at.MaxLen(3)], {"minLength": 2, "maxLength": 3}, "ab", "a"),
        (Annotated[list[int], at.Len(1, 2)], {"minItems": 1, "maxItems": 2}, [1], []),
        (Annotated[dict[str, int], Field(max_length=1)], {"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 2}),
        (Annotated[str, Field(pattern="^a")], {"pattern": "^a"}, "ab", "b"),
        (Annotated[str, Field(pattern=re.compile("^a"))], {"pattern": "^a"}, "ab", "b"),
        (pydantic.PositiveInt, {"exclusiveMinimum": 0}, 1, 0),
        (pydantic.conint(ge=2, multiple_of=3), {"minimum": 2, "multipleOf": 3}, 3, 4),
        (
            Annotated[str, pydantic.StringConstraints(min_length=2, pattern="[0-9]")],
            {"minLength": 2, "pattern": "[0-9]"},
            "a1",
            "1",
        ),
        (
            Annotated[int | None, Field(ge=1)],
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            None,
            0,
        ),
        (Annotated[Annotated[int, at.Ge(1), at.Ge(3)], at.Le(5)], {"minimum": 3, "maximum": 5}, 3, 2),
        (Annotated[int, at.Ge(0.5)], {"minimum": 0.5}, 1, 0),
        (Annotated[decimal.Decimal, Field(gt=0)], {"exclusiveMinimum": 0}, "0.5", "-0.5"),
    ],
)
def test_limits_are_shown_and_checked(annotation: Any, schema: dict[str, Any], good: Any, bad: Any) -> None:
    tool = taking(annotation)
    assert {key: shown(tool)[key] for key in schema} == schema
    assert json.loads(str(tool.prepare(json.dumps({"value": good})))) == {"value": good}
    assert "$.value" in refusal(tool, bad)


def test_what_else_a_field_says_is_shown() -> None:
    field = Field(description="Which.", title="Part", examples=["AB-1"], json_schema_extra={"x-unit": "none"})
    expected = {"description": "Which.", "title": "Part", "examples": ["AB-1"], "x-unit": "none"}
    assert shown(taking(Annotated[str, field])) == {"type": "string", **expected}
    assert shown(taking(list[Annotated[str, "One part."]]))["items"]["description"] == "One part."
    assert shown(taking(Annotated[str, at.doc("Which.")]))["description"] == "Which."


@dataclasses.dataclass
class Left:
    x: int
    next: Left | Right | None = None


@dataclasses.dataclass
class Right:
    x: int
    next: Left | Right | None = None


@pytest.mark.parametrize("depth", [8, 16, 40])
def test_alternatives_that_hold_one_another_are_each_tried_once(depth: int) -> None:
    """Twice the work at each level would be a million times as much at 20, and no test would end."""
    tool = taking(Left)
    for leaf, taken in (({"x": 1}, True), ({"x": "1"}, True), ({"x": "many"}, False)):
        value: Any = leaf
        for _ in range(depth):
            value = {"x": 0, "next": value}
        found = tool.prepare(json.dumps({"value": value}))
        assert isinstance(found, str) == taken
        assert isinstance(found, str) or len(found.text) < 1_000


def test_what_is_too_deep_for_its_class_is_a_refusal() -> None:
    value: Any = {"x": "1"}
    for _ in range(95):
        value = {"x": 0, "next": value}
    found = taking(Left).prepare(json.dumps({"value": value}))
    assert not isinstance(found, Invalid) or "too deeply" in found.text


def test_what_is_said_of_the_fields_of_a_class_is_shown_and_checked() -> None:
    tool = taking(Box[Annotated[int, Field(ge=1, description="How many.", examples=[1])]])
    assert shown(tool)["properties"]["held"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How many.",
        "examples": [1],
    }
    assert "at $.value.held expected int >= 1" in refusal(tool, {"held": 0})


@pytest.mark.parametrize(
    ("annotation", "default", "value"),
    [
        (int, Field(default=3), 3),
        (int, Field(3, ge=1, description="How many."), 3),
        (list[int], Field(default_factory=lambda: [1]), [1]),
        (str, Field(default=None), None),
        (Annotated[int, Field(default=3)], NOTHING, 3),
        (Annotated[int, Field(ge=1)], 5, 5),
    ],
)
def test_the_default_of_a_field_is_what_the_function_receives(
    annotation: Any, default: Any, value: Any
) -> None:
    tool = taking(annotation, default)
    assert received(tool) == value
    assert shown(tool)["default"] == value
    assert "required" not in tool.parameters


def test_a_field_without_a_default_is_required() -> None:
    for field in (Field(ge=1), Field(..., ge=1)):
        tool = taking(int, field)
        assert tool.parameters["required"] == ["value"]
        assert "expected int >= 1" in refusal(tool, 0)


@dataclasses.dataclass
class Unresolved:
    inner: Nowhere  # type: ignore[name-defined]  # noqa: F821


class Pair(enum.Enum):
    BOTH = (1, 2)


@pytest.mark.parametrize(
    ("annotation", "default", "said"),
    [
        (
            Annotated[int, object()],
            NOTHING,
            "is not understood; expected a text, msgspec.Meta, pydantic.Field",
        ),
        (Annotated[str, at.Predicate(str.islower)], NOTHING, "is not understood"),
        (Annotated[str, pydantic.AfterValidator(str.upper)], NOTHING, "is not understood"),
        (
            Annotated[str, pydantic.StringConstraints(to_upper=True)],
            NOTHING,
            "to_upper=True is not understood",
        ),
        (Annotated[int, Field(strict=True)], NOTHING, "Strict(strict=True) is not understood"),
        (int, Field(alias="n"), "name the parameter itself so"),
        (int, Field(default=3, ge=5), "does not fit its type"),
        (int, dataclasses.field(default=3), "is for the fields of classes; expected a value"),
        (int, msgspec.field(default=3), "is for the fields of classes; expected a value"),
        (Annotated[str, Field(ge=2)], NOTHING, "ge=2 is for numbers, and the type is <class 'str'>"),
        (Annotated[bool, at.Ge(0)], NOTHING, "ge=0 is for numbers"),
        (Annotated[int, at.MinLen(2)], NOTHING, "min_length=2 is for texts and collections"),
        (Annotated[int, Field(ge=float("inf"))], NOTHING, "expected a finite number"),
        (Annotated[str, at.MinLen(-1)], NOTHING, "expected a whole number from 0"),
        (Annotated[int, at.MultipleOf(0)], NOTHING, "expected a number above 0"),
        (Annotated[datetime.date, at.Ge(datetime.date(2026, 1, 1))], NOTHING, "expected a finite number"),
        (Annotated[str, Field(pattern="(")], NOTHING, "is no regular expression"),
        (Annotated[str, Field(pattern=re.compile("a", re.IGNORECASE))], NOTHING, "without flags"),
        (Annotated[str, Meta(pattern="a"), Meta(pattern="b")], NOTHING, "two values of pattern"),
        (dict[float, int], NOTHING, "the keys of a JSON object are texts"),
        (Unresolved, NOTHING, "an annotation of Unresolved cannot be resolved"),
        (Pair, NOTHING, "no value that JSON can hold"),
    ],
)
def test_what_is_not_understood_is_refused_when_the_tool_is_made(
    annotation: Any, default: Any, said: str
) -> None:
    with pytest.raises(ToolDefinitionError) as refused:
        taking(annotation, default)
    assert said in str(refused.value)
    assert "take: " in str(refused.value)
    assert "'value'" in str(refused.value)


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    program = (
        "import sys, annotated_types as at\nfrom typing import Annotated\nfrom antiphon import tool\n"
        "@tool\ndef f(n: Annotated[int, at.Ge(1)] = 2) -> int:\n    return n\n"
        "f.prepare('{\"n\":0}')\nprint('pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False\n"


@pydantic.dataclasses.dataclass
class Trip:
    days: int = Field(ge=1)


class Strict(pydantic.BaseModel):  # type: ignore[misc,name-defined]
    model_config = pydantic.ConfigDict(strict=True)
    day: datetime.date


def test_classes_of_pydantic_are_read_as_json_by_their_own_rules() -> None:
    assert shown(taking(Trip))["properties"]["days"]["minimum"] == 1
    assert received(taking(Trip), {"days": 2}) == Trip(days=2)
    assert "greater than or equal to 1" in refusal(taking(Trip), {"days": 0})
    assert received(taking(Strict), {"day": "2026-01-02"}) == Strict(day=datetime.date(2026, 1, 2))


def test_unknown_arguments_are_refused_by_the_schema_too() -> None:
    assert taking(int).parameters["additionalProperties"] is False


@pytest.mark.parametrize("annotation", [Literal["b", "a"], Literal["b", "a"] | None])
def test_null_is_one_of_the_values_where_it_is_the_default(annotation: Any) -> None:
    tool = taking(annotation, None)
    assert shown(tool) == {"enum": ["b", "a", None], "default": None}
    assert received(tool, None) is None
    assert received(tool, "b") == "b"


@pytest.mark.parametrize(
    ("annotation", "given", "value"),
    [
        (Literal[1, 2], 1.0, 1),
        (list[int], [1.0, 2], [1, 2]),
        (int | str, 3.0, 3),
        (bool, "true", True),
        (bool, 0, False),
        (list[str], '["a","b"]', ["a", "b"]),
        (list[int], '["1", 2.0]', [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (list[int] | None, "[1]", [1]),
        (Sku | list[Sku], '["AB-1"]', ["AB-1"]),
        (Data[int], {"sku": "AB-1", "held": "2"}, Data("AB-1", 2)),
    ],
)
def test_slips_that_cost_no_meaning_are_accepted_wherever_they_stand(
    annotation: Any, given: Any, value: Any
) -> None:
    assert received(taking(annotation), given) == value


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (str, "[1]"),
        (list[str] | str, '["a"]'),
        (int | str, "3"),
        (Any, "true"),
        (bool | str, "true"),
    ],
)
def test_a_text_stays_a_text_where_one_is_allowed(annotation: Any, given: str) -> None:
    assert received(taking(annotation), given) == given


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (list[str], "a"),
        (list[int], '["a"]'),
        (list[int], "[" * 200),
        (dict[str, int], '{"a":1,"a":2}'),
        (bool, 2),
        (bool, "yes"),
        (int, True),
        (int, 1.5),
        (Literal[1], True),
        (datetime.datetime, 12),
        (Annotated[str, Meta(pattern="^[a-z]+$")], "abc\n"),
    ],
)
def test_what_has_to_be_guessed_is_refused(annotation: Any, given: Any) -> None:
    assert "$.value" in refusal(taking(annotation), given)


def test_a_slip_in_one_argument_changes_no_other() -> None:
    def take(count: int, value: int | str) -> str:
        return f"{count} {value!r}"

    assert as_tool(take).prepare('{"count":"1","value":"3"}') == '{"count":1,"value":"3"}'


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def test_sets_of_what_cannot_be_compared_are_written_in_one_order() -> None:
    def take(colors: set[Color], by: dict[Color, set[int | str]]) -> str:
        return f"{len(colors)}"

    raw = '{"colors":["red","blue","red"],"by":{"red":["b",1]}}'
    assert as_tool(take).prepare(raw) == '{"colors":["blue","red"],"by":{"red":["b",1]}}'


def test_a_date_and_time_says_so_in_the_schema() -> None:
    assert shown(taking(datetime.datetime)) == {"type": "string", "format": "date-time"}
    assert shown(taking(list[datetime.time]))["items"] == {"type": "string", "format": "time"}
