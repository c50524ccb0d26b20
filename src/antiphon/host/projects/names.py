"""Names of projects and files that mean the same on every system."""

from __future__ import annotations

import unicodedata

from antiphon.errors import UserError
from antiphon.host.team import check_label
from antiphon.values.fields import shown

MAX_DEPTH = 8
"""Folders of a path, the file itself included."""
MAX_PART = 120
"""Characters of a name."""
_DEVICES = frozenset({"con", "prn", "aux", "nul", "conin$", "conout$"}) | {
    f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"
}
_RESERVED = frozenset('<>:"|?*\\')


def check_project(name: str) -> None:
    """Raise UserError for a text that cannot name a project: it is the name of a folder too."""
    check_label("project", name)
    if wrong := _unfit(name):
        raise UserError(f"A project is a folder, and cannot be called {shown(name)}: {wrong}")


def parts_of(path: str) -> tuple[str, ...]:
    """The names on the way to a file of a project, relative to its `files/`, in Unicode's composed form.

    Raises UserError for a path that leads out, names a device, is hidden, or could not be a file's elsewhere.
    """
    if not path or len(path) > MAX_DEPTH * (MAX_PART + 1):
        raise UserError(f"A file's path has 1 to {MAX_DEPTH * (MAX_PART + 1)} characters; got {len(path)}")
    parts = tuple(unicodedata.normalize("NFC", path).split("/"))
    if len(parts) > MAX_DEPTH:
        raise UserError(f"The path {shown(path)} has {len(parts)} parts; at most {MAX_DEPTH} are taken")
    for part in parts:
        if wrong := _unfit(part):
            raise UserError(
                f"The path {shown(path)} is not taken: {wrong}. Give a path such as data/tides.csv"
            )
    return parts


def _unfit(part: str) -> str:
    """Why a name cannot be a file's or a folder's; empty when it can."""
    if not part or part in (".", ".."):
        return f"{shown(part)} is no name"
    if len(part) > MAX_PART or len(part.encode("utf-8", "replace")) > 2 * MAX_PART:
        return f"a name has at most {MAX_PART} characters"
    if not part.isprintable():
        return "a name has visible characters only"
    if part[0] == ".":
        return "a name that begins with a dot is hidden"
    if part[-1] in ". " or part[0] == " ":
        return "a name begins and ends with something else than a space or a dot"
    if found := sorted(_RESERVED & set(part)):
        return f"a name holds no {found[0]}"
    if part.partition(".")[0].rstrip().casefold() in _DEVICES:
        return f"{shown(part)} is a device of some systems"
    return ""
