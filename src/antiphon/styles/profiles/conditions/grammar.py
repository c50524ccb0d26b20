"""grammar: what a condition may say: a small part of Python's language, checked before it is used.

Allowed: texts, numbers, True, False, None, lists, tuples and mappings; `and or not`, comparisons, `in`,
`is None`, `+ - * / // %`, `x if y else z`, indices and slices; `any all len str int`; the METHODS of texts,
mappings and lists; generator expressions in `any` and `all`, and list comprehensions; `v['path']`, and the
older `get_nested_value_from_context(context_obj, 'path', default)` and `context_obj.get('state', {})`;
`isinstance(x, str)`, with one of TYPES or some of them in parentheses.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator, Mapping

from antiphon.config.yaml import meant
from antiphon.errors import UserError
from antiphon.styles.profiles.conditions.path import fault

MAX_LENGTH = 2_000
MAX_NODES = 500
MAX_DEPTH = 40
VIEW, CONTEXT, ACCESSOR = "v", "context_obj", "get_nested_value_from_context"
FUNCTIONS = ("any", "all", "len", "str", "int")
PARTS = ("state", "meta")
"""What `context_obj.get` gives; the rest of the world is read by paths."""
IS_A = "isinstance"
TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "float": (float,), "bool": (bool,), "list": (list,), "dict": (dict,),
}  # fmt: skip
"""What `isinstance` asks for, by the names that it takes."""
METHODS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "text": {
        **dict.fromkeys(("casefold", "isalnum", "isalpha", "isdigit", "isspace", "lower"), (0, 0)),
        **dict.fromkeys(("splitlines", "title", "upper"), (0, 0)),
        **dict.fromkeys(("lstrip", "rstrip", "strip"), (0, 1)),
        **dict.fromkeys(("count", "endswith", "find", "startswith"), (1, 1)),
        **dict.fromkeys(("removeprefix", "removesuffix"), (1, 1)),
        "replace": (2, 2),
        "split": (0, 2),
    },
    "mapping": {"get": (1, 2), "items": (0, 0), "keys": (0, 0), "values": (0, 0)},
    "list": {"count": (1, 1), "index": (1, 1)},
}
"""By kind of what they are called on: the methods, and how many values each takes, at least and at most."""
OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
    ast.Not: "not", ast.USub: "-", ast.UAdd: "+",
}  # fmt: skip
_WORDS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda", ast.NamedExpr: "an assignment (:=)", ast.Await: "await",
    ast.JoinedStr: "an f-string", ast.Yield: "yield", ast.YieldFrom: "yield",
    ast.Set: "a set", ast.SetComp: "a set comprehension",
    ast.DictComp: "a mapping comprehension", ast.Starred: "an asterisk", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Invert: "~",
}  # fmt: skip
_NODES = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp, ast.Constant,
    ast.Name, ast.Load, ast.Store, ast.Subscript, ast.Slice, ast.Attribute, ast.Call, ast.List, ast.Tuple,
    ast.Dict, ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.keyword, *OPERATORS,
)  # fmt: skip


class ExpressionError(UserError):
    """An expression that cannot be read or evaluated. offset: where in it, in characters."""

    def __init__(self, text: str, offset: int = 0) -> None:
        super().__init__(text)
        self.offset = offset


def parse(text: str) -> ast.expr:
    """The tree of an expression that holds nothing but the grammar. Raises ExpressionError."""
    if not text.strip():
        raise ExpressionError("the expression is empty; 'True' always holds", 0)
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"an expression has at most {MAX_LENGTH:,} characters", MAX_LENGTH)
    indent = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ExpressionError(
            "is no expression: it cannot be read from here on", indent + max((error.offset or 1) - 1, 0)
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("is no expression that can be read", 0) from None
    _bound(tree)
    for node in ast.walk(tree):
        what = _foreign(node)
        if what:
            raise ExpressionError(
                f"{what} is not allowed in an expression", place(text, _located(tree, node))
            )
    return tree.body


def _foreign(node: ast.AST) -> str:
    """What a node is called that is none of the grammar's; else empty."""
    if not isinstance(node, _NODES):
        return _WORDS.get(type(node), type(node).__name__)
    odd = isinstance(node, ast.Constant) and not isinstance(node.value, str | int | float | None)
    return ast.unparse(node) if odd else ""


def _bound(tree: ast.AST) -> None:
    """Refuse a tree that is too large or too deep to be walked."""
    count, level = 0, [tree]
    for _ in range(MAX_DEPTH):
        count += len(level)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            break
    if level or count > MAX_NODES:
        raise ExpressionError(
            f"the expression is too complex: at most {MAX_NODES} parts, {MAX_DEPTH} levels deep", 0
        )


def _located(tree: ast.AST, node: ast.AST) -> ast.AST:
    """The node, or for an operator, which has no place of its own, what it stands in."""
    if hasattr(node, "col_offset"):
        return node
    return next((each for each in ast.walk(tree) if node in ast.iter_child_nodes(each)), tree)


def place(text: str, node: ast.AST) -> int:
    """Where in the text a node begins, in characters."""
    indent = len(text) - len(text.lstrip())
    lines = text.strip().splitlines(keepends=True)
    row = getattr(node, "lineno", 1) - 1
    if row >= len(lines):
        return indent
    column = len(lines[row].encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore"))
    return indent + sum(map(len, lines[:row])) + column


def problems(tree: ast.expr, text: str) -> list[ExpressionError]:
    """What can be known to be wrong before there is any data: names, functions, methods, kinds of values."""
    checker = _Checker(text)
    checker.kind(tree)
    return checker.problems


class _Checker:
    """Walks a tree once and infers what each part is: text, number, list, mapping, null; empty for any."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._names: list[str] = []
        self.problems: list[ExpressionError] = []

    def kind(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=value):
                return "text" if isinstance(value, str) else "null" if value is None else "number"
            case ast.Name():
                return self._name(node)
            case ast.BoolOp(values=values):
                kinds = {self.kind(value) for value in values}
                return kinds.pop() if len(kinds) == 1 else ""
            case ast.UnaryOp(op=operator, operand=operand):
                kind = self.kind(operand)
                if not isinstance(operator, ast.Not) and kind not in ("", "number"):
                    self._wrong(node, f"a sign belongs to a number, not to a {kind}")
                return "number"
            case ast.BinOp():
                return self._arithmetic(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.IfExp(test=test, body=body, orelse=other):
                self.kind(test)
                kinds = {self.kind(body), self.kind(other)}
                return kinds.pop() if len(kinds) == 1 else ""
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._call(node)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                self._all(parts)
                return "list"
            case ast.Dict(keys=keys, values=values):
                if None in keys:
                    self._wrong(node, "** is not allowed in an expression")
                self._all([each for each in (*keys, *values) if each is not None])
                return "mapping"
            case ast.ListComp(elt=element, generators=generators):
                self._comprehension(element, generators)
                return "list"
            case ast.GeneratorExp(elt=element, generators=generators):
                self._wrong(node, "a generator expression stands in any(...) or all(...) only")
                self._comprehension(element, generators)
                return "list"
            case ast.Attribute(attr=name):
                self._wrong(node, f".{name} is not allowed; only methods can be called, such as .get('key')")
        return ""

    def _wrong(self, node: ast.AST, text: str) -> None:
        self.problems.append(ExpressionError(text, place(self._text, node)))

    def _all(self, nodes: list[ast.expr]) -> None:
        for node in nodes:
            self.kind(node)

    def _name(self, node: ast.Name) -> str:
        if node.id in self._names:
            return ""
        known = (VIEW, *FUNCTIONS, ACCESSOR, *self._names)
        if node.id in (VIEW, CONTEXT):
            self._wrong(node, f"{node.id} stands for the agent's world: write {VIEW}['state.messages']")
        elif node.id in (*FUNCTIONS, ACCESSOR, IS_A):
            self._wrong(node, f"{node.id} is a function: write {node.id}(...)")
        else:
            self._wrong(node, f"unknown name {node.id!r}{meant(node.id, known)}")
        return ""

    def _arithmetic(self, node: ast.BinOp) -> str:
        sign = OPERATORS[type(node.op)]
        left, right = self.kind(node.left), self.kind(node.right)
        kinds = {left, right}
        if sign == "%" and left == "text":
            self._wrong(node, "% does not format texts here; use + and str(...)")
        elif kinds & {"mapping", "null"} or (sign not in "+*" and kinds & {"text", "list"}):
            self._wrong(node, f"{sign} does not work on a {left or 'value'} and a {right or 'value'}")
        elif (sign == "+" and "" not in kinds and len(kinds) > 1) or (
            sign == "*" and kinds <= {"text", "list"}
        ):
            self._wrong(node, f"{sign} does not work on a {left} and a {right}; str(...) makes a text")
        if sign == "*":
            return next((kind for kind in (left, right) if kind in ("text", "list")), "")
        return (left or right) if sign == "+" else "number"

    def _comparison(self, node: ast.Compare) -> str:
        left_node, left = node.left, self.kind(node.left)
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            sign, right = OPERATORS[type(operator)], self.kind(right_node)
            if sign in ("is", "is not") and not _is_constant(left_node) and not _is_constant(right_node):
                self._wrong(node, f"'{sign}' compares with None, True or False only; use == or !=")
            elif sign in ("in", "not in") and right in ("number", "null"):
                self._wrong(right_node, f"nothing can be {sign} a {right}; expected a text, list or mapping")
            elif sign in ("in", "not in") and right == "text" and left not in ("text", ""):
                self._wrong(left_node, f"a {left} cannot be {sign} a text; str(...) makes a text")
            elif sign[0] in "<>" and (
                ({left, right} & {"mapping", "null"}) or (left and right and left != right)
            ):
                self._wrong(node, f"{sign} cannot compare a {left or 'value'} with a {right or 'value'}")
            left_node, left = right_node, right
        return "number"

    def _subscript(self, node: ast.Subscript) -> str:
        if isinstance(node.value, ast.Name) and node.value.id == VIEW and VIEW not in self._names:
            self._path(node.slice)
            return ""
        kind = self.kind(node.value)
        if isinstance(node.slice, ast.Slice):
            self._all([each for each in (node.slice.lower, node.slice.upper, node.slice.step) if each])
            if kind in ("number", "null", "mapping"):
                self._wrong(node, f"a {kind} has no slices")
            return kind
        index = self.kind(node.slice)
        if kind in ("number", "null"):
            self._wrong(node, f"a {kind} has no items")
        elif kind in ("text", "list") and index not in ("", "number"):
            self._wrong(node.slice, f"a {kind} is indexed by a number, not by a {index}")
        return "text" if kind == "text" else ""

    def _path(self, node: ast.expr) -> None:
        kind = "slice" if isinstance(node, ast.Slice) else self.kind(node)
        if kind not in ("", "text"):
            self._wrong(node, f"a path is a text, not a {kind}")
        elif isinstance(node, ast.Constant) and (said := fault(str(node.value))):
            self._wrong(node, said)

    def _call(self, node: ast.Call) -> str:
        if node.keywords:
            self._wrong(node, "values are given without names here")
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == ACCESSOR:
            return self._accessor(node)
        if name == IS_A and name not in self._names:
            return self._is_a(node)
        if name not in FUNCTIONS or name in self._names:
            known = ", ".join((*FUNCTIONS, ACCESSOR))
            self._wrong(node, f"unknown function {ast.unparse(node.func)[:60]!r}; there are: {known}")
            self._all(node.args)
            return ""
        if len(node.args) != 1:
            self._wrong(node, f"{name} takes one value, not {len(node.args)}")
        for argument in node.args:
            if name in ("any", "all") and isinstance(argument, ast.GeneratorExp):
                self._comprehension(argument.elt, argument.generators)
            elif (kind := self.kind(argument)) and kind in _REFUSES[name]:
                self._wrong(argument, f"{name} does not work on a {kind}")
        return "text" if name == "str" else "number"

    def _is_a(self, node: ast.Call) -> str:
        if len(node.args) != 2 or not types_in(node.args[1]):
            self._wrong(node, f"write {IS_A}(x, str), with one of {', '.join(TYPES)}, or (str, int) for some")
            return ""
        if kind := self.kind(node.args[0]):
            self._wrong(node.args[0], f"{IS_A} asks for what is known: this is a {kind}")
        return "number"

    def _accessor(self, node: ast.Call) -> str:
        if not 2 <= len(node.args) <= 3 or ast.unparse(node.args[0]) != CONTEXT:
            self._wrong(node, f"write {ACCESSOR}({CONTEXT}, 'path') or with a default after it")
            return ""
        self._path(node.args[1])
        self._all(node.args[2:])
        return ""

    def _method(self, node: ast.Call, called: ast.Attribute) -> str:
        if _is_part_of_context(node, called):
            self._all(node.args)
            return ""
        name, kind = called.attr, self.kind(called.value)
        self._all(node.args)
        kinds = [each for each in METHODS if name in METHODS[each] and kind in ("", each)]
        if not kinds:
            known = METHODS.get(kind, {method: 0 for methods in METHODS.values() for method in methods})
            on = f" of a {kind}" if kind else ""
            self._wrong(node, f"unknown method .{name}{on}{meant(name, sorted(known))}")
            return ""
        least = min(METHODS[each][name][0] for each in kinds)
        most = max(METHODS[each][name][1] for each in kinds)
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self._wrong(node, f".{name} takes {wanted} values, not {len(node.args)}")
        return _RETURNS.get(name, "text" if kinds == ["text"] else "")

    def _comprehension(self, element: ast.expr, generators: list[ast.comprehension]) -> None:
        before = len(self._names)
        for each in generators:
            if each.is_async:
                self._wrong(each.target, "async is not allowed in an expression")
            kind = self.kind(each.iter)
            if kind in ("number", "null"):
                self._wrong(each.iter, f"a {kind} has no items")
            self._names += self._targets(each.target)
            self._all(each.ifs)
        self.kind(element)
        del self._names[before:]

    def _targets(self, target: ast.expr) -> Iterator[str]:
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        for part in parts:
            if not isinstance(part, ast.Name):
                self._wrong(part, "a generator's variables are names: for item in …, for key, value in …")
            elif part.id in (VIEW, CONTEXT, ACCESSOR, IS_A, *FUNCTIONS):
                self._wrong(part, f"{part.id} means something else here; use another name")
            else:
                yield part.id


_REFUSES: Mapping[str, Collection[str]] = {
    "any": ("number", "null"),
    "all": ("number", "null"),
    "len": ("number", "null"),
    "int": ("list", "mapping", "null"),
    "str": (),
}
_RETURNS: Mapping[str, str] = {
    **dict.fromkeys(("items", "keys", "values", "split", "splitlines"), "list"),
    **dict.fromkeys(("count", "endswith", "find", "index", "startswith"), "number"),
    **dict.fromkeys(("isalnum", "isalpha", "isdigit", "isspace"), "number"),
    "get": "",
}


def types_in(node: ast.expr) -> tuple[type, ...]:
    """The types that the second argument of `isinstance` names; empty when it is none."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    names = [part.id for part in parts if isinstance(part, ast.Name) and part.id in TYPES]
    return tuple(each for name in names for each in TYPES[name]) if len(names) == len(parts) else ()


def _is_part_of_context(node: ast.Call, called: ast.Attribute) -> bool:
    """Whether a call is `context_obj.get('state', …)`: the agent's own part of its world."""
    key = node.args[0] if node.args else None
    return (
        isinstance(called.value, ast.Name)
        and (called.value.id, called.attr) == (CONTEXT, "get")
        and len(node.args) <= 2
        and isinstance(key, ast.Constant)
        and key.value in PARTS
    )


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))
