"""Asking git, with nothing of a repository's own run: no hooks, no monitors, no filters of differences."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from antiphon.errors import ToolError

SECONDS = 60.0
_QUIET = (
    "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false",
    "-c", "protocol.allow=never", "-c", "gc.auto=0",
)  # fmt: skip


def git(folder: Path, words: Sequence[str], given: bytes = b"") -> bytes:
    """What git writes in a folder. Raises ToolError with what went wrong."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_EDITOR": "false"}
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(folder), *_QUIET, *words], input=given, capture_output=True,
            timeout=SECONDS, check=True, env=env,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()[-2_000:]
        raise ToolError(f"git {words[0]} failed: {said or error.returncode}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"git {words[0]} failed: {error}") from error
    return done.stdout
