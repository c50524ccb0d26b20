"""How edits of real commits fare with `edit_file`: whether they are unique, and what is rescued.

    python -m bench.replay CLONE [--commits 400] [--rescued 4000] [--seed 1]
    python -m bench.replay CLONE --fixes 45 [--run "python -m pytest -q -x"]

Every hunk of the last commits of a git repository (Python and TypeScript) becomes an edit, with as few lines
around it as make it unique, as a model would write it. Then the texts are spoilt as models spoil them:
indentation lost, blanks at the ends of lines, tabs for blanks. What comes of them is compared with the file
of the commit: right, refused, or wrong. With another word in the old text nothing may be applied.

With `--fixes` the last so many bug fixes are replayed whole instead, see `bench/fixes.py`.
"""

from __future__ import annotations

import random
import re
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from antiphon.errors import ToolError
from antiphon.tools.folder.text.matching import Edit, applied, place
from bench.fixes import measure_fixes
from bench.hunks import MOST_AROUND, Changed, Hunk, changes, edit_of, edits_of, fewest_around

_WORD = re.compile(r"[A-Za-z_]{4,}")


@dataclass
class Figures:
    """What was counted."""

    files: int = 0
    hunks: int = 0
    unique: Counter[int] = field(default_factory=Counter)
    """Hunks by the fewest lines around them that make them unique; -1: none up to MOST_AROUND."""
    edit_bytes: int = 0
    file_bytes: int = 0
    whole_files: int = 0
    """Files of which all edits in one call give the file of the commit."""
    lost_in_order: int = 0
    """Hunks that are not unique any more once those before them are made."""
    spoilt: dict[str, Counter[str]] = field(default_factory=dict)
    """By how the texts were spoilt, how many ended right, refused, with other white space, or wrong."""


def made(text: str, edits: Sequence[Edit]) -> str | None:
    """The text with the edits made; None when they are refused."""
    try:
        return applied(text, place(text, edits))
    except ToolError:
        return None


def with_hunk(lines: Sequence[str], hunk: Hunk) -> str:
    """What the file is with one hunk alone."""
    return "\n".join([*lines[: hunk.first], *hunk.fresh, *lines[hunk.last :]])


# -- how texts are spoilt --------------------------------------------------------------------------


def without_indent(edit: Edit) -> Edit:
    """The indent that all lines have is lost, as in a block of code that is quoted."""
    lines = [each for each in (*edit.old.split("\n"), *edit.new.split("\n")) if each.strip()]
    depth = min((len(each) - len(each.lstrip(" \t")) for each in lines), default=0)

    def cut(text: str) -> str:
        return "\n".join(each[depth:] if each.strip() else each for each in text.split("\n"))

    return Edit(cut(edit.old), cut(edit.new))


def all_stripped(edit: Edit) -> Edit:
    """No line has any indent."""
    return _each_line(edit, lambda line: line.lstrip(" \t"))


def trailing_blanks(edit: Edit) -> Edit:
    """Every line ends in blanks."""
    return _each_line(edit, lambda line: line + "  ")


def tabs(edit: Edit) -> Edit:
    """Tabs for blanks in indents, or blanks for tabs."""

    def turned(line: str) -> str:
        body = line.lstrip(" \t")
        indent = line[: len(line) - len(body)]
        if "\t" in indent:
            return indent.replace("\t", "    ") + body
        return "\t" * (len(indent) // 4) + " " * (len(indent) % 4) + body

    return _each_line(edit, turned)


def _each_line(edit: Edit, change: Callable[[str], str]) -> Edit:
    return Edit(*("\n".join(change(line) for line in text.split("\n")) for text in (edit.old, edit.new)))


SPOILT: dict[str, Callable[[Edit], Edit]] = {
    "indent lost": without_indent,
    "trailing blanks": trailing_blanks,
    "tabs for blanks": tabs,
    "every line stripped": all_stripped,
}


def other_word(edit: Edit, chance: random.Random) -> Edit | None:
    """The old text with one word that is another one."""
    words = list(_WORD.finditer(edit.old))
    if not words:
        return None
    match = chance.choice(words)
    return Edit(f"{edit.old[: match.start()]}{match[0]}zq{edit.old[match.end() :]}", edit.new)


def outcome(text: str, edit: Edit, expected: str) -> str:
    """What comes of an edit: `right`, `refused`, `white space` when only that differs, else `wrong`."""
    found = made(text, [edit])
    if found is None:
        return "refused"
    if [each.rstrip() for each in found.split("\n")] == [each.rstrip() for each in expected.split("\n")]:
        return "right"
    same = [" ".join(each.split()) for each in found.split("\n")] == [
        " ".join(each.split()) for each in expected.split("\n")
    ]
    return "white space" if same else "wrong"


# -- all of it -------------------------------------------------------------------------------------


def measure(clone: str, commits: int, rescued: int, seed: int) -> Figures:
    """All figures of a clone."""
    figures, chance = Figures(), random.Random(seed)
    samples: list[tuple[str, Edit, str]] = []
    for changed in changes(clone, commits):
        lines = changed.before.split("\n")
        figures.files += 1
        edits: list[Edit] = []
        for hunk in changed.hunks:
            around = fewest_around(changed.before, lines, hunk)
            figures.hunks += 1
            figures.unique[around] += 1
            if around < 0:
                continue
            edit = edit_of(lines, hunk, around)
            edits.append(edit)
            figures.edit_bytes += len(edit.old) + len(edit.new)
            figures.file_bytes += len(changed.after)
            samples.append((changed.before, edit, with_hunk(lines, hunk)))
        figures.lost_in_order += _lost_in_order(changed.before, edits)
        figures.whole_files += _whole(changed)
    chosen = chance.sample(samples, min(rescued, len(samples)))
    for name, spoil in SPOILT.items():
        figures.spoilt[name] = Counter(
            outcome(text, spoil(edit), expected)
            for text, edit, expected in chosen
            if spoil(edit).old != edit.old
        )
    wrong = ((text, other_word(edit, chance)) for text, edit, _ in chosen)
    figures.spoilt["another word"] = Counter(
        "refused" if made(text, [edit]) is None else "wrong" for text, edit in wrong if edit is not None
    )
    return figures


def _lost_in_order(text: str, edits: Sequence[Edit]) -> int:
    lost = 0
    for edit in edits:
        now = text.count(edit.old)
        if now == 1:
            text = text.replace(edit.old, edit.new, 1)
        else:
            lost += 1
    return lost


def _whole(changed: Changed) -> bool:
    """Whether one call with all hunks makes the file of the commit."""
    return made(changed.before, edits_of(changed)) == changed.after


def told(figures: Figures) -> str:
    """The figures as a text."""
    count = max(figures.hunks, 1)
    within = count - figures.unique[-1]
    lines = [
        f"{figures.files:,} files, {figures.hunks:,} hunks",
        f"unique with one line around: {100 * figures.unique[1] / count:.1f} %, "
        f"with at most {MOST_AROUND}: {100 * within / count:.2f} %",
        f"edits are {figures.file_bytes / max(figures.edit_bytes, 1):.1f} times smaller than their files",
        f"in one call, all edits of a file give the commit's: {figures.whole_files:,} of {figures.files:,}",
        f"one after the other, not unique any more: {100 * figures.lost_in_order / count:.2f} %",
    ]
    for name, found in figures.spoilt.items():
        total = max(found.total(), 1)
        parts = ", ".join(f"{100 * found[each] / total:.2f} % {each}" for each in sorted(found))
        lines.append(f"{name}: {found.total():,} texts, {parts}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure a clone and print the figures."""
    parser = ArgumentParser(prog="python -m bench.replay", description=__doc__.split("\n")[0])
    parser.add_argument("clone")
    parser.add_argument("--commits", type=int, default=400)
    parser.add_argument("--rescued", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fixes", type=int, default=0, help="replay so many bug fixes whole")
    parser.add_argument("--run", default=f"{sys.executable} -m pytest -q -x", help="what runs the tests")
    given = parser.parse_args(arguments)
    if given.fixes:
        sys.stdout.write(f"{measure_fixes(given.clone, given.fixes, given.run)}\n")
        return
    sys.stdout.write(told(measure(given.clone, given.commits, given.rescued, given.seed)) + "\n")


if __name__ == "__main__":
    main()
