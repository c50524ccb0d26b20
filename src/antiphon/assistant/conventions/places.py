"""Where the assistant finds what people have written for it, and where it keeps what it may not change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from antiphon.config.yaml import read_text
from antiphon.errors import ConfigError
from antiphon.tools.mcp.config import user_folder

AGENTS = ".agents"
"""The folder of a project that holds skills, commands, hooks and rules."""

__all__ = ["AGENTS", "folders_down_to", "read_inside", "state_folder", "user_folder"]


def folders_down_to(folder: Path) -> tuple[Path, ...]:
    """The folders from the root of the git repository down to `folder`; without a repository it alone."""
    found = [folder]
    while not (found[-1] / ".git").exists():
        if found[-1].parent == found[-1]:
            return (folder,)
        found.append(found[-1].parent)
    return tuple(reversed(found))


def state_folder(folder: Path, env: Mapping[str, str]) -> Path:
    """What outlives a run and is no part of the project: ANTIPHON_HOME, unless that lies in `folder`, else
    the user's folder for state."""
    given = env.get("ANTIPHON_HOME", "").strip()
    if given and not Path(os.path.realpath(given)).is_relative_to(folder):
        return Path(os.path.realpath(given))
    home = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME") or Path.home(), ".local", "state")
    return Path(os.path.realpath(home)) / "antiphon"


def read_inside(path: Path, root: Path | None) -> str:
    """A text file that lies in `root`, links followed; None: wherever it lies, as the user's own may. Raises
    ConfigError: it does not, or cannot be read."""
    if root is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise ConfigError("is a link that leads out of the project, and is left out", os.fspath(path))
    return read_text(path)
