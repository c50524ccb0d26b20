"""How edits of real commits fare with `edit_file`: whether they are unique, and what is rescued.

    python -m bench.replay CLONE [--commits 400] [--rescued 4000] [--seed 1]

Every hunk of the last commits of a git repository (Python and TypeScript) becomes an edit, with as few lines
around it as make it unique, as a model would write it. Then the texts are spoilt as models spoil them:
indentation lost, blanks at the ends of lines, tabs for blanks. What comes of them is compared with the file
of the commit: right, refused, or wrong. With another word in the old text nothing may be applied.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from antiphon.errors import ToolError
from antiphon.tools.folder.text.matching import Edit, applied, place

ENDINGS = (".py", ".pyi", ".ts", ".tsx")
MOST_AROUND = 20
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORD = re.compile(r"[A-Za-z_]{4,}")


@dataclass(frozen=True)
class Hunk:
    """Lines `first:last` of the old file, from 0, become `fresh`."""

    first: int
    last: int
    fresh: tuple[str, ...]


@dataclass(frozen=True)
class Changed:
    """A file in one commit: its text before and after, and what became what."""

    path: str
    before: str
    after: str
    hunks: tuple[Hunk, ...]


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


def git(clone: str, *arguments: str, given: str | None = None) -> bytes:
    """What git writes. Raises CalledProcessError."""
    command = ["git", "-C", clone, *arguments]
    return subprocess.run(command, input=given and given.encode(), capture_output=True, check=True).stdout


def changes(clone: str, commits: int) -> Iterator[Changed]:
    """The files that the last commits changed, newest commit first."""
    names = [f"*{each}" for each in ENDINGS]
    found = git(clone, "log", "--no-merges", "--format=%H", f"-{commits}", "--diff-filter=M", "--", *names)
    for commit in found.decode().split():
        told = git(
            clone,
            "diff-tree",
            "-r",
            "--no-renames",
            "--diff-filter=M",
            "-z",
            "--no-commit-id",
            commit,
            "--",
            *names,
        )
        parts = told.decode("utf-8", "replace").split("\0")
        for meta, path in zip(parts[::2], parts[1::2], strict=False):
            _, _, old, new, _ = meta.split()
            try:
                before, after = (git(clone, "cat-file", "blob", each).decode() for each in (old, new))
            except UnicodeDecodeError:
                continue
            if "\r" in before + after or len(before) > 1_000_000 or not before:
                continue
            told_hunks = git(clone, "diff", "-U0", "--no-ext-diff", old, new).decode()
            yield Changed(path, before, after, tuple(_hunks(told_hunks, after)))


def _hunks(told: str, after: str) -> Iterator[Hunk]:
    fresh = after.split("\n")
    for match in _HUNK.finditer(told):
        start, count, new, new_count = (int(each) if each is not None else 1 for each in match.groups())
        first = start - 1 if count else start
        begin = new - 1 if new_count else new
        yield Hunk(first, first + count, tuple(fresh[begin : begin + new_count]))


def edit_of(lines: Sequence[str], hunk: Hunk, around: int) -> Edit:
    """A hunk with so many lines around it, as whole lines."""
    first, last = max(hunk.first - around, 0), min(hunk.last + around, len(lines))
    before, behind = lines[first : hunk.first], lines[hunk.last : last]
    old, new = [*before, *lines[hunk.first : hunk.last], *behind], [*before, *hunk.fresh, *behind]
    return Edit("\n".join(old), "\n".join(new))


def fewest_around(text: str, lines: Sequence[str], hunk: Hunk) -> int:
    """The fewest lines around a hunk, from 1, with which its old text occurs once; -1: more than so many."""
    for around in range(1, MOST_AROUND + 1):
        old = edit_of(lines, hunk, around).old
        if old.strip() and text.find(old) == text.rfind(old):
            return around
    return -1


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
        figures.whole_files += _whole(changed, lines)
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


def _whole(changed: Changed, lines: Sequence[str]) -> bool:
    """Whether one call with all hunks, those that touch joined, makes the file of the commit."""
    groups: list[tuple[int, int, list[Hunk]]] = []
    for hunk in changed.hunks:
        around = max(fewest_around(changed.before, lines, hunk), 1)
        first, last = max(hunk.first - around, 0), min(hunk.last + around, len(lines))
        while groups and first < groups[-1][1]:
            begun, _, members = groups.pop()
            first, hunks = min(first, begun), members
            groups.append((first, last, [*hunks, hunk]))
            break
        else:
            groups.append((first, last, [hunk]))
    edits = []
    for first, last, hunks in groups:
        fresh: list[str] = []
        at = first
        for hunk in hunks:
            fresh += [*lines[at : hunk.first], *hunk.fresh]
            at = hunk.last
        edits.append(Edit("\n".join(lines[first:last]), "\n".join([*fresh, *lines[at:last]])))
    return made(changed.before, edits) == changed.after


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
    given = parser.parse_args(arguments)
    sys.stdout.write(told(measure(given.clone, given.commits, given.rescued, given.seed)) + "\n")


if __name__ == "__main__":
    main()
