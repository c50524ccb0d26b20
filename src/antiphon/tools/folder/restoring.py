"""Files made again what they were: only those that are as somebody left them, and all that is told is kept.

What is to be done with each file is on record before the first is touched, so a call that a crash cut off
goes on with the same, and finds what it had done. Each file is exchanged whole and never over what somebody
else writes meanwhile, see `writing.py`. What is not on record is not deleted either.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import ConfigError, EffectFailed, ToolError
from antiphon.tools.folder import writing
from antiphon.tools.folder.root import FoundFile, Root
from antiphon.tools.folder.text.coding import read_text
from antiphon.tools.folder.writing import FileChanged, version_of
from antiphon.values.message import FileChange, FileState, ToolResult
from antiphon.values.tool import Tool, ToolContext, tool

MAX_FILES = 5_000
"""Files of one call."""
MAX_DIFF = 20_000
"""Characters of a difference."""
MAX_TOLD = 60
"""Lines of a difference in the result that models and people are shown."""
NOT_KEPT = "what it held is not on record"
Deed = Literal["changed", "made", "deleted", "left", "same"]

DONE: Mapping[Deed, str] = {"changed": "restored", "made": "made again", "deleted": "deleted"}
"""What is done with files that are touched, and what is said of it."""


class WantedFile(Struct, frozen=True):
    """What a file is to be again."""

    folder: str
    """The folder that it lies in, an absolute path."""
    path: str
    """The file in it, with `/` between names."""
    left: FileState | None
    """As it was left; only so it is touched. None: there was no file."""
    wanted: FileState | None
    """None: there is to be no file."""


class RestoredFile(Struct, frozen=True, omit_defaults=True):
    """What became of one file."""

    folder: str
    path: str
    done: Deed
    """It was given what it held before, made again, deleted; left as it is; or it was so already."""
    reason: str = ""
    """Why it was left."""
    diff: str = ""
    """Of one that somebody else has changed: how it differs from what was left, in lines."""
    modes: tuple[int, int] | None = None
    """Its permission bits before and after, where there is a file."""


def restore_tool(wanted: Sequence[WantedFile], folder_of: Callable[[str], str] = str) -> Tool:
    """`restore_files` for these files, `MAX_FILES` in one call. folder_of: where a folder lies now.

    What became of each is the result of the call's step `told`.
    """

    @tool(effect="idempotent", kind="edit", title="Restore files", exclusive=True, timeout=3_600)
    def restore_files(ctx: ToolContext, run: str, to: str = "", part: int = 1) -> ToolResult:
        """Make files again what they were before a run changed them.

        Args:
            run: the run.
            to: the turn before which they were so.
            part: which of the files, as many as one call takes.
        """
        mine = wanted[(part - 1) * MAX_FILES : part * MAX_FILES]
        planned = _recorded(ctx, "look", lambda: looked_at(mine, folder_of))
        done: list[RestoredFile] = []
        for each, plan in zip(mine, planned, strict=True):
            if plan.done == "made":
                _clear_below(plan, done, folder_of)
            done.append(_done(ctx, each, plan, folder_of))
        # Last, so that a folder whose only file has another name again is not made anew.
        _clear_above([each for each in done if each.done == "deleted"], folder_of)
        told = _recorded(ctx, "told", lambda: done)
        changes = tuple(_change(*each) for each in zip(mine, told, strict=True) if each[1].done in DONE)
        return ToolResult("\n".join(lines_of(told)) or "nothing was to be restored", changes=changes)

    return restore_files


def looked_at(wanted: Sequence[WantedFile], folder_of: Callable[[str], str] = str) -> list[RestoredFile]:
    """What would be done with each of these files now; nothing is changed."""
    return [_look(each, folder_of) for each in wanted]


def lines_of(found: Sequence[RestoredFile]) -> Iterator[str]:
    """What became of files, line by line."""
    for each in found:
        if each.done in DONE:
            yield f"{DONE[each.done]} {each.path}"
    for each in found:
        if each.done == "left":
            lines = each.diff.splitlines()
            more = [f"… {len(lines) - MAX_TOLD} more lines"] if len(lines) > MAX_TOLD else []
            yield "\n".join([f"left {each.path}: {each.reason}", *lines[:MAX_TOLD], *more])


def _recorded(ctx: ToolContext, name: str, work: Callable[[], list[RestoredFile]]) -> list[RestoredFile]:
    """What is done once, and on record."""
    try:
        found = ctx.wait(ctx.step(name, work))
    except EffectFailed as error:
        raise ToolError(f"what is to be restored is not on record: {error}") from error
    return msgspec.convert(found, list[RestoredFile])


def _look(each: WantedFile, folder_of: Callable[[str], str]) -> RestoredFile:
    def left(reason: str, diff: str = "") -> RestoredFile:
        return RestoredFile(each.folder, each.path, "left", reason, diff)

    if any(state is not None and not state.kept for state in (each.left, each.wanted)):
        return left(f"{NOT_KEPT}, before or after")
    try:
        root, parts = _place(each, folder_of)
        now = _found(root, parts)
    except ToolError as error:
        return left(str(error))
    if not _same(now, each.left):
        if _same(now, each.wanted):
            return RestoredFile(each.folder, each.path, "same")
        return left("it is not as it was left", _difference(each, now))
    mode = 0 if now is None else stat.S_IMODE(now.status.st_mode)
    if each.wanted is None:
        return RestoredFile(each.folder, each.path, "deleted", modes=(mode, 0))
    if each.left is None:
        return RestoredFile(each.folder, each.path, "made", modes=(0, each.wanted.mode))
    # A mode that somebody else has set since stays.
    after = each.wanted.mode if mode == each.left.mode else mode
    if mode == after and _same(now, each.wanted):
        return RestoredFile(each.folder, each.path, "same")
    return RestoredFile(each.folder, each.path, "changed", modes=(mode, after))


def _done(
    ctx: ToolContext, each: WantedFile, plan: RestoredFile, folder_of: Callable[[str], str]
) -> RestoredFile:
    """Do what is planned, unless an earlier attempt has."""
    if plan.done not in DONE:
        return plan
    key = f"{ctx.idempotency_key or os.urandom(16).hex()} {each.folder} {each.path}"
    try:
        root, parts = _place(each, folder_of)
        with writing.alone(root):
            if ctx.attempt > 1:
                # Where a file stands in the place of a folder by now, nothing is left in it.
                with suppress(ToolError):
                    writing.settle(root, parts, key, _version(each.left), _version(each.wanted))
            now = _found(root, parts)
            if _is_done(now, each, plan):
                return plan
            if not _same(now, each.left):
                return replace(
                    plan, done="left", reason="it was changed meanwhile", diff=_difference(each, now)
                )
            _put(root, parts, now, each, plan, key)
    except FileChanged:
        return replace(plan, done="left", reason="it was changed meanwhile")
    except ToolError as error:
        return replace(plan, done="left", reason=str(error))
    return plan


def _put(
    root: Root, parts: tuple[str, ...], now: FoundFile | None, each: WantedFile, plan: RestoredFile, key: str
) -> None:
    data = None if each.wanted is None else each.wanted.content()
    if data is not None:
        writing.put(root, parts, now, data, key, plan.modes[1] if plan.modes else None)
    elif now is not None:
        writing.take_away(root, parts, now, key)


def _clear_below(made: RestoredFile, done: Sequence[RestoredFile], folder_of: Callable[[str], str]) -> None:
    """Take away what is left of a folder that stands in the place of a file."""
    inside = f"{made.path}/"
    _clear_above(
        [each for each in done if each.path.startswith(inside) and each.folder == made.folder], folder_of
    )


def _clear_above(gone: Sequence[RestoredFile], folder_of: Callable[[str], str]) -> None:
    """Take the folders of deleted files away that nothing is in any more."""
    for each in gone:
        with suppress(ToolError, ConfigError):
            root = Root(folder_of(each.folder))
            writing.clear_empty(root, root.parts(each.path)[:-1])


def _is_done(now: FoundFile | None, each: WantedFile, plan: RestoredFile) -> bool:
    if not _same(now, each.wanted):
        return False
    return now is None or plan.modes is None or stat.S_IMODE(now.status.st_mode) == plan.modes[1]


def _place(each: WantedFile, folder_of: Callable[[str], str]) -> tuple[Root, tuple[str, ...]]:
    """Raises ToolError for what lies nowhere, or where nobody may write."""
    folder = folder_of(each.folder)
    if not os.path.isabs(folder):
        raise ToolError(f"its folder is on record as {folder}, and nobody knows from where")
    try:
        root = Root(folder)
    except ConfigError as error:
        raise ToolError(f"its folder {each.folder} is not there") from error
    parts = root.parts(each.path)
    if not parts:
        raise ToolError("it is no file of the folder")
    return root, parts


def _found(root: Root, parts: tuple[str, ...]) -> FoundFile | None:
    """A file that is there, also one that is read-only. Raises ToolError for what is no such file."""
    try:
        return root.found("/".join(parts)) if root.has(parts) else None
    except ToolError:
        # A file where a folder was, or the other way round: there is no such file.
        if _has_other_kind(root, parts):
            return None
        raise


def _has_other_kind(root: Root, parts: tuple[str, ...]) -> bool:
    above = [parts[:depth] for depth in range(1, len(parts))]
    return root.has_folder("/".join(parts)) or any(root.entry("/".join(each)) is not None for each in above)


def _same(now: FoundFile | None, state: FileState | None) -> bool:
    if now is None or state is None:
        return now is None and state is None
    return FileState.of(now.data).version == state.version


def _version(state: FileState | None) -> str:
    data = None if state is None else state.content()
    return "" if data is None else version_of(data)


def _change(each: WantedFile, done: RestoredFile) -> FileChange:
    before, after = done.modes or (0, 0)
    was = None if each.left is None else replace(each.left, mode=before)
    now = None if each.wanted is None else replace(each.wanted, mode=after)
    return FileChange(each.folder, each.path, was, now)


def _difference(each: WantedFile, now: FoundFile | None) -> str:
    """How a file differs from what was left of it."""
    was = b"" if each.left is None else each.left.content() or b""
    before, after = _lines(was, each.path), _lines(b"" if now is None else now.data, each.path)
    return "\n".join(difflib.unified_diff(before, after, "as it was left", "as it is", lineterm=""))[
        :MAX_DIFF
    ]


def _lines(data: bytes, path: str) -> list[str]:
    try:
        return read_text(data, path).text.splitlines()
    except ToolError:
        return [f"({len(data)} bytes)"]
