"""The processes below this one, and how all of them are ended. Orphans among them are this one's children."""

from __future__ import annotations

import os
import sys
import time

KILL, TERM = 9, 15
_STOP, _CONT = (19, 18) if sys.platform == "linux" else (17, 19)
"""Numbers of signals. The module `signal` loads enumerations, which takes longer than a short command."""
_LOOK = 0.005
"""Seconds between two looks whether a process has ended."""
_ROUNDS = 1000
"""How often what starts new processes all the time is ended before it is given up."""


def signal_all(number: int) -> None:
    """Send a signal to every process below this one.

    They stand still meanwhile, so that none gets away by starting another one, and no number is given to a
    new process. Their groups are sent it too: what becomes another process all the time is met there.
    """
    own, seen = os.getpgrp(), set[int]()
    groups: set[int] = set()
    for _ in range(_ROUNDS):
        known = _all()
        new = [each for each in below(known=known) if each not in seen]
        if not new:
            break
        found = {known[each].group for each in new} - {own, 0, 1} - groups
        for each in [*(-group for group in found), *new]:
            _send(each, _STOP)
        groups |= found
        seen.update(new)
    for then in (number,) if number == KILL else (number, _CONT):
        for each in [*(-group for group in groups), *seen]:
            _send(each, then)


def reap() -> tuple[bool, dict[int, int]]:
    """Take leave of children that have ended: whether there are others, and the exit codes of these."""
    codes: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, codes
        if not pid:
            return True, codes
        codes[pid] = os.waitstatus_to_exitcode(status)


def end_all(grace: float) -> dict[int, int]:
    """End every process below this one: ask them, wait up to `grace` seconds, then end them. Their exit
    codes, as far as they were this one's children."""
    more, codes = reap()
    if more and grace > 0:
        signal_all(TERM)
        deadline = time.monotonic() + grace
        while more and time.monotonic() < deadline:
            time.sleep(_LOOK)
            more, ended = reap()
            codes |= ended
    for _ in range(_ROUNDS):
        if not more:
            break
        signal_all(KILL)
        time.sleep(_LOOK)
        more, ended = reap()
        codes |= ended
    return codes


def below(*, known: dict[int, Status] | None = None) -> list[int]:
    """The living processes below this one; those above come first."""
    children: dict[int, list[int]] = {}
    for pid, each in (_all() if known is None else known).items():
        if each.state not in "ZX":
            children.setdefault(each.parent, []).append(pid)
    found = list(children.get(os.getpid(), ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def started_at(pid: int) -> str:
    """What tells a process from another one that has its number later; empty when it is not there."""
    found = _status(pid)
    return found.began if found else ""


def marked(mark: str) -> list[int]:
    """The processes of this user whose environment holds a text, wherever they are."""
    found = []
    for pid in _all():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            # It has ended, or is another user's.
            continue
    return found


class Status:
    """What is known of a process. began: what tells it from a later one of its number."""

    __slots__ = ("began", "group", "parent", "state")

    def __init__(self, parent: int, group: int, state: str, began: str) -> None:
        self.parent, self.group, self.state, self.began = parent, group, state, began


def _all() -> dict[int, Status]:
    if sys.platform != "linux":
        return _listed()
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (status := _status(int(name))):
            found[int(name)] = status
    return found


def _listed() -> dict[int, Status]:
    """Where there is no /proc."""
    # Not at import: Linux does without it.
    import subprocess

    asked = ["/bin/ps", "-axo", "pid=,ppid=,pgid=,state="]
    told = subprocess.run(asked, capture_output=True, check=False).stdout
    rows = [line.split() for line in told.decode().splitlines()]
    return {int(row[0]): Status(int(row[1]), int(row[2]), row[3][:1], "") for row in rows if len(row) == 4}


def _status(pid: int) -> Status | None:
    """None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of the program, in brackets, may hold anything.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Status(int(fields[1]), int(fields[2]), fields[0].decode(), fields[19].decode())


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # It has ended meanwhile, or is another user's now.
        return
