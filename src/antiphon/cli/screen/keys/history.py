"""What was sent before: kept in a file of the user's, bounded, and searched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from prompt_toolkit.history import History

try:
    import fcntl
except ImportError:  # Windows, where no screen is drawn
    fcntl = None  # type: ignore[assignment]

FILE = "history"
KEPT = 1_000
"""Messages that the file holds at least, where there were as many."""
MOST = 2 * KEPT
"""Beyond so many lines the oldest go."""
LONGEST = 20_000
"""Characters of a message that is kept; a longer one is not."""
MAX_BYTES = 16_000_000
"""Of a file that is read; whoever wrote more was not this program."""


class KeptHistory(History):
    """Messages of this and earlier conversations. path: where they are kept, None for nowhere. `trouble`:
    why they cannot be, in words; empty while all is well."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self._path, self.trouble = path, ""
        self._loaded_strings, self._loaded = list(self.load_history_strings()), True

    def append_string(self, string: str) -> None:
        """See prompt_toolkit; the same twice is one."""
        if string not in self._loaded_strings[:1]:
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """See prompt_toolkit: the newest first."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                data = file.read(MAX_BYTES)
        except FileNotFoundError:
            return []
        except OSError as error:
            self.trouble = _trouble(self._path, error)
            return []
        found = list(dict.fromkeys(reversed(_messages(data))))
        return found[:MOST]

    def store_string(self, string: str) -> None:
        """See prompt_toolkit."""
        if self._path is None or len(string) > LONGEST:
            return
        try:
            self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
            with _alone(self._path) as handle:
                os.write(handle, msgspec.json.encode(string) + b"\n")
                self._shorten(handle)
        except OSError as error:
            self.trouble = _trouble(self._path, error)

    def search(self, text: str, skipped: int) -> str | None:
        """The newest message that holds a text, whatever its capitals, but for so many that do. None: no
        more."""
        wanted = text.casefold()
        seen = dict.fromkeys(each for each in self._loaded_strings if wanted in each.casefold())
        return next((each for number, each in enumerate(seen) if number == skipped), None)

    def _shorten(self, handle: int) -> None:
        """Once it is long, put a shorter one in its place, in one step."""
        if self._path is None:
            return
        data = os.pread(handle, MAX_BYTES, 0)
        lines = data.splitlines(keepends=True)
        if len(lines) <= MOST and len(data) < MAX_BYTES:
            return
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(lines[-KEPT:])
        beside.replace(self._path)


def _messages(data: bytes) -> list[str]:
    """Those of a file, oldest first; a line that was torn is none."""
    found = []
    for line in data.splitlines():
        try:
            found.append(msgspec.json.decode(line, type=str))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return found


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The file, to be read and added to, while no other terminal does. Raises OSError."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever shortened it meanwhile has put another one in its place.
            if os.fstat(handle).st_ino == path.stat().st_ino:
                os.fchmod(handle, 0o600)
                yield handle
                return
        finally:
            os.close(handle)


def _trouble(path: Path, error: OSError) -> str:
    return f"what is sent is not kept in {path}: {error.strerror}"
