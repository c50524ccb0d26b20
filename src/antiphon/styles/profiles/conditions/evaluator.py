"""meaning: what each part of a condition comes to. An interpreter, not Python.

A tree that `grammar` has let through becomes one function per node, put together once; evaluating is calling
the outermost. Nothing is ever looked up on an object: methods come from a table by the exact type of what
they are called on, and the world is JSON data. A node that is not in the table here does not exist.

Every part of the tree counts one step of MAX_STEPS, and within loops once more for each item; so does every
item and every thousand characters that are handled. All are counted before they are handled.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from typing import Any

from antiphon.styles.profiles.conditions.grammar import (
    ACCESSOR,
    CONTEXT,
    FUNCTIONS,
    IS_A,
    VIEW,
    ExpressionError,
    types_in,
)
from antiphon.styles.profiles.conditions.operations import (
    ARITHMETIC,
    AT_ONCE,
    COMPARISONS,
    CONVERSIONS,
    SMALL,
    Evaluation,
    item_of,
    items_of,
    kind_of,
    method,
    number,
    unpacked,
)
from antiphon.styles.profiles.conditions.path import lookup, reader, steps

Meaning = Callable[[Evaluation], Any]


def meaning_of(tree: ast.expr, *, told: bool = False) -> Meaning:
    """What a tree comes to. told: note in the run which node was begun last, to say where one failed."""
    return _Maker(told).make(tree)


class _Maker:
    """Puts the functions of a tree together, from the leaves up."""

    def __init__(self, told: bool) -> None:
        self._told = told

    def make(self, node: ast.AST) -> Meaning:
        make = _NODES.get(type(node))
        made = make(self, node) if make is not None else _nothing(node)
        return _telling(node, made) if self._told else made

    def _constant(self, node: ast.Constant) -> Meaning:
        value = node.value
        return lambda run: value

    def _name(self, node: ast.Name) -> Meaning:
        name = node.id
        if name == CONTEXT:
            return lambda run: run.world
        return lambda run: run.names[name]

    def _all_or_any(self, node: ast.BoolOp) -> Meaning:
        first, *rest = [self.make(each) for each in node.values]
        until = isinstance(node.op, ast.Or)
        if len(rest) == 1:
            (second,) = rest
            return _either(first, second) if until else _both(first, second)

        def decided(run: Evaluation) -> Any:
            value = first(run)
            for each in rest:
                if bool(value) is until:
                    return value
                value = each(run)
            return value

        return decided

    def _unary(self, node: ast.UnaryOp) -> Meaning:
        operand = self.make(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda run: not operand(run)
        sign = operator.neg if isinstance(node.op, ast.USub) else operator.pos
        return lambda run: sign(number(operand(run)))

    def _binary(self, node: ast.BinOp) -> Meaning:
        left, right, do = self.make(node.left), self.make(node.right), ARITHMETIC.get(type(node.op))
        if do is None:
            return _nothing(node)
        return lambda run: do(run, left(run), right(run))

    def _compare(self, node: ast.Compare) -> Meaning:
        first = self.make(node.left)
        if len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant):
            known, do_known = node.comparators[0].value, AT_ONCE.get(type(node.ops[0]))
            if type(known) in SMALL and do_known is not None:
                return lambda run: do_known(first(run), known)
        rest = [
            (COMPARISONS[type(each)], self.make(part))
            for each, part in zip(node.ops, node.comparators, strict=True)
        ]
        if len(rest) == 1:
            ((do, second),) = rest
            return lambda run: do(run, first(run), second(run))

        def compared(run: Evaluation) -> Any:
            left, found = first(run), True
            for do, part in rest:
                right = part(run)
                found = do(run, left, right)
                if not found:
                    break
                left = right
            return found

        return compared

    def _choice(self, node: ast.IfExp) -> Meaning:
        test, body, other = self.make(node.test), self.make(node.body), self.make(node.orelse)
        return lambda run: body(run) if test(run) else other(run)

    def _slice(self, node: ast.Slice) -> Meaning:
        parts = [self.make(each) if each else _none for each in (node.lower, node.upper, node.step)]
        return lambda run: slice(*[each(run) for each in parts])

    def _item(self, node: ast.Subscript) -> Meaning:
        if isinstance(node.value, ast.Name) and node.value.id == VIEW:
            return self._at(node.slice, _none)
        value, key = self.make(node.value), self.make(node.slice)
        return lambda run: item_of(run, value(run), key(run))

    def _at(self, path: ast.expr, default: Meaning) -> Meaning:
        """The value at a path of the world; a path that is written out is taken apart beforehand."""
        if isinstance(path, ast.Constant) and isinstance(path.value, str) and default is _none:
            read, cost = reader(path.value), len(steps(path.value))

            def known(run: Evaluation) -> Any:
                run.steps += cost
                return read(run.world)

            return known
        found = self.make(path)

        def looked_up(run: Evaluation) -> Any:
            where = found(run)
            if not isinstance(where, str):
                raise TypeError(f"a path is a text, not {kind_of(where)}")
            run.spend(len(steps(where)))
            return lookup(run.world, where, default(run))

        return looked_up

    def _call(self, node: ast.Call) -> Meaning:
        called = node.func
        if isinstance(called, ast.Attribute):
            name, receiver = called.attr, self.make(called.value)
            values = [self.make(each) for each in node.args]
            if name == "get" and len(values) == 1:
                return _got(receiver, values[0])
            return lambda run: method(run, name, receiver(run), [each(run) for each in values])
        name = called.id if isinstance(called, ast.Name) else ""
        if name == ACCESSOR and 2 <= len(node.args) <= 3:
            return self._at(node.args[1], self.make(node.args[2]) if len(node.args) == 3 else _none)
        if name == IS_A and len(node.args) == 2 and (types := types_in(node.args[1])):
            checked = self.make(node.args[0])
            return lambda run: isinstance(checked(run), types)
        if name not in FUNCTIONS or len(node.args) != 1:
            return _nothing(node)
        if name in ("any", "all"):
            return self._over(any if name == "any" else all, node.args[0])
        value = self.make(node.args[0])
        if name == "len":
            return lambda run: len(value(run))
        do = CONVERSIONS[name]
        return lambda run: do(run, value(run))

    def _over(self, do: Callable[[Iterable[Any]], bool], argument: ast.expr) -> Meaning:
        if isinstance(argument, ast.GeneratorExp):
            values = self._generated(argument)
        else:
            made = self.make(argument)

            def values(run: Evaluation) -> Generator[Any]:
                yield from items_of(run, made(run), 1)

        def done(run: Evaluation) -> bool:
            with closing(values(run)) as found:
                return do(found)

        return done

    def _list(self, node: ast.List | ast.Tuple) -> Meaning:
        parts = [self.make(each) for each in node.elts]
        return lambda run: [each(run) for each in parts]

    def _mapping(self, node: ast.Dict) -> Meaning:
        pairs = [
            (self.make(key), self.make(value))
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        ]
        return lambda run: {key(run): value(run) for key, value in pairs}

    def _gathered(self, node: ast.ListComp) -> Meaning:
        values = self._generated(node)
        return lambda run: list(values(run))

    def _generated(self, node: ast.GeneratorExp | ast.ListComp) -> Callable[[Evaluation], Generator[Any]]:
        """The values of a comprehension, from the innermost loop out. Its variables hide those outside."""
        element = self.make(node.elt)

        *outer, innermost = node.generators
        cost = _parts(node.elt) + sum(map(_parts, innermost.ifs))
        body = self._loop(innermost, None, element, cost)
        for each in reversed(outer):
            cost += _parts(innermost.iter) + sum(map(_parts, each.ifs))
            body, innermost = self._loop(each, body, element, cost), each
        return body

    def _loop(
        self,
        generator: ast.comprehension,
        body: Callable[[Evaluation], Generator[Any]] | None,
        element: Meaning,
        cost: int,
    ) -> Callable[[Evaluation], Generator[Any]]:
        """One loop. body: the loop within it; without one, `element` is what it gives.

        cost: the steps of what is done for each item.
        """
        over, tests = self.make(generator.iter), [self.make(each) for each in generator.ifs]
        target = generator.target
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        single = isinstance(target, ast.Name)

        def loop(run: Evaluation) -> Generator[Any]:
            values, outer = over(run), run.names
            try:
                for item in items_of(run, values, cost):
                    run.names = {**outer, names[0]: item} if single else {**outer, **unpacked(names, item)}
                    if tests and not all(test(run) for test in tests):
                        continue
                    if body is None:
                        yield element(run)
                    else:
                        yield from body(run)
            finally:
                run.names = outer

        return loop


def _telling(node: ast.AST, made: Meaning) -> Meaning:
    def told(run: Evaluation) -> Any:
        run.node = node
        return made(run)

    return told


def _nothing(node: ast.AST) -> Meaning:
    """What stands outside the grammar comes to nothing but an error."""

    def refused(run: Evaluation) -> Any:
        raise ExpressionError(f"{type(node).__name__} is not allowed in an expression")

    return refused


def _either(first: Meaning, second: Meaning) -> Meaning:
    return lambda run: first(run) or second(run)


def _both(first: Meaning, second: Meaning) -> Meaning:
    return lambda run: first(run) and second(run)


def _got(receiver: Meaning, key: Meaning) -> Meaning:
    """`.get(key)`, by far the most frequent method."""

    def got(run: Evaluation) -> Any:
        value = receiver(run)
        return value.get(key(run)) if type(value) is dict else method(run, "get", value, [key(run)])

    return got


def _none(run: Evaluation) -> None:
    """What is left out."""


def _parts(node: ast.AST) -> int:
    return sum(1 for _ in ast.walk(node))


_NODES: Mapping[type[ast.AST], Callable[[_Maker, Any], Meaning]] = {
    ast.Constant: _Maker._constant,
    ast.Name: _Maker._name,
    ast.BoolOp: _Maker._all_or_any,
    ast.UnaryOp: _Maker._unary,
    ast.BinOp: _Maker._binary,
    ast.Compare: _Maker._compare,
    ast.IfExp: _Maker._choice,
    ast.Slice: _Maker._slice,
    ast.Subscript: _Maker._item,
    ast.Call: _Maker._call,
    ast.List: _Maker._list,
    ast.Tuple: _Maker._list,
    ast.Dict: _Maker._mapping,
    ast.ListComp: _Maker._gathered,
}
"""What makes the function of each node; one that is not here does not exist."""
