"""Where in a text an edit belongs, and what stands there afterwards. Pure.

First the text as it is given, which must occur once. Else the one place that agrees with it line by line
but for white space; what is new is then indented as the file is. Nothing fuzzier: an edit in a wrong place
costs more than one that is refused with what stands there.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.folder.text.indents import Indents, flat_pairs, has_lost_indent, indent_of

SHOWN = 40
"""Lines that a refusal shows."""
WIDTH = 200
"""Characters of each."""
_NUMBERED = re.compile(r"\s*\d+: ")


class Placed(Struct, frozen=True):
    """An edit with its place: `text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str
    line: int
    """The first line that it touches, from 1."""
    fitted: bool = False
    """White space was not as given; what is new is indented as the file is."""


class Edit(Struct, frozen=True):
    """One change of a text."""

    old: str
    new: str


def place(text: str, edits: Sequence[Edit]) -> list[Placed]:
    """Where each edit belongs in the text as it is, in order of place; line ends are LF throughout.

    Raises ToolError that says which edit, and what stands near: not found, found twice, two in one place.
    """
    found: list[tuple[Placed, str]] = []
    for number, edit in enumerate(edits, 1):
        which = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        try:
            found.append((_placed(text, edit), which))
        except ToolError as error:
            raise ToolError(f"{which}{error}") from None
    found.sort(key=lambda each: (each[0].start, each[0].end))
    for (one, _), (other, which) in pairwise(found):
        if other.start < one.end or other.start == one.start:
            raise ToolError(
                f"{which}it touches the same text as another edit of this call, at line {other.line}; "
                "all are found in the text as it was, so join them into one"
            )
    return [each for each, _ in found]


def applied(text: str, placed: Sequence[Placed]) -> str:
    """The text with all edits made."""
    parts, at = [], 0
    for each in placed:
        parts += [text[at : each.start], each.new]
        at = each.end
    return "".join([*parts, text[at:]])


def _placed(text: str, edit: Edit) -> Placed:
    old, new = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
    if not old:
        raise ToolError("`old` is empty: give the text that is to be replaced, as it stands in the file")
    if old == new:
        raise ToolError("`old` and `new` are the same; nothing would change")
    starts = list(_occurrences(text, old, 20))
    if len(starts) > 1:
        lines = ", ".join(str(_line(text, each)) for each in starts[:10])
        more = "" if len(starts) < 20 else " and more"
        raise ToolError(
            f"`old` occurs {len(starts)} times{more}, at lines {lines}; "
            "give more lines around the one that is meant"
        )
    if starts:
        return _exact(text, old, new, starts[0])
    return _by_lines(text, old, new)


def _occurrences(text: str, old: str, most: int) -> Iterator[int]:
    at = text.find(old)
    while at >= 0 and most:
        yield at
        most -= 1
        at = text.find(old, at + 1)


def _exact(text: str, old: str, new: str, start: int) -> Placed:
    """The only place where the text occurs as given; refused where it looks like another one was meant."""
    end, line = start + len(old), _line(text, start)
    if _inside_word(text, start) or _inside_word(text, end):
        others = _agreeing(text.split("\n"), _Wanted(old))
        if others:
            raise ToolError(
                f"`old` stands inside of a word at line {line}, and but for white space it is all of line "
                f"{others[0] + 1}; give it with the white space of the one that is meant"
            )
    begin = text.rfind("\n", 0, start) + 1
    indent = text[begin:start]
    ends_line = end == len(text) or text[end] == "\n" or old.endswith("\n")
    if indent and not indent.strip() and ends_line and "\n" not in old.rstrip("\n"):
        following = [each for each in new.rstrip("\n").split("\n")[1:] if each.strip()]
        if following and not all(each.startswith(indent) for each in following):
            if _goes_on(text, end) and has_lost_indent(new.rstrip("\n").split("\n"), indent):
                made = [indent + each if each.strip() else each for each in new.split("\n")]
                return Placed(start, end, "\n".join(made).removeprefix(indent), line, True)
            raise ToolError(
                f"line {line} is indented with {_named(indent)} more than `old` has, so nobody can tell how "
                "the lines of `new` are; give both with the white space of the file"
            )
    return Placed(start, end, new, line)


def _goes_on(text: str, end: int) -> bool:
    """Whether what follows is still inside of something: no line before it can be outside."""
    following = next((each for each in text[end:].split("\n") if each.strip()), "")
    return bool(indent_of(following))


def _inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and _is_word(text[at - 1]) and _is_word(text[at])


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _named(indent: str) -> str:
    tabs = indent.count("\t")
    return f"{tabs} tab{'s' if tabs > 1 else ''}" if tabs == len(indent) else f"{len(indent)} blanks"


class _Wanted:
    """The text that is looked for, as whole lines."""

    def __init__(self, old: str) -> None:
        self.whole = old.endswith("\n")
        """It says the line end after its last line too."""
        self.lines = (old[:-1] if self.whole else old).split("\n")
        self.plain = [_plain(each) for each in self.lines]
        self.anchor = max(range(len(self.plain)), key=lambda at: len(self.plain[at]))
        """The line that says most; empty when none says anything."""


def _plain(line: str) -> str:
    return " ".join(line.split())


def _agreeing(lines: Sequence[str], wanted: _Wanted) -> list[int]:
    """The lines, from 0, at which a place begins that agrees but for white space."""
    anchor = wanted.plain[wanted.anchor]
    if not anchor:
        return []
    plain = [_plain(each) for each in lines]
    count = len(wanted.plain)
    found = []
    for at, line in enumerate(plain):
        first = at - wanted.anchor
        if line == anchor and first >= 0 and plain[first : first + count] == wanted.plain:
            found.append(first)
    return found


def _by_lines(text: str, old: str, new: str) -> Placed:
    lines, wanted = text.split("\n"), _Wanted(old)
    found = _agreeing(lines, wanted)
    if not found:
        raise ToolError(_nearest(lines, wanted))
    if len(found) > 1:
        places = ", ".join(str(each + 1) for each in found[:10])
        raise ToolError(
            f"`old` does not stand there as given, and but for white space it does at lines {places}; "
            "give it with the white space of the one that is meant"
        )
    first, count = found[0], len(wanted.lines)
    there = lines[first : first + count]
    start = sum(len(each) + 1 for each in lines[:first])
    end = start + sum(len(each) + 1 for each in there) - 1
    if wanted.whole and not new:
        return Placed(start, min(end + 1, len(text)), "", first + 1, True)
    fresh = (new.removesuffix("\n") if wanted.whole else new).split("\n")
    fitted = _fitted(there, wanted, fresh)
    if fitted is None:
        raise ToolError(
            f"`old` agrees with the file but for white space, at line {first + 1}, and how `new` is to be "
            "indented does not follow from it; give both with the white space of the file:\n"
            + _shown(there, first)
        )
    return Placed(start, end, "\n".join(fitted), first + 1, True)


def _fitted(there: Sequence[str], wanted: _Wanted, fresh: Sequence[str]) -> list[str] | None:
    """The new lines as the file has them: those that stay are those of the file, others are indented like
    them. None when it does not follow how."""
    indents = Indents(wanted.lines, there)
    if not indents.same and not flat_pairs(fresh) <= flat_pairs(wanted.lines) & flat_pairs(there):
        return None
    blanks = any(_ending(one) != _ending(other) for one, other in zip(wanted.lines, there, strict=True))
    made: list[str] = []
    given = [each.rstrip(" \t") for each in wanted.lines]
    matcher = difflib.SequenceMatcher(None, given, [each.rstrip(" \t") for each in fresh], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            made += there[a:b]
            continue
        same = kind == "replace" and b - a == d - c
        for at in range(c, d):
            line = fresh[at]
            if not line.strip():
                made.append("")
                continue
            paired = a + at - c if same else None
            before, after = a - 1 if a else None, b if b < len(there) else None
            indent = indents.of(line, paired, before, after)
            if indent is None:
                return None
            body = line.lstrip(" \t")
            made.append(indent + (body.rstrip(" \t") if blanks else body))
    return made


def _ending(line: str) -> str:
    return line[len(line.rstrip(" \t")) :]


def _nearest(lines: Sequence[str], wanted: _Wanted) -> str:
    """What a refusal says of a text that stands nowhere: the place most like it, and the difference."""
    numbered = [each for each in wanted.lines if each.strip()]
    if numbered and all(_NUMBERED.match(each) for each in numbered):
        return "`old` stands nowhere in the file: give its lines without their numbers"
    first = _most_alike(lines, wanted)
    if first is None:
        return "`old` stands nowhere in the file, and nothing like it; read the file again"
    there = lines[first : first + len(wanted.lines)]
    compared = difflib.ndiff([each[:WIDTH] for each in wanted.lines], [each[:WIDTH] for each in there])
    difference = [each.rstrip("\n") for each in compared if not each.startswith("?")]
    more = [f"… {len(difference) - SHOWN} more lines"] if len(difference) > SHOWN else []
    return "\n".join(
        [
            f"`old` stands nowhere in the file. Nearest is line {first + 1}; - is `old`, + is the file:",
            *difference[:SHOWN],
            *more,
        ]
    )


def _most_alike(lines: Sequence[str], wanted: _Wanted) -> int | None:
    """The line, from 0, where a place begins that shares most with the text; None without any."""
    plain = [_plain(each) for each in lines]
    counts = Counter(plain)
    places: dict[str, list[int]] = {}
    for at, line in enumerate(plain):
        if line and counts[line] <= 50:
            places.setdefault(line, []).append(at)
    votes: Counter[int] = Counter()
    for at, line in enumerate(wanted.plain):
        for found in places.get(line, ()):
            votes[found - at] += max(1000 // counts[line], 1)
    if votes:
        best = max(votes.values())
        return max(min(at for at, each in votes.items() if each == best), 0)
    anchor = wanted.plain[wanted.anchor]
    known = [each for each in dict.fromkeys(plain) if each and abs(len(each) - len(anchor)) <= len(anchor)]
    close = difflib.get_close_matches(anchor[:WIDTH], [each[:WIDTH] for each in known[:5000]], 1, 0.6)
    if not close:
        return None
    found = next(at for at, each in enumerate(plain) if each[:WIDTH] == close[0])
    return max(found - wanted.anchor, 0)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _shown(lines: Sequence[str], first: int) -> str:
    shown = [f"{at}: {line[:WIDTH]}" for at, line in enumerate(lines[:SHOWN], first + 1)]
    return "\n".join([*shown, *([f"… {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else [])])
