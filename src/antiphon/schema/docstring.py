"""What a docstring says about parameters: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*$")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_FIELD = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+):\s*(.*)$")
_RULE = re.compile(r"-{3,}\s*$")


def documented(docstring: str) -> tuple[str, dict[str, str]]:
    """A docstring without its section about parameters, and that section by parameter name.

    Google ("Args:"), NumPy ("Parameters" over a rule) and Sphinx (":param x:") styles.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    kept: list[str] = []
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        field = _FIELD.match(line)
        if field is not None:
            at = _indented(lines, at + 1, found.setdefault(field[1], [field[2]]))
        elif _SECTION.match(line):
            at = _google(lines, at + 1, found)
        elif line.strip() == "Parameters" and at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            at = _numpy(lines, at + 2, found)
        elif re.match(r":type\s", line):
            at += 1
        else:
            kept.append(line)
            at += 1
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return text, {name: " ".join(part for part in parts if part) for name, parts in found.items()}


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _indented(lines: list[str], at: int, into: list[str], margin: int = 0) -> int:
    """Gather the lines indented deeper than `margin`; returns where they end."""
    while at < len(lines) and lines[at].strip() and _depth(lines[at]) > margin:
        into.append(lines[at].strip())
        at += 1
    return at


def _google(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    margin = _depth(lines[at]) if at < len(lines) else 0
    while margin and at < len(lines) and (not lines[at].strip() or _depth(lines[at]) >= margin):
        entry = _ENTRY.match(lines[at].strip())
        if entry is None:
            at += 1
        else:
            at = _indented(lines, at + 1, found.setdefault(entry[1], [entry[2]]), margin)
    return at


def _numpy(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    while at < len(lines):
        if at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            return at
        names = re.match(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$", lines[at])
        text: list[str] = []
        at = _indented(lines, at + 1, text)
        for name in re.split(r"\s*,\s*", names[1]) if names is not None else ():
            found[name] = text
    return at
