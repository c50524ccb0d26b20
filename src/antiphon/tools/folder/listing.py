"""Which files of a folder are searched: in a git repository those that git does not ignore, else all.

Git is asked by `ls-files` alone, with nothing of the repository's own settings that would start a program.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache

from antiphon.errors import ToolError
from antiphon.tools.folder.names import has_unseen, why_refused
from antiphon.tools.folder.root import MAX_PATH, Root

MOST_FILES = 200_000
"""Files that are looked at; what is beyond is left out."""
SECONDS = 10.0
"""For which git is waited; then the folder is walked."""
_ASKED = (
    "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "protocol.allow=never",
    "ls-files", "-z", "--cached", "--others", "--exclude-standard",
)  # fmt: skip


def searched(root: Root, path: str = ".") -> list[str]:
    """The files at or under a path, by name. What git ignores is there only when the path itself names it.

    Raises ToolError when nothing is there.
    """
    parts = root.parts(path)
    start = "/".join(parts)
    if parts and root.entry(start) is not None:
        return [start]
    known = _kept_by_git(root)
    if known is not None:
        inside = f"{start}/" if start else ""
        found = [each for each in known if each.startswith(inside)]
        if found or not start:
            return found
    return sorted(entry.path for entry in root.files(path, MOST_FILES))


def _kept_by_git(root: Root) -> list[str] | None:
    """The files that git does not ignore, by name; None where there is no repository, or git says nothing."""
    if not any((each / ".git").exists() for each in (root.path, *root.path.parents)):
        return None
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        told = subprocess.run(
            ["git", "-C", os.fspath(root.path), *_ASKED],
            env=own | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    found = {each.decode("utf-8", "surrogateescape") for each in told.stdout.split(b"\0") if each}
    # Nothing at all: the folder itself is ignored by a repository around it.
    return sorted(_seen(found))[:MOST_FILES] or None


def _seen(paths: set[str]) -> Iterator[str]:
    """Without those that tools may not see."""

    @cache
    def is_seen(folder: str) -> bool:
        above, _, name = folder.rpartition("/")
        return not why_refused(name) and (not above or is_seen(above))

    for path in paths:
        if len(path) <= MAX_PATH and not has_unseen(path) and is_seen(path):
            yield path


def matching(paths: Sequence[str], pattern: str) -> list[str]:
    """The paths that a pattern means: `*.py` by name; with a `/` in it the whole path, `**` is any folders.

    Raises ToolError for one that is too long.
    """
    if len(pattern) > 200 or pattern.count("*") > 20:
        raise ToolError("A pattern has at most 200 characters and 20 stars")
    wanted = pattern.removeprefix("./").split("/")
    if len(wanted) == 1:
        return [each for each in paths if fnmatchcase(each.rpartition("/")[2], pattern)]
    return [each for each in paths if _agree(each.split("/"), wanted)]


def _agree(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the parts of a path are those of a pattern; in time of both their numbers."""
    at = {0}
    for each in wanted:
        if each == "**":
            at = set(range(min(at), len(parts) + 1)) if at else at
        else:
            at = {place + 1 for place in at if place < len(parts) and fnmatchcase(parts[place], each)}
    return len(parts) in at
