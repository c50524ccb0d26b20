"""The keeper of one command: a process that starts it, keeps its output, ends it, and outlives the agent.

It is told the command's folder (`place.py`) as its only argument. Its standard input is the agent's: one byte
ends the command, the end of it says that the agent has gone, and then the command goes on. Its standard
output is told `begun` and `ended`. Nothing of what it runs reaches this process: no terminal, no input, no
secrets.
"""

from __future__ import annotations

import fcntl
import gc
import os
import select
import sys
import time

from antiphon.tools.shell.keeping import landlock, place, processes, scan
from antiphon.tools.shell.keeping.repository import Guard

GRACE = 2.0
"""Seconds for a command to end that was asked to."""
LEFT_GRACE = 0.5
"""Seconds for what it left running."""
TICK = 0.25
"""Seconds between two looks at what may have changed meanwhile."""
_CHUNK = 65_536
_TRIES = 20
_PIPE = 1 << 20
"""Bytes that a pipe holds at most."""
_SUBREAPER, _DEATH_SIGNAL = 36, 1
_IGNORED = (13, 25)
"""SIGPIPE and SIGXFSZ: Python ignores them, and what it starts would."""
NOT_RUN = 126
"""What a command ends with that could not be confined, or was no program."""


def main(folder: str) -> None:
    """Keep the command of a folder."""
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _alone(lock) or place.read(folder, "begun") is not None:
        return
    asked = place.unpack(place.read(folder, "asked") or b"")
    # It looks at many files, and keeps nothing in circles.
    gc.disable()
    if sys.platform == "linux":
        landlock.prctl(_SUBREAPER, 1)
    guard = None
    try:
        if asked["guarded"]:
            guard = Guard(asked["cwd"][0], asked["guarded"][0], folder)
    except OSError as error:
        _refuse(folder, f"the repository cannot be guarded: {error}")
        return
    command = Command(folder, asked, guard, *_watched(asked))
    if command.start():
        _say(1, b"begun\n")
        command.watch()
        command.finish()
        _say(1, b"ended\n")
    elif guard is not None:
        guard.close()


def _watched(asked: place.Fields) -> tuple[scan.FolderWatch | None, str]:
    """The folder as it is before the command; or why nobody will know what that changes."""
    try:
        return (scan.FolderWatch(asked), "") if asked.get("copies") else (None, "")
    except scan.TooLarge:
        return None, f"what it changes cannot be undone: there are more than {scan.MAX_FILES:,} files"
    except OSError as error:
        return None, f"what it changes cannot be undone: {error}"


def _alone(lock: int) -> bool:
    """Whether no other keeper has the command. Who only looks whether one has it holds it for a moment."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.005)
        else:
            return True
    return False


class Command:
    """One command, started and watched."""

    def __init__(
        self, folder: str, asked: place.Fields, guard: Guard | None, watch: scan.FolderWatch | None, told: str
    ) -> None:
        self._folder, self._asked, self._guard, self._watch = folder, asked, guard, watch
        self._told = [told] if told else []
        seconds = float(asked["seconds"][0])
        self._deadline = time.monotonic() + seconds if seconds else None
        self._began = time.monotonic()
        self._head = open(os.path.join(folder, "head"), "wb", buffering=0)  # noqa: SIM115 - closed in finish
        self._tail, self._total, self._new = b"", 0, False
        self._pid = self._output = -1
        self._speaks = True
        """Somebody may still write to its output."""
        self._code: int | None = None
        self._why = ""

    def start(self) -> bool:
        """Start it; False when it had begun before, or somebody said that it never will."""
        output, writing = os.pipe()
        waiting, gate = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(gate)
            _become(self._asked, waiting, writing)
        os.close(writing)
        os.close(waiting)
        os.set_blocking(output, False)
        self._pid, self._output = pid, output
        about = [str(pid), processes.started_at(pid), str(os.getpid()), str(time.time())]
        begins = place.begin(self._folder, place.pack({"command": about}))
        if begins:
            _say(gate, b"1")
        # Without a word the child ends, and has run nothing.
        os.close(gate)
        return begins

    def watch(self) -> None:
        """Until it has ended, by itself or from here."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(0, select.POLLIN)
        ended = _ended_handle(self._pid)
        if ended >= 0:
            poll.register(ended, select.POLLIN)
        looked = time.monotonic()
        while self._code is None:
            for handle, _ in poll.poll((TICK if ended >= 0 else 0.02) * 1000):
                if handle == self._output and not self._read():
                    poll.unregister(handle)
                elif handle == 0:
                    if os.read(0, 1):
                        self._stop("stopped")
                    # Whoever listened has gone; the command goes on.
                    poll.unregister(0)
            self._seen(processes.reap()[1])
            now = time.monotonic()
            if self._deadline is not None and now > self._deadline:
                self._stop("time")
            if now - looked >= TICK:
                looked = now
                self._look()
        if ended >= 0:
            os.close(ended)

    def finish(self) -> None:
        """What it left running is ended, its output kept, and how it ended is told."""
        processes.end_all(LEFT_GRACE)
        for _ in range(_PIPE // _CHUNK):
            self._read()
        seconds = f"{time.monotonic() - self._began:.3f}"
        if self._guard is not None:
            self._guard.close()
            self._told += self._guard.told
        self._head.close()
        self._keep_tail()
        try:
            if self._watch is not None:
                self._watch.finish(self._folder)
        except scan.TooLarge:
            self._told.append(
                f"what it changed cannot be undone: there are more than {scan.MAX_FILES:,} files"
            )
        except OSError as error:
            self._told.append(f"what it changed cannot be undone: {error}")
        end = [str(self._code), self._why, str(self._total), seconds, str(time.time())]
        place.write(self._folder, "ended", place.pack({"ended": end, "told": self._told}))

    def _look(self) -> None:
        """What is done now and then."""
        if self._new:
            self._keep_tail()
        if self._guard is not None:
            self._guard.check()
        if os.path.exists(os.path.join(self._folder, "stop")):
            self._stop("stopped")

    def _stop(self, why: str) -> None:
        """End it, and all that it started."""
        if self._code is not None:
            return
        self._why = why
        processes.signal_all(processes.TERM)
        deadline = time.monotonic() + GRACE
        while not self._seen(processes.reap()[1]) and time.monotonic() < deadline:
            select.select([self._output] if self._speaks else [], [], [], 0.01)
            self._read()
        self._seen(processes.end_all(0))

    def _seen(self, codes: dict[int, int]) -> bool:
        """Children have ended; whether the command has."""
        self._code = codes.get(self._pid, self._code)
        return self._code is not None

    def _read(self) -> bool:
        """Take what it has written; False when there is nothing."""
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return False
        self._speaks = bool(data)
        room = max(place.HEAD - self._total, 0)
        if room:
            self._head.write(data[:room])
        self._total += len(data)
        self._tail = (self._tail + data[room:])[-place.HEAD :]
        self._new = self._new or len(data) > room
        return self._speaks

    def _keep_tail(self) -> None:
        place.write(self._folder, "tail", f"{self._total}\n".encode() + self._tail)
        self._new = False


def _become(asked: place.Fields, waiting: int, writing: int) -> None:
    """In the child: wait for the word, then be the command. Never returns."""
    try:
        os.setsid()
        if not os.read(waiting, 1):
            os._exit(0)
        if sys.platform == "linux":
            landlock.prctl(_DEATH_SIGNAL, processes.KILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for handle, number in ((nothing, 0), (writing, 1), (writing, 2)):
            os.dup2(handle, number)
        os.chdir(asked["cwd"][0])
        if asked["landlock"]:
            tcp = asked["landlock"][0] == "tcp"
            landlock.restrict(asked["reading"], asked["writing"], tcp=tcp)
        landlock.take_signals(_IGNORED)
        environment = dict(each.split("=", 1) for each in asked["environment"])
        os.execve(asked["program"][0], asked["words"], environment)  # noqa: S606 - it is what was asked for
    except OSError as error:
        _say(2, f"it could not be run: {error}\n".encode())
    finally:
        os._exit(NOT_RUN)


def _ended_handle(pid: int) -> int:
    """What is readable once a process has ended; -1 where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _refuse(folder: str, why: str) -> None:
    """It cannot be run, and never will."""
    if place.begin(folder, place.pack({"command": []})):
        end = [str(NOT_RUN), "refused", "0", "0", str(time.time())]
        place.write(folder, "ended", place.pack({"ended": end, "told": [why]}))
    _say(1, b"ended\n")


def _say(handle: int, word: bytes) -> bool:
    """Write to a pipe; False when nobody listens."""
    try:
        os.write(handle, word)
    except BrokenPipeError:
        return False
    return True
