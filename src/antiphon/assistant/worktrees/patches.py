"""The tool that applies a patch to the assistant's folder, all of it or nothing."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock

from antiphon import Tool, ToolError, ToolResult, tool
from antiphon.assistant.worktrees.git import git
from antiphon.tools.folder.root import Root
from antiphon.values.message import FileChange, FileState
from antiphon.values.policy import Verbatim

_HEAD = re.compile(r"diff --git a/(?P<one>.+) b/(?P=one)")
_NAMES = (
    re.compile(r"--- a/([^\t]+)\t?"), re.compile(r"\+\+\+ b/([^\t]+)\t?"), re.compile(r"rename from (.+)"),
    re.compile(r"rename to (.+)"), re.compile(r"copy from (.+)"), re.compile(r"copy to (.+)"),
)  # fmt: skip
_MARK = "diff --git "


def apply_tool(folder: Path) -> Tool:
    """`apply_patch` for a folder that is the root of a git repository. Rules judge each file of a patch."""
    root = Root(folder)
    # git takes a file away before it writes it anew: another patch would find none.
    applying = Lock()

    @tool(effect="once", kind="edit", title="Apply a patch", timeout=120, subjects={"patch": paths_of})
    def apply_patch(title: str, patch: str) -> ToolResult:
        """Apply a patch to the files of the folder, all of it or nothing.

        Args:
            title: what it is.
            patch: as `git diff` writes it.
        """
        named = list(paths_of(patch))
        if not named or not all(isinstance(each, str) for each in named):
            raise ToolError("It names no files that could be read; nothing was applied")
        paths = [str(each) for each in named]
        for each in paths:
            # What no tool sees no patch changes.
            root.parts(each)
        with applying:
            before = {each: _state(root, each) for each in paths}
            git(root.path, ["apply", "--whitespace=nowarn", "-"], patch.encode())
            after = {each: _state(root, each) for each in paths}
        changes = [FileChange(str(root.path), each, before[each], after[each]) for each in paths]
        return ToolResult(f"applied: {', '.join(paths)}", changes=tuple(changes))

    return apply_patch


def paths_of(patch: str) -> Sequence[str | Verbatim]:
    """The files that a patch names; the whole of it where a name cannot be read."""
    found: list[str] = []
    for section in _sections(patch):
        names = list(_names(section))
        if not names or any(each.startswith('"') or "\n" in each for each in names):
            return [Verbatim(patch)]
        found += names
    return list(dict.fromkeys(found)) or [Verbatim(patch)]


def _sections(patch: str) -> Iterator[list[str]]:
    """The lines of a patch about one file each; what stands before the first is one as well."""
    lines: list[str] = []
    for line in patch.split("\n"):
        if line.startswith(_MARK) and lines:
            yield lines
            lines = []
        if line or lines:
            lines.append(line)
    if lines:
        yield lines


def _names(lines: Iterable[str]) -> Iterator[str]:
    """The names in the head of a section. A line of a file that looks like one names a file too many: that
    asks for more, never for less."""
    for line in lines:
        for each in _NAMES:
            if said := each.fullmatch(line):
                yield said[1]
        if said := _HEAD.fullmatch(line):
            yield said["one"]
        elif line.startswith(_MARK) and '"' in line:
            yield '"'


def _state(root: Root, path: str) -> FileState | None:
    """A file as it is; None where there is none."""
    try:
        found = root.found(path)
    except ToolError:
        return None
    return FileState.of(found.data, stat.S_IMODE(found.status.st_mode))
