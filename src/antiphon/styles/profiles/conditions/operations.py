"""operations: what operators, functions and methods do to values, each paid for before it is done."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Generator, Mapping
from typing import Any

from antiphon.styles.profiles.conditions.grammar import METHODS, ExpressionError

MAX_STEPS = 10_000
MAX_TEXT = 100_000
"""Characters of a text that an expression puts together."""
MAX_NUMBER = 2**63
TEXT_PER_STEP = 1_000
SMALL = (int, bool, float, type(None))
"""What is handled at once, by its exact type."""


class Evaluation:
    """One evaluation. names: the variables of generators. node: the last one begun, where that is told."""

    __slots__ = ("names", "node", "steps", "world")

    def __init__(self, world: Mapping[str, Any], steps: int) -> None:
        self.world, self.steps = world, steps
        self.names: dict[str, Any] = {}
        self.node: ast.AST | None = None

    def spend(self, steps: int) -> None:
        """Count so many steps, or refuse them."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise ExpressionError(f"the expression takes more than {MAX_STEPS:,} steps")

    def room(self, size: int) -> None:
        """Refuse a text that would become too long; else spend what it costs."""
        if size > MAX_TEXT:
            raise ExpressionError(f"a text would be longer than {MAX_TEXT:,} characters")
        self.spend(size // TEXT_PER_STEP)

    def weight(self, value: Any) -> int:
        """What handling the whole of a value costs; looks no further than what is left to be spent."""
        if type(value) in SMALL:
            return 1
        weight, todo = 0, [value]
        while todo and weight <= MAX_STEPS - self.steps:
            each = todo.pop()
            weight += 1
            if isinstance(each, str):
                weight += len(each) // TEXT_PER_STEP
            elif isinstance(each, list | dict):
                if len(each) > MAX_STEPS:
                    return MAX_STEPS
                todo += each.values() if isinstance(each, dict) else each
        return weight


def number(value: Any) -> Any:
    """The number that a value is. Raises TypeError, OverflowError."""
    if not isinstance(value, bool | int | float):
        raise TypeError(f"expected a number, got {kind_of(value)}")
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise OverflowError("a number is larger than 2**63")
    return value


def _on_numbers(do: Callable[[Any, Any], Any]) -> Callable[[Evaluation, Any, Any], Any]:
    return lambda run, left, right: do(number(left), number(right))


def _add(run: Evaluation, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        run.room(len(left) + len(right))
    elif isinstance(left, list) and isinstance(right, list):
        run.spend(len(left) + len(right))
    else:
        return number(left) + number(right)
    return left + right


def _multiply(run: Evaluation, left: Any, right: Any) -> Any:
    if isinstance(left, int):
        left, right = right, left
    if isinstance(left, str | list) and isinstance(right, int):
        size = len(left) * max(right, 0)
        if isinstance(left, str):
            run.room(size)
        else:
            run.spend(size)
        return left * right
    return number(left) * number(right)


ARITHMETIC: Mapping[type[ast.AST], Callable[[Evaluation, Any, Any], Any]] = {
    ast.Add: _add,
    ast.Mult: _multiply,
    ast.Sub: _on_numbers(operator.sub),
    ast.Div: _on_numbers(operator.truediv),
    ast.FloorDiv: _on_numbers(operator.floordiv),
    ast.Mod: _on_numbers(operator.mod),
}


def _compared(do: Callable[[Any, Any], Any]) -> Callable[[Evaluation, Any, Any], Any]:
    def done(run: Evaluation, left: Any, right: Any) -> Any:
        # Something small is compared at once, whatever it is compared with.
        if type(left) not in SMALL and type(right) not in SMALL:
            run.spend(min(run.weight(left), run.weight(right)))
        return do(left, right)

    return done


def _contains(run: Evaluation, needle: Any, where: Any) -> bool:
    if isinstance(where, str):
        run.spend(len(where) // TEXT_PER_STEP)
    elif isinstance(where, list):
        run.spend(len(where) * run.weight(needle))
    elif not isinstance(where, dict):
        raise TypeError(f"nothing can be in {kind_of(where)}")
    return needle in where


AT_ONCE: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
"""Comparisons that cost nothing where one side is small."""
COMPARISONS: Mapping[type[ast.AST], Callable[[Evaluation, Any, Any], Any]] = {
    **{kind: _compared(do) for kind, do in AT_ONCE.items()},
    ast.Is: lambda run, left, right: left is right,
    ast.IsNot: lambda run, left, right: left is not right,
    ast.In: _contains,
    ast.NotIn: lambda run, needle, where: not _contains(run, needle, where),
}


def item_of(run: Evaluation, value: Any, key: Any) -> Any:
    """An item of a value, or a part of it."""
    if type(value) not in (str, list, dict):
        raise TypeError(f"{kind_of(value)} has no items")
    if isinstance(key, slice):
        if isinstance(value, dict):
            # Said here: as a key it is refused by some versions of Python only, and missing in the others.
            raise TypeError("a mapping has no slices")
        length = len(range(*key.indices(len(value))))
        run.spend(length // TEXT_PER_STEP if isinstance(value, str) else length)
    return value[key]


def items_of(run: Evaluation, values: Any, cost: int) -> Generator[Any]:
    """The items of a value, each of them and what is done with it counted before it is handled."""
    if type(values) not in (str, list, dict):
        raise TypeError(f"{kind_of(values)} has no items")
    for item in values:
        run.spend(1 + cost)
        yield item


def unpacked(names: list[str], item: Any) -> dict[str, Any]:
    """An item, taken apart for the variables of a loop."""
    if type(item) not in (str, list, dict) or len(item) != len(names):
        raise ValueError(f"expected {len(names)} values for {', '.join(names)}, got {kind_of(item)}")
    return dict(zip(names, item, strict=True))


def _written(run: Evaluation, value: Any) -> str:
    run.spend(run.weight(value))
    written = str(value)
    run.room(len(written))
    return written


def _whole(run: Evaluation, value: Any) -> int:
    if isinstance(value, str) and len(value) > 100:
        raise ValueError("int of a text of more than 100 characters")
    return int(value)


CONVERSIONS: Mapping[str, Callable[[Evaluation, Any], Any]] = {
    "str": _written,
    "int": _whole,
}


def method(run: Evaluation, name: str, receiver: Any, values: list[Any]) -> Any:
    """What a method of a text, a mapping or a list gives. Raises TypeError for any other."""
    kind = _KINDS.get(type(receiver), "")
    if name not in METHODS.get(kind, ()):
        raise TypeError(f"{kind_of(receiver)} has no method .{name}")
    least, most = METHODS[kind][name]
    if not least <= len(values) <= most:
        raise TypeError(f".{name} takes {least} to {most} values, not {len(values)}")
    if kind == "mapping":
        return _of_mapping(run, name, receiver, values)
    if kind == "list":
        run.spend(len(receiver) * run.weight(values[0]))
        return receiver.count(values[0]) if name == "count" else receiver.index(values[0])
    return _of_text(run, name, receiver, values)


def _of_mapping(run: Evaluation, name: str, receiver: dict[str, Any], values: list[Any]) -> Any:
    if name == "get":
        return receiver.get(*values)
    run.spend(len(receiver))
    if name == "items":
        return [list(pair) for pair in receiver.items()]
    return list(receiver if name == "keys" else receiver.values())


def _of_text(run: Evaluation, name: str, receiver: str, values: list[Any]) -> Any:
    run.spend(len(receiver) // TEXT_PER_STEP)
    if name in ("split", "splitlines"):
        # A list of a text's parts takes up far more room than the text.
        run.spend(len(receiver) // 10)
    elif name == "replace":
        old, new = values
        run.room(len(receiver) + receiver.count(old) * len(new))
    elif name in ("startswith", "endswith") and isinstance(values[0], list):
        values = [tuple(values[0])]
    return _TEXT[name](receiver, *values)


_KINDS: Mapping[type, str] = {str: "text", dict: "mapping", list: "list"}
_TEXT: Mapping[str, Callable[..., Any]] = {
    "casefold": str.casefold,
    "count": str.count,
    "endswith": str.endswith,
    "find": str.find,
    "isalnum": str.isalnum,
    "isalpha": str.isalpha,
    "isdigit": str.isdigit,
    "isspace": str.isspace,
    "lower": str.lower,
    "lstrip": str.lstrip,
    "removeprefix": str.removeprefix,
    "removesuffix": str.removesuffix,
    "replace": str.replace,
    "rstrip": str.rstrip,
    "split": str.split,
    "splitlines": str.splitlines,
    "startswith": str.startswith,
    "strip": str.strip,
    "title": str.title,
    "upper": str.upper,
}


def kind_of(value: Any) -> str:
    """What a value is called in errors."""
    kinds = {str: "a text", bool: "a truth value", int: "a number", float: "a number", list: "a list"}
    return kinds.get(
        type(value), "a mapping" if isinstance(value, dict) else "null" if value is None else "data"
    )
