"""Who uses this program, and their own folders: where settings of theirs lie, and what is kept for them."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from pathlib import Path

from antiphon.values.message import USER


def my_name() -> str:
    """Who uses this machine, as far as it says."""
    # A process without an entry in the user database has no name.
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return USER


def settings_folder() -> Path:
    """Where the files are that a person writes for this program: `antiphon` in `$XDG_CONFIG_HOME`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "antiphon"


def state_folder() -> Path:
    """Where this program keeps things for a person: `$ANTIPHON_HOME`, or `antiphon` in `$XDG_STATE_HOME`."""
    if given := os.environ.get("ANTIPHON_HOME"):
        return Path(given)
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "antiphon"
