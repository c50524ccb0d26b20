"""Who holds the runs of an SQLite journal: the table `owners`, and who of them lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from antiphon.errors import RunInUse
from antiphon.journal.owner import Owner, is_dead, this_process
from antiphon.journal.sqlite.file import value

_OWNER_OF = "select owner from runs where key = ?"
_OWNER = "select host, boot, pid, started, wall, steady from owners where key = ?"
_OWNERS = "select key, host, boot, pid, started, wall, steady from owners"
_ADD = "insert into owners(host, boot, pid, started, wall, steady) values(?, ?, ?, ?, ?, ?) returning key"
_BEAT = "update owners set wall = ?, steady = ? where key = ?"
_FORGET = "delete from owners where key = ? and not exists(select 1 from runs where runs.owner = owners.key)"
_HOLDERS = (
    "select runs.run_id, owners.key, host, boot, pid, started, wall, steady from owners"
    " join runs on runs.owner = owners.key where ?1 is null or runs.key = ?1"
)
_CLAIM = "update runs set epoch = epoch + 1, owner = ? where key = ?"


class Clocks(Struct, frozen=True):
    """What owners are compared by. ttl: seconds without a sign of life after which one is replaced."""

    ttl: float = 15.0
    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


class SqliteOwners:
    """One instance's entry among the owners, and what it can tell of the others.

    Used on the writer's thread; `names` on the reader's too. key: its own entry, 0 before the first claim.
    """

    def __init__(self, path: Path, clocks: Clocks) -> None:
        self.me, self.key = this_process(), 0
        self._path, self._clocks = path, clocks

    def say_alive(self, connection: apsw.Connection) -> None:
        """Be heard; the first time an entry is made, and the thread's name says that it is alive."""
        me, now = self.me, (self._clocks.wall(), self._clocks.steady())
        if self.key:
            connection.execute(_BEAT, (*now, self.key))
            if connection.changes():
                return
        self.key = value(connection, _ADD, (me.host, me.boot, me.pid, me.started, *now))
        threading.current_thread().name = self._thread_name(self.key)

    def holder(self, connection: apsw.Connection, run: int) -> int | None:
        """The owner that a run names, alive or not."""
        found: int | None = value(connection, _OWNER_OF, (run,))
        return found

    def check_gone(self, connection: apsw.Connection, run_id: str, holder: int) -> None:
        """Raise RunInUse when the holder of a run, another one than this, lives."""
        found = connection.execute(_OWNER, (holder,)).fetchone()
        if found is not None and self._lives(holder, *found):
            raise RunInUse(run_id, str(Owner(*found[:4])))

    def take(self, connection: apsw.Connection, run: int, before: int | None) -> None:
        """Hold a run, whose epoch grows by one; `before` held it."""
        self.say_alive(connection)
        connection.execute(_CLAIM, (self.key, run))
        if before is not None and before != self.key:
            self.forget(connection, before)

    def check_held(self, connection: apsw.Connection, run: int | None) -> None:
        """Raise RunInUse when a living owner, this one or another, holds the run (None: any run)."""
        found: list[tuple[Any, ...]] = connection.execute(_HOLDERS, (run,)).fetchall()
        for run_id, key, *rest in found:
            if self._lives(key, *rest):
                raise RunInUse(run_id, str(Owner(*rest[:4])))

    def forget(self, connection: apsw.Connection, key: int) -> None:
        """Delete an owner that holds no run any more."""
        connection.execute(_FORGET, (key,))

    def names(self, connection: apsw.Connection) -> dict[int, str]:
        """Every owner that lives, in words."""
        found: list[tuple[Any, ...]] = connection.execute(_OWNERS).fetchall()
        return {key: str(Owner(*rest[:4])) for key, *rest in found if self._lives(key, *rest)}

    def _lives(
        self, key: int, host: str, boot: str, pid: int, started: str, wall: float, steady: float
    ) -> bool:
        owner, clocks = Owner(host, boot, pid, started), self._clocks
        if is_dead(owner, self.me):
            return False
        if owner == self.me and self._thread_name(key) not in {each.name for each in threading.enumerate()}:
            # An instance of this process that is gone, though its failing disk let it not say so.
            return False
        if boot and boot == self.me.boot:
            # One clock that no one sets, common to all processes since the boot.
            return clocks.steady() - steady < clocks.ttl
        return clocks.wall() - wall < clocks.ttl

    def _thread_name(self, key: int) -> str:
        return f"antiphon journal owner {key} of {self._path.resolve()}"
