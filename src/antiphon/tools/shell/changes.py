"""What a command changed: of the files that it made others of, what they held before and after.

Its keeper looks at the folder before it and after it (`keeping/scan.py`) and leaves what differs in the
command's own folder, with copies of what git does not hold. Here that becomes what a result says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b, sha1

from msgspec.structs import replace

from antiphon.tools.folder import names
from antiphon.tools.shell.keeping import place, scan
from antiphon.values.message import MAX_KEPT_FILE, FileChange, FileState
from antiphon.values.tool.definition import MAX_CHANGES

SECONDS = 10.0
"""For which git is waited."""
_NAMED = 3
_ASKED = ("cat-file", "--batch")
_CONVERTING = ("autocrlf", "attributesfile", "eol", "include", "objectformat")
"""Settings of git by which a file may be another one than what git holds of it, or where they may stand."""


def scan_fields(folder: str, copies: str) -> place.Fields:
    """What a look at a folder is told. copies: where what git does not hold is laid."""
    return {**names.PATTERNS, "cwd": [folder], "copies": [copies], "git": _repository(folder)}


def lost(fields: place.Fields) -> str:
    """Why not all that a command changes can be undone, for whoever is asked; empty: it can."""
    look = scan.FolderLook(fields, scan.last_look(fields["copies"][0]), "")
    try:
        look.run()
    except scan.TooLarge:
        return f"what it changes cannot be undone, for there are more than {scan.MAX_FILES:,} files"
    except OSError as error:
        return f"what it changes cannot be undone: {error.strerror}"
    if look.beyond:
        return f"changes of {look.beyond:,} files cannot be undone, which are too large to be copied"
    return ""


def changes_of(folder: str, workspace: str) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """What the command of a folder changed in `workspace`, and what is to be said of that."""
    rows = list(_rows(folder))
    git = _from_git(workspace, [each for row in rows for each in row[1:]])
    found: list[FileChange] = []
    size, gone = 0, 0
    for path, *known in sorted(rows, key=lambda row: scan.size_of(*row)):
        if names.has_unseen(path):
            gone += 1
            continue
        is_secret = any(map(names.why_refused, path.split("/")))
        was, now = (_state(each, folder, git, is_secret) for each in known)
        if was == now:
            continue
        size += _length(was) + _length(now)
        if size > scan.MAX_RECORDED:
            was, now = _unkept(was), _unkept(now)
        found.append(FileChange(workspace, path, was, now))
    kept = sorted(found[:MAX_CHANGES], key=lambda each: each.path)
    notes = []
    if left := len(found) - len(kept) + gone:
        notes.append(f"{left:,} more files were changed, of which nothing is on record")
    if lasting := [each.path for each in kept if each.before is not None and not each.before.kept]:
        more = f" and {len(lasting) - _NAMED:,} more" if len(lasting) > _NAMED else ""
        notes.append(f"changed, and cannot be undone: {', '.join(lasting[:_NAMED])}{more}")
    return tuple(kept), tuple(notes)


def _rows(folder: str) -> Iterator[tuple[str, str, str]]:
    """Path, what was known before, what is known after."""
    told = place.read(folder, "changed")
    if told is None:
        return
    try:
        texts = place.unpack(told)["changed"]
    except (ValueError, IndexError, KeyError):
        # A power cut may leave half of it.
        return
    yield from zip(texts[::3], texts[1::3], texts[2::3], strict=True)


def _length(state: FileState | None) -> int:
    return 0 if state is None else len(state.text) + len(state.data)


def _unkept(state: FileState | None) -> FileState | None:
    return None if state is None else replace(state, text="", data="", kept=False)


def _state(known: str, folder: str, git: Mapping[str, bytes], is_secret: bool) -> FileState | None:
    """A file as a look knows it; without what it held where that is nowhere."""
    if not known:
        return None
    said, _, content = known.partition("\n")
    mode = int(said.split(" ")[0], 8) & 0o7777
    where, _, key = content.partition(" ")
    data = git.get(key) if where == "git" else place.read(folder, key) if where == "copy" else None
    if data is not None and where == "copy" and blake2b(data, digest_size=16).hexdigest() != key:
        data = None
    if data is None:
        version = blake2b(content.encode(), digest_size=16).hexdigest() if where == "git" else key
        return FileState(version, mode, kept=False)
    state = FileState.of(data, mode)
    return _unkept(state) if is_secret else state


def _from_git(workspace: str, known: Sequence[str]) -> dict[str, bytes]:
    """What git holds of these, by id; of files that are kept on record only."""
    wanted = [
        content[4:]
        for said, _, content in (each.partition("\n") for each in known)
        if content.startswith("git ") and int(said.split(" ")[1]) <= MAX_KEPT_FILE
    ]
    if not wanted:
        return {}
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        told = subprocess.run(
            ["git", "--no-replace-objects", "-C", workspace, "-c", "protocol.allow=never", *_ASKED],
            input="".join(f"{each}\n" for each in dict.fromkeys(wanted)).encode(), capture_output=True,
            env=own | {"GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}, timeout=SECONDS, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    found, at = {}, 0
    while (end := told.find(b"\n", at)) >= 0:
        name, what, *size = told[at:end].decode().split(" ")
        at = end + 1
        if what == "blob":
            data = told[at : at + int(size[0])]
            at += len(data) + 1
            if sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == name:
                found[name] = data
    return found


def _repository(folder: str) -> list[str]:
    """What is told of the repository that a folder lies in: its index, the folder's path in it, and `plain`
    where git holds each file byte for byte. Nothing where there is none, or it is another user's."""
    if shutil.which("git") is None:
        return []
    above = folder
    while not os.path.lexists(os.path.join(above, ".git")):
        if above == (above := os.path.dirname(above)):
            return []
    git = os.path.join(above, ".git")
    try:
        if os.path.isfile(git):
            told = _text(git).removeprefix("gitdir:").strip()
            git = os.path.join(above, told)
        if os.stat(git).st_uid != os.geteuid():
            return []
    except OSError:
        return []
    inside = os.path.relpath(folder, above)
    prefix = "" if inside == "." else f"{inside}/"
    shared = os.path.normpath(os.path.join(git, _text(os.path.join(git, "commondir")).strip() or "."))
    settings = "".join(_text(each) for each in _settings(git, shared)).lower()
    if "objectformat" in settings:
        return []
    attributes = [os.path.join(each, ".gitattributes") for each in _up_to(folder, above)]
    converts = any(each in settings for each in _CONVERTING) or any(map(_text, [
        *attributes, os.path.join(shared, "info", "attributes"), "/etc/gitattributes",
        os.path.join(_config_home(), "git", "attributes"),
    ]))  # fmt: skip
    return [os.path.join(git, "index"), prefix, "" if converts else "plain"]


def _settings(git: str, shared: str) -> Iterator[str]:
    yield os.path.join(shared, "config")
    yield os.path.join(git, "config.worktree")
    yield os.path.join(_config_home(), "git", "config")
    yield os.path.expanduser("~/.gitconfig")
    yield "/etc/gitconfig"


def _config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def _up_to(folder: str, top: str) -> Iterator[str]:
    """A folder and those above it, as far as the top."""
    while True:
        yield folder
        if folder == top:
            return
        folder = os.path.dirname(folder)


def _text(path: str) -> str:
    """A small file; empty where it is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""
