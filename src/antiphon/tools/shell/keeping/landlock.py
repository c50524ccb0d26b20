"""Landlock: what a process may do with files, connections and other processes, held by the Linux kernel.

It binds the process that asks for it and all that it starts, and nothing takes it back. See
landlock(7) and linux/landlock.h; the numbers of its calls are the same on every machine.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_BENEATH = 1
_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST = (1 << 13) - 1
"""What the first version knows."""
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_READING = EXECUTE | READ_FILE | READ_DIR
_TCP = 0b11
_SCOPES = 0b11
"""Signals to processes elsewhere, and abstract sockets of theirs."""


def version() -> int:
    """What this kernel has of it: 0 for nothing, 4 or more for TCP, 6 or more for signals."""
    if sys.platform != "linux":
        return 0
    return max(int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION)), 0)


def prctl(option: int, value: int) -> None:
    """Set what the kernel keeps of this process. Raises OSError."""
    _checked(_libc().prctl(option, value, 0, 0, 0))


def take_signals(numbers: tuple[int, ...]) -> None:
    """Have signals do what they do by default, in what this process becomes too."""
    for number in numbers:
        _libc().signal(number, None)


def restrict(reading: list[str], writing: list[str], *, tcp: bool) -> None:
    """From now on this process reads and runs only what lies below `reading` and `writing`, changes only what
    lies below `writing`, and without `tcp` neither listens nor connects. Raises OSError.

    What is not there is left out.
    """
    known = version()
    handled = _FIRST
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        handled |= right if known >= since else 0
    attributes = [handled]
    if known >= 4:
        attributes.append(0 if tcp else _TCP)
    if known >= 6:
        attributes.append(_SCOPES)
    libc = _libc()
    data = struct.pack(f"={len(attributes)}Q", *attributes)
    rules = _checked(libc.syscall(_CREATE, data, ctypes.c_size_t(len(data)), 0))
    for path in reading:
        _allow(libc, rules, path, handled & _READING)
    for path in writing:
        _allow(libc, rules, path, handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV))
    prctl(_NO_NEW_PRIVS, 1)
    _checked(libc.syscall(_RESTRICT, rules, 0))
    os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, handle)
        _checked(libc.syscall(_ADD, rules, _BENEATH, rule, 0))
    finally:
        os.close(handle)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
