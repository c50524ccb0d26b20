"""`review_workspace_files`: what a folder holds, and the beginnings of files in it."""

from __future__ import annotations

from itertools import islice

from antiphon.errors import ToolError
from antiphon.tools.folder.files import many
from antiphon.tools.folder.root import Root, decoded
from antiphon.tools.folder.text.passages import lines_of
from antiphon.values.tool import Tool, tool

LISTED = 200
"""Files in one listing."""
REVIEWED = 10
"""Files that are looked into at once."""
LINES = 40
"""Lines of each that are shown."""
LINE = 500
"""Characters of a line that are shown."""


def review_tool(root: Root) -> Tool:
    """The tool `review_workspace_files` over one folder."""

    @tool(effect="read", kind="read", timeout=30)
    def review_workspace_files(paths: list[str] | None = None) -> str:
        """List the files of the workspace with their sizes; with paths, show the beginning of each.

        Args:
            paths: up to 10 files, relative; none: list what is there.
        """
        if not paths:
            found = list(islice(root.files(limit=LISTED + 1), LISTED + 1))
            shown = [f"{each.path} ({many(each.size, 'byte')})" for each in found[:LISTED]]
            more = [f"… and more; only the first {LISTED} are listed"] if len(found) > LISTED else []
            return "\n".join([*shown, *more]) or "The workspace holds no files"
        if len(paths) > REVIEWED:
            raise ToolError(f"At most {REVIEWED} files are reviewed at once; got {len(paths)}")
        return "\n\n".join([_reviewed(root, path) for path in dict.fromkeys(paths)])

    return review_workspace_files


def _reviewed(root: Root, path: str) -> str:
    """The beginning of a file; of one that cannot be shown, why."""
    try:
        lines = lines_of(decoded(root.read(path), path))
    except ToolError as error:
        return f"{path}: {error}"
    shown = [f"{at}: {line[:LINE]}" for at, line in enumerate(lines[:LINES], 1)]
    more = [f"… {many(len(lines) - LINES, 'more line')}"] if len(lines) > LINES else []
    return "\n".join([f"{path}, {many(len(lines), 'line')}:", *shown, *more])
