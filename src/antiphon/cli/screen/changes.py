"""A change of a text as rows: what goes, what comes, and within a changed line the words that differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from rich.text import Text

from antiphon.cli.display import terminal_escape

GONE, NEW = "red", "green"
LONGEST = 20_000
"""Characters of both texts beyond which no words are compared, only whether lines are the same."""
LINES = 1_000
"""Lines of both beyond which nothing is compared: all of the one goes, all of the other comes."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_ALIKE = 0.3
"""Of two lines that share less than this nothing is marked within them."""


def change_rows(old: str, new: str) -> list[Text]:
    """Every line of both: `  ` of both alike, `- ` of the old one, `+ ` of the new one."""
    before, after = (terminal_escape.clean(each).split("\n") for each in (old, new))
    if len(before) + len(after) > LINES:
        return [*(_row("-", each, GONE) for each in before), *(_row("+", each, NEW) for each in after)]
    words = len(old) + len(new) <= LONGEST
    found: list[Text] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [Text(f"  {each}", "dim") for each in before[a:b]]
        else:
            found += _changed(before[a:b], after[c:d], words=words)
    return found


def _changed(before: Sequence[str], after: Sequence[str], *, words: bool) -> Iterator[Text]:
    """Lines in the place of lines: side by side where there are as many of both."""
    if not words or len(before) != len(after):
        yield from (_row("-", each, GONE) for each in before)
        yield from (_row("+", each, NEW) for each in after)
        return
    pairs = [_marked(*pair) for pair in zip(before, after, strict=True)]
    yield from (gone for gone, _ in pairs)
    yield from (new for _, new in pairs)


def _marked(before: str, after: str) -> tuple[Text, Text]:
    """Two lines with the words marked that only one of them has."""
    gone, new = Text("- ", GONE), Text("+ ", NEW)
    old_words, new_words = _WORDS.findall(before), _WORDS.findall(after)
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
    alike = matcher.ratio() >= _ALIKE
    for kind, a, b, c, d in matcher.get_opcodes():
        marked = " reverse" if alike and kind != "equal" else ""
        gone.append("".join(old_words[a:b]), GONE + marked)
        new.append("".join(new_words[c:d]), NEW + marked)
    return gone, new


def _row(sign: str, line: str, style: str) -> Text:
    return Text(f"{sign} {line}", style)
