"""What of a project may run code: trusted once, for its folder and what it says, by whoever works there."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Literal

from msgspec import Struct

from antiphon.errors import ConfigError

FILE = "trusted"
"""In the folder for state: a line for each thing that is trusted."""
TrustKind = Literal["hooks", "MCP servers", "command", "rules that allow"]


class TrustedThing(Struct, frozen=True):
    """Something of a project that can run code. digest: of its folder and of all that it says. runs: what it
    would run, for whoever decides."""

    kind: TrustKind
    path: str
    digest: str
    runs: tuple[str, ...] = ()


def thing(kind: TrustKind, path: Path, folder: Path, text: str, lines: Iterable[str]) -> TrustedThing:
    """What is to be trusted. lines: the command lines in it; files of the project that these name count with
    what is in them, so that a script that changed is asked for again."""
    runs = tuple(lines)
    digest = blake2b(digest_size=32)
    for part in (kind, os.fspath(folder), os.fspath(path), text, *_scripts(runs, folder)):
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "big") + data)
    return TrustedThing(kind, os.fspath(path), digest.hexdigest(), runs)


def _scripts(lines: Iterable[str], folder: Path) -> Iterable[str]:
    """Names and digests of the files in `folder` that lines name."""
    for line in lines:
        try:
            words = shlex.split(line, comments=False)
        except ValueError:
            words = line.split()
        for word in words:
            path = Path(os.path.realpath(folder / word.removeprefix("$ANTIPHON_PROJECT_DIR/")))
            if path.is_relative_to(folder) and path.is_file():
                with path.open("rb") as file:
                    yield f"{path}:{file_digest(file, blake2b).hexdigest()}"


class TrustStore:
    """What is trusted, kept in the user's folder for state. Raises ConfigError where it cannot be kept."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE

    def has(self, found: TrustedThing) -> bool:
        """Whether it is trusted as it is now."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return found.digest in (line.partition(" ")[0] for line in self._path.read_text().splitlines())
        return False

    def add(self, found: Iterable[TrustedThing]) -> None:
        """Trust these as they are now."""
        lines = [f"{each.digest} {each.kind} {each.path!a}\n" for each in found if not self.has(each)]
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "a", encoding="ascii") as file:
                file.write("".join(lines))
        except OSError as error:
            raise ConfigError(f"cannot be written: {error.strerror}", os.fspath(self._path)) from error
