"""The write-ahead log of an SQLite file, read before and after SQLite recovers it.

SQLite ends a log at the first frame that does not verify, and from then on writes over what follows: right
for a write that a crash cut off, fatal for a bit that changed in the middle. Frames of one generation of the
log carry its salts, so those behind the place where SQLite stopped show which of the two it was. SQLite
itself says where it stopped; only the 24 bytes before each page are looked at here.

A commit is synced before the next one is begun, so a power cut may leave any part of one commit, the last:
frames of a second one behind the first that is broken are rot.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import apsw
from msgspec import Struct

from antiphon.errors import JournalDamaged

HEADER = 32
FRAME_HEADER = 24
MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
"""The log's first word, and the order of bytes in which its checksums add up words."""

EMPTYING_MS = 2_000
_BLOCK = 256
"""Frames that are read at once: a megabyte."""


class LogScan(Struct, frozen=True):
    """The numbers, from 1, of the frames of a log that carry its salts, and of those that end a commit."""

    salts: bytes
    frames: tuple[int, ...]
    commits: tuple[int, ...]


def log_of(path: Path) -> Path:
    """Where SQLite keeps the log of the file at `path`, which may be a link."""
    return Path(f"{os.path.realpath(path)}-wal")


def scan_log(path: Path) -> LogScan | None:
    """Read the log of the journal at `path`; None when there is none, or nothing in it.

    Raises JournalDamaged when its header is damaged though frames follow, or when the file that it belongs to
    is gone or empty: SQLite would delete it. Nothing is changed.
    """
    try:
        with open(log_of(path), "rb") as file:
            header = file.read(HEADER + FRAME_HEADER)
            if len(header) < HEADER + FRAME_HEADER:
                return None
            page = _page_size(header)
            if not page:
                if not any(header[HEADER:]):
                    return None
                raise damaged(path, "the header of its log is damaged, but frames follow it")
            file.seek(HEADER)
            found = _frames(file, page + FRAME_HEADER, header[16:24])
    except FileNotFoundError:
        return None
    if found.commits and not _size(path):
        raise damaged(path, f"the file is gone or empty, but its log holds {len(found.commits):,} commits")
    return found


def judge_log(
    connection: apsw.Connection,
    path: Path,
    scan: LogScan | None,
    *,
    same_boot: bool = False,
    was_synced: bool = True,
) -> int:
    """How many frames lie behind those that SQLite recovered and may be a commit that was cut off.

    same_boot: the power has not gone since the log was written, so that a commit can only lack its end.
    was_synced: False when it may have gone before commits were synced, so that any part of any of them may be
    missing. Recovers the log in memory; neither the file nor the log is changed. Raises JournalDamaged when
    they can be no such thing.
    """
    if scan is None:
        return 0
    with suppress(apsw.Error):
        # A read recovers the log. What is wrong with the file itself is told by whoever reads next.
        connection.pragma("schema_version")
    recovered, _ = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    behind = [number for number in scan.frames if number > recovered]
    if not behind:
        return 0
    broken = _first_broken(path, scan, recovered)
    if not broken:
        return 0
    commits = [number for number in scan.commits if number > recovered]
    cut_off = not commits or (commits[-1] <= broken if same_boot else behind[-1] == commits[0])
    if was_synced and not cut_off:
        lost = f"{len(behind):,} frames with {len(commits):,} commits lie behind the last good one"
        raise damaged(path, f"frame {broken:,} of its log does not verify, but {lost}")
    return len(behind)


def empty(connection: apsw.Connection, busy_ms: int) -> None:
    """Move what is good of the log into the file and empty it: remains of a commit that was cut off must lie
    behind no other, and who opens the journal next, in the same boot, would take them for rot. Left as it is
    when another process reads it for longer than `EMPTYING_MS`."""
    connection.set_busy_timeout(EMPTYING_MS)
    with suppress(apsw.BusyError, apsw.LockedError):
        connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.set_busy_timeout(busy_ms)


def damaged(path: Path, what: str) -> JournalDamaged:
    """The error that says what was found, that nothing was changed, and what can be done."""
    return JournalDamaged(
        path,
        f"{what}. This is damage, not a crash; nothing was changed. Restore a copy, or copy what can be"
        f" read to a new file: antiphon journal salvage --journal {path} --out NEW",
    )


def _page_size(header: bytes) -> int:
    """The size of the log's pages, 0 when its header does not verify."""
    magic, _, page = struct.unpack_from(">III", header.ljust(HEADER, b"\0"))
    order = MAGIC.get(magic)
    if order is None or page & (page - 1) or not 512 <= page <= 65_536:
        return 0
    found = checksum(order, header[:24], (0, 0))
    return page if struct.pack(">II", *found) == header[24:HEADER] else 0


def checksum(order: str, data: bytes | bytearray, start: tuple[int, int]) -> tuple[int, int]:
    """The checksum of SQLite's log over `data` (a multiple of 8 bytes), going on from `start`."""
    one, two = start
    for first, second in struct.iter_unpack(order + "II", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def _first_broken(path: Path, scan: LogScan, recovered: int) -> int:
    """The number of the frame at which SQLite stopped, after `recovered` good ones; 0 when none is broken: a
    process that lives has written it just now, or begun the next generation of the log."""
    with open(log_of(path), "rb") as file:
        header = file.read(HEADER)
        page = _page_size(header)
        if header[16:24] != scan.salts or not page:
            return 0
        order, size = MAGIC[struct.unpack_from(">I", header)[0]], page + FRAME_HEADER
        last = header[24:]
        if recovered:
            file.seek(HEADER + (recovered - 1) * size)
            last = file.read(FRAME_HEADER)[16:]
        file.seek(HEADER + recovered * size)
        for number in range(recovered + 1, scan.frames[-1] + 1):
            frame = file.read(size)
            one, two = struct.unpack(">II", last)
            found = checksum(order, frame[:8] + frame[FRAME_HEADER:], (one, two))
            last = frame[16:FRAME_HEADER]
            if frame[8:16] != scan.salts or not any(frame[:4]) or struct.pack(">II", *found) != last:
                return number
            if any(frame[4:8]):
                return 0
    return 0


def _frames(file: BinaryIO, size: int, salts: bytes) -> LogScan:
    frames, commits = [], []
    number = 0
    while len(block := file.read(size * _BLOCK)) >= size:
        for at in range(0, len(block) - size + 1, size):
            number += 1
            if block[at + 8 : at + 16] == salts and any(block[at : at + 4]):
                frames.append(number)
                if any(block[at + 4 : at + 8]):
                    commits.append(number)
    return LogScan(salts, tuple(frames), tuple(commits))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
