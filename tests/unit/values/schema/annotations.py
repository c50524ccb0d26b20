"""Random annotations, and random JSON values that nearly fit them. The same seed makes the same ones."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import json
import pathlib
import random
import uuid
from collections.abc import Sequence
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

import annotated_types as at
import msgspec
from msgspec import Meta, Struct

try:
    import pydantic
except ImportError:  # pydantic is for users who have it
    pydantic = None  # type: ignore[assignment]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    OFF = "off"
    HALF = 0.5
    ON = True


Sku = Annotated[str, Meta(pattern="^[A-Z]{2}-[0-9]+$")]
Named = NewType("Named", Sku)
T = TypeVar("T")


class Tree(Struct):
    """It holds itself, beside a union that msgspec must not see."""

    sku: Sku | list[Sku]
    inner: list[Tree] = []


class Node(TypedDict):
    level: Level
    next: NotRequired[Node | None]


@dataclasses.dataclass
class Box(Generic[T]):
    held: T
    many: list[T] = dataclasses.field(default_factory=list)


class Cat(Struct, tag="cat"):
    lives: Annotated[int, Meta(ge=1)]


class Dog(Struct, tag="dog"):
    name: Sku


class Bird(Struct, tag="bird", forbid_unknown_fields=True):
    lives: int = 1


CLASSES: list[Any] = [Tree, Node, Cat | Bird, Cat | Dog, Bird | Dog | None, Tree | Node]
PLAIN: list[Any] = [
    str,
    int,
    float,
    bool,
    Any,
    datetime.date,
    uuid.UUID,
    pathlib.Path,
    datetime.datetime,
    Color,
    Level,
    Mixed,
]
LITERALS: list[Any] = [
    Literal[Color.RED, Level.LOW],
    Literal["a", "b"],
    Literal[1, 2],
    Literal[True, "auto"],
    Literal["1", 2, None],
    Literal[0.5],
]
LIMITED: list[Any] = [
    Sku,
    Named,
    Annotated[str, Meta(min_length=1, max_length=3)],
    Annotated[str, at.Len(1, 4), Meta(pattern="^a")],
    Annotated[int, Meta(ge=1, le=7)],
    Annotated[int, at.Interval(gt=0, lt=10), at.MultipleOf(2)],
    Annotated[int, at.Ge(0.5)],
    Annotated[float, at.Ge(0), at.MultipleOf(0.01)],
    Annotated[float, Meta(gt=-1.5)],
    Annotated[int | None, at.Ge(3)],
    Annotated[list[int], at.MinLen(1)],
    Annotated[dict[str, int], at.MaxLen(1)],
]
if pydantic is not None:
    LIMITED += [
        Annotated[int, pydantic.Field(ge=1, le=7, description="days")],
        Annotated[str, pydantic.Field(pattern="^x")],
        Annotated[str, pydantic.StringConstraints(min_length=2, pattern="[0-9]")],
        pydantic.PositiveInt,
        pydantic.conint(ge=2, multiple_of=3),
    ]


def annotation(rng: random.Random, depth: int = 3, models: bool = False) -> Any:
    """An annotation nested at most `depth` deep; with pydantic models among its classes, if wanted."""
    if depth <= 0 or rng.random() < 0.3:
        return rng.choice(rng.choice((PLAIN, LITERALS, LIMITED, LIMITED)))

    def inner() -> Any:
        return annotation(rng, depth - 1, models)

    return rng.choice(
        [
            lambda: list[inner()],  # type: ignore[misc]
            lambda: Sequence[inner()],  # type: ignore[misc]
            lambda: dict[str, inner()],  # type: ignore[misc]
            lambda: dict[rng.choice((int, Sku, Color, Literal["k", "l"])), inner()],  # type: ignore[misc]
            lambda: set[rng.choice((str, int, Sku, Color, int | str, tuple[Sku, Level]))],  # type: ignore[misc]
            lambda: tuple[inner(), inner()],  # type: ignore[misc]
            lambda: tuple[inner(), ...],  # type: ignore[misc]
            lambda: Optional[inner()],  # noqa: UP045 - an annotation is not always a class
            lambda: _union(rng, inner),
            lambda: _union(rng, inner),
            lambda: Annotated[inner(), "a text"],
            lambda: a_class(rng, inner, models),
            lambda: a_class(rng, inner, models),
        ]
    )()


def _union(rng: random.Random, inner: Any) -> Any:
    first = inner()
    rest = [inner() for _ in range(rng.randint(1, 2))]
    return Union[tuple([first, list[first], *rest] if rng.random() < 0.5 else [first, *rest])]  # noqa: UP007


def a_class(rng: random.Random, inner: Any, models: bool) -> Any:
    """A class with up to three fields."""
    names = ["x", "y", "z"][: rng.randint(1, 3)]
    fields = [(name, inner()) for name in names]
    late = [*fields, ("w", Optional[inner()])]  # noqa: UP045
    kinds = [
        lambda: dataclasses.make_dataclass("Data", [*fields, ("w", late[-1][1], None)]),
        lambda: msgspec.defstruct("Closed", fields, forbid_unknown_fields=True),
        lambda: msgspec.defstruct("Plain", [*fields, ("w", late[-1][1], None)], rename="camel"),
        lambda: TypedDict("Typed", {**dict(fields), "w": NotRequired[late[-1][1]]}),  # type: ignore[operator]
        lambda: NamedTuple("Row", fields),
    ]
    if models and pydantic is not None:
        plain = {name: (rng.choice((int, list[str], Sku, Color, float | None)), ...) for name in names}
        kinds.append(lambda: pydantic.create_model("Model", **plain))  # type: ignore[call-overload]
    kinds += [lambda: rng.choice(CLASSES), lambda: Box[inner()]]  # type: ignore[misc]
    return rng.choice(kinds)()


SCALARS: list[Any] = [
    None, True, False, 0, 1, 2, 3, 6, 7, 8, -1, 1.0, 0.5, 0.07, 0.29, 0.075, 1e3, -2.5, 10**20, 1e22,
    "", "a", "ab", "abcde", "x1", "red", "off", "auto", "AB-1", "AB-1\n", "ab-1", "1", "2", "1.0",
    "0", "true", "False", "null", "[1]", '["AB-1"]', '{"x":1}', "2026-01-02", "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05", "12345678-1234-5678-1234-567812345678", [], {}, [1], ["a", "a"],
    {"k": 1}, {"1": 2}, {"01": 2},
]  # fmt: skip


def value_for(rng: random.Random, schema: Any, defs: Any) -> Any:
    """A value that mostly fits a schema; now and then one that does not, or only just."""
    if rng.random() < 0.12 or not isinstance(schema, dict):
        return copy.deepcopy(rng.choice(SCALARS))
    if "$ref" in schema:
        return value_for(rng, defs.get(schema["$ref"].removeprefix("#/$defs/"), True), defs)
    if "enum" in schema:
        found = rng.choice(schema["enum"])
        return float(found) if type(found) is int and rng.random() < 0.2 else found
    if "anyOf" in schema:
        return value_for(rng, rng.choice(schema["anyOf"]), defs)
    kind = schema.get("type")
    if kind == "array":
        first = schema.get("prefixItems", [])
        count = rng.randint(0, 3) if not first else max(0, len(first) + rng.choice((0, 0, 0, 0, 1, -1)))
        items = [
            value_for(rng, first[at] if at < len(first) else schema.get("items"), defs) for at in range(count)
        ]
        return json.dumps(items) if rng.random() < 0.1 else items
    if kind == "object":
        return _object_for(rng, schema, defs)
    fitting = {
        "integer": [1, 2, 3, 4, 6, 7, 8, 1.0, 6.0, "3"],
        "number": [0, 1, 0.01, 0.07, 0.29, 1.15, 0.075, 2.5, "0.5", "nan"],
        "boolean": [True, False, "true", 0, 1],
        "string": ["a", "ab", "abc", "AB-1", "ZZ-99", "x1", "x23", "2026-01-02", "AB-1\n"]
        + ["12345678-1234-5678-1234-567812345678"] * (schema.get("format") == "uuid") * 5,
        "null": [None],
    }
    return rng.choice(fitting.get(str(kind), SCALARS))


def _object_for(rng: random.Random, schema: Any, defs: Any) -> Any:
    known = schema.get("properties", {})
    needed = schema.get("required", ())
    found = {
        name: value_for(rng, each, defs)
        for name, each in known.items()
        if rng.random() < (0.96 if name in needed else 0.6)
    }
    rest = schema.get("additionalProperties", True)
    names = schema.get("propertyNames", {})
    if not known or rng.random() < 0.1:
        for _ in range(rng.randint(0, 2)):
            name = (
                str(value_for(rng, {"type": "string", **names}, defs))
                if rng.random() < 0.6
                else rng.choice("kl12")
            )
            found[name] = value_for(rng, rest, defs)
    return json.dumps(found) if rng.random() < 0.05 else found
