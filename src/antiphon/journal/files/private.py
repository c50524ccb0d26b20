"""A journal's files are its owner's alone: modes, and the folder that says that it is not to be shared."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from antiphon.errors import JournalFull
from antiphon.journal.files.notice import notice

FOLDER = ".antiphon"
"""A folder of this name that a journal is made in tells Git to leave all of it out."""
_OTHERS = 0o077
_FILES = ("", "-wal", "-shm", "-anchor")


def keep_out_of_git(folder: Path) -> None:
    """Write the folder's own `.gitignore`; one that is there already stays as it is."""
    if folder.name != FOLDER:
        return
    with suppress(FileExistsError):
        handle = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write("# What agents said, and what their tools returned.\n*\n")


def tighten(path: Path) -> None:
    """Take from others what they may do with the journal's files, where the system keeps modes.

    Raises JournalFull for a file that others may read and that somebody else owns; OSError.
    """
    if os.name != "posix":
        return
    for ending in _FILES:
        file = Path(f"{path}{ending}")
        try:
            found = file.stat(follow_symlinks=not ending)
        except FileNotFoundError:
            continue
        mode = stat.S_IMODE(found.st_mode)
        if not mode & _OTHERS or stat.S_ISLNK(found.st_mode):
            continue
        if found.st_uid != os.geteuid():
            raise JournalFull(
                f"Journal {file}: others may use it (mode {mode:o}), and it belongs to user {found.st_uid},"
                f" not to {os.geteuid()}: have its owner `chmod 600` it, or give another path"
            )
        # By its name: closing a descriptor of our own would let go of the locks that SQLite holds.
        file.chmod(mode & ~_OTHERS)
        notice("Journal %s: others could use it (mode %o); now only its owner can", file, mode)
