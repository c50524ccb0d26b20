"""The index of a git repository: which files git holds, and what the system said of each when it took it.

Read here and not asked of git: a repository's settings name programs that git would start, and a process
takes longer. See gitformat-index(5). What is not understood is not held.
"""

from __future__ import annotations

import os
import struct

_ENTRY = struct.Struct(">10I20sH")
"""Times of change of the file and of its status, device, inode, mode, user, group, size, id, flags."""
_HEAD = struct.Struct(">4s2I")
_EXTENDED, _STAGE = 0x4000, 0x3000
_WORD = 0xFFFFFFFF

HeldFile = tuple[str, tuple[int, ...]]
"""The id of a file's content, and what the system said of the file; nothing if it may have changed since."""


def held(path: str, prefix: bytes) -> dict[str, HeldFile]:
    """The files of an index, by their paths below `prefix`. Empty where there is none that is understood."""
    try:
        with open(path, "rb") as file:
            data, written = file.read(), os.fstat(file.fileno()).st_mtime_ns
        return _read(data, prefix, written)
    except (OSError, struct.error, ValueError, IndexError):
        return {}


def told(status: os.stat_result) -> tuple[int, ...]:
    """What an index keeps of a file."""
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_ino & _WORD, status.st_size & _WORD)


def _read(data: bytes, prefix: bytes, written: int) -> dict[str, HeldFile]:
    mark, version, count = _HEAD.unpack_from(data)
    if mark != b"DIRC" or not 2 <= version <= 4:
        return {}
    found: dict[str, HeldFile] = {}
    at, name, cut = _HEAD.size, b"", len(prefix)
    for _ in range(count):
        begin = at
        (changed, changed_ns, modified, modified_ns, _, inode, _, _, _, size, blob, flags) = (
            _ENTRY.unpack_from(data, at)
        )
        at += _ENTRY.size + (2 if flags & _EXTENDED else 0)
        if version == 4:
            dropped, at = _number(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - dropped] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            name = data[at:end]
            at = begin + (end - begin + 8) // 8 * 8
        if flags & _STAGE or not name.startswith(prefix):
            continue
        time = modified * 1_000_000_000 + modified_ns
        # What was changed when the index was written, or later, may have changed again without a trace.
        known = () if time >= written else (changed * 1_000_000_000 + changed_ns, time, inode, size)
        found[os.fsdecode(name[cut:])] = (blob.hex(), known)
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of version 4, and where the next thing begins."""
    byte = data[at]
    found = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        found = ((found + 1) << 7) | (byte & 0x7F)
    return found, at + 1
