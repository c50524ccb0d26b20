"""The user's own folders: where settings of theirs lie, and what is kept for them."""

from __future__ import annotations

import os
from pathlib import Path


def settings_folder() -> Path:
    """Where the files are that a person writes for this program: `antiphon` in `$XDG_CONFIG_HOME`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "antiphon"


def state_folder() -> Path:
    """Where this program keeps things for a person: `$ANTIPHON_HOME`, or `antiphon` in `$XDG_STATE_HOME`."""
    if given := os.environ.get("ANTIPHON_HOME"):
        return Path(given)
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "antiphon"
