"""Whole runs in an SQLite journal: added, and taken in from elsewhere in one transaction."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from antiphon.journal.port import StoredRun, genesis
from antiphon.journal.sqlite_file import value
from antiphon.journal.sqlite_writer import ADD_BLOB, ADD_ROW, KEEP_BLOB, NEWEST, WriteJob, pack, stored
from antiphon.journal.transfer import named_blobs, present

# A key is never used again: an owner that was away too long still names the deleted run by it.
_ADD_RUN = (
    "insert into runs"
    "(key, run_id, created, updated, epoch, seq, last, digest, commands, owner, summary, origin)"
    " select 1 + max(value, coalesce((select max(key) from runs), 0)),"
    " ?, ?, ?, 0, 0, 0, ?, 0, null, x'', ? from meta where name = 'newest_removed' returning key"
)
_IS_HERE = "select count(*) from runs where run_id = ?"
_SET_HEAD = (
    "update runs set seq = ?, last = ?, epoch = ?, digest = ?, updated = ?, name = ?, summary = ?,"
    " imported = 1 where key = ?"
)


def add_run(connection: apsw.Connection, run_id: str, origin: str, now: float) -> int:
    """Add a run without rows; its key. origin: empty where it is the run's own id."""
    key: int = value(connection, _ADD_RUN, (run_id, now, now, genesis(run_id, origin), origin))
    return key


def restore(connection: apsw.Connection, run: StoredRun, now: float, job: WriteJob) -> None:
    """Add a run that was checked, with all it holds, inside the caller's transaction. Raises UserError."""
    if value(connection, _IS_HERE, (run.run_id,)):
        raise present(run.run_id)
    origin = run.origin if run.origin != run.run_id else ""
    key = add_run(connection, run.run_id, origin, now)
    newest: int = value(connection, NEWEST)
    connection.executemany(ADD_ROW, list(_rows(run, key, newest)))
    for digest, data in run.blobs.items():
        connection.execute(ADD_BLOB, (stored(digest), data))
    for digest in sorted(named_blobs(run.rows)):
        connection.execute(KEEP_BLOB, (key, stored(digest)))
    seq, epoch, last, end, updated = 0, 0, 0, genesis(run.run_id, origin), now
    if run.rows:
        row, last = run.rows[-1], newest + len(run.rows)
        seq, epoch, end, updated = row.seq, row.epoch, row.digest, row.at
    connection.execute(_SET_HEAD, (seq, last, epoch, end, updated, run.name, run.summary, key))


def _rows(run: StoredRun, key: int, newest: int) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
    for number, row in enumerate(run.rows):
        named = pack(row) if row.refs or row.blobs else None
        where = (newest + number + 1, 1 if number else 0, key, row.seq, row.count, row.given)
        yield (*where, row.epoch, row.at, row.digest, named, row.body)
