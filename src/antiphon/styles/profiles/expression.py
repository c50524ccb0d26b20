"""expression: a condition of a profile, evaluated over an agent's world.

An interpreter, not Python: simpleeval walks the tree that `grammar` has let through, and only this module
says what each node does. Nothing is ever looked up on an object: methods come from a table by the exact type
of what they are called on, and the world is JSON data. Every node, every item and every thousand characters
that are handled count one step of MAX_STEPS, before they are handled.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from typing import Any

from msgspec import Struct
from simpleeval import InvalidExpression, SimpleEval

from antiphon.styles.profiles.grammar import (
    ACCESSOR,
    CONTEXT,
    METHODS,
    VIEW,
    ExpressionError,
    parse,
    place,
    problems,
)
from antiphon.styles.profiles.path import lookup, steps

MAX_STEPS = 10_000
MAX_TEXT = 100_000
"""Characters of a text that an expression puts together."""
MAX_NUMBER = 2**63
TEXT_PER_STEP = 1_000


class Expression(Struct, frozen=True, eq=False):
    """A condition that was read. Two are equal when they are written the same."""

    text: str
    tree: ast.expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def read_expression(text: str) -> Expression:
    """The expression in a text. Raises ExpressionError: not in the grammar, or sure to fail."""
    tree = parse(text)
    for problem in problems(tree, text):
        raise problem
    return Expression(text, tree)


def evaluate(expression: Expression, world: Mapping[str, Any]) -> Any:
    """What an expression comes to in a world of JSON data, in at most MAX_STEPS steps.

    Raises ExpressionError: the data is not what the expression takes it for, or a bound was reached.
    """
    walk = _Walk(expression.text, world)
    try:
        return walk.eval(expression.text, expression.tree)
    except ExpressionError:
        raise
    except KeyError as error:
        raise ExpressionError(f"there is no key {str(error)[:80]}", walk.offset) from None
    except ZeroDivisionError:
        raise ExpressionError("division by zero", walk.offset) from None
    except (TypeError, ValueError, IndexError, ArithmeticError, RecursionError, InvalidExpression) as error:
        raise ExpressionError(str(error)[:200], walk.offset) from None


def holds(expression: Expression, world: Mapping[str, Any]) -> bool:
    """Whether a condition is met. Raises ExpressionError as `evaluate`."""
    return bool(evaluate(expression, world))


def constant(expression: Expression) -> bool | None:
    """What a condition always comes to; None when that depends on the world.

    Raises ExpressionError for one that depends on nothing and fails.
    """
    names = {node.id for node in ast.walk(expression.tree) if isinstance(node, ast.Name)}
    return None if names & {VIEW, CONTEXT} else holds(expression, {})


class _Walk(SimpleEval):  # type: ignore[misc]  # simpleeval has no types
    """One evaluation."""

    def __init__(self, text: str, world: Mapping[str, Any]) -> None:
        # Not simpleeval's own: it would lay out tables for each of the many short evaluations of a turn.
        self.operators = _Operators(self)
        self.functions: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        self._text, self._world, self._steps = text, world, 0
        self._node: ast.AST | None = None

    @property
    def offset(self) -> int:
        """Where in the expression the last node begins."""
        return place(self._text, self._node) if self._node is not None else 0

    def _eval(self, node: ast.AST) -> Any:
        # simpleeval's own would search the whole of every value for forbidden objects; JSON data has none.
        self._node = node
        self._spend(1)
        return getattr(self, _NODES[type(node)])(node)

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise ExpressionError(f"the expression takes more than {MAX_STEPS:,} steps", self.offset)

    def _numbers(self, do: Callable[..., Any]) -> Callable[..., Any]:
        def done(*values: Any) -> Any:
            for value in values:
                if not isinstance(value, bool | int | float):
                    raise TypeError(f"expected a number, got {_kind(value)}")
                if isinstance(value, int) and abs(value) > MAX_NUMBER:
                    raise OverflowError("a number is larger than 2**63")
            return do(*values)

        return done

    def _add(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) and isinstance(right, str):
            self._room(len(left) + len(right))
        elif isinstance(left, list) and isinstance(right, list):
            self._spend(len(left) + len(right))
        else:
            return self._numbers(operator.add)(left, right)
        return left + right

    def _multiply(self, left: Any, right: Any) -> Any:
        if isinstance(left, int):
            left, right = right, left
        if isinstance(left, str | list) and isinstance(right, int):
            size = len(left) * max(right, 0)
            if isinstance(left, str):
                self._room(size)
            else:
                self._spend(size)
            return left * right
        return self._numbers(operator.mul)(left, right)

    def _room(self, size: int) -> None:
        """Refuse a text that would become too long; else spend what it costs."""
        if size > MAX_TEXT:
            raise ExpressionError(f"a text would be longer than {MAX_TEXT:,} characters", self.offset)
        self._spend(size // TEXT_PER_STEP)

    def _compared(self, do: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        def done(left: Any, right: Any) -> Any:
            self._spend(min(self._weight(left), self._weight(right)))
            return do(left, right)

        return done

    def _contains(self, needle: Any, where: Any) -> bool:
        if isinstance(where, str):
            self._spend(len(where) // TEXT_PER_STEP)
        elif isinstance(where, list):
            self._spend(len(where) * self._weight(needle))
        elif not isinstance(where, dict):
            raise TypeError(f"nothing can be in {_kind(where)}")
        return needle in where

    def _weight(self, value: Any) -> int:
        """What handling the whole of a value costs; looks no further than what is left to be spent."""
        weight, todo = 0, [value]
        while todo and weight <= MAX_STEPS - self._steps:
            each = todo.pop()
            weight += 1
            if isinstance(each, str):
                weight += len(each) // TEXT_PER_STEP
            elif isinstance(each, list | dict):
                if len(each) > MAX_STEPS:
                    return MAX_STEPS
                todo += each.values() if isinstance(each, dict) else each
        return weight

    def _variable(self, node: ast.Name) -> Any:
        return self.names[node.id]

    def _item(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == VIEW:
            return self._at(self._eval(node.slice))
        value, key = self._eval(node.value), self._eval(node.slice)
        if type(value) not in (str, list, dict):
            raise TypeError(f"{_kind(value)} has no items")
        if isinstance(key, slice) and not isinstance(value, dict):
            length = len(range(*key.indices(len(value))))
            self._spend(length // TEXT_PER_STEP if isinstance(value, str) else length)
        return value[key]

    def _at(self, path: Any, default: Any = None) -> Any:
        if not isinstance(path, str):
            raise TypeError(f"a path is a text, not {_kind(path)}")
        self._spend(len(steps(path)))
        return lookup(self._world, path, default)

    def _call(self, node: ast.Call) -> Any:
        called = node.func
        if isinstance(called, ast.Attribute):
            receiver = self._eval(called.value)
            return self._method(called.attr, receiver, [self._eval(each) for each in node.args])
        name = called.id if isinstance(called, ast.Name) else ""
        if name == ACCESSOR:
            return self._at(*(self._eval(each) for each in node.args[1:]))
        argument = node.args[0]
        if name in ("any", "all"):
            with closing(self._values(argument)) as values:
                return any(values) if name == "any" else all(values)
        value = self._eval(argument)
        if name == "len":
            return len(value)
        if name == "str":
            return self._written(value)
        return self._whole(value)

    def _written(self, value: Any) -> str:
        self._spend(self._weight(value))
        written = str(value)
        self._room(len(written))
        return written

    def _whole(self, value: Any) -> int:
        if isinstance(value, str) and len(value) > 100:
            raise ValueError("int of a text of more than 100 characters")
        return int(value)

    def _method(self, name: str, receiver: Any, values: list[Any]) -> Any:
        kinds: dict[type, str] = {str: "text", dict: "mapping", list: "list"}
        kind = kinds.get(type(receiver), "")
        if name not in METHODS.get(kind, ()):
            raise TypeError(f"{_kind(receiver)} has no method .{name}")
        least, most = METHODS[kind][name]
        if not least <= len(values) <= most:
            raise TypeError(f".{name} takes {least} to {most} values, not {len(values)}")
        if kind == "mapping":
            return self._of_mapping(name, receiver, values)
        if kind == "list":
            self._spend(len(receiver) * self._weight(values[0]))
            return receiver.count(values[0]) if name == "count" else receiver.index(values[0])
        return self._of_text(name, receiver, values)

    def _of_mapping(self, name: str, receiver: dict[str, Any], values: list[Any]) -> Any:
        if name == "get":
            return receiver.get(*values)
        self._spend(len(receiver))
        if name == "items":
            return [list(pair) for pair in receiver.items()]
        return list(receiver if name == "keys" else receiver.values())

    def _of_text(self, name: str, receiver: str, values: list[Any]) -> Any:
        self._spend(len(receiver) // TEXT_PER_STEP)
        if name in ("split", "splitlines"):
            # A list of a text's parts takes up far more room than the text.
            self._spend(len(receiver) // 10)
        elif name == "replace":
            old, new = values
            self._room(len(receiver) + receiver.count(old) * len(new))
        elif name in ("startswith", "endswith") and isinstance(values[0], list):
            values = [tuple(values[0])]
        return _TEXT[name](receiver, *values)

    def _list(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self._eval(each) for each in node.elts]

    def _mapping(self, node: ast.Dict) -> dict[Any, Any]:
        pairs = zip(node.keys, node.values, strict=True)
        return {self._eval(key): self._eval(value) for key, value in pairs if key is not None}

    def _gathered(self, node: ast.ListComp) -> list[Any]:
        return list(self._generated(node))

    def _values(self, node: ast.expr) -> Generator[Any]:
        if isinstance(node, ast.GeneratorExp):
            yield from self._generated(node)
        else:
            yield from self._each(self._eval(node))

    def _each(self, values: Any) -> Generator[Any]:
        if type(values) not in (str, list, dict):
            raise TypeError(f"{_kind(values)} has no items")
        items: Iterable[Any] = values
        for item in items:
            self._spend(1)
            yield item

    def _generated(self, node: ast.GeneratorExp | ast.ListComp) -> Generator[Any]:
        outer = self.names
        try:
            yield from self._loop(node, 0)
        finally:
            self.names = outer

    def _loop(self, node: ast.GeneratorExp | ast.ListComp, depth: int) -> Generator[Any]:
        if depth == len(node.generators):
            yield self._eval(node.elt)
            return
        generator, outer = node.generators[depth], self.names
        for item in self._each(self._eval(generator.iter)):
            self.names = {**outer, **self._bound(generator.target, item)}
            if all(self._eval(test) for test in generator.ifs):
                yield from self._loop(node, depth + 1)
            self.names = outer

    def _bound(self, target: ast.expr, item: Any) -> dict[str, Any]:
        if isinstance(target, ast.Name):
            return {target.id: item}
        names = [part.id for part in getattr(target, "elts", ()) if isinstance(part, ast.Name)]
        if type(item) not in (str, list, dict) or len(item) != len(names):
            raise ValueError(f"expected {len(names)} values for {', '.join(names)}, got {_kind(item)}")
        return dict(zip(names, item, strict=True))


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


def _kind(value: Any) -> str:
    kinds = {str: "a text", bool: "a truth value", int: "a number", float: "a number", list: "a list"}
    return kinds.get(
        type(value), "a mapping" if isinstance(value, dict) else "null" if value is None else "data"
    )


_NODES: Mapping[type[ast.AST], str] = {
    ast.Constant: "_eval_constant",
    ast.Name: "_variable",
    ast.BoolOp: "_eval_boolop",
    ast.UnaryOp: "_eval_unaryop",
    ast.BinOp: "_eval_binop",
    ast.Compare: "_eval_compare",
    ast.IfExp: "_eval_ifexp",
    ast.Slice: "_eval_slice",
    ast.Subscript: "_item",
    ast.Call: "_call",
    ast.List: "_list",
    ast.Tuple: "_list",
    ast.Dict: "_mapping",
    ast.ListComp: "_gathered",
}
"""The method for each node; one that is not here does not exist."""

_OPERATORS: Mapping[type[ast.AST], Callable[[_Walk], Callable[..., Any]]] = {
    ast.Add: lambda walk: walk._add,
    ast.Mult: lambda walk: walk._multiply,
    ast.Sub: lambda walk: walk._numbers(operator.sub),
    ast.Div: lambda walk: walk._numbers(operator.truediv),
    ast.FloorDiv: lambda walk: walk._numbers(operator.floordiv),
    ast.Mod: lambda walk: walk._numbers(operator.mod),
    ast.USub: lambda walk: walk._numbers(operator.neg),
    ast.UAdd: lambda walk: walk._numbers(operator.pos),
    ast.Not: lambda walk: operator.not_,
    ast.Eq: lambda walk: walk._compared(operator.eq),
    ast.NotEq: lambda walk: walk._compared(operator.ne),
    ast.Lt: lambda walk: walk._compared(operator.lt),
    ast.LtE: lambda walk: walk._compared(operator.le),
    ast.Gt: lambda walk: walk._compared(operator.gt),
    ast.GtE: lambda walk: walk._compared(operator.ge),
    ast.Is: lambda walk: operator.is_,
    ast.IsNot: lambda walk: operator.is_not,
    ast.In: lambda walk: walk._contains,
    ast.NotIn: lambda walk: lambda needle, where: not walk._contains(needle, where),
}


class _Operators(dict[type[ast.AST], Callable[..., Any]]):
    """The operators of one evaluation, each made when it is first needed."""

    def __init__(self, walk: _Walk) -> None:
        self._walk = walk

    def __missing__(self, kind: type[ast.AST]) -> Callable[..., Any]:
        made = self[kind] = _OPERATORS[kind](self._walk)
        return made
