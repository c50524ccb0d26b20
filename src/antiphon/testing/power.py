"""Disks for tests: one that remembers what it was told and can lose power, one that fails on demand.

Both are SQLite file layers in Python over the ordinary one, without its syncs (a real power cut is
not what they are for); a journal opens them by name:

    disk = RecordingDisk("recording")
    journal = SqliteJournal(path, vfs="recording")
    ...                                     # disk.mark("row 7") at every acknowledgement
    for cut in range(disk.operations):
        disk.restore(cut, seed, folder)     # the files as the power cut before operation `cut` left them
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

SECTOR = 512
CHANGES = frozenset({"write", "truncate", "sync", "delete"})


class DiskOperation(Struct, frozen=True):
    """One change of one file: write, truncate (to `offset`), sync or delete."""

    kind: str
    name: str
    offset: int = 0
    data: bytes = b""


class _Disk(apsw.VFS):
    """Calls `before(operation)` ahead of every change of a journal's files, then lets it happen."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")

    def before(self, operation: DiskOperation) -> None:
        raise NotImplementedError

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _File(self.before, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.before(DiskOperation("delete", Path(filename).name))
        super().xDelete(filename, syncdir)
        if syncdir:
            self.before(DiskOperation("sync", Path(filename).name))


class _File(apsw.VFSFile):
    def __init__(self, before: Callable[[DiskOperation], None], name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        text = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._before, self._name = before, Path(text).name

    def xWrite(self, data: Any, offset: int) -> None:
        self._before(DiskOperation("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._before(DiskOperation("truncate", self._name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._before(DiskOperation("sync", self._name))


class RecordingDisk(_Disk):
    """Remembers every change, so that a power cut can be played at each of them afterwards.

    A cut keeps all that was synced, and of what was not a subset drawn from the seed: each write
    whole, not at all, or torn at a sector.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.log: list[DiskOperation] = []
        self._marks: list[tuple[int, object]] = []

    @property
    def operations(self) -> int:
        """How many changes were recorded."""
        return len(self.log)

    def before(self, operation: DiskOperation) -> None:
        """Record it."""
        self.log.append(operation)

    def mark(self, fact: object) -> None:
        """Note that `fact` was acknowledged now."""
        self._marks.append((len(self.log), fact))

    def marked(self, cut: int) -> list[object]:
        """The facts acknowledged before operation number `cut`."""
        return [fact for at, fact in self._marks if at <= cut]

    def restore(self, cut: int, seed: int, folder: Path) -> None:
        """Write the files into `folder` as they are after the power went before operation `cut`."""
        chance = random.Random(f"{seed} {cut}")
        names = {operation.name for operation in self.log[:cut]}
        for name in sorted(names):
            image = self._survivor([each for each in self.log[:cut] if each.name == name], chance)
            if image is not None:
                (folder / name).write_bytes(image)

    @staticmethod
    def _survivor(operations: list[DiskOperation], chance: random.Random) -> bytearray | None:
        synced = max((n for n, each in enumerate(operations) if each.kind == "sync"), default=-1)
        image: bytearray | None = None
        for n, each in enumerate(operations):
            if each.kind == "sync":
                image = bytearray() if image is None else image
                continue
            fate = 0.0 if n < synced else chance.random()
            if fate < 0.5:
                image = _change(image, each)
            elif fate < 0.75 and each.kind == "write":
                kept = chance.randrange(0, len(each.data), SECTOR)
                image = _change(image, DiskOperation("write", each.name, each.offset, each.data[:kept]))
        return image


def _change(image: bytearray | None, operation: DiskOperation) -> bytearray | None:
    if operation.kind == "delete":
        return None
    image = bytearray() if image is None else image
    if operation.kind == "truncate":
        del image[operation.offset :]
        return image
    if len(image) < operation.offset:
        image.extend(bytes(operation.offset - len(image)))
    image[operation.offset : operation.offset + len(operation.data)] = operation.data
    return image


class FailingDisk(_Disk):
    """Fails the change number `fail_at` (from 1; 0 is none) with what `error` makes, if of `kinds`.

    `after` is how many changes have been asked for since, and what they were.
    """

    def __init__(self, name: str, error: Callable[[], apsw.Error], kinds: frozenset[str] = CHANGES) -> None:
        super().__init__(name)
        self._error, self._kinds = error, kinds
        self.fail_at, self.seen, self.lasting = 0, 0, False
        self.after: list[DiskOperation] = []

    @property
    def failed(self) -> bool:
        """Whether the failure has happened."""
        return 0 < self.fail_at <= self.seen

    def before(self, operation: DiskOperation) -> None:
        """Raise when it is this one's turn."""
        if self.failed:
            self.after.append(operation)
        if operation.kind not in self._kinds:
            return
        self.seen += 1
        if self.fail_at and (self.seen == self.fail_at or (self.lasting and self.seen > self.fail_at)):
            raise self._error()


def disk_full() -> apsw.Error:
    """No space left."""
    return apsw.FullError("disk full")


def disk_error() -> apsw.Error:
    """A write or a sync that the disk could not do."""
    return apsw.IOError("disk error")
