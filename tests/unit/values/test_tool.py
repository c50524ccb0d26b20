"""Tools: the contract, binding, methods, definitions that are refused, results."""

import asyncio
import dataclasses
import datetime
import decimal
import enum
import functools
import gc
import pathlib
import re
import subprocess
import sys
import uuid
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from antiphon.errors import ToolDefinitionError, ToolError
from antiphon.values.message import Attachment, ToolResult
from antiphon.values.model import Example
from antiphon.values.schema.arguments import Invalid
from antiphon.values.tool import Tool, ToolContext, as_tool, result_of, tool, tool_from

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


def test_the_contract() -> None:
    def found(key: str) -> str:
        return key

    @tool(
        effect="idempotent",
        reconcile=found,
        timeout=5.0,
        requires_approval=True,
        examples=(Example("pay 3", "pay", {"amount": 3}),),
        name="pay",
        description="Pay.",
        finishes=True,
        labels=("untrusted",),
        exclusive=True,
        trusted=False,
    )
    async def transfer(amount: int) -> str:
        """Unused."""
        return f"paid {amount}"

    assert (transfer.name, transfer.description, transfer.effect) == ("pay", "Pay.", "idempotent")
    assert transfer.reconcile is found
    assert (transfer.timeout, transfer.requires_approval, transfer.finishes, transfer.exclusive) == (
        5.0,
        True,
        True,
        True,
    )
    assert (transfer.labels, transfer.trusted, transfer.is_async) == (("untrusted",), False, True)
    assert transfer.has_side_effects
    assert transfer.examples[0].call == "pay"
    assert returned(transfer, '{"amount":3}') == "paid 3"
    assert asyncio.run(transfer(4)) == "paid 4"
    assert repr(transfer) == "Tool('pay', effect='idempotent')"
    with pytest.raises(AttributeError):
        transfer.name = "x"  # type: ignore[misc]


def test_defaults_of_the_contract() -> None:
    @tool
    def f() -> str:
        """Nothing."""
        return ""

    assert (f.effect, f.timeout, f.requires_approval, f.trusted, f.raw, f.is_async) == (
        "once",
        60.0,
        False,
        True,
        False,
        False,
    )
    assert f.has_side_effects
    assert f.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert not tool(effect="read")(lambda_named).has_side_effects


def test_a_tool_says_for_people_what_it_is() -> None:
    """Kind and title decide nothing, and so an approval that is remembered does not depend on them."""

    @tool
    def fetch_text(url: str) -> str:
        """Fetch."""
        return url

    told = tool(kind="fetch", title="Fetch a page ")(fetch_text.function)
    assert (fetch_text.kind, fetch_text.title) == ("other", "Fetch text")
    assert (told.kind, told.title) == ("fetch", "Fetch a page")
    assert told.digest == fetch_text.digest
    assert told.spec == fetch_text.spec
    declared = tool_from("list-orders", "", {"type": "object"}, len, kind="search", title="Orders")
    assert (declared.kind, declared.title) == ("search", "Orders")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "reading"}, "f: tool(kind=...) takes 'read', 'edit'"),
        ({"title": "a\nb"}, "f: title is one line of at most 200 characters; got 'a\\nb'"),
        ({"title": "a\u202eb"}, "f: title is one line"),
        ({"title": "x" * 201}, "f: title is one line"),
        ({"caution": "a\nb"}, "f: caution is one line of at most 500 characters; got 'a\\nb'"),
        ({"title": None}, "f: tool(title=...) takes a text"),
    ],
)
def test_a_kind_or_title_that_cannot_be(given: dict[str, Any], said: str) -> None:
    def f() -> str:
        return ""

    with pytest.raises(ToolDefinitionError, match=re.escape(said)):
        tool(**given)(f)


def lambda_named() -> str:
    return ""


def test_a_tool_is_made_once_per_function_and_lives_no_longer() -> None:
    def f(a: int) -> int:
        return a

    made = as_tool(f)
    assert as_tool(f) is made
    assert as_tool(made) is made

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return "wrapped"

    assert returned(as_tool(wrapped), '{"a":1}') == "wrapped"
    gone = weakref.ref(f)
    del f, made, wrapped
    gc.collect()
    assert gone() is None


def test_the_digest_follows_what_a_model_is_shown() -> None:
    def make(text: str) -> Tool:
        def f(a: int) -> int:
            return a

        f.__doc__ = text
        return as_tool(f)

    assert make("One.").digest == make("One.").digest != make("Two.").digest
    assert len(make("One.").digest) == 32
    int(make("One.").digest, 16)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> int:
        self.count += by
        return self.count

    @tool(effect="idempotent")
    async def put(self, ctx: ToolContext, value: int) -> str:
        """Put."""
        self.count = value
        return ctx.agent


def test_methods() -> None:
    one, two = Counter(), Counter()
    assert returned(as_tool(one.add), '{"by":2}') == 2
    assert returned(as_tool(two.add), '{"by":3}') == 3
    assert as_tool(one.add).spec is as_tool(two.add).spec
    assert returned(as_tool(one.put), '{"value":7}') == "writer"
    assert (one.count, two.count) == (7, 3)
    with pytest.raises(ToolDefinitionError, match="'self' is not bound"):
        as_tool(Counter.put)
    with pytest.raises(ToolDefinitionError, match="'self' is not bound"):
        as_tool(Counter.add)


def test_a_tool_kept_in_a_class_is_left_alone() -> None:
    class Team:
        finder = as_tool(lambda_named)

    assert Team().finder is as_tool(lambda_named)


def test_callables_other_than_functions() -> None:
    class Named:
        __name__ = "named"

        async def __call__(self, a: int) -> int:
            return a + 1

    assert returned(as_tool(Named()), '{"a":1}') == 2

    def f(a: int, b: int) -> int:
        return a - b

    assert returned(tool(name="less")(functools.partial(f, b=1)), '{"a":5}') == 4


def positional(a: int, /) -> int:
    return a


def star(*names: str) -> str:
    return ""


def stars(**names: str) -> str:
    return ""


def generates() -> Any:
    yield 1


async def generates_later() -> AsyncIterator[int]:
    yield 1


def unresolved(a: "Missing") -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


@dataclasses.dataclass
class Holder:
    inside: Opaque


def holds(value: Holder) -> str:
    return ""


def constrained(value: Annotated[str, Meta(ge=1)]) -> str:
    return ""


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (positional, ["positional", "'a'", "positional-only"]),
        (star, ["'names'", "variadic"]),
        (stars, ["'names'", "variadic"]),
        (generates, ["generator"]),
        (generates_later, ["generator"]),
        (unresolved, ["'a'", "Missing"]),
        (holds, ["'value'", "Holder"]),
        (constrained, ["'value'"]),
        (lambda a: a, ["<lambda>", "name"]),
        (Point, ["class"]),
        (42, ["42"]),
    ],
    ids=lambda value: getattr(value, "__name__", "x"),
)
def test_what_cannot_be_a_tool_says_why(function: Any, parts: list[str]) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        as_tool(function)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_raw() -> None:
    @tool(raw=True)
    def shell(text: str) -> str:
        """Run."""
        return text

    assert returned(shell, "not { json") == "not { json"
    assert returned(shell, "[" * 1000) == "[" * 1000
    assert isinstance(shell.prepare("\ud800"), Invalid)
    assert isinstance(shell.prepare("x" * 2_000_000), Invalid)

    @tool(raw=True)
    def told(text: Annotated[str, "What to run."]) -> str:
        return text

    assert returned(told, "not { json") == "not { json"
    assert told.parameters["properties"]["text"]["description"] == "What to run."
    with pytest.raises(ToolDefinitionError, match="exactly one"):
        tool(raw=True)(positional_free)
    with pytest.raises(ToolDefinitionError, match="timeout"):
        tool(timeout=0)(lambda_named)


def positional_free(a: str, b: str) -> str:
    return a


def test_arguments_recorded_for_another_signature_are_told_apart() -> None:
    with pytest.raises(ToolError, match="do not fit tool 'positional_free'"):
        as_tool(positional_free).bind('{"a":"x"}', CTX)


@dataclasses.dataclass
class Strict:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x must not be negative")
        if self.x > 9:
            raise LookupError("no such x")


def test_a_validator_of_the_users_is_told_to_the_model() -> None:
    def f(value: Strict) -> int:
        return value.x

    for raw, said in (('{"value":{"x":-1}}', "must not be negative"), ('{"value":{"x":10}}', "no such x")):
        refused = as_tool(f).prepare(raw)
        assert isinstance(refused, Invalid)
        assert said in refused.text


FILE = Attachment("image/png", data="AAAA")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (None, ""),
        (5, "5"),
        (True, "true"),
        (1.5, "1.5"),
        ({"b": 1, "a": [None]}, '{"b":1,"a":[null]}'),
        ([1, "a"], '[1,"a"]'),
        (Point(1, 2), '{"x":1,"y":2}'),
        (Level.LOW, "2"),
        (Mixed.HALF, "0.5"),
        (b"ab", '"YWI="'),
        ({"p": pathlib.Path("a/b")}, '{"p":"a/b"}'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        (decimal.Decimal("1.10"), '"1.10"'),
        (uuid.UUID(int=0), '"00000000-0000-0000-0000-000000000000"'),
        ({3}, "[3]"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ({"a": "\udfff"}, '{"a":"\ufffd"}'),
        (ToolResult("a\ud800"), "a\ufffd"),
    ],
)
def test_results(value: Any, content: str) -> None:
    assert result_of(value) == ToolResult(content)


def test_results_with_attachments() -> None:
    assert result_of(FILE) == ToolResult("", (FILE,))
    assert result_of(["see", FILE, {"a": 1}]) == ToolResult('see\n{"a":1}', (FILE,))
    given = ToolResult("no", (FILE,), is_error=True)
    assert result_of(given) == given


def test_a_result_that_json_cannot_carry_is_named_with_its_path() -> None:
    with pytest.raises(ToolError, match=r"Opaque at \$\['a'\]\[1\]\.x"):
        result_of({"a": [1, Point(Opaque())]})  # type: ignore[arg-type]
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ToolError, match="list"):
        result_of(circle)


def test_pydantic_is_not_imported() -> None:
    code = "import antiphon.values.tool, sys; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_tool_is_cheap_to_share() -> None:
    made = as_tool(lambda_named)
    assert hash(made) == hash(made)
    assert made == made
    assert weakref.ref(made)() is made
    assert msgspec.structs.replace(made, trusted=False) != made


def test_a_coroutine_that_nobody_waits_for_is_told_with_what_to_do():
    async def later():
        return "late"

    forgotten = later()
    with pytest.raises(ToolError, match=r"make its function async and await it, or .* ctx\.wait"):
        result_of(forgotten)
    with pytest.raises(RuntimeError, match="cannot reuse"):
        forgotten.send(None)
