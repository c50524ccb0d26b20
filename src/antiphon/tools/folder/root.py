"""A folder that tools may work in, and nothing outside of it.

Every path is opened one component at a time without following symbolic links, relative to the folder
opened before it, so that a link swapped in between is refused and not followed. Where the system can
not do that (Windows), links are looked for first; a swap within that moment is the remaining risk.
A file that has a second name (a hard link) is left out too: that name may be outside of the folder.
`names.py` says which names are left out, `writing.py` changes files.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath, PureWindowsPath

from msgspec import Struct

from antiphon.errors import ConfigError, ToolError
from antiphon.tools.folder.names import has_unseen, why_refused

MAX_PATH = 1024
MAX_DEPTH = 32
MAX_FILES = 20_000
MAX_BYTES = 20_000_000
"""The largest file that is read as a whole."""

_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""Opening a named pipe must not wait for its other end."""
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | _AT_ONCE
_BY_COMPONENT = os.open in os.supports_dir_fd and os.scandir in os.supports_fd


class FolderEntry(Struct, frozen=True):
    """A file in the folder: its path relative to it (with `/`), bytes, time of change in nanoseconds."""

    path: str
    size: int
    changed: int


class FoundFile(Struct, frozen=True, eq=False):
    """A file as it was found: its bytes, and its status when it was opened."""

    data: bytes
    status: os.stat_result


class FolderHandle:
    """One folder inside, for as long as it is open: `handle` as the system knows it, or -1 and its path."""

    def __init__(self, handle: int, path: Path) -> None:
        self.handle, self._path = handle, path

    @property
    def dir_fd(self) -> int | None:
        """What functions of `os` take as `dir_fd`."""
        return self.handle if self.handle >= 0 else None

    def at(self, name: str) -> str:
        """What they take as the path of something in it."""
        return name if self.handle >= 0 else str(self._path / name)

    def open(self, name: str, flags: int, mode: int = 0o777) -> int:
        """Open what is in it, and no link. Raises OSError."""
        flags |= _SAFE
        if self.handle < 0 and os.path.islink(self.at(name)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return os.open(self.at(name), flags, mode, dir_fd=self.dir_fd)

    def read(self, name: str, limit: int) -> bytes | None:
        """A regular file with one name; more than `limit` bytes when it is larger, None when it is none."""
        try:
            handle = self.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError:
            return None
        try:
            status = os.fstat(handle)
            if not _plain(status) or stat.S_ISDIR(status.st_mode):
                return None
            return _read_upto(handle, min(status.st_size, limit) + 1)
        except OSError:
            return None
        finally:
            os.close(handle)

    def has(self, name: str, *, regular: bool = False) -> bool:
        """Whether anything has that name, a link too. regular: only a file that may be read."""
        try:
            status = os.stat(self.at(name), dir_fd=self.dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return not regular or (_plain(status) and not stat.S_ISDIR(status.st_mode))

    def make(self, name: str) -> None:
        """Make a folder in it, unless it is there."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.at(name), dir_fd=self.dir_fd)

    def sync(self) -> None:
        """What was renamed in it is on the disk."""
        if self.handle >= 0:
            os.fsync(self.handle)


class Root:
    """A folder to work in. Raises `ConfigError` when it is none."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        path = Path(folder)
        if not path.is_dir():
            raise ConfigError("is not a folder", str(path))
        self.path = path.resolve()

    def parts(self, relative: str) -> tuple[str, ...]:
        """The components of a path inside the folder. Raises `ToolError` for any that could lead out."""
        shown = relative if len(relative) <= 80 else relative[:80] + "…"
        if len(relative) > MAX_PATH:
            raise ToolError(f"The path {shown!r} is longer than {MAX_PATH} characters")
        if has_unseen(relative):
            raise ToolError(f"The path {shown!r} holds a control character, or one that is no text")
        pure = PureWindowsPath(relative) if os.name == "nt" else PurePosixPath(relative)
        if pure.anchor or PureWindowsPath(relative).drive:
            raise ToolError(f"{shown!r} is absolute; give a path relative to the folder, such as 'README.md'")
        parts = tuple(part for part in pure.parts if part != ".")
        for part in parts:
            if part == "..":
                raise ToolError(f"{shown!r} leads out of the folder")
            if why := why_refused(part):
                raise ToolError(f"{shown!r}: {part} {why}")
        return parts

    def read(self, relative: str, limit: int = MAX_BYTES) -> bytes:
        """A file's bytes. Raises `ToolError` as `found` does."""
        return self.found(relative, limit).data

    def found(self, relative: str, limit: int = MAX_BYTES) -> FoundFile:
        """A file, read whole. Raises `ToolError`: not there (with names like it), none, too large, a link."""
        parts = self.parts(relative)
        if not parts:
            raise ToolError("The folder itself is not a file; name a file in it")
        name = "/".join(parts)
        try:
            handle = self._open(parts, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise self.refused(name, error) from error
        try:
            found = os.fstat(handle)
            if stat.S_ISDIR(found.st_mode):
                raise ToolError(f"{name} is a folder, not a file; try folder_statistics or list_files")
            if not stat.S_ISREG(found.st_mode):
                raise ToolError(f"{name} is not a regular file")
            if found.st_nlink > 1:
                raise ToolError(
                    f"{name} is a hard link: the same file has another name, perhaps outside of the folder; "
                    "such files are not read. A copy of it would be"
                )
            if found.st_size > limit:
                raise ToolError(f"{name} has {found.st_size} bytes; at most {limit} are read")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        finally:
            os.close(handle)
        if len(data) > limit:
            raise ToolError(f"{name} has more than {limit} bytes")
        return FoundFile(data, found)

    def contents(self, paths: Iterable[str], limit: int, large: list[str]) -> Iterator[tuple[str, bytes]]:
        """The files of these paths, read whole; in order of paths, so that a folder is opened once.

        What is not there, no file, or not to be seen is left out; what has more than `limit` bytes is added
        to `large`.
        """
        for above, group in groupby(paths, lambda path: path.rpartition("/")[0]):
            try:
                with self.folder(self.parts(above)) as folder:
                    for path in group:
                        data = folder.read(path.rpartition("/")[2], limit)
                        if data is None:
                            continue
                        if len(data) > limit:
                            large.append(path)
                        else:
                            yield path, data
            except (OSError, ToolError):
                continue

    def regular(self, paths: Iterable[str]) -> list[str]:
        """Those of the paths that `files` would list, in order of paths."""
        found: list[str] = []
        for above, group in groupby(paths, lambda path: path.rpartition("/")[0]):
            try:
                with self.folder(self.parts(above)) as folder:
                    found += [path for path in group if folder.has(path.rpartition("/")[2], regular=True)]
            except (OSError, ToolError):
                continue
        return found

    def entry(self, relative: str) -> FolderEntry | None:
        """One file as `files` would give it; None for what it would leave out, and what is no file."""
        found = self._status(relative)
        if found is None or not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            return None
        return FolderEntry("/".join(self.parts(relative)), found.st_size, found.st_mtime_ns)

    def has(self, parts: tuple[str, ...]) -> bool:
        """Whether anything has this path. Raises `ToolError` when a link, or a file, is above it."""
        try:
            with self.folder(parts[:-1]) as folder:
                return folder.has(parts[-1])
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self.refused("/".join(parts), error, doing="written") from error

    def has_folder(self, relative: str) -> bool:
        """Whether `files` could list it."""
        found = self._status(relative)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def _status(self, relative: str) -> os.stat_result | None:
        try:
            parts = self.parts(relative)
            if not parts:
                return os.stat(self.path)
            if not _BY_COMPONENT:
                return os.stat(self._checked(parts), follow_symlinks=False)
            handle = self._open(parts[:-1], os.O_RDONLY | os.O_DIRECTORY)
        except (OSError, ToolError):
            return None
        try:
            return os.stat(parts[-1], dir_fd=handle, follow_symlinks=False)
        except OSError:
            return None
        finally:
            os.close(handle)

    def files(
        self, relative: str = ".", limit: int = MAX_FILES, refused: list[str] | None = None
    ) -> Iterator[FolderEntry]:
        """The regular files under a folder, by name, at most `limit`; `names.py` says what is left out.

        Raises `ToolError` when it is not a folder. What vanishes on the way is left out, and so is a folder
        in it that can not be listed, which is added to `refused`.
        """
        start = self.parts(relative)
        waiting = [start]
        count = 0
        while waiting:
            parts = waiting.pop()
            try:
                found = self._scan(parts)
            except OSError as error:
                if parts == start:
                    raise self.refused("/".join(parts) or ".", error, folder=True) from error
                if refused is not None and error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    refused.append("/".join(parts))
                continue
            folders: list[tuple[str, ...]] = []
            for name, status in found:
                if stat.S_ISDIR(status.st_mode):
                    if len(parts) < MAX_DEPTH:
                        folders.append((*parts, name))
                    continue
                count += 1
                if count > limit:
                    return
                yield FolderEntry("/".join((*parts, name)), status.st_size, status.st_mtime_ns)
            waiting.extend(reversed(folders))

    def near(self, name: str) -> list[str]:
        """Up to five paths that `name` may have been meant for."""
        paths = [entry.path for entry in self.files(limit=2000)]
        last = name.rsplit("/", 1)[-1].casefold()
        same = [
            path
            for path in paths
            if last in (PurePosixPath(path).name.casefold(), PurePosixPath(path).stem.casefold())
        ]
        names: dict[str, str] = {}
        for path in paths:
            names.setdefault(path.rsplit("/", 1)[-1].casefold(), path)
        close = [names[found] for found in difflib.get_close_matches(last, list(names), 5, 0.6)]
        return list(dict.fromkeys([*same, *close, *difflib.get_close_matches(name, paths, 3, 0.7)]))[:5]

    def refused(self, name: str, error: OSError, *, folder: bool = False, doing: str = "read") -> ToolError:
        """What the system says, as a model is told it, with names like it where there is no such file."""
        what = "folder" if folder else "file"
        if not self.path.is_dir():
            return ToolError(f"The folder {self.path.name} is gone")
        if error.errno in (errno.ELOOP, errno.EMLINK):
            return ToolError(f"{name} is, or lies behind, a symbolic link; links are not followed")
        if error.errno == errno.ENOTDIR and folder:
            return ToolError(f"{name} is a file, not a folder; try count_text or read_lines")
        if error.errno == errno.ENAMETOOLONG and doing != "read":
            return ToolError("A part of the path is longer than the file system takes")
        if error.errno == errno.ENOTDIR and doing != "read":
            return ToolError(f"{name} can not be {doing}: a part of the path is a file")
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            near = self.near(name)
            hint = f". Near: {', '.join(near)}" if near else ""
            return ToolError(f"There is no {what} {name}{hint}")
        return ToolError(f"{name} can not be {doing}: {error.strerror}")

    def _scan(self, parts: tuple[str, ...]) -> list[tuple[str, os.stat_result]]:
        """Names and status of the files and folders in one folder, by name; links and devices left out."""
        handle = self._open(parts, os.O_RDONLY | os.O_DIRECTORY) if _BY_COMPONENT else -1
        try:
            with os.scandir(handle if _BY_COMPONENT else self._checked(parts)) as entries:
                named = [
                    (entry.name, entry.stat(follow_symlinks=False))
                    for entry in entries
                    if not why_refused(entry.name)
                ]
        finally:
            if handle >= 0:
                os.close(handle)
        return sorted((name, status) for name, status in named if _plain(status))

    @contextlib.contextmanager
    def folder(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[FolderHandle]:
        """A folder inside, opened. make: those on the way are made where they are not. Raises OSError."""
        if make:
            for depth in range(len(parts)):
                with self.folder(parts[:depth]) as above:
                    above.make(parts[depth])
        handle = self._open(parts, os.O_RDONLY | os.O_DIRECTORY) if _BY_COMPONENT else -1
        try:
            yield FolderHandle(handle, self.path if handle >= 0 else self._checked(parts))
        finally:
            if handle >= 0:
                os.close(handle)

    def _open(self, parts: tuple[str, ...], flags: int) -> int:
        if not _BY_COMPONENT:
            return os.open(self._checked(parts), flags | _AT_ONCE)
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for at, part in enumerate(parts):
            last = at == len(parts) - 1
            try:
                inner = os.open(
                    part, (flags if last else os.O_RDONLY | os.O_DIRECTORY) | _SAFE, dir_fd=handle
                )
            except OSError as error:
                if error.errno == errno.ENOTDIR and _is_link(part, handle):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part) from error
                raise
            finally:
                os.close(handle)
            handle = inner
        return handle

    def _checked(self, parts: tuple[str, ...]) -> Path:
        path = self.path
        for part in parts:
            path = path / part
            if path.is_symlink():
                raise OSError(errno.ELOOP, "is a symbolic link", str(path))
        return path


def _read_upto(handle: int, count: int) -> bytes:
    data = os.read(handle, count)
    while data and len(data) < count and (more := os.read(handle, count - len(data))):
        data += more
    return data


def _is_link(name: str, handle: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _plain(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink <= 1)


def decoded(data: bytes, name: str) -> str:
    """The text of a file: UTF-8, UTF-16 with its mark, else Latin-1. Raises `ToolError` for a binary file."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise ToolError(f"{name} is not text: {error.reason}") from error
    if b"\0" in data[:8192]:
        raise ToolError(f"{name} is a binary file, not text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
