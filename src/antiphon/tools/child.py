"""A process of its own for work that nothing in this one could stop: bounded, and gone with this one."""

from __future__ import annotations

import math
import os
import subprocess
import sys

MEMORY = 1 << 30
"""Bytes of address space that a child may have."""

_POSIX = os.name == "posix"
_PRELUDE = """
import os, sys, _thread
parent, wake, cpu, memory = map(int, sys.argv[1:5])
try:
    import resource
except ImportError:
    pass
else:
    for limit, value in (("CPU", cpu), ("AS", memory), ("CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (value, value))
        except (ValueError, OSError):
            pass  # macOS bounds no address space
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: the kernel ends us, whatever we do by then
if wake >= 0:
    _thread.start_new_thread(lambda: (os.read(wake, 1), os._exit(1)), ())
    if os.getppid() != parent:
        os._exit(1)  # it died before it could be noticed
"""
"""What a child does first. Not before its program starts: between fork and exec, in a process of many
threads, no Python may run."""


def run_alone(
    program: str, given: str, *, seconds: float, memory: int = MEMORY, packages: bool = False
) -> str:
    """What a Python program writes, that is given a text on its standard input.

    packages: whether it may import what is installed; else the standard library alone.

    It is ended after `seconds` of time or of computing, beyond `memory` bytes, and when this process
    dies, however it dies: Linux sees to that; elsewhere a pipe that closes does, and the limits for a
    program that lets no thread of its own run. Raises subprocess.TimeoutExpired, CalledProcessError
    (a negative code is a signal), OSError.
    """
    try:
        data = given.encode()
        return run_on_bytes(program, data, seconds=seconds, memory=memory, packages=packages).decode()
    except subprocess.CalledProcessError as error:
        error.stderr = error.stderr.decode("utf-8", "replace")
        raise


def run_on_bytes(
    program: str, given: bytes, *, seconds: float, memory: int = MEMORY, packages: bool = False
) -> bytes:
    """`run_alone` for what is no text."""
    reading, writing = os.pipe() if _POSIX else (-1, -1)
    try:
        bounds = (os.getpid(), reading, math.ceil(seconds), memory)
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                *(() if packages else ("-S",)),
                "-c",
                _PRELUDE + program,
                *map(str, bounds),
            ],
            input=given,
            capture_output=True,
            timeout=seconds,
            check=True,
            pass_fds=(reading,) if _POSIX else (),
        )
    finally:
        for end in (reading, writing):
            if end >= 0:
                os.close(end)
    return done.stdout
