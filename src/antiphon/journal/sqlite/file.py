"""An SQLite journal's file: how it is opened, its numbered formats, what its errors mean.

The tables of the newest format:

    meta     format, and when the file was created
    runs     the head of each run: epoch, seq, digest, `last` (its newest row), `commands` (its newest one),
             `name`, what people call it, `origin`, the run from whose id its chain starts, and `imported`;
             its labels, with `labels`, their digest; and what it is found by: of its summary `state`,
             `outcome`, `heard`, the newest command that it knows, and, in small letters, `words`, its title;
             `called`, its name
    rows     every run's rows in the order they were committed; `step` leads back to the run's row before,
             `given` of its `count` events came from outside
    blobs    large texts, each once; run_blobs says which runs keep it
    commands what outsiders posted for the owner, a key once per run
    owners   the processes that hold runs, and when they were last heard
    removed  runs that were deleted, until the last of their rows is gone
    rules    what holds for tools in more than one run, beside the runs
    snapshots what runs are folded to, a cache: each may be deleted at any time

`seal`, of runs, commands, rules and snapshots, is empty in a journal without a key (see
`journal.files.seal`), and `labels` in a run that has none.

Keys of runs and numbers of rows only grow: `meta` says which were the highest when something was deleted.

Rows are one log and not keyed by run, because a commit of a thousand runs then writes 90 pages
and not a thousand (six times the rate), and because bodies up to 4 KiB stay on their own page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from antiphon.errors import JournalDamaged, JournalError, JournalFull, JournalTooNew
from antiphon.journal.files.anchor import Anchor
from antiphon.journal.files.in_use import OpenFiles
from antiphon.journal.files.log import damaged, empty, judge_log, scan_log
from antiphon.journal.files.private import keep_out_of_git, tighten
from antiphon.journal.files.seal import UNSEALED, VARIABLE, Seal
from antiphon.journal.listing import listed
from antiphon.journal.owner import this_process

APPLICATION = 0x416E7470
"""`pragma application_id` of our files: "Antp"."""

BUSY_MS = 10_000
CHECKPOINT_PAGES = 4_000
"""The writer moves the write-ahead log into the file after this many pages (16 MB)."""

FORMAT_1 = (
    "create table meta(name text primary key, value) without rowid",
    "create table runs(key integer primary key, run_id text not null unique, created real not null,"
    " updated real not null, epoch integer not null, seq integer not null, last integer not null,"
    " digest blob not null, mails integer not null, owner integer, summary blob not null)",
    "create index runs_by_owner on runs(owner) where owner is not null",
    "create table rows(n integer primary key, step integer not null, run integer not null,"
    " seq integer not null, count integer not null, epoch integer not null, at real not null,"
    " digest blob not null, blobs blob, body blob not null)",
    "create table blobs(key integer primary key, digest blob not null unique, data blob not null)",
    "create table run_blobs(run integer not null, blob integer not null, primary key(run, blob))"
    " without rowid",
    "create table mail(run integer not null, number integer not null, key text not null,"
    " digest blob not null, body blob not null, primary key(run, number)) without rowid",
    "create unique index mail_by_key on mail(run, key)",
    "create table owners(key integer primary key autoincrement, host text not null, boot text not null,"
    " pid integer not null, started text not null, wall real not null, steady real not null)",
    "insert into meta values('format', 1)",
    "insert into meta values('created', unixepoch('subsec'))",
)
FORMAT_2 = (
    "alter table runs add column name text not null default ''",
    "update meta set value = 2 where name = 'format'",
)
FORMAT_3 = (
    "alter table runs add column origin text not null default ''",
    "alter table rows add column given integer not null default 0",
    "update meta set value = 3 where name = 'format'",
)
FORMAT_4 = (
    "alter table runs rename column mails to commands",
    "alter table mail rename to commands",
    "drop index mail_by_key",
    "create unique index commands_by_key on commands(run, key)",
    "update meta set value = 4 where name = 'format'",
)
FORMAT_5 = (
    "alter table runs add column imported integer not null default 0",
    "create table removed(run integer primary key, last integer not null, seq integer not null,"
    " sweep integer not null)",
    "create index run_blobs_by_blob on run_blobs(blob)",
    "insert into meta values('newest_removed_run', 0)",
    "insert into meta values('newest_removed_row', 0)",
    "update meta set value = 5 where name = 'format'",
)
FORMAT_6 = (
    "alter table runs add column seal blob not null default x''",
    "alter table commands add column seal blob not null default x''",
    "update meta set value = 6 where name = 'format'",
)
FORMAT_7 = (
    "alter table runs add column state text not null default 'open'",
    "alter table runs add column words text not null default ''",
    "alter table runs add column called text not null default ''",
    "alter table runs add column label_project text not null default ''",
    "alter table runs add column label_owner text not null default ''",
    "alter table runs add column label_team text not null default ''",
    "alter table runs add column labels blob not null default x''",
    "update runs set state = listed_state(summary), words = listed_words(summary), called = folded(name)",
    # The key ends every entry of an index: each is in the order of the list.
    "create index runs_by_state on runs(state)",
    "create index runs_by_project on runs(label_project, state) where label_project != ''",
    "create index runs_by_owner_label on runs(label_owner, state) where label_owner != ''",
    "create index runs_by_team on runs(label_team, state) where label_team != ''",
    "create index runs_by_words on runs(key, words, called)",
    "create index runs_by_created on runs(created)",
    "update meta set value = 7 where name = 'format'",
)
FORMAT_8 = (
    "create table rules(id text primary key, scope text not null, key text not null, body blob not null,"
    " created real not null, digest blob not null, seal blob not null) without rowid",
    "update meta set value = 8 where name = 'format'",
)
FORMAT_9 = (
    "alter table runs add column outcome text not null default ''",
    "update runs set outcome = listed_outcome(summary)",
    "create index runs_by_outcome on runs(outcome) where outcome != ''",
    "create index runs_by_project_outcome on runs(label_project, outcome)"
    " where label_project != '' and outcome != ''",
    "create index runs_by_owner_outcome on runs(label_owner, outcome)"
    " where label_owner != '' and outcome != ''",
    "create index runs_by_team_outcome on runs(label_team, outcome) where label_team != '' and outcome != ''",
    "update meta set value = 9 where name = 'format'",
)
FORMAT_10 = (
    "alter table runs add column heard integer not null default 0",
    "update runs set heard = commands",
    "create index runs_by_posted on runs(key) where commands > heard",
    "update meta set value = 10 where name = 'format'",
)
FORMAT_11 = (
    "create table snapshots(run integer primary key, seq integer not null, row_digest blob not null,"
    " version blob not null, data blob not null, digest blob not null, seal blob not null)",
    "update meta set value = 11 where name = 'format'",
)
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    FORMAT_1, FORMAT_2, FORMAT_3, FORMAT_4, FORMAT_5, FORMAT_6, FORMAT_7,
    FORMAT_8, FORMAT_9, FORMAT_10, FORMAT_11,
)  # fmt: skip
"""Entry k leads from format k to k + 1. Released entries never change; the last statement that
touches `meta` names the new format."""

_MARK = "select value from meta where name = 'key'"
SET_MARK = "insert or replace into meta values('key', ?)"

SYNCHRONOUS = {"power": 2, "process": 1}

_MODE = "check the permissions of the file and its folder, then resume"
_ADVICE: dict[type[Exception], str] = {
    apsw.FullError: "no space is left; free some and resume",
    apsw.ReadOnlyError: f"it may not be written; {_MODE}",
    apsw.CantOpenError: f"it cannot be opened; {_MODE}",
    apsw.PermissionsError: f"permission was denied; {_MODE}",
    apsw.IOError: "the disk failed, or a quota or file-size limit was reached; open the journal anew",
    apsw.CorruptError: "its pages are damaged; restore it from a copy",
    apsw.NotADBError: "it is not an SQLite file; give another path or restore it from a copy",
    apsw.BusyError: "another process kept it locked for more than 10 s; end that process or try again",
    apsw.LockedError: "another process kept it locked; try again",
}
_FULL = (apsw.FullError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)
_REFUSED = (*_FULL, apsw.BusyError, apsw.LockedError)
_FATAL = (
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.NoMemError,
    apsw.InternalError,
    apsw.ProtocolError,
)


def meaning(error: Exception, path: Path, doing: str) -> JournalError:
    """The JournalError that says what failed, where, and what to do about `error`."""
    if isinstance(error, JournalError):
        return error
    advice = _ADVICE.get(type(error), "see the cause")
    kind = JournalFull if isinstance(error, _FULL) else JournalError
    meant = kind(f"Journal {path}: {doing} failed ({type(error).__name__}: {error}): {advice}")
    meant.__cause__ = error
    return meant


def is_fatal(error: Exception) -> bool:
    """Whether a connection that reported this must not write again: the disk's state is unknown."""
    return isinstance(error, _FATAL)


def is_refusal_of_store(error: Exception) -> bool:
    """Whether the whole store refused for now (space, permission, lock), whatever was written."""
    return isinstance(error, _REFUSED)


class OpenedFile(NamedTuple):
    """A journal's file, open for writing, with its anchor.

    files: what `connection` has open, to be found at the same paths as long as it writes. lost: why nothing
    may be written, None when all is well.
    """

    connection: apsw.Connection
    anchor: Anchor
    files: OpenFiles
    seal: Seal
    lost: JournalDamaged | None = None


def open_file(path: Path, durability: str, vfs: str | None = None, seal: Seal = UNSEALED) -> OpenedFile:
    """A writing connection to the journal at `path`, created, brought to the newest format, and sealed with
    the key that `seal` has.

    Raises JournalFull, JournalTooNew and JournalDamaged (file and log are then as they were, byte for byte),
    JournalError.
    """
    anchor, connection = None, None
    try:
        anchor = Anchor(path, vfs, this_process().boot)
        log = scan_log(path)
        _create(path)
        tighten(path)
        connection = apsw.Connection(str(path), vfs=vfs)
        connection.set_busy_timeout(BUSY_MS)
        _keep_log(connection, path)
        if connection.readonly("main"):
            raise JournalFull(f"Journal {path}: {_ADVICE[apsw.ReadOnlyError]}")
        cut_off = judge_log(connection, path, log, same_boot=anchor.same_boot, was_synced=not anchor.outlived)
        version = _format(connection, path)
        lost = _compare(connection, path, anchor, version, cut_off)
        if lost is None and cut_off:
            empty(connection, BUSY_MS)
        _prepare(connection, path, durability)
        if lost is None:
            _migrate(connection, path)
            anchor.attach(connection, durability)
            _check_key(connection, path, seal)
        return OpenedFile(connection, anchor, OpenFiles(path), seal, lost)
    except Exception as error:
        # Whatever it is: a damaged file can say anything.
        if connection is not None:
            connection.close(force=True)
        if anchor is not None:
            anchor.close()
        if isinstance(error, OSError):
            raise JournalFull(f"Journal {path}: {error.strerror}; {_MODE}, or give another path") from error
        raise meaning(error, path, "opening") from error


def open_copy(path: Path) -> apsw.Connection:
    """A connection to a private copy of a journal, brought to the newest format; its pages may be damaged."""
    connection = apsw.Connection(str(path))
    try:
        connection.pragma("synchronous", 0)
        _migrate(connection, path)
    except (JournalError, apsw.Error) as error:
        connection.close(force=True)
        raise meaning(error, path, "opening") from error
    return connection


def _compare(
    connection: apsw.Connection, path: Path, anchor: Anchor, version: int, cut_off: int
) -> JournalDamaged | None:
    """What the journal has lost by its anchor: the error for whoever wants to write."""
    if not version:
        if anchor.header is None or anchor.outlived or not (known := len(anchor.runs())):
            return None
        raise JournalDamaged(
            path,
            f"the file is gone or empty, but its anchor knows {known:,} runs; restore a copy, or delete"
            f" {anchor.path} to begin anew",
        )
    if not anchor.belongs_to(connection) or not (cut_off or anchor.is_ahead(connection)):
        return None
    lost = anchor.lost(connection)
    if not lost:
        return None
    told = "; ".join(f"run {run.name} {run.text}" for run in lost[:5])
    more = f"; and {len(lost) - 5:,} more" if len(lost) > 5 else ""
    error = damaged(path, f"it is behind its anchor, commits are lost: {told}{more}")
    if cut_off:
        # Writing would destroy what is left of that commit.
        raise error
    return error


def open_reading(path: Path, vfs: str | None = None) -> apsw.Connection:
    """A connection that only reads; the file exists and has the newest format."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.set_busy_timeout(BUSY_MS)
    connection.execute("pragma query_only = 1")
    connection.execute("pragma mmap_size = 0")
    connection.execute("pragma cell_size_check = 1")
    return connection


def value(connection: apsw.Connection, sql: str, bindings: apsw.Bindings = ()) -> Any:
    """The first column of the statement's only row, which must exist."""
    ((found, *_),) = connection.execute(sql, bindings)
    return found


def _create(path: Path) -> None:
    for folder in reversed(path.absolute().parents):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(folder.parent)
    if not path.exists():
        keep_out_of_git(path.absolute().parent)
        # Else it is not touched: closing it would let go of every lock that this process has on the file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _keep_log(connection: apsw.Connection, path: Path) -> None:
    """Never let closing move the log into the file by itself: after an error, or with a newer
    format, that would be a write nobody asked for. `SqliteWriter` does it when all is well."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def _prepare(connection: apsw.Connection, path: Path, durability: str) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Both mean something to an empty file alone.
    connection.execute("pragma page_size = 4096")
    connection.execute("pragma auto_vacuum = 0")
    # Becoming a WAL file goes through a rollback journal. Were its removal lost with the power, it would
    # take everything committed since back with it: EXTRA syncs the folder after the removal.
    connection.pragma("synchronous", 3)
    _set_wal(connection, path)
    wanted = SYNCHRONOUS[durability]
    connection.pragma("synchronous", wanted)
    got = connection.pragma("synchronous")
    if got != wanted:
        raise JournalError(
            f"Journal {path}: asked for synchronous={wanted}, SQLite keeps {got};"
            f" durability {durability!r} cannot be promised"
        )
    connection.execute("pragma mmap_size = 0")
    connection.execute("pragma cell_size_check = 1")
    # The log then only grows by whole commits: no page of an unfinished one is written early, and again.
    connection.execute("pragma cache_spill = 0")
    connection.execute("pragma trusted_schema = 0")
    connection.execute("pragma journal_size_limit = 67108864")
    connection.wal_autocheckpoint(0)


def _format(connection: apsw.Connection, path: Path) -> int:
    """The file's format, 0 when it is empty. Raises JournalTooNew, or JournalError for foreign files."""
    found = connection.pragma("application_id"), connection.pragma("encoding")
    if not value(connection, "select count(*) from sqlite_schema"):
        return 0
    if found != (APPLICATION, "UTF-8"):
        raise JournalError(
            f"Journal {path}: this SQLite file was not written by Antiphon, or is damaged; give another path"
        )
    stored = connection.execute("select value from meta where name = 'format'").fetchone()
    version = stored[0] if stored else None
    if not isinstance(version, int) or version < 1:
        raise JournalError(f"Journal {path}: it does not say its format; restore it from a copy")
    if version > len(MIGRATIONS):
        raise JournalTooNew(
            f"Journal {path} has format {version}, this Antiphon reads up to {len(MIGRATIONS)}; upgrade it"
        )
    return version


def seal_of(connection: apsw.Connection, path: Path, seal: Seal) -> Seal:
    """The seal that the journal has: this one, or none. Raises JournalError when it is another."""
    (known,) = connection.execute(_MARK).fetchone() or (b"",)
    if known and known != seal.mark:
        which = "another key than the given one" if seal else "a key, and none was given"
        raise JournalError(f"Journal {path} is sealed with {which}; {VARIABLE} in the environment holds it")
    return seal if known else UNSEALED


def check_seal(connection: apsw.Connection, path: Path, seal: Seal) -> None:
    """Raise JournalError when the journal was sealed, or sealed with another key, since it was opened."""
    if seal_of(connection, path, seal).mark != seal.mark:
        raise JournalError(f"Journal {path} has no seal any more; open it anew, without a key")


def _check_key(connection: apsw.Connection, path: Path, seal: Seal) -> None:
    """Raise JournalError unless the journal is sealed with this key, or not at all and there is none; a new
    journal is from now on."""
    if seal_of(connection, path, seal) or not seal:
        return
    connection.execute("begin immediate")
    try:
        if value(connection, "select count(*) from runs"):
            raise JournalError(
                f"Journal {path} was written without a key, and {VARIABLE} is set; `antiphon journal seal`"
                " takes what is in it for genuine and seals it"
            )
        connection.execute(SET_MARK, (seal.mark,))
        connection.execute("commit")
    except (JournalError, apsw.Error):
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _set_wal(connection: apsw.Connection, path: Path) -> None:
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            # SQLite does not wait here: two processes that create the file could block each other.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)
            continue
        if mode != "wal":
            raise JournalError(
                f"Journal {path}: its file system allows no write-ahead log (mode {mode!r}); use a local disk"
            )
        return


def _listed_state(summary: Any) -> str:
    return listed(summary).state


def _listed_words(summary: Any) -> str:
    return listed(summary).title.casefold()


def _listed_outcome(summary: Any) -> str:
    return listed(summary).outcome


def _folded(name: Any) -> str:
    return str(name).casefold()


_FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "listed_state": _listed_state, "listed_words": _listed_words, "listed_outcome": _listed_outcome,
    "folded": _folded,
}  # fmt: skip
"""What a migration asks of Python."""


def _migrate(connection: apsw.Connection, path: Path) -> None:
    if _format(connection, path) == len(MIGRATIONS):
        return
    for name, function in _FUNCTIONS.items():
        connection.create_scalar_function(name, function, 1)
    connection.execute("begin immediate")
    try:
        for statements in MIGRATIONS[_format(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.pragma("application_id", APPLICATION)
        connection.execute("commit")
    except (JournalError, apsw.Error):
        if connection.in_transaction:
            connection.execute("rollback")
        raise
