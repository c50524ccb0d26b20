"""The index's file: its tables, how it is opened, and what is done when it is damaged.

    meta      format, version of the readers, what it is the index of
    files     every document of the folder: size and time when it was read, its content or why there is none
    contents  what stands in files, by digest; two files with the same bytes and name share one
    passages  a content's passages in order, those of code with odd keys; `digest` is that of what is embedded
    vectors   embeddings, by the digest of the text; see `antiphon.tools.knowledge.vectors`
    words     the terms of each passage (FTS5, without its text): of its name and heading, and of what it says

All of it follows from the files: what is damaged or of another format is thrown away and built anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from antiphon.errors import ConfigError
from antiphon.tools.folder.readers import VERSION

FORMAT = 3
APPLICATION = 0x416E746B
"""`pragma application_id`: "Antk"."""
BUSY_MS = 10_000
_TABLES = (
    "create table meta(name text primary key, value) without rowid",
    "create table files(path text primary key, size integer not null, changed integer not null,"
    " settled integer not null, content integer, reason text not null default '') without rowid",
    "create index files_by_content on files(content)",
    "create table contents(key integer primary key, digest blob not null unique, kind text not null)",
    "create table passages(key integer primary key, content integer not null, place integer not null,"
    " first integer not null, last integer not null, heading text not null, text text not null,"
    " digest blob not null)",
    "create index passages_by_content on passages(content, place)",
    "create index passages_by_digest on passages(digest)",
    "create table vectors(digest blob primary key, vector blob not null)",
    "create virtual table words using fts5(name, body, content='', contentless_delete=1,"
    ' tokenize="unicode61 remove_diacritics 0")',
)
_DROPS = (
    "drop table if exists words",
    "drop table if exists vectors",
    "drop table if exists passages",
    "drop table if exists contents",
    "drop table if exists files",
    "drop table if exists meta",
)
DAMAGED = (apsw.CorruptError, apsw.NotADBError)


def open_index(path: str | None, subject: str) -> apsw.Connection:
    """The index in a file, made when it is not there; without a path, one in memory.

    subject: what it is the index of; a file that is the index of something else is refused. One that is
    damaged is built anew, unless nothing tells that it is an index. Raises ConfigError: another program's
    file, another subject, or not to be opened.
    """
    if path is None:
        connection = apsw.Connection(":memory:")
        _make(connection, subject)
        return connection
    try:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return _opened(path, subject)
        except DAMAGED as error:
            if not _is_index(path):
                raise _foreign(path) from error
            remove_index(path)
            return _opened(path, subject)
    except (apsw.Error, OSError) as error:
        raise ConfigError(f"the index can not be opened: {error}", path) from error


@contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """A transaction that no other process writes beside; undone as a whole when anything is raised."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def remove_index(path: str) -> None:
    """Delete an index's files."""
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def _is_index(path: str) -> bool:
    """Whether a file that SQLite cannot read is, by its first bytes, an index all the same."""
    with open(path, "rb") as file:
        head = file.read(72)
    return head[:16] == b"SQLite format 3\0" and head[68:] == APPLICATION.to_bytes(4, "big")


def _foreign(path: str) -> ConfigError:
    return ConfigError("is no index of Antiphon's but another program's file; name another place", path)


def _opened(path: str, subject: str) -> apsw.Connection:
    if os.name == "posix":
        # Before SQLite makes it: texts of the user's files are nobody else's.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
    connection = apsw.Connection(path)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("pragma journal_mode = wal").fetchall()
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma temp_store = memory")
        with writing(connection):
            _check(connection, path, subject)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: apsw.Connection, path: str, subject: str) -> None:
    application = connection.execute("pragma application_id").get
    if application == APPLICATION:
        held = {str(name): value for name, value in connection.execute("select name, value from meta")}
        if held.get("subject") not in (None, subject):
            raise ConfigError(f"is the index of {held['subject']}, not of {subject}", path)
        if (held.get("format"), held.get("readers")) == (FORMAT, VERSION):
            return
    elif application or connection.execute("select count(*) from sqlite_schema").get:
        raise _foreign(path)
    for statement in _DROPS:
        connection.execute(statement)
    _make(connection, subject)


def _make(connection: apsw.Connection, subject: str) -> None:
    connection.execute("pragma application_id = 1097757803")
    for statement in _TABLES:
        connection.execute(statement)
    connection.executemany(
        "insert into meta values(?, ?)", [("format", FORMAT), ("readers", VERSION), ("subject", subject)]
    )
