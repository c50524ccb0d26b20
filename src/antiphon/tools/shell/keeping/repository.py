"""What git would run by itself, hooks and settings of a repository, looked at before a command and put back
after it.

Landlock knows no exception below a folder that may be written. So a command can change these files, and what
it changed is undone before anybody's git reads them: right after the command, and each time that it is looked
at meanwhile. Commands that run beside one another share what stood there before the first of them.
"""

from __future__ import annotations

import fcntl
import os
import stat

from antiphon.tools.shell.keeping import place

_NAMES = ("config", "config.worktree", "commondir")
_IDLE = ".sample"
"""The ending of hooks that git does not run."""
_ASIDE = ".antiphon-"
"""Part of the name of a folder that was laid aside, and that git knows no hook by."""
_MAX = 1 << 20
"""Bytes of one such file; a larger one is none."""
_NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC


class Guard:
    """The files of one repository, from before a command until after it.

    folder: where `.git` lies. shared: a folder of commands in it; kept: where what is taken out is laid.
    """

    def __init__(self, folder: str, shared: str, kept: str) -> None:
        self._folder, self._shared, self._kept = folder, shared, kept
        self.told: list[str] = []
        os.makedirs(shared, 0o700, exist_ok=True)
        self._lock = os.open(os.path.join(shared, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if self._is_first():
            left = place.read(shared, "before")
            self._before = self._unpacked(left) if left is not None else _files(folder)
            # What a keeper left behind that was killed is put back now.
            self.check()
            place.write(shared, "before", place.pack(self._before))
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        else:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            self._before = self._unpacked(place.read(shared, "before") or b"")

    def check(self) -> None:
        """Put back what has changed; `told` names it."""
        now = _files(self._folder)
        if ".git" in self._before and ".git" not in now:
            self._tell(".git was removed")
            return
        for name in sorted(self._before.keys() | now.keys()):
            was, found = self._before.get(name), now.get(name)
            if was == found:
                continue
            if ".git" not in self._before:
                if name == ".git":
                    self._tell("a git repository was made here")
                continue
            self._keep(name, found)
            try:
                _put_back(self._folder, name, was)
            except OSError as error:
                self._tell(f"{name} was changed, and cannot be put back: {error.strerror}")
                continue
            self._tell(f"{name} was {_what(was, found)}")

    def close(self) -> None:
        """Put back what has changed, for the last time."""
        self.check()
        before = os.path.join(self._shared, "before")
        if self._is_first() and os.path.exists(before):
            os.unlink(before)
        os.close(self._lock)

    def _is_first(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unpacked(self, data: bytes) -> place.Fields:
        try:
            return place.unpack(data)
        except (ValueError, IndexError):
            # A power cut may leave half of it; then what is there counts.
            return _files(self._folder)

    def _tell(self, text: str) -> None:
        if text not in self.told:
            self.told.append(text)

    def _keep(self, name: str, found: list[str] | None) -> None:
        if found is not None and found[0] == "file":
            place.write(self._kept, "changed-" + name.replace("/", "-"), bytes.fromhex(found[2]))


def _what(was: list[str] | None, found: list[str] | None) -> str:
    if was is None:
        return "made, and was taken away"
    return f"{'removed' if found is None else 'changed'}, and was put back as it was"


def _files(folder: str) -> place.Fields:
    """What is there: by path, a file with mode and content, or a link with its target."""
    found: place.Fields = {}
    top = os.path.join(folder, ".git")
    _look(top, ".git", found)
    if found.get(".git") != ["folder"]:
        return found
    _repository(top, ".git", found)
    for name in ("modules", "worktrees"):
        for above, folders, files in os.walk(os.path.join(top, name)):
            if "hooks" in folders or "config" in files or "config.worktree" in files:
                folders[:] = [each for each in folders if each in ("modules",)]
                _repository(above, os.path.relpath(above, folder), found)
    return found


def _repository(path: str, name: str, found: place.Fields) -> None:
    for each in _NAMES:
        _look(os.path.join(path, each), f"{name}/{each}", found)
    hooks = os.path.join(path, "hooks")
    if os.path.islink(hooks):
        _look(hooks, f"{name}/hooks", found)
        return
    try:
        names = os.listdir(hooks)
    except OSError:
        return
    for each in names:
        if not each.endswith(_IDLE) and _ASIDE not in each:
            _look(os.path.join(hooks, each), f"{name}/hooks/{each}", found)


def _look(path: str, name: str, found: place.Fields) -> None:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            found[name] = ["link", os.readlink(path)]
        elif stat.S_ISREG(status.st_mode) and status.st_size <= _MAX:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _NOFOLLOW)
            with open(handle, "rb") as file:
                found[name] = ["file", oct(stat.S_IMODE(status.st_mode)), file.read(_MAX).hex()]
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ["folder"]
        else:
            found[name] = ["other", str(status.st_size)]
    except OSError:
        return


def _put_back(folder: str, name: str, was: list[str] | None) -> None:
    """Have a path as it was; no link leads there. Raises OSError."""
    *above, last = name.split("/")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for each in above:
            if was is not None and not _is_there(each, handle):
                os.mkdir(each, dir_fd=handle)
            inner = os.open(each, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        _put(handle, last, was)
    finally:
        os.close(handle)


def _is_there(name: str, above: int) -> bool:
    try:
        os.lstat(name, dir_fd=above)
    except FileNotFoundError:
        return False
    return True


def _put(above: int, name: str, was: list[str] | None) -> None:
    """Have it as it was. Raises OSError."""
    spare = f"{_ASIDE}{os.getpid()}"
    if was is None or was == ["folder"]:
        _clear(above, name)
    elif was[0] == "link":
        os.symlink(was[1], spare, dir_fd=above)
        _clear(above, name)
        os.rename(spare, name, src_dir_fd=above, dst_dir_fd=above)
    elif was[0] == "file":
        handle = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600, dir_fd=above)
        with open(handle, "wb") as file:
            file.write(bytes.fromhex(was[2]))
            os.fchmod(handle, int(was[1], 8))
        _clear(above, name)
        os.rename(spare, name, src_dir_fd=above, dst_dir_fd=above)


def _clear(above: int, name: str) -> None:
    """Take away what has a name; a folder is laid aside. Raises OSError."""
    try:
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        os.rename(name, f"{name}{_ASIDE}{os.urandom(4).hex()}", src_dir_fd=above, dst_dir_fd=above)
