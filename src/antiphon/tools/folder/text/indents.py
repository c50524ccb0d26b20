"""Indents: how lines of an edit are indented in the file, from lines that stand in both. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd

_BLANKS = " \t"
_OPENING, _CLOSING = ":{[(", ")]}"
_GOING_ON = _OPENING + ",\\"
"""What a line ends in whose next one is deeper."""
_ELSE = frozenset({"else", "elif", "except", "finally", "case", "default", "when", "rescue", "ensure", "end"})
"""Words that end a block that was begun before."""


def indent_of(line: str) -> str:
    """The blanks and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def flat_pairs(lines: Sequence[str]) -> set[tuple[str, str]]:
    """Lines that begin something, each with the next one, which is not indented: so nobody can tell what is
    in it. In prose, where a line may end in a colon, it says nothing."""
    spoken = [each for each in lines if each.strip()]
    return {
        (one.strip(), other.strip())
        for one, other in pairwise(spoken)
        if one.rstrip()[-1] in _OPENING
        and len(indent_of(other)) <= len(indent_of(one))
        and other.strip()[0] not in _CLOSING
    }


def has_lost_indent(lines: Sequence[str], indent: str) -> bool:
    """Whether lines that stand inside of something, of which the first is given without its indent, can only
    all have lost it: the last one would stand outside, opens nothing, and nothing is closed that was not
    opened here."""
    spoken = [each for each in lines if each.strip()]
    first, last, opened = spoken[0], spoken[-1], 0
    for one, other in pairwise(spoken):
        opened += not indent_of(one) and one.rstrip()[-1] in _OPENING
        closes = not indent_of(other) and (other[0] in _CLOSING or other.split(" ")[0].rstrip(":") in _ELSE)
        deeper = len(indent_of(other)) > len(indent_of(one))
        if (deeper and one.rstrip()[-1] not in _GOING_ON) or (closes and not opened):
            return False
        opened -= closes
    mixed = any(len({*indent, *indent_of(each)}) > 1 for each in spoken)
    outside = not indent_of(first) and not indent_of(last) and last.rstrip()[-1] not in _OPENING
    return outside and not mixed and not flat_pairs(lines)


class Indents:
    """What is known of two ways to indent the same lines: as given, and as in the file."""

    def __init__(self, given: Sequence[str], there: Sequence[str]) -> None:
        self._pairs = [(indent_of(one), indent_of(other)) for one, other in zip(given, there, strict=True)]
        self._spoken = [bool(each.strip()) for each in given]
        pairs = [pair for pair, spoken in zip(self._pairs, self._spoken, strict=True) if spoken]
        self._known: dict[str, set[str]] = {}
        for one, other in pairs:
            self._known.setdefault(one, set()).add(other)
        self.same = all(one == other for one, other in pairs)
        """Nothing differs."""

    def of(self, line: str, paired: int | None, before: int | None, after: int | None) -> str | None:
        """The indent of a new line in the file; None when it does not follow.

        paired: the line that it stands in the place of. before, after: the lines that it stands between.
        """
        given = indent_of(line)
        if self.same:
            return given
        if paired is not None and self._spoken[paired] and self._pairs[paired][0] == given:
            return self._pairs[paired][1]
        known = self._known.get(given)
        if known is not None:
            return next(iter(known)) if len(known) == 1 else self._between(given, before, after)
        if any(len(each) > 1 for each in self._known.values()):
            return None
        return self._shifted(given) if self._known else None

    def _between(self, given: str, before: int | None, after: int | None) -> str | None:
        """As its neighbours, if both are given and indented alike."""
        beside = [self._pairs[at] for at in (before, after) if at is not None and self._spoken[at]]
        found = {there for one, there in beside if one == given}
        return found.pop() if len(found) == 1 and len(beside) == 2 and beside[0] == beside[1] else None

    def _shifted(self, given: str) -> str | None:
        """An indent that no line in both has: as much deeper or less deep as it is given to be."""
        pairs = [(one, next(iter(there))) for one, there in self._known.items()]
        lost = {there.removesuffix(one) if there.endswith(one) else None for one, there in pairs}
        if len(lost) == 1 and (prefix := lost.pop()) is not None:
            return prefix + given if len(set(prefix + given)) < 2 else None
        extra = {one.removeprefix(there) if one.startswith(there) else None for one, there in pairs}
        if len(extra) == 1 and (more := extra.pop()) is not None:
            return given.removeprefix(more) if given.startswith(more) else None
        return self._scaled(given, pairs)

    def _scaled(self, given: str, pairs: list[tuple[str, str]]) -> str | None:
        """With another unit: tabs for blanks, or four blanks for two."""
        if any(len(set(each)) > 1 for pair in (*pairs, (given, given)) for each in pair):
            return None
        used = {each[0] for _, each in pairs if each}
        meant = {each[0] for each in (given, *(one for one, _ in pairs)) if each}
        if len(used) != 1 or len(meant) != 1:
            return None
        points = sorted((len(one), len(there)) for one, there in pairs)
        low, high = points[0], points[-1]
        if low[0] == high[0] or used == meant:
            # Of one indent, and of blanks for blanks, only the proportion says anything.
            low = (0, 0)
        if high[0] == low[0] or (low == (0, 0) and not high[0]):
            return None
        rise, run = high[1] - low[1], high[0] - low[0]
        step = gcd(rise, run) or 1
        rise, run = rise // step, run // step
        for one, there in points:
            if (one - low[0]) * rise != (there - low[1]) * run:
                return None
        width, rest = divmod((len(given) - low[0]) * rise, run)
        width += low[1]
        return used.pop() * width if not rest and width >= 0 else None
