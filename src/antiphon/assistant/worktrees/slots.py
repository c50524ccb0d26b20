"""The worktrees of a repository in which agents write: a few places, claimed for one piece of work each.

    STATE/worktrees/<repository>/1           the worktree
    STATE/worktrees/<repository>/1.claim     whose it is now

They lie in the user's folder for state, and are made anew for each piece of work.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from antiphon.assistant.worktrees.git import git
from antiphon.errors import ConfigError, ToolError

SLOTS = 4
"""Agents that write at once."""
STALE = 86_400.0
"""Seconds after which a claim counts no more: whoever made it is gone."""
MAX_PATCH = 400_000
"""Bytes of a patch."""


class MadeWorktree(Struct, frozen=True):
    """A worktree that is ready. slot: from 1. start: the commit that it began with."""

    slot: int
    start: str


class Worktrees:
    """The worktrees of the repository whose root is `folder`, kept in `state`."""

    def __init__(self, folder: Path, state: Path) -> None:
        self._folder = folder
        name = blake2b(os.fsencode(folder), digest_size=10).hexdigest()
        self._home = state / "worktrees" / name

    def place(self, slot: int) -> Path:
        """The folder of a slot, which is there. Raises ConfigError where it cannot be made."""
        found = self._home / str(slot)
        try:
            found.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = f"cannot be made ({error.strerror}); ANTIPHON_HOME or XDG_STATE_HOME says where it is"
            raise ConfigError(why, os.fspath(found)) from error
        return found

    def make(self, run_id: str, work: str) -> MadeWorktree:
        """A worktree with the files as they are now, but for those that git does not know. work: what it is
        for, unique in the run; asked for again, it is the same place. Raises ToolError: none is free, or git
        cannot make it."""
        slot = self._claimed(run_id, work)
        try:
            # Changes that are not committed yet are a commit too, of which nobody else knows.
            kept = git(self._folder, ["stash", "create", "for an agent of the assistant"]).decode().strip()
            start = kept or git(self._folder, ["rev-parse", "HEAD"]).decode().strip()
            self._remove(slot)
            git(self._folder, ["worktree", "add", "--force", "--detach", os.fspath(self.place(slot)), start])
        except ToolError:
            self._release(slot)
            raise
        return MadeWorktree(slot, start)

    def patch(self, made: MadeWorktree) -> str:
        """What was changed in a worktree since it was made. Raises ToolError: too much, or no text."""
        place = self.place(made.slot)
        git(place, ["add", "--all", "--intent-to-add"])
        words = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--full-index",
            "--binary",
            made.start,
        ]
        found = git(place, words)
        if len(found) > MAX_PATCH:
            raise ToolError(f"what was changed is {len(found):,} bytes; a patch has at most {MAX_PATCH:,}")
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise ToolError("what was changed is no UTF-8, and cannot be shown as a patch") from error

    def drop(self, made: MadeWorktree) -> None:
        """Take a worktree away, and let others have its place."""
        with contextlib.suppress(ToolError):
            self._remove(made.slot)
        self._release(made.slot)

    def _remove(self, slot: int) -> None:
        place = self.place(slot)
        if (place / ".git").exists():
            with contextlib.suppress(ToolError):
                git(self._folder, ["worktree", "remove", "--force", "--force", os.fspath(place)])
        for each in place.iterdir() if place.exists() else ():
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        git(self._folder, ["worktree", "prune"])
        self.place(slot)

    def _claimed(self, run_id: str, work: str) -> int:
        text = f"{run_id}\n{work}"
        free = 0
        for slot in range(1, SLOTS + 1):
            held = self._held(slot)
            if held == text:
                return slot
            # Of the same run earlier work is over: it waits for all that it gives away.
            over = held.partition("\n")[0] == run_id and not _same_call(held, text)
            if over or self._is_stale(slot):
                self._release(slot)
        for slot in range(1, SLOTS + 1):
            if self._claim(slot, text):
                free = slot
                break
        if not free:
            raise ToolError(
                f"{SLOTS} agents write in this repository already; wait for them, or do it yourself"
            )
        return free

    def _claim(self, slot: int, text: str) -> bool:
        self.place(slot)
        try:
            handle = os.open(self._claim_file(slot), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w") as file:
            file.write(text)
        return True

    def _held(self, slot: int) -> str:
        with contextlib.suppress(OSError):
            return self._claim_file(slot).read_text()
        return ""

    def _is_stale(self, slot: int) -> bool:
        with contextlib.suppress(OSError):
            return time.time() - self._claim_file(slot).stat().st_mtime > STALE
        return False

    def _release(self, slot: int) -> None:
        self._claim_file(slot).unlink(missing_ok=True)

    def _claim_file(self, slot: int) -> Path:
        return self._home / f"{slot}.claim"


def _same_call(one: str, other: str) -> bool:
    """Whether two claims are of one call: they differ in the number behind the last colon only."""
    return one.rpartition(":")[0] == other.rpartition(":")[0]
