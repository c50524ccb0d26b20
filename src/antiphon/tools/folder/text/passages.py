"""Documents cut into passages: at headings, at definitions of code, beyond a size at blank lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

PASSAGE = 1000
"""Characters after which a passage ends at the next blank line; at twice as many it ends at any line."""
FENCED = 4 * PASSAGE
"""Characters after which even a block of code inside of prose is cut."""


class DocumentText(Struct, frozen=True, eq=False):
    """What a reader found in a document: texts in order, each with the line on which it stands, from 1.

    Several texts may stand on one line: the paragraphs of a page that was written without line breaks.
    """

    kind: str
    """`prose`, `code`, `html`, `pdf` or `office`."""
    lines: Sequence[tuple[int, str]]
    headings: Mapping[int, str] = {}
    """Titles of sections, or names of what code defines, by the place in `lines` where they begin."""
    solid: frozenset[int] = frozenset()
    """Places before which no passage ends unless it is very long: inside of a block of code."""

    @property
    def is_code(self) -> bool:
        """Whether it is source: small definitions share a passage, and what is found counts less."""
        return self.kind == "code"


class Passage(Struct, frozen=True, eq=False):
    """Consecutive lines of a document; `first` and `last` count from 1."""

    path: str
    first: int
    last: int
    heading: str
    text: str


def lines_of(text: str) -> list[str]:
    """The lines of a text as editors count them: they end with LF, CR LF or CR and nothing else."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def numbered(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Lines with their numbers; one that is longer than a passage is several texts, cut at blanks."""
    return [(number, piece) for number, line in enumerate(lines, 1) for piece in pieces(line)]


def pieces(line: str) -> list[str]:
    """A line that is too long for a passage, cut at blanks where it has any."""
    found: list[str] = []
    while len(line) > 2 * PASSAGE:
        cut = line.rfind(" ", PASSAGE, 2 * PASSAGE) + 1 or 2 * PASSAGE
        found.append(line[:cut])
        line = line[cut:]
    return [*found, line]


def passages(path: str, reading: DocumentText) -> list[Passage]:
    """The passages of a document in order. Each names the heading under which it begins."""
    found: list[Passage] = []
    lines = reading.lines
    for start, stop, title in _cuts(reading):
        first, end = start, stop
        while first < end and not lines[first][1].strip():
            first += 1
        while end > first and not lines[end - 1][1].strip():
            end -= 1
        if first < end and not (end - first == 1 and _is_heading(reading, first)):
            body = "\n".join(_joined(lines[first:end]))
            found.append(Passage(path, lines[first][0], lines[end - 1][0], title, body))
    return found


def _is_heading(reading: DocumentText, at: int) -> bool:
    """Whether a line says no more than the heading it is, whose words stand as that of what follows."""
    title = reading.headings.get(at)
    return title is not None and not reading.is_code and title in reading.lines[at][1]


def _cuts(reading: DocumentText) -> Iterator[tuple[int, int, str]]:
    """Begin and end of each passage, and the heading that holds where it begins, or else the first in it."""
    start, size, named, newest = 0, 0, "", ""
    least = PASSAGE // 2 if reading.is_code else 0
    for at, (_, text) in enumerate(reading.lines):
        title = reading.headings.get(at, "")
        bound = FENCED if at in reading.solid else PASSAGE
        full = size > bound * 2 or (size > bound and not text.strip())
        if at > start and (full or (title and size >= least)):
            yield start, at, named
            start, size, named = at, 0, newest
        if title:
            named = title if at == start else named or title
            newest = title
        size += len(text) + 1
    yield start, len(reading.lines), named


def _joined(lines: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The texts, those that stand on one line and were cut apart together again."""
    held, number = "", 0
    for line, text in lines:
        if line == number and held.endswith(" "):
            held += text
        else:
            if number:
                yield held
            held, number = text, line
    if number:
        yield held
