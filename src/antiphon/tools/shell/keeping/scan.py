"""The files of a folder, looked at before a command and after it, so that what it changed is known.

A file is told from what it was by its mode, size, times and inode; it is read only when one of these is
another one. What git holds as it is needs no copy. Of any other file there is a copy in a folder that all
commands of the workspace share, under its digest, and beside them the last look, so that what was looked at
once is not read again.

    what is known of a file's content     git ID      git holds it
                                          copy ID     a copy lies there; the digest of its bytes
                                          only ID     the digest of its bytes, which are not kept
                                          link ID     of where the link leads
                                          secret ID   of what the system says of it: it looks like a secret
                                          unread ID   of what the system says of it
                                          busy        a database that is open: its files are no copy of it
"""

from __future__ import annotations

import fcntl
import os
import stat
import time

from antiphon.tools.shell.keeping import git_index, place

MAX_FILE, MAX_COPIES = 1 << 20, 256 << 20
"""Bytes of a file that is copied, and of all copies of a folder."""
MAX_RECORDED = 32 << 20
"""Bytes of files that one command changed, before and after, of which it keeps copies; small files first."""
MAX_READ = 128 << 20
"""Bytes of larger files that one look reads for their digests."""
MAX_FILES, MAX_DEPTH = 100_000, 64
"""Files of a folder that is looked at, and folders in one another."""
_UNSURE = 20_000_000
"""Nanoseconds: what was changed so short a time ago may be changed again and bear the same times."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_LATE = " late"
"""What stands behind what the system says of a file that is to be read again in any case."""

Known = tuple[str, str]
"""What the system says of a file, its mode first, and what is known of its content."""
Files = dict[str, Known]
"""By path."""


class TooLarge(Exception):
    """The folder holds more files than are looked at."""


class FolderWatch:
    """A folder from before a command until after it. Raises OSError, TooLarge.

    It holds the copies meanwhile, so that nobody else clears them away.
    """

    def __init__(self, asked: place.Fields) -> None:
        self._asked, self._copies = asked, asked["copies"][0]
        os.makedirs(self._copies, 0o700, exist_ok=True)
        self._lock = os.open(os.path.join(self._copies, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            self._before = self._looked(last_look(self._copies))
        except (OSError, TooLarge):
            os.close(self._lock)
            raise

    def finish(self, folder: str) -> None:
        """Look again, and put what has changed into the folder of the command: a file `changed` that names
        it, and the copies. Raises OSError, TooLarge."""
        try:
            self._finish(folder)
        finally:
            os.close(self._lock)

    def _finish(self, folder: str) -> None:
        after = self._looked(self._before.files)
        changed = differences(self._before.files, after.files)
        if changed:
            self._lay(changed, folder)
            place.write(folder, "changed", place.pack({"changed": changed}))
        if changed or after.read or self._before.read:
            self._keep(after)

    def _lay(self, changed: list[str], folder: str) -> None:
        """Have copies of files, as they were and are, in the folder of the command."""
        size = 0
        rows = zip(changed[::3], changed[1::3], changed[2::3], strict=True)
        for row in sorted(rows, key=lambda row: size_of(*row)):
            size += size_of(*row)[0]
            if size > MAX_RECORDED:
                return
            for known in row[1:]:
                _, _, content = known.partition("\n")
                if content.startswith("copy "):
                    _link(os.path.join(self._copies, content[5:]), os.path.join(folder, content[5:]))

    def _looked(self, known: Files) -> FolderLook:
        found = FolderLook(self._asked, known, self._copies)
        found.run()
        return found

    def _keep(self, look: FolderLook) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            place.write(self._copies, "look", look.packed())
            return
        place.write(self._copies, "look", look.packed())
        wanted = {content[5:] for _, content in look.files.values()} | {"lock", "look"}
        for each in os.listdir(self._copies):
            if each not in wanted:
                os.unlink(os.path.join(self._copies, each))


class FolderLook:
    """One look at a folder.

    asked: `cwd`, the folder; `shown`, `secret`, `spared`, `passed`, patterns of names, see
    `antiphon.tools.folder.names`; `git`, the index of a repository, the folder's path in it, and `plain` if
    git holds files byte for byte, or nothing. known: an earlier look. copies: where they are laid; empty:
    nothing is read and nothing is laid anywhere.
    """

    def __init__(self, asked: place.Fields, known: Files, copies: str) -> None:
        self._folder, self._known, self._copies = asked["cwd"][0], known, copies
        self._passed, self._spared = frozenset(asked["passed"]), frozenset(asked["spared"])
        self._patterns = {kind: [each.split("*") for each in asked[kind]] for kind in ("shown", "secret")}
        self._hidden: dict[str, bool] = {}
        self._git, self._plain = asked["git"], asked["git"][2:] == ["plain"]
        self._held: dict[str, git_index.HeldFile] | None = None
        self._sure = time.time_ns() - _UNSURE
        self._total, self._left = 0, MAX_READ
        self.files: Files = {}
        self.read = self.beyond = 0
        """Files that were not known as they are; and those too large to be copied."""

    def run(self) -> None:
        """Look. Raises OSError, TooLarge."""
        plain = self._plain
        self._begin()
        if plain and not self._plain:
            # Some file was taken to be held as it is before that was known.
            self.files, self.read, self.beyond, self._total, self._left = {}, 0, 0, 0, MAX_READ
            self._begin()

    def packed(self) -> bytes:
        """The look, for `last_look`."""
        rows = [text for path, known in self.files.items() for text in (path, *known)]
        return place.pack({"files": rows, "beyond": [str(self.beyond)]})

    def _begin(self) -> None:
        handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._enter(handle, "", 0)
        finally:
            os.close(handle)

    def _enter(self, handle: int, above: str, depth: int) -> None:
        passed, sure, known, files = self._passed, self._sure, self._known, self.files
        folders = []
        with os.scandir(handle) as listed:
            entries = list(listed)
            busy = {each.name[:-4] for each in entries if each.name.endswith("-wal")}
            for entry in entries:
                name = entry.name
                if name[0] == "." and self._is_hidden(name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if name not in passed:
                        folders.append(name)
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                changed, path = status.st_ctime_ns, above + name
                said = (
                    f"{status.st_mode:o} {status.st_size} {status.st_mtime_ns} {changed} {status.st_ino}"
                    f"{_LATE if changed > sure else ''}"
                )
                was = known.get(path)
                if busy and (name in busy or name.rpartition("-")[0] in busy):
                    was = said, "busy"
                elif was is None or was[0] != said or changed > sure:
                    was = said, self._content(handle, name, path, status, said)
                    self.read += 1
                elif was[1][0] == "c":
                    self._total += status.st_size
                elif was[1][0] in "ou":
                    self.beyond += stat.S_ISREG(status.st_mode)
                files[path] = was
        if len(files) > MAX_FILES or depth > MAX_DEPTH:
            raise TooLarge
        for name in folders:
            try:
                inner = os.open(name, _FOLDER, dir_fd=handle)
            except OSError:
                continue
            try:
                self._enter(inner, f"{above}{name}/", depth + 1)
            finally:
                os.close(inner)

    def _content(self, handle: int, name: str, path: str, status: os.stat_result, said: str) -> str:
        """What is known of a file's content, now that it was looked at."""
        if self._held is None:
            self._held = self._index()
        if name == ".gitattributes":
            self._plain = False
        held, known = self._held.get(path, ("", ()))
        if known and self._plain and known == git_index.told(status) and stat.S_ISREG(status.st_mode):
            return "git " + held
        if stat.S_ISLNK(status.st_mode):
            return "link " + _digest(os.fsencode(os.readlink(name, dir_fd=handle)))
        of_status = _digest(said.removesuffix(_LATE).encode())
        if not stat.S_ISREG(status.st_mode):
            return "unread " + of_status
        if self._is_secret(name):
            return "secret " + of_status
        if not self._copies:
            return self._measured(status.st_size, held, "unread " + of_status)
        return self._read(handle, name, path, status.st_size, held) or "unread " + of_status

    def _read(self, handle: int, name: str, path: str, size: int, held: str) -> str:
        """What a file holds; empty where it cannot be read, or is too large."""
        if size > MAX_FILE:
            self.beyond += 1
            if size > self._left:
                return ""
            self._left -= size
            return _digest_of(handle, name)
        data = _bytes_of(handle, name)
        if data is None:
            return ""
        was = self._known.get(path, ("", ""))[1]
        ids = {held, was[4:] if was.startswith("git ") else ""} - {""}
        if ids and (blob := _blob_id(data)) in ids:
            return "git " + blob
        return self._copy(data)

    def _index(self) -> dict[str, git_index.HeldFile]:
        if not self._git:
            return {}
        found = git_index.held(self._git[0], os.fsencode(self._git[1]))
        # What is told there git may change in files that it takes in and gives out.
        if any(each.endswith(".gitattributes") for each in (*found, *self._known)):
            self._plain = False
        return found

    def _measured(self, size: int, held: str, unread: str) -> str:
        """Where nothing is read: what git may hold is not counted."""
        if not held:
            self._total += size
            self.beyond += size > MAX_FILE or self._total > MAX_COPIES
        return unread

    def _copy(self, data: bytes) -> str:
        digest = _digest(data)
        self._total += len(data)
        if self._total > MAX_COPIES:
            self.beyond += 1
            return "only " + digest
        if not os.path.exists(os.path.join(self._copies, digest)):
            place.write(self._copies, digest, data)
        return "copy " + digest

    def _is_secret(self, name: str) -> bool:
        return self._fits(name, "secret") and name not in self._spared

    def _is_hidden(self, name: str) -> bool:
        """Whether it is what some program keeps for itself."""
        if name not in self._hidden:
            self._hidden[name] = not self._fits(name, "shown") and not self._is_secret(name)
        return self._hidden[name]

    def _fits(self, name: str, kind: str) -> bool:
        plain = name.lower()
        return any(_fits(plain, parts) for parts in self._patterns[kind])


def differences(before: Files, after: Files) -> list[str]:
    """What two looks tell of files that are not the same: path, known before, known after, and so on.

    What is known is what the system says and what is known of the content, in two lines; empty for no file.
    """
    found: list[str] = []
    nothing = "", ""
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path, nothing), after.get(path, nothing)
        if (
            "busy" in (was[1], now[1])
            or was == now
            or (was[1] == now[1] and was[0].split(" ", 1)[0] == now[0].split(" ", 1)[0])
        ):
            continue
        found += [path, "\n".join(was) if was[0] else "", "\n".join(now) if now[0] else ""]
    return found


def size_of(path: str, *known: str) -> tuple[int, str]:
    """Bytes of a file before and after together, and its path; by these what is kept is chosen."""
    return sum(int(each.split(" ", 2)[1]) for each in known if each), path


def last_look(copies: str) -> Files:
    """The files as somebody looked at them last; empty where nobody has."""
    try:
        rows = place.unpack(place.read(copies, "look") or b"")["files"]
        return dict(zip(rows[::3], zip(rows[1::3], rows[2::3], strict=True), strict=True))
    except (ValueError, IndexError, KeyError):
        return {}


def _fits(name: str, parts: list[str]) -> bool:
    """Whether a name is as a pattern has it, whose stars stood between the parts."""
    if len(parts) == 1:
        return name == parts[0]
    if not name.startswith(parts[0]) or not name.endswith(parts[-1]):
        return False
    at, end = len(parts[0]), len(name) - len(parts[-1])
    for each in parts[1:-1]:
        at = name.find(each, at, end)
        if at < 0:
            return False
        at += len(each)
    return at <= end


def _bytes_of(handle: int, name: str) -> bytes | None:
    """A file that is no longer than a copy may be; None for any other, and one that is gone."""
    try:
        with open(os.open(name, _FILE, dir_fd=handle), "rb", buffering=0) as file:
            data = file.read(MAX_FILE + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
            while data and len(data) <= MAX_FILE and (more := file.read(MAX_FILE + 1 - len(data))):
                data += more
    except OSError:
        return None
    return data if data is None or len(data) <= MAX_FILE else None


def _digest_of(handle: int, name: str) -> str:
    """What is known of a large file; empty where it cannot be read."""
    found = _blake2b()(digest_size=16)
    try:
        with open(os.open(name, _FILE, dir_fd=handle), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            while data := file.read(_CHUNK):
                found.update(data)
    except OSError:
        return ""
    return "only " + str(found.hexdigest())


def _digest(data: bytes) -> str:
    return str(_blake2b()(data, digest_size=16).hexdigest())


def _blob_id(data: bytes) -> str:
    """What git calls these bytes."""
    try:
        from _sha1 import sha1  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from hashlib import sha1
    return str(sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())


def _blake2b() -> type:
    # Not at import, since most commands need none; and `hashlib` would load OpenSSL with it.
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b


def _link(source: str, target: str) -> None:
    """Have a copy in another folder too, and a place for it taken by nobody."""
    try:
        os.link(source, target)
    except (FileExistsError, FileNotFoundError):
        return
