"""A text written in a program of the person's choice, which has the terminal meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

USUAL = "vi"
MAX_BYTES = 1_000_000
"""Of a text that is taken back."""


class NotEdited(Exception):
    """Nothing was written; the text says why."""


def editor_words() -> list[str]:
    """The program and its arguments, as $VISUAL or $EDITOR say. Raises NotEdited."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or USUAL
    try:
        return shlex.split(named) or [USUAL]
    except ValueError as error:
        raise NotEdited(f"$VISUAL or $EDITOR cannot be read: {error}") from error


class OutsideEditor:
    """One call of the program. It has the terminal from `edited` on until that returns, or is cancelled."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    async def edited(self, text: str) -> str:
        """What is in the file when the program has ended. Raises NotEdited."""
        words = editor_words()
        with _file(text) as path:
            code = await self._run([*words, os.fspath(path)])
            if code:
                raise NotEdited(
                    f"{os.path.basename(words[0])} ended with code {code}; what was written stays as it was"
                )
            try:
                data = path.read_bytes()
            except OSError as error:
                raise NotEdited(f"its file is gone: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise NotEdited(f"it holds more than {MAX_BYTES:,} bytes; a message is shorter")
        return data.decode("utf-8", "replace").removesuffix("\n")

    def end(self) -> None:
        """Have the program end."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    async def _run(self, words: list[str]) -> int:
        terminal = sys.stdin.fileno()
        with _own_group(terminal) as mine:
            try:
                self._process = _started(words)
            except OSError as error:
                raise NotEdited(
                    f"{os.path.basename(words[0])}: {error.strerror}; $EDITOR names another program"
                ) from error
            if mine:
                with suppress(OSError):
                    os.tcsetpgrp(terminal, self._process.pid)
                # It may have asked for the terminal before it was given it.
                with suppress(ProcessLookupError):
                    self._process.send_signal(signal.SIGCONT)
            try:
                return await _end_of(self._process)
            finally:
                self.end()


def _started(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, process_group=0)


async def _end_of(process: subprocess.Popen[bytes]) -> int:
    """Its exit code; the event loop goes on meanwhile, and nothing waits for it once nobody wants it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def set_code(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def wait() -> None:
        code = process.wait()
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(set_code, code)

    threading.Thread(target=wait, name="antiphon outside editor", daemon=True).start()
    return await ended


@contextmanager
def _file(text: str) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(".md", "message-")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        yield Path(name)
    finally:
        with suppress(OSError):
            os.unlink(name)


@contextmanager
def _own_group(terminal: int) -> Iterator[bool]:
    """While another group of processes has the terminal: Ctrl-C there is not for this one. Whether that can
    be: not where the terminal is not this process's own."""
    try:
        before = os.tcgetpgrp(terminal)
    except OSError:
        yield False
        return
    # Whoever takes the terminal back from behind is stopped, unless that is ignored.
    ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield True
    finally:
        with suppress(OSError):
            os.tcsetpgrp(terminal, before)
        signal.signal(signal.SIGTTOU, ignored)
