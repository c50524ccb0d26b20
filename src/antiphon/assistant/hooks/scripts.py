"""Programs that a user wrote for the assistant: hooks, and the scripts in commands. Run with the user's own
rights and environment, so only what the user wrote or trusts."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO

from msgspec import Struct

SECONDS = 60.0
"""How long one may take unless it is said."""
MAX_SECONDS = 600.0
MAX_OUTPUT = 16_384
"""Bytes of what it writes that are read, of each of its two outputs."""
NOT_STARTED = 127
"""The exit code of one that could not be started; below 0 it is a signal's number."""


class ScriptEnd(Struct, frozen=True):
    """How one ended. code: its exit code. output, errors: what it wrote."""

    code: int
    output: str
    errors: str


def run_script(line: str, given: str, folder: Path, seconds: float = SECONDS) -> ScriptEnd:
    """Run a line of sh in a folder with a text as its input. After so many seconds all that it started is
    ended."""
    env = os.environ | {"ANTIPHON_PROJECT_DIR": os.fspath(folder), "CLAUDE_PROJECT_DIR": os.fspath(folder)}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", line], stdin=subprocess.PIPE, stdout=output, stderr=errors, cwd=folder,
                env=env, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return ScriptEnd(NOT_STARTED, "", f"it could not be started: {error}")
        try:
            process.communicate(given.encode("utf-8", "replace"), timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            return ScriptEnd(-signal.SIGKILL, _read(output), f"it took longer than {seconds:g} s")
        except BaseException:
            _end(process)
            raise
        return ScriptEnd(process.returncode, _read(output), _read(errors))


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MAX_OUTPUT).decode("utf-8", "replace").strip()
