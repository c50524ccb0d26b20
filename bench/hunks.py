"""Commits of a git repository as edits: what became what, with as many lines around it as it takes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from antiphon.tools.folder.text.matching import Edit

ENDINGS = (".py", ".pyi", ".ts", ".tsx")
MOST_AROUND = 20
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


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


def git(clone: str, *arguments: str, given: str | None = None) -> bytes:
    """What git writes. Raises CalledProcessError."""
    command = ["git", "-C", clone, *arguments]
    return subprocess.run(command, input=given and given.encode(), capture_output=True, check=True).stdout


def changes(clone: str, commits: int) -> Iterator[Changed]:
    """The files that the last commits changed, newest commit first."""
    names = [f"*{each}" for each in ENDINGS]
    found = git(clone, "log", "--no-merges", "--format=%H", f"-{commits}", "--diff-filter=M", "--", *names)
    for commit in found.decode().split():
        yield from changed_in(clone, commit, *names)


def changed_in(clone: str, commit: str, *names: str) -> Iterator[Changed]:
    """The texts that one commit changed: files with these names (as git takes them), all without one."""
    wanted = ["-r", "--no-renames", "--diff-filter=M", "-z", "--no-commit-id"]
    told = git(clone, "diff-tree", *wanted, commit, "--", *names)
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


def edits_of(changed: Changed) -> list[Edit]:
    """All hunks of a file as edits that one call makes; those that touch are joined."""
    lines = changed.before.split("\n")
    groups: list[tuple[int, int, list[Hunk]]] = []
    for hunk in changed.hunks:
        around = max(fewest_around(changed.before, lines, hunk), 1)
        first, last, members = max(hunk.first - around, 0), min(hunk.last + around, len(lines)), [hunk]
        while groups and first < groups[-1][1]:
            begun, ended, earlier = groups.pop()
            first, last, members = min(first, begun), max(last, ended), [*earlier, *members]
        groups.append((first, last, members))
    edits = []
    for first, last, members in groups:
        fresh: list[str] = []
        at = first
        for hunk in members:
            fresh += [*lines[at : hunk.first], *hunk.fresh]
            at = hunk.last
        edits.append(Edit("\n".join(lines[first:last]), "\n".join([*fresh, *lines[at:last]])))
    return edits
