"""Mutants of source text: one comparison, condition, constant or call statement changed at a time."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

COMPARISONS: Mapping[str, tuple[str, ...]] = {
    "==": ("!=",), "!=": ("==",), "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="),
    ">=": (">", "<"), "in": ("not in",), "not in": ("in",), "is": ("is not",), "is not": ("is",),
}  # fmt: skip
OPERATOR = re.compile(rb"==|!=|<=|>=|<|>|\bnot\s+in\b|\bis\s+not\b|\bin\b|\bis\b")
WORD = re.compile(r"\w+")
"""Texts that a program reads are one word, and are changed; sentences are for people, and are not."""


Span = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One change: bytes `start` to `end` of the file at `path`, which are `before`, become `after`.

    code: the line it begins in. which: of equal changes of equal lines in a file, from 1.
    """

    path: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str
    code: str
    which: int = 1

    @property
    def change(self) -> str:
        """The change on one line."""
        number = f" #{self.which}" if self.which > 1 else ""
        return f"{plain(self.before)} -> {plain(self.after)}{number}"

    @property
    def key(self) -> str:
        """What it is known by in the list of argued survivors, where lines may move."""
        return f"{self.path} :: {self.code} :: {self.change}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.change}\n{'':19}in {self.code}"

    def applied(self, text: bytes) -> bytes:
        """The file with the change."""
        return text[: self.start] + self.after.encode() + text[self.end :]


def plain(text: str) -> str:
    """Source text with every run of white space as one blank."""
    return " ".join(text.split())


def mutants_of(path: str, text: bytes) -> list[Mutant]:
    """All mutants of a file, in the order of their places, each once."""
    file = _File(text)
    found: dict[tuple[Span, str], Mutant] = {}
    counts: Counter[str] = Counter()
    changes = ((kind, span, after) for node in parts(file.tree) for kind, span, after in file.changes(node))
    for kind, (start, end), after in sorted(changes, key=lambda each: (each[1], each[2], each[0])):
        line = text.count(b"\n", 0, start) + 1
        code = plain(file.lines[line - 1].decode())
        made = Mutant(path, line, kind, start, end, text[start:end].decode(), after, code)
        if ((start, end), after) not in found:
            counts[made.key] += 1
            found[(start, end), after] = replace(made, which=counts[made.key])
    return list(found.values())


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something: no annotations, docstrings, decorators, types, keywords of a class."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        if name == "keywords" and isinstance(node, ast.ClassDef):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_declaration(child):
                yield from parts(child)


def _is_declaration(node: ast.AST) -> bool:
    """Docstrings, imports and what is there for the type checker only; f-strings have no exact places."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.Subscript(value=ast.Name(id="Literal")) | ast.Call(func=ast.Name(id="TypeVar")):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


class _File:
    """A file with the places of its nodes in bytes."""

    def __init__(self, text: bytes) -> None:
        self.text, self.tree = text, ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> Span:
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError("a parsed node has an end")
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def said(self, span: Span) -> str:
        return self.text[span[0] : span[1]].decode()

    def changes(self, node: ast.AST) -> Iterator[tuple[str, Span, str]]:
        """Kind, place and new text of every change of a node."""
        if isinstance(node, ast.Compare):
            yield from self._comparisons(node)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield from self._negated(node.test)
        elif isinstance(node, ast.comprehension):
            for condition in node.ifs:
                yield from self._negated(condition)
        elif isinstance(node, ast.match_case) and node.guard is not None:
            yield from self._negated(node.guard)
        elif isinstance(node, ast.Constant):
            yield from self._constants(node)
        elif isinstance(node, ast.Expr):
            called = node.value
            while isinstance(called, ast.Await | ast.YieldFrom):
                called = called.value
            if isinstance(called, ast.Call):
                yield "call dropped", self.span(node), "pass"

    def _comparisons(self, node: ast.Compare) -> Iterator[tuple[str, Span, str]]:
        left = node.left
        for right in node.comparators:
            gap = self.span(left)[1], self.span(right)[0]
            # What else may stand there is brackets, blanks and comments.
            code = re.sub(rb"#.*", lambda found: b" " * len(found[0]), self.text[gap[0] : gap[1]])
            operator = OPERATOR.search(code)
            if operator is not None:
                place = gap[0] + operator.start(), gap[0] + operator.end()
                for other in COMPARISONS[plain(operator[0].decode())]:
                    yield "comparison", place, other
            left = right

    def _negated(self, test: ast.expr) -> Iterator[tuple[str, Span, str]]:
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return  # its operator is negated as a comparison
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield "condition", self.span(test), f"({self.said(self.span(test.operand))})"
            return
        yield "condition", self.span(test), f"(not ({self.said(self.span(test))}))"

    def _constants(self, node: ast.Constant) -> Iterator[tuple[str, Span, str]]:
        span, value = self.span(node), node.value
        if isinstance(value, bool):
            yield "constant", span, str(not value)
        elif isinstance(value, int | float):
            yield "constant", span, repr(value + 1)
        elif value == "" or (isinstance(value, str) and WORD.fullmatch(value)):
            said = self.said(span)
            if said[1:-1] == value:  # neither put together of several texts nor marked by a letter
                yield "constant", span, f"{said[0]}{value}x{said[-1]}"


def statement_lines(text: bytes, line: int) -> tuple[int, int]:
    """First and last line of the innermost statement at a line; of one that holds others, of its head."""
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not around:
        return line, line
    inner = max(around, key=lambda node: node.lineno)
    body = getattr(inner, "body", [])
    last = body[0].lineno - 1 if body else inner.end_lineno or line
    return (inner.lineno, last) if line <= last and not hasattr(inner, "cases") else (line, line)
