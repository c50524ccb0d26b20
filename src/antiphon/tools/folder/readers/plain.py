"""Markdown, reStructuredText, plain text and code: lines as they stand in the file."""

from __future__ import annotations

import re

from antiphon.tools.folder.root import decoded
from antiphon.tools.folder.text.passages import DocumentText, lines_of, numbered

_HEADING = re.compile(r"#{1,6}\s+(.+)")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#])\1{2,}\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DEFINITION = re.compile(
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?"
    r"|unsafe|extern|inline|const|open|override|sealed|data)\s+){0,6}"
    r"(?:def|class|function|func|fn|fun|interface|struct|enum|trait|impl|module|namespace|type|object|record"
    r"|create\s+(?:table|view|function))\s*\*?\s+([^\s({:;<=\[]+)",
    re.IGNORECASE,
)
_TABLE = re.compile(r"\[{1,2}([^\[\]]{1,80})\]{1,2}\s*$")
_ABOVE = ("@", "#", "//", "/*", " *", "--")
"""What belongs to the definition below it: decorators and comments."""


def read_prose(path: str, data: bytes) -> DocumentText:
    """Sections begin at `# headings` and underlined ones, none within a fenced block."""
    lines = lines_of(decoded(data, path))
    headings: dict[int, str] = {}
    solid: set[int] = set()
    fence = ""
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            solid.add(at)
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        elif title := _heading(lines, at):
            headings[at] = title
    return _placed("prose", lines, headings, solid)


def read_code(path: str, data: bytes) -> DocumentText:
    """Sections begin at definitions that stand at the left edge, with the comments right above them."""
    lines = lines_of(decoded(data, path))
    headings: dict[int, str] = {}
    for at, line in enumerate(lines):
        match = _DEFINITION.match(line[:300]) or _TABLE.match(line[:300])
        if match:
            first = at
            while first and lines[first - 1].startswith(_ABOVE) and first - 1 not in headings:
                first -= 1
            headings[first] = match[1][:120]
    return _placed("code", lines, headings, set())


def _placed(kind: str, lines: list[str], headings: dict[int, str], solid: set[int]) -> DocumentText:
    texts = numbered(lines)
    if len(texts) == len(lines):
        return DocumentText(kind, texts, headings, frozenset(solid))
    places: dict[int, int] = {}
    for at, (number, _) in enumerate(texts):
        places.setdefault(number - 1, at)
    moved = {places[at]: title for at, title in headings.items()}
    return DocumentText(kind, texts, moved, frozenset(places[at] for at in solid))


def _heading(lines: list[str], at: int) -> str:
    line = lines[at]
    if match := _HEADING.match(line[:300]):
        return match[1].strip("# ")
    following = lines[at + 1] if at + 1 < len(lines) else ""
    underlined = (
        line.strip()
        and len(line) <= 120
        and len(following) <= 200
        and _UNDERLINE.match(following)
        and len(following) >= len(line) - 2
    )
    before = lines[at - 1].strip() if at else ""
    return line.strip() if underlined and not before and not _UNDERLINE.match(line) else ""
