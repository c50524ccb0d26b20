"""Schemas from signatures, and arguments of every annotation on their way to the function."""

import asyncio
import dataclasses
import datetime
import enum
import json
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from msgspec import Meta, Struct

from antiphon.values.model import ToolSpec
from antiphon.values.schema.arguments import Invalid
from antiphon.values.tool import Tool, ToolContext, as_tool

CTX = ToolContext("run", "1/1.c0", "writer", "key")


class Level(enum.Enum):
    LOW = 2
    HIGH = 1


class Mixed(enum.Enum):
    OFF = "off"
    HALF = 0.5


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Circle:
    center: Point
    radius: float


class Left(Struct, tag=True):
    x: int


class Right(Struct, tag=True):
    y: int


class Options(TypedDict, total=False):
    depth: int


class Tree(Struct):
    label: str
    children: list["Tree"] = []


class Opaque:
    """Nothing that JSON knows."""


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = as_tool(function).parameters["properties"]
    return found


def returned(made: Tool, raw: str) -> Any:
    arguments = made.prepare(raw)
    assert isinstance(arguments, str), arguments
    result = made.bind(arguments, CTX)()
    return asyncio.run(result) if made.is_async else result


def test_schema_of_a_signature() -> None:
    def f(a: Annotated[str, "d"], b: Literal["x", "y"] = "x", c: int = 3) -> str:
        """Do it."""
        return a

    assert as_tool(f).parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "d"},
            "b": {"type": "string", "enum": ["x", "y"], "default": "x"},
            "c": {"type": "integer", "default": 3},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert as_tool(f).spec == ToolSpec("f", "Do it.", as_tool(f).parameters)


def test_an_enumeration_has_the_type_of_its_members_and_the_value_as_default() -> None:
    def f(level: Level = Level.HIGH) -> str:
        return repr(level)

    assert properties(f)["level"] == {"type": "integer", "enum": [2, 1], "default": 1}
    assert "required" not in as_tool(f).parameters
    assert returned(as_tool(f), "{}") == repr(Level.HIGH)
    assert returned(as_tool(f), '{"level": 2}') == repr(Level.LOW)


def test_required_is_required_and_nullable_only() -> None:
    def f(a: str, b: Optional[int], c: int | None = None, d: str = None, e: float = 1.5) -> tuple[Any, ...]:  # type: ignore[assignment]  # noqa: RUF013, UP045
        return a, b, c, d, e

    assert as_tool(f).parameters["required"] == ["a", "b"]
    assert properties(f)["b"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert properties(f)["c"]["default"] is None
    assert as_tool(f).prepare('{"a":"x","b":null}') == '{"a":"x","b":null,"c":null,"d":null,"e":1.5}'
    assert returned(as_tool(f), '{"a":"x","b":null}') == ("x", None, None, None, 1.5)


def test_a_union_of_objects_keeps_the_type_object() -> None:
    def f(shape: Point | Circle) -> str:
        return repr(shape)

    made = as_tool(f)
    shape = properties(f)["shape"]
    assert made.parameters["type"] == shape["type"] == "object"
    assert [member["required"] for member in shape["anyOf"]] == [["x"], ["center", "radius"]]
    assert returned(made, '{"shape":{"x":1,"y":2}}') == repr(Point(1, 2))
    assert returned(made, '{"shape":{"center":{"x":1},"radius":2}}') == repr(Circle(Point(1), 2.0))
    refused = made.prepare('{"shape":{"z":1}}')
    assert isinstance(refused, Invalid)
    assert "fits none of the alternatives" in refused.text
    assert "`" not in refused.text


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "expected"),
    [
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer"}, 1, 1),
        (float, {"type": "number"}, 1, 1.0),
        (bool, {"type": "boolean"}, True, True),
        (list, {"type": "array"}, [1, "a"], [1, "a"]),
        (dict, {"type": "object"}, {"a": [1]}, {"a": [1]}),
        (None, {"type": "null"}, None, None),
        (Any, {}, {"a": 1}, {"a": 1}),
        (object, {}, [1], [1]),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (Iterable[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (Left | Right, {"type": "object"}, {"type": "Right", "y": 1}, Right(1)),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", "a"),  # noqa: UP007
        (list[int] | list[str], None, ["a"], ["a"]),
        (Literal[True, "auto"], {"enum": [True, "auto"]}, "auto", "auto"),
        (Mixed, {"enum": ["off", 0.5]}, 0.5, Mixed.HALF),
        (Point, None, {"x": 1}, Point(1)),
        (list[Point], None, [{"x": 1}], [Point(1)]),
        (dict[str, Point], None, {"p": {"x": 1}}, {"p": Point(1)}),
        (Options, None, {"depth": 2}, {"depth": 2}),
        (datetime.date, {"type": "string", "format": "date"}, "2026-01-02", datetime.date(2026, 1, 2)),
        (pathlib.Path, {"type": "string", "format": "path"}, "a/b", pathlib.Path("a/b")),
        (pathlib.Path | None, None, "a/b", pathlib.Path("a/b")),
        (Opaque, {"type": "string"}, "a", "a"),
        (list[Opaque], {"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
        (Callable[[int], int], {"type": "string"}, "a", "a"),
        (Annotated[int, Meta(ge=1)], {"type": "integer", "minimum": 1}, 1, 1),
        (set[str], {"type": "array", "items": {"type": "string"}}, ["b", "a"], {"a", "b"}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
    ],
)
def test_annotations(annotation: Any, schema: Any, given: Any, expected: Any) -> None:
    def f(value: Any) -> Any:
        return value

    f.__annotations__["value"] = annotation
    made = as_tool(f)
    if schema is not None:
        assert {key: made.parameters["properties"]["value"][key] for key in schema} == schema
    raw = json.dumps({"value": given})
    assert returned(made, raw) == expected
    canonical = made.prepare(raw)
    assert isinstance(canonical, str)
    assert made.prepare(canonical) == canonical


def test_a_tagged_union_refers_to_nothing_that_is_not_there() -> None:
    def f(value: Left | Right) -> str:
        return ""

    assert "$defs" not in json.dumps(as_tool(f).parameters)


def test_no_annotation_is_a_string() -> None:
    def f(value):  # type: ignore[no-untyped-def]
        return value

    assert properties(f)["value"] == {"type": "string"}
    assert returned(as_tool(f), '{"value":"a"}') == "a"


def test_definitions_are_inlined_unless_they_are_recursive() -> None:
    def f(circle: Circle, tree: Tree, more: Tree | None = None) -> str:
        return tree.children[0].label

    parameters = as_tool(f).parameters
    assert parameters["properties"]["circle"]["properties"]["center"]["properties"]["x"] == {
        "type": "integer"
    }
    assert parameters["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert parameters["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    raw = '{"circle":{"center":{"x":1},"radius":1},"tree":{"label":"a","children":[{"label":"b"}]}}'
    assert returned(as_tool(f), raw) == "b"


def test_a_set_is_written_in_one_order() -> None:
    def f(names: set[str]) -> str:
        return ""

    assert as_tool(f).prepare('{"names":["c","a","b"]}') == '{"names":["a","b","c"]}'


GOOGLE = """Find it.

    Longer.

    Args:
        query: What to look for,
            in words.
        limit (int): How many.

    Returns:
        Text.
    """


NUMPY = """Find it.

    Longer.

    Parameters
    ----------
    query : str
        What to look for,
        in words.
    limit : int, optional
        How many.

    Returns
    -------
    Text.
    """


SPHINX = """Find it.

    Longer.

    :param str query: What to look for,
        in words.
    :param limit: How many.
    :type limit: int
    """


EPYTEXT = """Find it.

    Longer.

    @param query: What to look for,
        in words.
    @type query: str
    @keyword limit: How many.
    """


@pytest.mark.parametrize(
    "docstring", [GOOGLE, NUMPY, SPHINX, EPYTEXT], ids=["google", "numpy", "sphinx", "epytext"]
)
def test_descriptions_come_from_the_docstring(docstring: str) -> None:
    def f(query: str, limit: Annotated[int, "At most."] = 3) -> str:
        return query

    f.__doc__ = docstring
    made = as_tool(f)
    assert made.parameters["properties"]["query"]["description"] == "What to look for, in words."
    assert made.parameters["properties"]["limit"]["description"] == "At most."
    assert made.description.startswith("Find it.\n\nLonger.")
    assert "in words" not in made.description
    assert ("Returns" in made.description) == ("Returns" in docstring)


@pytest.mark.parametrize(
    "docstring",
    [
        "Do.\n\nArgs:\n\n    a (dict[str, (int)], optional): One.\n\n        And more.\n    b: Two.",
        "Do.\n\nArgs:\n    a - One. And more.\n\nKeyword Args:\n    b: Two.",
        "Do.\n\nParameters\n----------\na : {'x', 'y'}, default 'x'\n    One.\n\n    And more.\n\n"
        "Other Parameters\n----------------\n*b\n    Two.",
        "Do.\n\n:param dict[str, int] a: One.\n\n    And more.\n:type a: dict[str,\n    int]\n"
        ":keyword b:\n    Two.",
    ],
)
def test_paragraphs_and_types_in_a_docstring(docstring: str) -> None:
    def f(a: str, *, b: str) -> str:
        return a

    f.__doc__ = docstring
    made = as_tool(f)
    assert {name: each["description"] for name, each in made.parameters["properties"].items()} == {
        "a": "One. And more.",
        "b": "Two.",
    }
    assert made.description == "Do."


def test_a_section_without_parameters_stays_in_the_text() -> None:
    def f(a: str) -> str:
        """Do.

        Args:
            None of them matters.
        """
        return a

    assert "None of them matters." in as_tool(f).description


def test_the_context_is_injected_and_hidden() -> None:
    def first(ctx, a: int) -> str:  # type: ignore[no-untyped-def]
        return f"{ctx.effect_id} {a}"

    def named(a: int, *, where: ToolContext, b: int = 2) -> str:
        return f"{where.effect_id} {a} {b}"

    assert list(properties(first)) == ["a"]
    assert list(properties(named)) == ["a", "b"]
    assert returned(as_tool(first), '{"a":1}') == "1/1.c0 1"
    assert returned(as_tool(named), '{"a":1}') == "1/1.c0 1 2"
    CTX.report_progress("silent by default")


def test_a_default_that_json_cannot_carry_is_left_to_python() -> None:
    marker = Opaque()

    def f(a: int = 1, b: Any = marker) -> Any:
        return b

    assert "default" not in properties(f)["b"]
    assert as_tool(f).prepare("{}") == '{"a":1}'
    assert returned(as_tool(f), "{}") is marker
    assert returned(as_tool(f), '{"b":5}') == 5


def test_a_mutable_default_is_never_shared() -> None:
    def f(names: list[str] = []) -> list[str]:  # noqa: B006
        names.append("x")
        return names

    assert returned(as_tool(f), "{}") == returned(as_tool(f), "{}") == ["x"]


def test_a_context_known_to_the_type_checker_only() -> None:
    def f(a: int, where: "unknown.ToolContext") -> str:  # type: ignore[name-defined]  # noqa: F821
        return str(where.effect_id)

    assert list(properties(f)) == ["a"]
    assert returned(as_tool(f), '{"a":1}') == "1/1.c0"
