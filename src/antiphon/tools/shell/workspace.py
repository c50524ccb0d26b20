"""Where commands run: a folder, what they may touch beside it, the environment they get, and where each is
kept.

    STATE/<folder>/home        HOME and TMPDIR of its commands
    STATE/<folder>/guard       what git runs there, while a command does
    STATE/<folder>/copies      copies of files that git does not hold, and the last look at all of them
    STATE/<folder>/<command>   one command, see `keeping/place.py`

STATE is `$ANTIPHON_HOME/commands`, or `antiphon/commands` in the user's folder for state. Commands do not
reach it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from antiphon.errors import ConfigError, ToolError
from antiphon.tools.shell.changes import lost, scan_fields
from antiphon.tools.shell.confinement import Confinement, confinement, in_bwrap, landlock_fields, readable
from antiphon.tools.shell.keeping import place

MAX_COMMAND = 100_000
"""Bytes of one command."""
KEPT_DAYS = 30
"""How long the output of a command is kept that has ended."""
KEPT_COPIES = 256 << 20
"""Bytes of what ended commands changed that are kept, of the last ones first."""
_CLEARED_EVERY = 16
"""Commands after which it is looked again what is kept for too long."""
_KEPT_NAMES = ("LANG", "LANGUAGE", "LOGNAME", "SHELL", "TZ", "USER", "VIRTUAL_ENV")
_DIGEST = 32
"""Characters of the name of a copy."""
MARK = "ANTIPHON_COMMAND"
"""The variable by which a command's processes are known."""


class Workspace:
    """One folder and its commands. Raises ConfigError when it is not a folder.

    read, write: further folders that commands may read, and change. environment: added to what commands
    get, which is nothing of this process but its PATH, language and user. network: whether they may connect.
    guarded: what git runs by itself is put back after a command has changed it, and what it changes is noted.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, read: Sequence[str] = (), write: Sequence[str] = (),
        environment: Mapping[str, str] | None = None, network: bool = False, confined: Confinement | None =
        None, guarded: bool = True,
    ) -> None:  # fmt: skip
        self.folder = os.path.realpath(folder)
        if not os.path.isdir(self.folder):
            raise ConfigError(f"{folder} is not a folder")
        self._given, self._prepared = dict(environment or {}), 0
        self._guarded = guarded
        self._read, self._write, self._network = tuple(read), tuple(write), network
        self.confined = confinement() if confined is None else confined
        name = blake2b(os.fsencode(self.folder), digest_size=10).hexdigest()
        self.state = os.path.join(_state(self.folder), name)
        self._copies = os.path.join(self.state, "copies")

    @cached_property
    def environment(self) -> dict[str, str]:
        """What every command finds in its environment."""
        home, env = os.path.join(self.state, "home"), os.environ
        found = {name: env[name] for name in _KEPT_NAMES if name in env}
        # In another encoding bash would read other words than are shown.
        found |= {name: value for name, value in env.items() if name.startswith("LC_")}
        found = {
            name: value for name, value in found.items()
            if not name.startswith(("LC_", "LANG")) or value.lower().endswith(("utf-8", "utf8"))
        }  # fmt: skip
        folders = [each for each in env.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]
        found |= {
            "HOME": home, "TMPDIR": os.path.join(home, "tmp"), "PATH": os.pathsep.join(folders), "TERM":
            "dumb", "PAGER": "cat", "EDITOR": "false", "VISUAL": "false", "GIT_EDITOR": "true", "GIT_PAGER":
            "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": os.path.join(self.state, "gitconfig"),
        }  # fmt: skip
        if os.path.isdir(rust := os.path.expanduser("~/.rustup")):
            found["RUSTUP_HOME"] = rust
        return found | self._given

    def program(self, name: str) -> str:
        """The file that a name stands for. Raises ToolError."""
        found = shutil.which(name, path=self.environment["PATH"])
        if "/" in name:
            found = shutil.which(os.path.join(self.folder, name))
        if found is None:
            raise ToolError(f"There is no program {name!r}; nothing was run")
        return os.path.abspath(found)

    def place_of(self, key: str) -> str:
        """The folder of the command that has this idempotency key."""
        return os.path.join(self.state, "c-" + blake2b(key.encode(), digest_size=10).hexdigest())

    def prepare(self, key: str, words: Sequence[str], seconds: float, about: Mapping[str, str]) -> str:
        """Make the folder of a command that is to be run, unless it has begun; its path. Raises ToolError."""
        folder = self.place_of(key)
        if os.path.exists(os.path.join(folder, "begun")):
            return folder
        self._check()
        if sum(len(os.fsencode(each)) + 1 for each in words) > MAX_COMMAND:
            raise ToolError(
                f"A command has at most {MAX_COMMAND:,} bytes; write a script into a file and run that"
            )
        if any("\0" in each for each in words):
            raise ToolError("A command cannot hold a NUL character")
        self._make()
        os.makedirs(folder, 0o700, exist_ok=True)
        fields = self._fields(words) | {
            "cwd": [self.folder], "seconds": [repr(seconds)], "boot": [boot()],
            "about": [text for pair in about.items() for text in pair],
        }  # fmt: skip
        fields["environment"] = [
            f"{name}={value}" for name, value in (self.environment | {MARK: os.path.basename(folder)}).items()
        ]
        if self._guarded and not about.get("job"):
            fields |= scan_fields(self.folder, self._copies)
        place.write(folder, "asked", place.pack(fields))
        return folder

    @cached_property
    def lost(self) -> str:
        """Why not all that commands change here can be undone; empty: it can. Looked for once."""
        if self._write:
            return "what it changes outside of its folder cannot be undone"
        return lost(scan_fields(self.folder, self._copies))

    def places(self) -> Iterator[str]:
        """The folders of all commands."""
        with contextlib.suppress(FileNotFoundError):
            for each in sorted(os.listdir(self.state)):
                if each.startswith("c-"):
                    yield os.path.join(self.state, each)

    def clear(self) -> None:
        """Forget commands that ended long ago, and what others changed, but for the last."""
        oldest, ended = time.time() - KEPT_DAYS * 86_400, []
        for each in self.places():
            with contextlib.suppress(OSError):
                at = os.stat(os.path.join(each, "ended")).st_mtime
                if at < oldest:
                    shutil.rmtree(each)
                elif os.path.exists(os.path.join(each, "changed")):
                    ended.append((at, each))
        size = 0
        for _, each in sorted(ended, reverse=True):
            with contextlib.suppress(OSError):
                copies = [entry for entry in os.scandir(each) if len(entry.name) == _DIGEST]
                size += sum(entry.stat().st_size for entry in copies)
                for entry in copies if size > KEPT_COPIES else ():
                    os.unlink(entry.path)

    def _check(self) -> None:
        """Raises ToolError where no command can be kept; not before one is run, since most teams run none."""
        if os.name != "posix":
            raise ToolError("Nothing was run: commands are run on Linux and macOS only")
        if (self.state + os.sep).startswith(self.folder + os.sep):
            raise ToolError(
                f"Nothing was run: what is kept of commands in {self.folder} would lie in it, where they "
                "could change it. Whoever runs the agent has ANTIPHON_HOME name a folder elsewhere"
            )

    def _fields(self, words: Sequence[str]) -> place.Fields:
        """What is run, and how it is confined."""
        program = self.program(words[0])
        home = os.path.join(self.state, "home")
        reading = readable(self.environment["PATH"], (*self._read, os.path.join(self.state, "gitconfig")))
        writing = [self.folder, home, *(os.path.realpath(each) for each in self._write)]
        found: place.Fields = {
            "program": [program], "words": list(words),
            "guarded": [os.path.join(self.state, "guard")] if self._guarded else [],
            "landlock": [], "reading": [], "writing": [],
        }  # fmt: skip
        if self.confined.kind == "landlock":
            found |= landlock_fields(reading, writing, network=self._network)
        elif self.confined.kind == "bwrap":
            inside = [program, *words[1:]]
            found["program"] = [self.confined.bwrap]
            found["words"] = in_bwrap(
                self.confined.bwrap, inside, self.folder, reading, writing, network=self._network
            )
        return found

    def _make(self) -> None:
        """The folders that commands find, and who they commit as; what is old goes."""
        if self._prepared % _CLEARED_EVERY == 0:
            self.clear()
        self._prepared += 1
        os.makedirs(os.path.join(self.state, "home", "tmp"), 0o700, exist_ok=True)
        if not os.path.exists(os.path.join(self.state, "gitconfig")):
            place.write(self.state, "gitconfig", _git_identity().encode())


def boot() -> str:
    """What is another one each time that the machine starts; empty where that is not known."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _state(folder: str) -> str:
    given = os.environ.get("ANTIPHON_HOME", "")
    if given and not os.path.realpath(given).startswith(folder + os.sep):
        return os.path.join(os.path.realpath(given), "commands")
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(os.path.realpath(home), "antiphon", "commands")


def _git_identity() -> str:
    """Settings of git that say who commits, and nothing else of the user's: there may be secrets in them.
    What git does behind one's back is done at once, since nothing outlives a command."""
    found = "[gc]\n\tautoDetach = false\n[maintenance]\n\tautoDetach = false\n[user]\n"
    for name in ("name", "email"):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            told = subprocess.run(
                ["git", "config", "--global", "--get", f"user.{name}"], capture_output=True, check=False,
                stdin=subprocess.DEVNULL, timeout=5,
            ).stdout.decode("utf-8", "replace").strip()  # fmt: skip
            if told and told.isprintable():
                quoted = told.replace("\\", "\\\\").replace('"', '\\"')
                found += f'\t{name} = "{quoted}"\n'
    return found
