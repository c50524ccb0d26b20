"""Files of a folder changed: each whole or not at all, and only when it is as it was looked at.

What is put in place is written beside it, synced, and exchanged with it in one step; then what was there is
looked at, and exchanged back when it is not what was expected. So a change of somebody else's is never
written over, also not in the last moment. Where the system cannot exchange (all but Linux), it is looked at
right before.

No link is followed, see `root.py`. Whoever changes files of a folder, in whatever process, waits for others.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from antiphon.errors import ToolError
from antiphon.tools.folder.root import FolderHandle, FoundFile, Root

if sys.platform != "win32":
    import fcntl

PATIENCE = 10.0
"""Seconds for which another one's change of the folder is waited for."""
_KEEP, _EXCHANGE = 1, 2
"""How `renameat2` renames: to no file that is there; with one that is."""
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)
"""What a file system, or a container, says that cannot rename so; then it is looked at right before."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


class FileChanged(Exception):
    """A file is not as it was looked at, `data` its bytes now; None: it is gone, or no file any more."""

    def __init__(self, data: bytes | None) -> None:
        super().__init__("the file has changed")
        self.data = data


def version_of(data: bytes) -> str:
    """What a file's content is known by: 16 hex characters."""
    return blake2b(data, digest_size=8).hexdigest()


@contextlib.contextmanager
def alone(root: Root) -> Iterator[None]:
    """While it lasts nobody else changes files of the folder through these tools. Raises ToolError."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(root.folder(()))
        except OSError as error:
            raise root.refused(".", error, folder=True) from error
        if folder.handle >= 0:
            _lock(folder.handle, time.monotonic() + PATIENCE)
        yield


def _lock(handle: int, deadline: float) -> None:
    if sys.platform != "win32":
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise ToolError(f"The folder can not be locked: {error.strerror}") from error
                if time.monotonic() > deadline:
                    raise ToolError("Another program has locked the folder; try again later") from error
            time.sleep(0.005)


def find(root: Root, parts: tuple[str, ...]) -> FoundFile | None:
    """A file that may be changed; None when there is none. Raises ToolError for what is no such file."""
    if not root.has(parts):
        return None
    name = "/".join(parts)
    found = root.found(name)
    if not found.status.st_mode & 0o222:
        raise ToolError(f"{name} is read-only; it is changed by nobody before its mode is")
    if hasattr(os, "geteuid") and os.geteuid() not in (0, found.status.st_uid):
        raise ToolError(f"{name} belongs to another user, and would no longer; it is not changed")
    return found


def put(
    root: Root, parts: tuple[str, ...], before: FoundFile | None, after: bytes, key: str,
    mode: int | None = None,
) -> None:  # fmt: skip
    """Put `after` in the place of a file that is as `before`; None: there is no file, and folders are made.

    key: the same when the change is made again after a crash, else another one. mode: its permission bits.
    Mode, owner and attributes stay else. Raises FileChanged, ToolError.
    """
    name, spare = parts[-1], _spare(key)
    with _telling(root, parts), root.folder(parts[:-1], make=before is None) as folder:
        try:
            _write(folder, spare, after, name if before is not None else "", mode)
            if before is None:
                _rename(folder, spare, folder, name, _KEEP)
            else:
                _swap(folder, spare, name, before)
        finally:
            _remove(folder, spare)
        folder.sync()


def take_away(root: Root, parts: tuple[str, ...], before: FoundFile, key: str) -> None:
    """Delete a file that is as `before`. Raises FileChanged, ToolError."""
    name, spare = parts[-1], _spare(key)
    with _telling(root, parts), root.folder(parts[:-1]) as folder:
        _remove(folder, spare)
        _rename(folder, name, folder, spare, _KEEP)
        _check_same(folder, spare, before, lambda: _rename(folder, spare, folder, name, _KEEP))
        _remove(folder, spare)
        folder.sync()


def clear_empty(root: Root, parts: tuple[str, ...]) -> None:
    """Take a folder inside away if nothing is in it, and those above it. Raises nothing."""
    with contextlib.suppress(OSError):
        while parts:
            with root.folder(parts[:-1]) as above:
                os.rmdir(above.at(parts[-1]), dir_fd=above.dir_fd)
            parts = parts[:-1]


def move(root: Root, parts: tuple[str, ...], to: tuple[str, ...], before: FoundFile) -> None:
    """Move a file that is as `before` to where none is; folders are made. Raises FileChanged, ToolError."""
    with _telling(root, parts), root.folder(parts[:-1]) as old, root.folder(to[:-1], make=True) as new:
        try:
            _rename(old, parts[-1], new, to[-1], _KEEP)
        except FileExistsError as error:
            raise ToolError(f"{'/'.join(to)} is there already; a file is moved over no other") from error
        _check_same(new, to[-1], before, lambda: _rename(new, to[-1], old, parts[-1], _KEEP))
        old.sync()
        new.sync()


def settle(root: Root, parts: tuple[str, ...], key: str, before: str, after: str) -> None:
    """Bring to its end what a crash cut off in `put` or `take_away`; these are its versions.

    What had been exchanged and was neither of them, somebody else had just written: it is put back.
    """
    name, spare = parts[-1], _spare(key)
    with contextlib.suppress(FileChanged), _telling(root, parts), root.folder(parts[:-1]) as folder:
        left = _look(folder, spare)
        if left is not None and version_of(left.data) not in (before, after):
            there = _look(folder, name)
            if there is None:
                _rename(folder, spare, folder, name, _KEEP)
            elif version_of(there.data) == after:
                _replace(folder, spare, name)
        _remove(folder, spare)


@contextlib.contextmanager
def _telling(root: Root, parts: tuple[str, ...]) -> Iterator[None]:
    """What the system refuses, as a model is told it."""
    try:
        yield
    except FileExistsError as error:
        raise FileChanged(None) from error
    except FileNotFoundError as error:
        raise FileChanged(None) from error
    except OSError as error:
        raise root.refused("/".join(parts), error, doing="written") from error


def new_mode() -> int:
    """The permission bits of a file that is made now."""
    # Asked of the system and not of `os.umask`, which cannot look without setting it for all threads.
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Umask":
                return 0o666 & ~int(value, 8)
    return 0o644


def _spare(key: str) -> str:
    """The name under which a file is written before it is put in place; a hidden one."""
    return f".antiphon-{blake2b(key.encode(), digest_size=10).hexdigest()}"


def _look(folder: FolderHandle, name: str) -> FoundFile | None:
    """A regular file with one name, read whole; None when it is none, or not there. Raises OSError."""
    try:
        handle = folder.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return None
        with open(handle, "rb", closefd=False) as file:
            return FoundFile(file.read(), status)
    finally:
        os.close(handle)


def _write(folder: FolderHandle, spare: str, data: bytes, like: str, mode: int | None = None) -> None:
    """A new file, on the disk, with mode, owner and attributes of another one, if there is one."""
    _remove(folder, spare)
    handle = folder.open(spare, _CREATE, 0o600 if like else 0o666)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        if like and hasattr(os, "fchmod"):
            other = folder.open(like, os.O_RDONLY)
            try:
                _take_after(handle, other)
            finally:
                os.close(other)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(handle, mode)
        os.fsync(handle)


def _take_after(handle: int, other: int) -> None:
    own, status = os.fstat(handle), os.fstat(other)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(handle, status.st_uid, status.st_gid)
    for name in os.listxattr(other) if hasattr(os, "listxattr") else ():
        with contextlib.suppress(OSError):  # some are the system's own
            os.setxattr(handle, name, os.getxattr(other, name))
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


def _swap(folder: FolderHandle, spare: str, name: str, before: FoundFile) -> None:
    """Exchange two files; back again when the one that was there is not as expected."""
    try:
        exchanged = _rename_with(folder, spare, folder, name, _EXCHANGE)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        exchanged = False
    if exchanged:
        _check_same(folder, spare, before, lambda: _rename_with(folder, spare, folder, name, _EXCHANGE))
        return
    _check_same(folder, name, before, lambda: None)
    _replace(folder, spare, name)


def _replace(folder: FolderHandle, spare: str, name: str) -> None:
    os.replace(folder.at(spare), folder.at(name), src_dir_fd=folder.dir_fd, dst_dir_fd=folder.dir_fd)


def _check_same(folder: FolderHandle, name: str, before: FoundFile, undo: Callable[[], object]) -> None:
    try:
        found = _look(folder, name)
    except OSError:
        found = None
    if found is None or found.data != before.data:
        undo()
        raise FileChanged(None if found is None else found.data)


def _rename(old: FolderHandle, name: str, new: FolderHandle, to: str, flags: int) -> None:
    """Rename to what is not there. Raises FileExistsError."""
    try:
        if _rename_with(old, name, new, to, flags):
            return
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    if new.has(to):
        raise FileExistsError(errno.EEXIST, "is there already", to)
    os.rename(old.at(name), new.at(to), src_dir_fd=old.dir_fd, dst_dir_fd=new.dir_fd)


def _rename_with(old: FolderHandle, name: str, new: FolderHandle, to: str, flags: int) -> bool:
    """Rename as flags say; False where the system cannot. Raises OSError."""
    rename = _renameat2()
    if rename is None or old.dir_fd is None or new.dir_fd is None:
        return False
    if rename(old.dir_fd, os.fsencode(name), new.dir_fd, os.fsencode(to), flags) == 0:
        return True
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), name)


@cache
def _renameat2() -> Any:
    """The system's call; None where there is none."""
    try:
        found = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return found


def _remove(folder: FolderHandle, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder.at(name), dir_fd=folder.dir_fd)
