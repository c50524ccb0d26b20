"""Tools that change the files of one folder: edited in place, written whole, moved, deleted.

Each call first records what it is about to do: which version of the file it found, and which one it makes.
Then it changes the file, all of it or nothing. So a call that a crash cut off finds out whether it was done,
and is done once; and a file that is not as the agent has seen it is not touched, see `seen.py`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import PurePath

import msgspec
from msgspec import Struct

from antiphon.errors import EffectFailed, ToolError
from antiphon.tools.folder import writing
from antiphon.tools.folder.root import FoundFile, Root
from antiphon.tools.folder.seen import PlannedChange, Seen, begun_from, changed_since, numbered, seen
from antiphon.tools.folder.text.coding import FileText, read_text
from antiphon.tools.folder.text.matching import Edit, Placed, place
from antiphon.tools.folder.text.passages import lines_of
from antiphon.tools.folder.writing import FileChanged, version_of
from antiphon.values.message import FileChange, FileState, ToolResult
from antiphon.values.policy import SubjectsOf
from antiphon.values.progress import FileDiff, FileLocation
from antiphon.values.tool import Tool, ToolContext, tool

MAX_EDITS = 100
"""Edits of one call."""
AROUND = 2
"""Lines that are shown before and behind an edit."""
SHOWN = 60
"""Lines that the result of a call shows."""
MAX_DIFF = 30_000
"""Characters of a file that watchers are shown whole, before and after."""


MAX_PLANS = 5
"""How often one call is planned anew."""
DOUBTFUL = (
    "The process stopped in the middle of this call before; whether it had changed the file then is not known"
)


class MoreEdit(Struct, frozen=True, forbid_unknown_fields=True):
    """One more edit of the same file."""

    old: str
    new: str


def edit_tools(root: str | os.PathLike[str] | Root) -> list[Tool]:
    """`edit_file`, `write_file`, `move_file`, `delete_file`, confined to `root`.

    They stand beside those of `folder_tools`: what an agent has read with `read_lines` is what they compare a
    file with. Raises `ConfigError` when it is not a folder.
    """
    folder = root if isinstance(root, Root) else Root(root)
    return [_edit(folder), _write(folder), *_places(folder)]


def _edit(root: Root) -> Tool:
    @tool(effect="idempotent", kind="edit", title="Edit a file", subjects=_paths("path"))
    def edit_file(
        ctx: ToolContext, path: str, old: str, new: str, more: list[MoreEdit] | None = None
    ) -> ToolResult:
        """Replace text in a file. Several edits of one file go in one call; all are made, or none.

        Args:
            path: a file, relative.
            old: the text to replace, as it stands in the file, without line numbers. It must occur once: give
                whole lines, and as many around it as it takes.
            new: what stands there afterwards.
            more: further edits of this file, found in the text as it was before this call.
        """
        edits = [Edit(old, new), *(Edit(each.old, each.new) for each in more or ())]
        if len(edits) > MAX_EDITS:
            raise ToolError(f"One call makes at most {MAX_EDITS} edits; got {len(edits)}")
        return _edited(root, ctx, path, edits)

    return edit_file


def _write(root: Root) -> Tool:
    @tool(effect="idempotent", kind="edit", title="Write a file", subjects=_paths("path"))
    def write_file(ctx: ToolContext, path: str, content: str) -> ToolResult:
        """Write a whole file, new or in the place of one that you have read. To change a part, use edit_file.

        Args:
            path: a file, relative; folders on the way are made.
            content: the whole text.
        """
        return _written(root, ctx, path, content)

    return write_file


def _places(root: Root) -> list[Tool]:
    @tool(effect="idempotent", kind="move", title="Move a file", subjects=_paths("path", "to"))
    def move_file(ctx: ToolContext, path: str, to: str) -> ToolResult:
        """Move or rename a file.

        Args:
            path: a file, relative.
            to: where it is then, relative; nothing may be there. Folders on the way are made.
        """
        return _moved(root, ctx, path, to)

    @tool(effect="idempotent", kind="delete", title="Delete a file", subjects=_paths("path"))
    def delete_file(ctx: ToolContext, path: str) -> ToolResult:
        """Delete a file.

        Args:
            path: a file, relative.
        """
        return _deleted(root, ctx, path)

    return [move_file, delete_file]


def _paths(*arguments: str) -> dict[str, SubjectsOf]:
    """Rules judge a file by the one name that it has here, however a call writes that."""
    return dict.fromkeys(
        arguments, lambda path: ["/".join(each for each in PurePath(path).parts if each != ".")]
    )


def _edited(root: Root, ctx: ToolContext, path: str, edits: Sequence[Edit]) -> ToolResult:
    parts, name = _named(root, path)

    def worked_out(found: FoundFile) -> tuple[FileText, list[Placed], bytes]:
        text = read_text(found.data, name)
        placed = place(text.text, edits)
        return text, placed, text.changed(placed)

    def plan() -> PlannedChange:
        found = _found(root, parts)
        _check_seen(ctx, name, found)
        text, placed, data = worked_out(found)
        if data == found.data:
            raise ToolError("the file would be as it is; nothing was changed")
        fitted = any(each.fitted for each in placed)
        return PlannedChange(
            name, version_of(found.data), version_of(data), _new_lines(text, placed), fitted,
            changes=(_change(root, name, found, data),),
        )  # fmt: skip

    def make(found: FoundFile | None) -> None:
        text, placed, data = worked_out(found or _found(root, parts))
        lines = [FileLocation(name, each.line) for each in placed]
        after = read_text(data, name).text
        ctx.report_progress(locations=lines, diffs=[_difference(name, text.text, after, placed)])
        writing.put(root, parts, found, data, _key(ctx))

    done = _carried_out(root, ctx, parts, plan, make)
    text = read_text(_found(root, parts).data, name).text
    noted = ["`old` differed in white space; `new` was indented as the file is"] if done.fitted else []
    head = f"{name}, edited, version {done.after}, was {done.before}:"
    return ToolResult("\n".join([head, *_around(text, done.lines), *noted]), changes=done.changes)


def _written(root: Root, ctx: ToolContext, path: str, content: str) -> ToolResult:
    parts, name = _named(root, path)

    def data_for(found: FoundFile | None) -> bytes:
        kept = read_text(found.data, name) if found is not None else FileText(name, "")
        return kept.replaced(content)

    def plan() -> PlannedChange:
        found = writing.find(root, parts)
        if found is not None and not _check_seen(ctx, name, found).versions and ctx.run_id:
            raise ToolError(
                f"{name} is there already, and you have not read it; read it first, or use edit_file"
            )
        before = "" if found is None else version_of(found.data)
        data = data_for(found)
        return PlannedChange(name, before, version_of(data), changes=(_change(root, name, found, data),))

    def make(found: FoundFile | None) -> None:
        data = data_for(found)
        before = None if found is None else read_text(found.data, name).text
        shown = _difference(name, before, read_text(data, name).text, ())
        ctx.report_progress(locations=[FileLocation(name)], diffs=[shown])
        writing.put(root, parts, found, data, _key(ctx))

    done = _carried_out(root, ctx, parts, plan, make)
    was = f", was {done.before}" if done.before else ""
    size = len(lines_of(content))
    told = f"{name}, written, version {done.after}{was}:\n{size} line{'' if size == 1 else 's'}"
    return ToolResult(told, changes=done.changes)


def _moved(root: Root, ctx: ToolContext, path: str, to: str) -> ToolResult:
    (parts, name), (target, new) = _named(root, path), _named(root, to)

    def plan() -> PlannedChange:
        found = _found(root, parts)
        _check_seen(ctx, name, found)
        if root.has(target):
            raise ToolError(f"{new} is there already; a file is moved over no other")
        gone = _change(root, name, found, None)
        changes = gone, FileChange(gone.folder, new, after=gone.before)
        return PlannedChange(name, version_of(found.data), "", changes=changes)

    def make(found: FoundFile | None) -> None:
        ctx.report_progress(f"to {new}", locations=[FileLocation(name)])
        writing.move(root, parts, target, found or _found(root, parts))

    def is_done(made: PlannedChange) -> bool:
        there = writing.find(root, target)
        return there is not None and version_of(there.data) == made.before and not root.has(parts)

    done = _carried_out(root, ctx, parts, plan, make, is_done)
    return ToolResult(f"{new}, moved, version {done.before}:\nfrom {name}", changes=done.changes)


def _deleted(root: Root, ctx: ToolContext, path: str) -> ToolResult:
    parts, name = _named(root, path)

    def plan() -> PlannedChange:
        found = _found(root, parts)
        _check_seen(ctx, name, found)
        changes = (_change(root, name, found, None),)
        return PlannedChange(name, version_of(found.data), "", changes=changes)

    def make(found: FoundFile | None) -> None:
        there = found or _found(root, parts)
        ctx.report_progress(diffs=[_difference(name, _text_of(there.data, name), None, ())])
        writing.take_away(root, parts, there, _key(ctx))

    done = _carried_out(root, ctx, parts, plan, make)
    return ToolResult(f"{name} is deleted", changes=done.changes)


def _carried_out(
    root: Root,
    ctx: ToolContext,
    parts: tuple[str, ...],
    plan: Callable[[], PlannedChange],
    make: Callable[[FoundFile | None], None],
    is_done: Callable[[PlannedChange], bool] | None = None,
) -> PlannedChange:
    """Have a plan recorded and carried out, by this attempt or by an earlier one; the plan.

    A plan that an earlier attempt left is made anew where another call of the same reply came first. is_done:
    whether it was carried out, where the file's own version does not say it. Raises ToolError: the plan was
    refused, or the file is neither as it was planned for nor as it was to become.
    """
    with writing.alone(root):
        for again in range(MAX_PLANS):
            made = _recorded(ctx, plan, doubtful=again > 0 and ctx.attempt > 1)
            if made.refused:
                raise ToolError(made.refused)
            if ctx.attempt > 1:
                writing.settle(root, parts, _key(ctx), made.before, made.after)
            found = writing.find(root, parts)
            now = "" if found is None else version_of(found.data)
            if now == made.before:
                try:
                    make(found)
                except FileChanged as error:
                    raise _changed(ctx, made.path, error.data) from error
                return made
            if is_done(made) if is_done is not None else now == made.after:
                return made
            if made.after and made.after in begun_from(ctx.earlier_calls(), made.path):
                # Another call of the same reply has gone on from there.
                return made
    raise ToolError("The file is changed all the time; nothing was changed by you")


def _recorded(ctx: ToolContext, plan: Callable[[], PlannedChange], *, doubtful: bool) -> PlannedChange:
    """The plan as it stands in the run's journal, where it cannot be lost any more.

    doubtful: an earlier attempt may have carried out another one.
    """

    def planned() -> PlannedChange:
        try:
            return plan()
        except ToolError as error:
            return PlannedChange(refused=f"{error}\n{DOUBTFUL}" if doubtful else str(error))

    if not ctx.run_id:
        return planned()
    try:
        found = ctx.wait(ctx.step("plan", planned))
    except EffectFailed as error:
        raise ToolError(f"nothing was changed: {error}") from error
    return msgspec.convert(found, PlannedChange)


def _change(root: Root, name: str, found: FoundFile | None, after: bytes | None) -> FileChange:
    """What a call is about to make of a file; its mode stays."""
    before = None if found is None else FileState.of(found.data, stat.S_IMODE(found.status.st_mode))
    mode = writing.new_mode() if before is None else before.mode
    return FileChange(str(root.path), name, before, None if after is None else FileState.of(after, mode))


def _check_seen(ctx: ToolContext, name: str, found: FoundFile) -> Seen:
    """What the agent knows of the file. Raises ToolError when that is another version."""
    known = seen(ctx.earlier_calls(), name)
    if known.versions and version_of(found.data) not in known.versions:
        raise _changed(ctx, name, found.data)
    return known


def _changed(ctx: ToolContext, name: str, data: bytes | None) -> ToolError:
    if data is None:
        return ToolError(f"{name} is not there any more, or was made meanwhile; nothing was changed by you")
    known = seen(ctx.earlier_calls(), name)
    return ToolError(changed_since(name, known, version_of(data), _text_of(data, name)))


def _named(root: Root, path: str) -> tuple[tuple[str, ...], str]:
    parts = root.parts(path)
    if not parts:
        raise ToolError("The folder itself is not a file; name a file in it")
    return parts, "/".join(parts)


def _found(root: Root, parts: tuple[str, ...]) -> FoundFile:
    """A file that is there. Raises ToolError."""
    return writing.find(root, parts) or root.found("/".join(parts))


def _key(ctx: ToolContext) -> str:
    return ctx.idempotency_key or os.urandom(16).hex()


def _text_of(data: bytes, name: str) -> str:
    try:
        return read_text(data, name).text
    except ToolError:
        return f"({len(data)} bytes)"


def _new_lines(text: FileText, placed: Sequence[Placed]) -> tuple[tuple[int, int], ...]:
    """First and last of the lines that the edits leave, by their numbers then."""
    found, moved = [], 0
    for each in placed:
        first = each.line + moved
        found.append((first, first + each.new.count("\n")))
        moved += each.new.count("\n") - text.text.count("\n", each.start, each.end)
    return tuple(found)


def _around(text: str, places: Sequence[tuple[int, int]]) -> list[str]:
    """The lines of these places and a few around them, with their numbers."""
    lines = lines_of(text)
    wanted = sorted(
        {
            at
            for first, last in places
            for at in range(max(first - AROUND, 1), min(last + AROUND, len(lines)) + 1)
        }
    )
    shown = [numbered([lines[at - 1]], at)[0] for at in wanted[:SHOWN]]
    return [*shown, f"… {len(wanted) - SHOWN} more lines"] if len(wanted) > SHOWN else shown


def _difference(name: str, before: str | None, after: str | None, placed: Sequence[Placed]) -> FileDiff:
    """What watchers are shown; of a long file the parts around the edits."""
    if not placed or len(before or "") + len(after or "") <= MAX_DIFF or before is None or after is None:
        return FileDiff(name, before, after)
    first = before.rfind("\n", 0, max(placed[0].start - MAX_DIFF // 8, 0)) + 1
    behind = max(len(before) - placed[-1].end - MAX_DIFF // 8, 0)
    return FileDiff(name, before[first : len(before) - behind], after[first : len(after) - behind], cut=True)
