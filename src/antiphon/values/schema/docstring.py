"""What a docstring says about parameters: Google, NumPy, Sphinx and Epytext styles."""

from __future__ import annotations

import inspect
import re

_TITLES = {
    "args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters",
    "other arguments",
}  # fmt: skip
_NESTED = r"\((?:[^()]|\([^()]*\))*\)"
_ENTRY = re.compile(rf"(?:\\?\*){{0,2}}(\w+)\s*(?:{_NESTED})?\s*(?::|\s[-\u2013]\s)\s*(.*)$")
_FIELD = re.compile(
    r"[:@](?:param|parameter|arg|argument|key|keyword|kwarg)\s+(?:[^:]*\s)?(?:\\?\*){0,2}(\w+):\s*(.*)$"
)
_TYPE = re.compile(r"[:@](?:type|kwtype)\s")
_RULE = re.compile(r"-{3,}\s*$")


def documented(docstring: str) -> tuple[str, dict[str, str]]:
    """A docstring without its section about parameters, and that section by parameter name.

    Google ("Args:"), NumPy ("Parameters" over a rule), Sphinx (":param x:") and Epytext ("@param x:").
    """
    lines = [line.rstrip() for line in inspect.cleandoc(docstring).splitlines()]
    kept: list[str] = []
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        field = _FIELD.match(line)
        if field is not None:
            at = _indented(lines, at + 1, found.setdefault(field[1], [field[2]]))
        elif _TYPE.match(line):
            at = _indented(lines, at + 1, [])
        elif line.endswith(":") and line[:-1].lower() in _TITLES and _google(lines, at + 1, {}) > at + 1:
            at = _google(lines, at + 1, found)
        elif line.lower() in _TITLES and at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            at = _numpy(lines, at + 2, found)
        else:
            kept.append(line)
            at += 1
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return text, {name: " ".join(part for part in parts if part) for name, parts in found.items()}


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text_at(lines: list[str], at: int) -> int:
    """The next line that is not blank, or the end."""
    while at < len(lines) and not lines[at]:
        at += 1
    return at


def _indented(lines: list[str], at: int, into: list[str], margin: int = 0) -> int:
    """Gather the paragraphs indented deeper than `margin`; returns where they end."""
    while (text := _text_at(lines, at)) < len(lines) and _depth(lines[text]) > margin:
        into.append(lines[text].strip())
        at = text + 1
    return at


def _google(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    """Read the entries of a section; where it ends, or `at` when there is none."""
    start, at = at, _text_at(lines, at)
    margin = _depth(lines[at]) if at < len(lines) else 0
    named = 0
    while margin and (text := _text_at(lines, at)) < len(lines) and _depth(lines[text]) >= margin:
        entry = _ENTRY.match(lines[text].strip())
        if entry is None:
            at = text + 1
        else:
            named += 1
            at = _indented(lines, text + 1, found.setdefault(entry[1], [entry[2]]), margin)
    return at if named else start


def _numpy(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    while at < len(lines):
        if at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            return at
        names = re.match(r"((?:\\?\*){0,2}\w+(?:\s*,\s*(?:\\?\*){0,2}\w+)*)\s*(?::.*)?$", lines[at])
        text: list[str] = []
        at = _indented(lines, at + 1, text)
        for name in re.split(r"\s*,\s*", names[1]) if names is not None else ():
            found[name.lstrip("\\*")] = text
    return at
