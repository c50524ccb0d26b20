"""Guidance that projects and users write for agents: AGENTS.md, or CLAUDE.md where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from antiphon.assistant.conventions.places import read_inside
from antiphon.errors import ConfigError

NAMES = ("AGENTS.md", "CLAUDE.md")
"""Of those in one folder the first one counts."""
MAX_FILE, MAX_ALL = 32_768, 131_072
"""Characters of one file that are told, and of all."""


def guidance(user: Path, folders: Sequence[Path]) -> str:
    """What is to be told of the user's guidance and of that in `folders`, the nearest last; empty for none.

    A file that cannot be read is told as such, so that whoever reads the answer knows.
    """
    parts = [*_told(user, None, NAMES[:1]), *(part for each in folders for part in _told(each, folders[0]))]
    found: list[str] = []
    for part in reversed(parts):
        # What stands nearest goes before what stands far.
        left = MAX_ALL - sum(map(len, found))
        found.append(part if len(part) <= left else f"{part[:left]}\n[cut off here]")
        if len(part) > left:
            break
    return "\n\n".join(reversed(found))


def _told(folder: Path, root: Path | None, names: Iterable[str] = NAMES) -> Iterable[str]:
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        return
    try:
        text = read_inside(path, root).strip()
    except ConfigError as error:
        yield f"[{error}]"
        return
    if text:
        cut = (
            f"{text[:MAX_FILE]}\n[cut off here; read the rest of the file]" if len(text) > MAX_FILE else text
        )
        yield f"From {path}:\n\n{cut}"
