"""What holds commands back on this machine: `bwrap` where it is installed, else Landlock, else nothing.

Nothing here stops a command by looking at it. What is not stopped is said: `missing` names it, and so do
`antiphon doctor`, the tools' descriptions and docs/safety.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Literal

from msgspec import Struct

ConfinementKind = Literal["bwrap", "landlock", "none"]
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap",
    "/sys/devices/system", "/sys/fs/cgroup", "/run/systemd/resolve",
)  # fmt: skip
"""What every program may read."""
_TOOL_HOMES = (
    ".pyenv", ".rbenv", ".nodenv", ".asdf", ".nvm", ".volta", ".rustup", ".sdkman", ".bun", ".deno", "go",
    "miniconda3", "anaconda3", "miniforge3", ".local/share/mise", ".local/share/uv", ".local/share/pnpm",
)  # fmt: skip
"""Where programs lie in a home, and no secrets."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SECONDS = 5.0


class Confinement(Struct, frozen=True):
    """What holds commands back. landlock: its version, 0 for none."""

    kind: ConfinementKind
    landlock: int = 0
    bwrap: str = ""
    """The program."""

    @property
    def holds(self) -> tuple[str, ...]:
        """What a command cannot do, each in a few words."""
        if self.kind == "none":
            return ()
        found = ["writes only in its folder", "reads only there and what the system has"]
        if self.kind == "bwrap":
            return (*found, "no network", "sees no other process", "git hooks and settings are read-only")
        if self.landlock >= 4:
            found.append("no TCP")
        if self.landlock >= 6:
            found.append("no signal to other processes")
        return (*found, "changed git hooks and settings are put back")

    @property
    def missing(self) -> tuple[str, ...]:
        """What it can do all the same."""
        if self.kind == "none":
            return ("all that its user can do",)
        found = ["read all files of its folder, secrets too", "change what others run from its folder"]
        if self.kind == "bwrap":
            return tuple(found)
        found += [
            "use UDP", "use sockets that have a path",
            "change modes, times and attributes of its user's files", "delete a repository",
            "see names of files and arguments of processes",
        ]  # fmt: skip
        if self.landlock < 3:
            found.append("empty its user's files")
        if self.landlock < 4:
            found.append("use TCP")
        if self.landlock < 6:
            found.append("end other processes of its user")
        return tuple(found)

    def __str__(self) -> str:
        if self.kind == "none":
            return "not confined"
        name = "bwrap" if self.kind == "bwrap" else f"Landlock {self.landlock}"
        return f"confined by {name}: {', '.join(self.holds)}"


@cache
def confinement() -> Confinement:
    """The strongest that works here. Looked for once; starts a program if `bwrap` is installed."""
    if sys.platform != "linux":
        return Confinement("none")
    # Not at import: it loads ctypes, which few programs need.
    from antiphon.tools.shell.keeping import landlock

    known = landlock.version()
    program = shutil.which("bwrap")
    if program is not None and _works(program):
        return Confinement("bwrap", known, program)
    return Confinement("landlock" if known else "none", known)


def _works(program: str) -> bool:
    """Whether it may make what it needs; many systems forbid that."""
    try:
        tried = [program, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
        done = subprocess.run(
            tried, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def readable(environment_path: str, more: Sequence[str]) -> list[str]:
    """What a command may read beside its folder: the system, the programs that it finds, and this Python."""
    home = os.path.realpath(os.path.expanduser("~"))
    found = [
        *_SYSTEM,
        sys.prefix,
        sys.base_prefix,
        *(os.path.join(home, each) for each in _TOOL_HOMES),
        *more,
    ]
    for each in environment_path.split(os.pathsep):
        found.append(each)
        above = os.path.dirname(os.path.realpath(each))
        # What programs need lies beside their folder; right below a home that would be secrets too.
        if os.path.basename(each) in ("bin", "sbin") and os.path.dirname(above) != home:
            found.append(above)
    known = dict.fromkeys(os.path.realpath(each) for each in found)
    return [each for each in known if each not in ("/", home) and os.path.exists(each)]


def landlock_fields(reading: Sequence[str], writing: Sequence[str], *, network: bool) -> dict[str, list[str]]:
    """What the keeper is told of Landlock."""
    return {
        "landlock": ["tcp" if network else "none"],
        "reading": [*reading, "/proc"],
        "writing": [*writing, *_DEVICES],
    }


def in_bwrap(
    program: str, words: Sequence[str], folder: str, reading: Sequence[str], writing: Sequence[str], *,
    network: bool,
) -> list[str]:  # fmt: skip
    """The command that has bwrap run another one; what it mounts later lies over what came before."""
    found = [program, "--die-with-parent", "--new-session", "--unshare-all"]
    if network:
        found.append("--share-net")
    found += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - an empty one
    for each in _links(_SYSTEM):
        found += ["--symlink", os.readlink(each), each]
    for each in reading:
        found += ["--ro-bind-try", each, each]
    for each in writing:
        found += ["--bind", each, each]
    for name in ("config", "config.worktree", "commondir", "hooks", "modules"):
        held = os.path.join(folder, ".git", name)
        found += ["--ro-bind-try", held, held]
    return [*found, "--chdir", folder, "--", *words]


def _links(paths: Sequence[str]) -> list[str]:
    """Those that are links, such as /bin; what they lead to is mounted."""
    return [each for each in paths if os.path.islink(each)]
