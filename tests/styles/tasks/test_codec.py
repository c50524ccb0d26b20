"""What a message carries between processes, and what a foreign text cannot make it do."""

import json
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum, IntFlag, StrEnum
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import UserError
from antiphon.styles.tasks import InvalidMessage, StructuredMessage
from antiphon.styles.tasks.messages.codec import KIND, MAX_CHARACTERS, MAX_DEPTH, from_json, to_json

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
DAY = timedelta(hours=23, minutes=59)
OFFSETS = st.timedeltas(-DAY, DAY).map(timezone)
SCALARS = (
    PLAIN
    | st.datetimes(timezones=st.none() | OFFSETS)
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.binary()
    | st.uuids()
    | st.decimals(allow_nan=False)
)
KEYS = st.text() | st.just(KIND) | st.integers() | st.tuples(st.text(), st.booleans())
VALUES = st.recursive(
    SCALARS | st.sets(SCALARS) | st.frozensets(SCALARS),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@pytest.mark.slow
@given(VALUES)
def test_whatever_is_written_is_read(value: Any) -> None:
    text = to_json(value)
    back = from_json(text)
    assert back == value
    assert to_json(back) == text
    assert text.isascii()


@pytest.mark.parametrize("fold", [0, 1])
def test_a_time_zone_arrives_as_its_offset(fold: int) -> None:
    """In the hour that comes twice, too."""
    value = datetime(2025, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Zurich"), fold=fold)
    back = from_json(to_json(value))
    assert (back.timestamp(), back.utcoffset()) == (value.timestamp(), timedelta(hours=2 - fold))


def test_numbers_that_json_has_no_form_for() -> None:
    values = from_json(to_json([math.nan, math.inf, -math.inf]))
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


# -- what looks like a kind ---------------------------------------------------------------------

FORGED = [
    {KIND: "path", "value": "/etc/passwd"},
    {KIND: "type", "name": "Order", "value": {"id": 1}},
    {KIND: "dict", "value": [[KIND, "set"], ["value", [1]]]},
    {KIND: "something", "more": 1},
    {KIND: None},
]


@pytest.mark.parametrize("forged", FORGED)
def test_a_users_data_that_looks_like_a_kind_comes_back_as_it_was(forged: dict[str, Any]) -> None:
    message = StructuredMessage("x", {"from a model": [forged]})
    back = StructuredMessage.from_json(message.to_json(), types=[Order])
    assert back.metadata == {"from a model": [forged]}
    again = StructuredMessage.from_json(back.to_json(), types=[Order])
    assert again.metadata == {"from a model": [forged]}


def test_a_dictionary_is_taken_as_it_is() -> None:
    forged = {"tags": {KIND: "set", "value": [1]}}
    assert StructuredMessage.from_dict({"content": "x", "metadata": forged}).metadata == forged


@dataclass
class Order:
    id: int
    tags: set[str] = field(default_factory=set)


class Wire(msgspec.Struct, rename="camel", tag=True):
    order_id: int
    orders: list[Order] = []


class Filed(msgspec.Struct):
    path: Path
    more: Any = None


class Sparse(msgspec.Struct):
    name: str | msgspec.UnsetType = msgspec.UNSET


class Level(IntFlag):
    LOW = 1
    HIGH = 2


class Mood(StrEnum):
    GLAD = "glad"


class Corner(Enum):
    TOP = (0, 1)


@dataclass
class Loud:
    """Says when it is made."""

    id: int

    def __post_init__(self) -> None:
        raise RuntimeError("it was made")


def test_no_class_is_made_that_was_not_asked_for() -> None:
    text = '{"$antiphon": "type", "name": "Loud", "value": {"id": 1}}'
    assert from_json(text) == {"id": 1}
    assert from_json(text, types=[Order]) == {"id": 1}
    for name in ("builtins.eval", "os.system", 5, None, []):
        named = json.dumps({KIND: "type", "name": name, "value": "id"})
        assert from_json(named, types=[Order]) == "id"


@pytest.mark.parametrize(
    "value",
    [
        Order(1, {"a"}),
        Wire(1, [Order(2)]),
        Filed(Path("a"), {1}),
        Sparse(),
        Sparse("x"),
        Level.LOW | Level.HIGH,
        Mood.GLAD,
        Corner.TOP,
    ],
)
def test_a_class_that_was_asked_for_is_made(value: Any) -> None:
    types = [Order, Wire, Filed, Sparse, Level, Mood, Corner]
    back = from_json(to_json([value]), types=types)[0]
    assert (back, type(back)) == (value, type(value))


def test_without_its_class_it_is_plain() -> None:
    values = [Order(1, {"a"}), Wire(1), Level.LOW, Mood.GLAD, Corner.TOP]
    assert from_json(to_json(values)) == [
        {"id": 1, "tags": {"a"}},
        {"orderId": 1, "orders": []},
        1,
        "glad",
        (0, 1),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"$antiphon": "type", "name": "Order", "value": {"id": "one"}}', r"At \$\.a: .*Expected `int`"),
        ('{"$antiphon": "type", "name": "Order", "value": {}}', r"missing required field `id`"),
        ('{"$antiphon": "type", "name": "Order", "value": 5}', r"Expected `object`"),
        ('{"$antiphon": "type", "name": "Mood", "value": "sad"}', r"'sad' is not a valid Mood"),
        ('{"$antiphon": "type", "name": "Filed", "value": {"path": 5}}', r"Expected `Path`"),
        ('{"$antiphon": "pickle", "value": "gASVAA=="}', r"unknown kind 'pickle' .*Known: datetime, "),
        ('{"$antiphon": ["set"], "value": []}', r"unknown kind \['set'\]"),
        ('{"$antiphon": "set"}', r"not a set: expected a list"),
        ('{"$antiphon": "set", "value": [[1]]}', r"not a set: unhashable"),
        ('{"$antiphon": "dict", "value": [[1]]}', r"not a dict: expected pairs"),
        ('{"$antiphon": "datetime", "value": "yesterday"}', r"not a datetime"),
        ('{"$antiphon": "datetime", "value": 5}', r"not a datetime"),
        ('{"$antiphon": "timedelta", "value": [1e30, 0, 0]}', r"not a timedelta"),
        ('{"$antiphon": "timedelta", "value": 5}', r"not a timedelta"),
        ('{"$antiphon": "bytes", "value": "?"}', r"not a bytes"),
        ('{"$antiphon": "decimal", "value": "one"}', r"not a decimal"),
        ('{"$antiphon": "decimal", "value": 1.5}', r"not a decimal: expected text"),
        ('{"$antiphon": "path", "value": ["a"]}', r"not a path: expected text"),
        ('{"$antiphon": "uuid", "value": "one"}', r"not a uuid"),
        ('{"$antiphon": "float", "value": "1"}', r"not a float: expected nan"),
    ],
)
def test_a_kind_that_does_not_fit_says_where(text: str, said: str) -> None:
    with pytest.raises(InvalidMessage, match=said) as caught:
        from_json(f'{{"a": {text}}}', types=[Order, Mood, Filed])
    assert str(caught.value).startswith("At $.a: ")


def test_types_must_be_classes_of_different_names() -> None:
    other = msgspec.defstruct("Order", ["id"])
    with pytest.raises(UserError, match="two classes are named Order"):
        from_json("1", types=[Order, other])
    with pytest.raises(UserError, match="is no Enum, dataclass or Struct class"):
        from_json("1", types=[int])
    assert from_json("1", types=[Order, Order]) == 1


# -- what cannot be written or read -------------------------------------------------------------


class Point(NamedTuple):
    x: int


def test_a_subclass_is_written_as_what_it_is() -> None:
    assert from_json(to_json([Point(1), type("Text", (str,), {})("a")])) == [(1,), "a"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, object()]}, r"\$\.a\[1\]"),
        ({"a b": {"c": print}}, r"\$\['a b'\]\.c"),
        ({(1, object()): 1}, r"\$\['\(a key\)'\]\[1\]"),
        ({"a": Order}, r"\$\.a"),
        ([1 << 5_000], r"\$\[0\]"),
    ],
)
def test_what_cannot_be_written_is_named_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(InvalidMessage, match=f"^At {path}: "):
        to_json(value)


def test_what_holds_itself_is_refused() -> None:
    value: list[Any] = [1]
    value.append({"again": value})
    with pytest.raises(InvalidMessage, match=r"At \$\[1\]\.again: the list holds itself"):
        to_json(value)
    shared = [1]
    assert from_json(to_json([shared, shared])) == [[1], [1]]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {1: frozenset({(1,)}), 2: value}
    return value


def test_the_deepest_that_is_written_is_read() -> None:
    deep = nested(MAX_DEPTH - 2)
    assert from_json(to_json(deep)) == deep
    with pytest.raises(InvalidMessage, match="deeper than 64 levels"):
        to_json(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"$antiphon":"set","value":['])
@pytest.mark.parametrize("levels", [150, 200_000])
def test_a_foreign_text_that_is_too_deep(opening: str, levels: int) -> None:
    closing = "".join({"[": "]", "{": "}"}.get(each, "") for each in reversed(opening))
    text = opening * levels + "1" + closing * levels
    with pytest.raises(InvalidMessage, match=r"deeper than 64 levels|characters"):
        from_json(text)


def test_what_is_too_long_is_neither_written_nor_read() -> None:
    with pytest.raises(InvalidMessage, match="MAX_CHARACTERS"):
        to_json("x" * MAX_CHARACTERS)
    with pytest.raises(InvalidMessage, match="MAX_CHARACTERS"):
        from_json("[" + " " * MAX_CHARACTERS + "]")
    assert from_json(to_json("x" * (MAX_CHARACTERS - 2)))


@pytest.mark.slow
def test_what_is_small_here_and_endless_as_a_text_is_refused() -> None:
    value: list[Any] = []
    for _ in range(40):
        value = [value, value]
    with pytest.raises(InvalidMessage, match="MAX_CHARACTERS"):
        to_json(value)


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1, Infinity]", "{'a': 1}", "1" * 5_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidMessage, match=r"^Not JSON: "):
        from_json(text)


def test_plain_values_are_plain_json() -> None:
    value = {"a": [1, 2.5, "ü", None, True]}
    assert json.loads(to_json(value)) == value
