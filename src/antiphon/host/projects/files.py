"""The files of one project: listed, read, written and removed, and nothing outside of its folder.

Every folder on the way is opened by name below the one before it and without following links, so that a link
that is swapped in is refused. A file is written beside its place and renamed: it is there as a whole or not.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from antiphon.errors import ExternalError, UnknownName, UserError
from antiphon.host.projects.names import MAX_DEPTH, parts_of
from antiphon.values.fields import shown

MAX_FILE = 50_000_000
"""Bytes of one file."""
MAX_FILES = 2_000
"""Files of a project."""
MAX_TOTAL = 1_000_000_000
"""Bytes of all files of a project."""
_BY_COMPONENT = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_UPLOAD = ".upload-"


class FileEntry(Struct, frozen=True):
    """A file of a project."""

    path: str
    """Relative to `files/`, with `/`."""
    size: int
    """Bytes."""
    modified: float
    """Unix seconds."""


class FolderFull(UserError):
    """A project has as many files, or bytes, as it may have."""


class NameTaken(UserError):
    """A name is something else already: a folder, or the same letters in another case."""


class FilesFailed(ExternalError):
    """The disk did not let a project's files be read or written."""


class Upload:
    """A file that is being written beside its place; see `ProjectFiles.upload`. Raises FilesFailed.

    size: bytes so far. `write` adds some, `commit` puts it in its place, `discard` ends it, and forgets what
    was not put there.
    """

    def __init__(self, folder: _Folder, path: str) -> None:
        self._folder, self._path, self.size = folder, path, 0
        self._name = path.rpartition("/")[2]
        self._draft = f"{_UPLOAD}{secrets.token_hex(8)}"
        made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN
        self._file = os.fdopen(folder.open(self._draft, made, 0o600), "wb")

    def write(self, chunk: bytes) -> None:
        """Add bytes."""
        self.size += len(chunk)
        try:
            self._file.write(chunk)
        except OSError as error:
            raise _unwritable(self._name, error) from error

    def commit(self) -> FileEntry:
        """Make it durable, and put it in its place at once. Raises NameTaken when a folder is there."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            modified = os.fstat(self._file.fileno()).st_mtime
            self._file.close()
            self._folder.rename(self._draft, self._name)
            self._folder.sync()
        except (IsADirectoryError, PermissionError) as error:
            raise NameTaken(f"{shown(self._name)} is a folder; give the file another name") from error
        except OSError as error:
            raise _unwritable(self._name, error) from error
        return FileEntry(self._path, self.size, modified)

    def discard(self) -> None:
        """Remove what was written and not put in its place."""
        with suppress(OSError):
            self._file.close()
        with suppress(FileNotFoundError):
            self._folder.remove(self._draft)
        self._folder.close()


class ProjectFiles:
    """The folder `files/` of a project, which is made when something is put into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> list[FileEntry]:
        """Every file, by path, at most MAX_FILES; what is hidden, a link or a device is left out."""
        return sorted(self._walk(), key=lambda each: each.path)

    def _walk(self) -> Iterator[FileEntry]:
        waiting: list[tuple[str, ...]] = [()]
        count = 0
        while waiting:
            parts = waiting.pop()
            # What vanishes on the way is left out.
            with suppress(OSError), _opened(self.folder, parts) as folder:
                for name, status in folder.entries():
                    if stat.S_ISDIR(status.st_mode) and len(parts) + 1 < MAX_DEPTH:
                        waiting.append((*parts, name))
                    elif stat.S_ISREG(status.st_mode) and count < MAX_FILES:
                        count += 1
                        yield FileEntry("/".join((*parts, name)), status.st_size, status.st_mtime)

    def open(self, path: str) -> tuple[int, FileEntry]:
        """A descriptor of a regular file, to be closed by whoever gets it, and what it is.

        Raises UnknownName when there is none, UserError as `parts_of`.
        """
        *above, name = parts_of(path)
        try:
            with _opened(self.folder, tuple(above)) as folder:
                handle = folder.open(name, os.O_RDONLY | _PLAIN, 0)
        except OSError as error:
            raise _missing(path, error) from error
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.close(handle)
            raise UnknownName("file", path, ())
        return handle, FileEntry("/".join((*above, name)), status.st_size, status.st_mtime)

    def read(self, path: str, most: int) -> bytes:
        """All of a file of at most `most` bytes. Raises as `open`, UserError for a larger one."""
        handle, _ = self.open(path)
        with os.fdopen(handle, "rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise UserError(f"The file {shown(path)} is larger than {most:,} bytes; give a smaller one")
        return data

    def upload(self, path: str) -> Upload:
        """Begin to write a file; folders on the way are made. Raises FolderFull, NameTaken, FilesFailed,
        UserError as `parts_of`."""
        parts = parts_of(path)
        self.check_room(path, 0)
        try:
            with suppress(FileExistsError):
                self.folder.mkdir()
            for depth, part in enumerate(parts[:-1]):
                with _opened(self.folder, parts[:depth]) as above:
                    _check_case(above, part)
                    with suppress(FileExistsError):
                        above.mkdir(part)
            folder = _Folder.open_in(self.folder, parts[:-1])
            try:
                _check_case(folder, parts[-1])
                return Upload(folder, "/".join(parts))
            except BaseException:
                folder.close()
                raise
        except OSError as error:
            raise _unwritable(path, error) from error

    def clear_away(self, before: float) -> None:
        """Remove what nobody has written to the end that was begun before that instant, Unix seconds."""
        for above, _, names in os.walk(self.folder):
            for each in names:
                if each.startswith(_UPLOAD):
                    # Somebody else may clear away too.
                    with suppress(OSError):
                        place = Path(above, each)
                        if place.lstat().st_mtime < before:
                            place.unlink()

    def check_room(self, path: str, size: int) -> None:
        """Raise FolderFull unless a file of `size` bytes has room at `path`."""
        kept = [each for each in self._walk() if each.path != "/".join(parts_of(path))]
        if len(kept) >= MAX_FILES:
            raise FolderFull(f"The project has {MAX_FILES:,} files, as many as it may; delete some first")
        if sum(each.size for each in kept) + size > MAX_TOTAL:
            raise FolderFull(f"The project's files may have {MAX_TOTAL:,} bytes together; delete some first")

    def remove(self, path: str) -> None:
        """Remove a file, and folders that are empty then. Raises UnknownName, UserError as `parts_of`."""
        handle, _ = self.open(path)
        os.close(handle)
        *above, name = parts_of(path)
        try:
            with _opened(self.folder, tuple(above)) as folder:
                folder.remove(name)
                folder.sync()
            # One that is not empty stays.
            with suppress(OSError):
                while above:
                    last = above.pop()
                    with _opened(self.folder, tuple(above)) as folder:
                        folder.rmdir(last)
        except OSError as error:
            raise _missing(path, error) from error


class _Folder:
    """An open folder: what is done in it stays in it, whatever becomes of the names above."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self._handle = path, handle

    @classmethod
    def open_in(cls, root: Path, parts: tuple[str, ...]) -> _Folder:
        """The folder that `parts` name below `root`, no link on the way. Raises OSError."""
        path = root.joinpath(*parts)
        if not _BY_COMPONENT:
            for each in (root, *(root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1))):
                if each.is_symlink():
                    raise OSError(errno.ELOOP, "is a symbolic link", str(each))
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "is not a folder", str(path))
            return cls(path, -1)
        handle = os.open(root, _FOLDER)
        for part in parts:
            try:
                inner = os.open(part, _FOLDER, dir_fd=handle)
            finally:
                os.close(handle)
            handle = inner
        return cls(path, handle)

    def _at(self, name: str) -> tuple[str, int | None]:
        return (name, self._handle) if self._handle >= 0 else (str(self._path / name), None)

    def open(self, name: str, flags: int, mode: int) -> int:
        place, at = self._at(name)
        if at is None and Path(place).is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link", place)
        return os.open(place, flags | getattr(os, "O_CLOEXEC", 0), mode, dir_fd=at)

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """Names and status of what is not hidden and has one name."""
        with os.scandir(self._handle if self._handle >= 0 else self._path) as found:
            named = [(each.name, each.stat(follow_symlinks=False)) for each in found if each.name[0] != "."]
        return [each for each in named if stat.S_ISDIR(each[1].st_mode) or each[1].st_nlink <= 1]

    def names(self) -> list[str]:
        return os.listdir(self._handle if self._handle >= 0 else self._path)

    def mkdir(self, name: str) -> None:
        place, at = self._at(name)
        os.mkdir(place, 0o700, dir_fd=at)

    def rmdir(self, name: str) -> None:
        place, at = self._at(name)
        os.rmdir(place, dir_fd=at)

    def remove(self, name: str) -> None:
        place, at = self._at(name)
        os.unlink(place, dir_fd=at)

    def rename(self, old: str, new: str) -> None:
        (source, at), (target, _) = self._at(old), self._at(new)
        os.replace(source, target, src_dir_fd=at, dst_dir_fd=at)

    def sync(self) -> None:
        """Make names durable, where the system can."""
        if self._handle >= 0:
            os.fsync(self._handle)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


@contextmanager
def _opened(root: Path, parts: tuple[str, ...]) -> Iterator[_Folder]:
    folder = _Folder.open_in(root, parts)
    try:
        yield folder
    finally:
        folder.close()


def _check_case(folder: _Folder, name: str) -> None:
    """Two names that some systems take for one are not both there."""
    for each in folder.names():
        if each != name and each.casefold() == name.casefold():
            raise NameTaken(f"{shown(each)} is there already, in other letters; use that name")


def _missing(path: str, error: OSError) -> Exception:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EMLINK, errno.ENXIO):
        return UnknownName("file", path, ())
    return FilesFailed(f"The file {shown(path)} cannot be read: {error.strerror}")


def _unwritable(path: str, error: OSError) -> Exception:
    if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
        return NameTaken(f"A name in {shown(path)} is no folder; give another path")
    return FilesFailed(f"The file {shown(path)} cannot be written: {error.strerror}")
