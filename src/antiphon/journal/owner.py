"""Who holds a run: a process named so that its death can be seen, also after its number is reused; and which
leases it can be sure of."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from antiphon.journal.port import Lease

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


class HeldLeases:
    """The leases of one instance that nobody can have taken, as long as it is heard in time.

    ttl: seconds of silence after which others may take what it holds. steady: a clock that all owners share.
    Belongs to the event loop, but for `is_fresh`.
    """

    def __init__(self, ttl: float, steady: Callable[[], float]) -> None:
        self._ttl, self._steady = ttl, steady
        self._heard_at = float("-inf")
        self._epochs: dict[str, int] = {}

    def heard(self, began: float) -> None:
        """It was heard, by what it began to say at `began`.

        After a silence that was too long this makes nothing sure again: any lease may be another's by now.
        """
        if self._steady() - self._heard_at >= self._ttl:
            self._epochs.clear()
        self._heard_at = began

    def hold(self, lease: Lease) -> Lease:
        """The lease was its own when it was last heard; the same lease."""
        self._epochs[lease.run_id] = lease.epoch
        return lease

    def drop(self, lease: Lease) -> None:
        """The lease is given back."""
        if self._epochs.get(lease.run_id) == lease.epoch:
            del self._epochs[lease.run_id]

    def is_fresh(self, lease: Lease) -> bool:
        """Whether the lease cannot be another's; from any thread."""
        # In this order: where it was heard anew, what it may have lost in its silence has been forgotten.
        return self._steady() - self._heard_at < self._ttl and self._epochs.get(lease.run_id) == lease.epoch


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
