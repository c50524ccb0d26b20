"""Who holds a run: a process named so that its death can be seen, also after its number is reused."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

PLATFORM: str = sys.platform
_BOOT = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
"""The id that a kernel gives itself when it starts; what else stands behind it is a namespace."""


class Owner(Struct, frozen=True):
    """One process on one boot of one host.

    boot: the kernel's boot id and the namespace in which `pid` counts; empty when unknown.
    started: the process's start time as its kernel tells it; empty when unknown.
    """

    host: str
    boot: str
    pid: int
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Owner:
    """The calling process."""
    return Owner(socket.gethostname(), _boot(), os.getpid(), _started(os.getpid()))


def is_dead(owner: Owner, me: Owner) -> bool:
    """Whether `me` can tell that `owner` no longer runs. False when it runs, or cannot be told."""
    if owner.host != me.host:
        return False
    if owner.boot != me.boot or not owner.boot:
        before, now = _BOOT.match(owner.boot), _BOOT.match(me.boot)
        # Of an earlier boot nobody is left, whatever its clock said. Another namespace tells nothing.
        return before is not None and now is not None and before[0] != now[0]
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _started(owner.pid) != owner.started


def _boot() -> str:
    if PLATFORM == "linux":
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
            return f"{boot} {os.readlink('/proc/self/ns/pid')}"
        except OSError:
            # A locked-down container: nobody's death can be seen, so only time decides.
            return ""
    if PLATFORM == "darwin":
        # Not kern.boottime: that one moves when the clock is set.
        return _ask("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
    return ""


def _started(pid: int) -> str:
    """Start time of a process; empty when it is gone, a zombie, or the system does not tell."""
    if PLATFORM == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
        # The command in parentheses may hold spaces and parentheses itself.
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    if PLATFORM == "darwin":
        return _ask("/bin/ps", "-o", "lstart=", "-p", str(pid))
    return ""


def _ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout.strip()
