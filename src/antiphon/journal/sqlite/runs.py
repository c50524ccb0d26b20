"""Whole runs in an SQLite journal: added, taken in from elsewhere, taken out; and their space given back.

A run that is taken out is gone in one transaction that only moves its head from `runs` to `removed`. Its
rows, blobs and commands follow in pieces, each a transaction, so that nobody who writes waits for long,
however much it held. A process that is killed in between leaves `removed` to whoever deletes next.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

from antiphon.errors import JournalCorrupt, JournalDamaged, JournalError, JournalFull, UnknownName, UserError
from antiphon.journal.files.seal import Seal
from antiphon.journal.listing import Labels, labels_digest, listed, name_digest
from antiphon.journal.port import (
    RunSnapshot,
    StoredRule,
    StoredRun,
    check_rule,
    genesis,
    rule_digest,
    snapshot_digest,
)
from antiphon.journal.sqlite.file import SET_MARK, meaning, open_file, value
from antiphon.journal.sqlite.reader import RunHead, head
from antiphon.journal.sqlite.writer import ADD_BLOB, ADD_ROW, KEEP_BLOB, NEWEST, WriteJob, pack, stored
from antiphon.journal.transfer import check_alike, named_blobs, present

# A key is never used again: an owner that was away too long still names the deleted run by it.
_ADD_RUN = (
    "insert into runs"
    "(key, run_id, created, updated, epoch, seq, last, digest, commands, owner, summary, origin, seal,"
    " label_project, label_owner, label_team, labels)"
    " select 1 + max(value, coalesce((select max(key) from runs), 0)),"
    " ?, ?, ?, 0, 0, 0, ?, ?, null, x'', ?, ?, ?, ?, ?, ? from meta"
    " where name = 'newest_removed_run' returning key"
)
_IS_HERE = "select count(*) from runs where run_id = ?"
_SET_HEAD = (
    "update runs set seq = ?, last = ?, epoch = ?, digest = ?, updated = ?, name = ?, called = ?,"
    " summary = ?, state = ?, words = ?, outcome = ?, heard = coalesce(?, commands), seal = ?, imported = ?"
    " where key = ?"
)
_KEEPS = "select count(*) from run_blobs join blobs on blob = blobs.key where run = ? and digest = ?"
NAME_GIVEN = "insert or replace into meta values('name of ' || ?, ?)"
_RENAME = "update runs set name = ?, called = ? where key = ?"
_RELABEL = "update runs set label_project = ?, label_owner = ?, label_team = ?, labels = ? where key = ?"
_DESCRIBE = (
    "update runs set summary = ?, state = ?, words = ?, outcome = ?, heard = coalesce(?, commands)"
    " where key = ? and epoch = ?"
)
_LABELLED = "select key, run_id, label_project, label_owner, label_team from runs where labels != x''"
_SEAL_LABELS = "update runs set labels = ? where key = ?"
_ELSEWHERE = "insert or replace into meta values('commands before ' || ?, ?)"
_FORGET_NOTES = "delete from meta where name in ('name of ' || ?1, 'commands before ' || ?1)"
_TAKE_OUT = "insert into removed(run, last, seq, sweep) values(?, ?, ?, 0)"
_NO_KEY_AGAIN = "update meta set value = max(value, ?) where name = 'newest_removed_run'"
_NO_ROW_AGAIN = "update meta set value = ? where name = 'newest_removed_row'"
_DROP_HEAD = "delete from runs where key = ?"
_REMOVED = "select run, last, seq, sweep from removed limit 1"
_MOVE = "update removed set last = ?, seq = ?, sweep = ? where run = ?"
_CLEARED = "delete from removed where run = ?"
_DROP_ROW = "delete from rows where n = ? and run = ? returning step, seq, count"
_DROP_ROWS = "delete from rows where n > ? and n <= ? and run = ?"
_SOME_BLOBS = (
    "select blob, (select length(data) from blobs where key = blob) from run_blobs where run = ? limit ?"
)
_LET_GO = "delete from run_blobs where run = ? and blob = ?"
_DROP_BLOB = "delete from blobs where key = ?1 and not exists(select 1 from run_blobs where blob = ?1)"
_DROP_COMMANDS = (
    "delete from commands where run = ?1 and number <"
    " (select min(number) from commands where run = ?1) + 1000"
)
_HAS_COMMANDS = "select exists(select 1 from commands where run = ?)"
_FENCE = "update runs set epoch = epoch + 1, owner = null where owner is not null"
_HEADS = "select key, run_id, origin, imported, seq, digest from runs"
_SEAL_RUN = "update runs set seal = ? where key = ?"
_COMMAND_DIGESTS = "select run, number, digest from commands"
_SEAL_COMMAND = "update commands set seal = ? where run = ? and number = ?"
_NAMED = "select run_id, runs.name from runs join meta on meta.name = 'name of ' || run_id"
_ADD_RULE = (
    "insert or ignore into rules(id, scope, key, body, created, digest, seal) values(?, ?, ?, ?, ?, ?, ?)"
)
RULES = "select id, scope, key, body, created, digest, seal from rules order by created, id"
RULES_AS_THEY_LIE = "select id, scope, key, body, created, digest, seal from rules order by id"
RULES_FROM_THE_END = "select id, scope, key, body, created, digest, seal from rules order by id desc"
_DROP_RULE = "delete from rules where id = ?"
_DROP_RULES_OF = "delete from rules where scope = 'run' and key = ?"
_KEEP_SNAPSHOT = "insert or replace into snapshots values(?, ?, ?, ?, ?, ?, ?)"
_DROP_SNAPSHOT = "delete from snapshots where run = ?"
_DROP_SNAPSHOTS = "delete from snapshots"
_RULE_DIGESTS = "select id, digest from rules"
_SEAL_RULE = "update rules set seal = ? where id = ?"
_BYTES_IN_USE = (
    "select (page_count - freelist_count) * page_size"
    " from pragma_page_count, pragma_freelist_count, pragma_page_size"
)
ROWS = 1_000
"""Rows that one piece of clearing away follows; WINDOW: of those of all runs it looks through."""
WINDOW = 20_000
BLOBS, BYTES = 500, 32 << 20
"""After so many blobs, or bytes of them, a piece ends."""


def add_run(
    connection: apsw.Connection,
    seal: Seal,
    run_id: str,
    origin: str,
    now: float,
    labels: Labels,
    commands: int = 0,
) -> int:
    """Add a run without rows; its key. origin: empty where it is the run's own id. commands: the newest one
    that it took in elsewhere."""
    start = genesis(run_id, origin)
    sealed = seal.end(seal.head(run_id, origin, 0), 0, start)
    made = run_id, now, now, start, commands, origin, sealed, *_labelled(seal, run_id, labels)
    key: int = value(connection, _ADD_RUN, made)
    if commands:
        connection.execute(_ELSEWHERE, (run_id, commands))
    return key


def restore(connection: apsw.Connection, seal: Seal, run: StoredRun, now: float) -> None:
    """Add a run that was checked, with all it holds, inside the caller's transaction. Raises UserError."""
    if value(connection, _IS_HERE, (run.run_id,)):
        raise present(run.run_id)
    _store(connection, seal, run, now, imported=1)


def fork(
    connection: apsw.Connection, seal: Seal, of: str, run: StoredRun, rules: Iterable[StoredRule], now: float
) -> None:
    """Add a run that begins like another, and rules, inside the caller's transaction: all was checked but
    what only the store knows, and that is looked at before anything is written. Raises as `Journal.fork`."""
    top = head(connection, of)
    check_alike(run, of, top.origin)
    if value(connection, _IS_HERE, (run.run_id,)):
        raise present(run.run_id)
    for digest in sorted(named_blobs(run.rows) - run.blobs.keys()):
        if not value(connection, _KEEPS, (top.key, stored(digest))):
            raise JournalCorrupt(of, 0, f"blob {digest} is lost")
    _store(connection, seal, run, now, imported=top.imported)
    for rule in rules:
        add_rule(connection, seal, rule)


def _store(connection: apsw.Connection, seal: Seal, run: StoredRun, now: float, *, imported: int) -> None:
    origin = run.origin if run.origin != run.run_id else ""
    key = add_run(connection, seal, run.run_id, origin, now, run.labels, run.commands)
    if run.name:
        connection.execute(NAME_GIVEN, (run.run_id, stored_name(seal, run.run_id, run.name)))
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
    sealed = seal.end(seal.head(run.run_id, origin, imported), seq, end)
    found_by = run.name, run.name.casefold(), *_described(run.summary)
    connection.execute(_SET_HEAD, (seq, last, epoch, end, updated, *found_by, sealed, imported, key))


def _rows(run: StoredRun, key: int, newest: int) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
    for number, row in enumerate(run.rows):
        named = pack(row) if row.refs or row.blobs else None
        where = (newest + number + 1, 1 if number else 0, key, row.seq, row.count, row.given)
        yield (*where, row.epoch, row.at, row.digest, named, row.body)


def take_out(connection: apsw.Connection, run_id: str, top: RunHead) -> None:
    """Make a run no run any more, inside the caller's transaction; `clear` does the rest."""
    connection.execute(_TAKE_OUT, (top.key, top.last, top.seq))
    connection.execute(_NO_KEY_AGAIN, (top.key,))
    connection.execute(_NO_ROW_AGAIN, (value(connection, NEWEST),))
    connection.execute(_DROP_HEAD, (top.key,))
    connection.execute(_FORGET_NOTES, (run_id,))
    connection.execute(_DROP_RULES_OF, (run_id,))
    connection.execute(_DROP_SNAPSHOT, (top.key,))


def clear(connection: apsw.Connection, job: WriteJob) -> bool:
    """Clear away a piece of what runs that were taken out held; whether there is more."""
    found: tuple[int, int, int, int] | None = connection.execute(_REMOVED).fetchone()
    if found is None:
        return False
    run, last, seq, sweep = found
    if last:
        last, seq, sweep = _follow(connection, run, last, seq)
    elif sweep:
        after = max(sweep - WINDOW, 0)
        connection.execute(_DROP_ROWS, (after, sweep, run))
        sweep = after
    connection.execute(_MOVE, (last, seq, sweep, run))
    if not last and not sweep and not _let_blobs_go(connection, run):
        connection.execute(_DROP_COMMANDS, (run,))
        if not value(connection, _HAS_COMMANDS, (run,)):
            connection.execute(_CLEARED, (run,))
    return connection.execute(_REMOVED).fetchone() is not None


def _follow(connection: apsw.Connection, run: int, n: int, seq: int) -> tuple[int, int, int]:
    """Delete rows from the newest back, the first of them `n`, which ends at `seq`.

    (row to go on with, where it ends, row from which all are to be looked through): the last when a
    damaged run does not lead from row to row.
    """
    for _ in range(ROWS):
        step, end, count = connection.execute(_DROP_ROW, (n, run)).fetchone() or (0, 0, 0)
        if step < 0 or count < 1 or end != seq or (step == 0) != (end == count):
            return 0, 0, value(connection, NEWEST)
        if not step:
            return 0, 0, 0
        n, seq = n - step, end - count
    return n, seq, 0


def _let_blobs_go(connection: apsw.Connection, run: int) -> bool:
    """Let the run keep some blobs no longer, delete those that no run keeps; whether it may keep more."""
    size = 0
    found: list[tuple[Any, ...]] = connection.execute(_SOME_BLOBS, (run, BLOBS)).fetchall()
    for key, length in found:
        connection.execute(_LET_GO, (run, key))
        connection.execute(_DROP_BLOB, (key,))
        size += length or 0
        if size > BYTES:
            return True
    return len(found) == BLOBS


def rename(connection: apsw.Connection, seal: Seal, run_id: str, key: int, name: str) -> None:
    """Give a run a name, inside the caller's transaction."""
    connection.execute(_RENAME, (name, name.casefold(), key))
    connection.execute(NAME_GIVEN, (run_id, stored_name(seal, run_id, name)))


def relabel(connection: apsw.Connection, seal: Seal, run_id: str, key: int, labels: Labels) -> None:
    """Give a run other labels, inside the caller's transaction."""
    connection.execute(_RELABEL, (*_labelled(seal, run_id, labels), key))


def describe(connection: apsw.Connection, key: int, epoch: int, summary: bytes) -> None:
    """Keep a summary, and what the run is found by in it, inside the caller's transaction."""
    connection.execute(_DESCRIBE, (*_described(summary), key, epoch))


def _described(summary: bytes) -> tuple[bytes, str, str, str, int | None]:
    told = listed(summary)
    return summary, told.state, told.title.casefold(), told.outcome, told.command


def _labelled(seal: Seal, run_id: str, labels: Labels) -> tuple[str, str, str, bytes]:
    kept = stored_labels(seal, run_id, labels) if labels != Labels() else b""
    return labels.project, labels.owner, labels.team, kept


def stored_labels(seal: Seal, run_id: str, labels: Labels) -> bytes:
    """What is stored beside a run's labels: their digest, or where there is a key their seal."""
    digest = labels_digest(run_id, labels)
    return seal.labels(digest) or digest


def add_rule(connection: apsw.Connection, seal: Seal, rule: StoredRule) -> bool:
    """Add a rule, inside the caller's transaction; False when there is one of that id."""
    digest = rule_digest(rule)
    row = (rule.id, rule.scope, rule.key, rule.body, rule.created_at, digest, seal.rule(digest))
    connection.execute(_ADD_RULE, row)
    return bool(connection.changes())


def drop_rule(connection: apsw.Connection, rule_id: str) -> None:
    """Delete a rule, inside the caller's transaction. Raises UnknownName."""
    connection.execute(_DROP_RULE, (rule_id,))
    if not connection.changes():
        raise UnknownName("rule", rule_id, [name for name, _ in connection.execute(_RULE_DIGESTS)])


def rules(seal: Seal, path: Path, connection: apsw.Connection) -> list[StoredRule]:
    """Every rule, verified. Raises JournalDamaged."""
    found = []
    for rule, is_whole in judged_rules(seal, connection):
        if not is_whole:
            what = "is not as it was written; look at it, drop it and add it anew"
            raise JournalDamaged(path, f"the rule {rule.id!a} {what}")
        found.append(rule)
    return found


def judged_rules(
    seal: Seal, connection: apsw.Connection, statement: str = RULES
) -> Iterator[tuple[StoredRule, bool]]:
    """Every rule, and whether it is as it was written. statement: which asks for them, one of RULES."""
    for rule_id, scope, key, body, created, digest, sealed in connection.execute(statement):
        rule = StoredRule(rule_id, scope, key, body, created)
        yield rule, _is_whole(rule, digest) and sealed == seal.rule(digest)


def _is_whole(rule: StoredRule, digest: bytes) -> bool:
    try:
        check_rule(rule)
        return rule_digest(rule) == digest
    except (AttributeError, UserError, TypeError, ValueError):
        # Values of other types than were written.
        return False


def stored_name(seal: Seal, run_id: str, name: str) -> bytes:
    """What is stored beside a run's name: its digest, or where there is a key its seal."""
    digest = name_digest(run_id, name)
    return seal.name(digest) or digest


def seal_all(connection: apsw.Connection, seal: Seal) -> int:
    """Seal runs, commands, names, labels and rules anew, inside the caller's transaction; how many runs.

    Nobody who lives holds any of them. Who held one and stands still must claim it again, with the new key.
    """
    connection.execute(_FENCE)
    runs: list[tuple[Any, ...]] = connection.execute(_HEADS).fetchall()
    for key, run_id, origin, imported, seq, digest in runs:
        sealed = seal.end(seal.head(run_id, origin, imported), seq, digest)
        connection.execute(_SEAL_RUN, (sealed, key))
    commands: list[tuple[Any, ...]] = connection.execute(_COMMAND_DIGESTS).fetchall()
    for run, number, digest in commands:
        connection.execute(_SEAL_COMMAND, (seal.command(digest), run, number))
    names: list[tuple[Any, ...]] = connection.execute(_NAMED).fetchall()
    for run_id, name in names:
        connection.execute(NAME_GIVEN, (run_id, stored_name(seal, run_id, name)))
    labelled: list[tuple[Any, ...]] = connection.execute(_LABELLED).fetchall()
    for key, run_id, *labels in labelled:
        connection.execute(_SEAL_LABELS, (stored_labels(seal, run_id, Labels(*labels)), key))
    digests: list[tuple[Any, ...]] = connection.execute(_RULE_DIGESTS).fetchall()
    for rule_id, digest in digests:
        connection.execute(_SEAL_RULE, (seal.rule(digest), rule_id))
    connection.execute(_DROP_SNAPSHOTS)
    connection.execute(SET_MARK, (seal.mark,))
    return len(runs)


def keep_snapshot(
    connection: apsw.Connection, seal: Seal, run_id: str, key: int, kept: RunSnapshot | None
) -> None:
    """Keep a snapshot of a run in place of the one before, inside the caller's transaction."""
    if kept is None:
        connection.execute(_DROP_SNAPSHOT, (key,))
        return
    digest = snapshot_digest(run_id, kept)
    stored = (key, kept.seq, kept.digest, kept.version, kept.data, digest, seal.snapshot(digest))
    connection.execute(_KEEP_SNAPSHOT, stored)


def compact(path: Path, durability: str, vfs: str | None, seal: Seal) -> int:
    """Rewrite the file without its free pages; how many bytes it and its log became smaller by.

    Raises JournalFull, JournalDamaged, JournalError.
    """
    file = open_file(path, durability, vfs, seal)
    connection = file.connection
    try:
        if file.lost is not None:
            raise file.lost
        before = _size(path)
        # Once as a temporary file and once in the log, before the file itself becomes smaller.
        needed, free = 2 * value(connection, _BYTES_IN_USE), shutil.disk_usage(path.parent).free
        if free < needed:
            raise JournalFull(
                f"Journal {path}: to be compacted it needs {needed:,} free bytes, there are {free:,};"
                " free some and try again"
            )
        connection.execute("vacuum")
        _truncate(connection, path)
        return before - _size(path)
    except apsw.Error as error:
        raise meaning(error, path, "compacting") from error
    finally:
        file.anchor.close()
        connection.close(force=True)


def _truncate(connection: apsw.Connection, path: Path) -> None:
    """Move the log into the file, which becomes as small as what it holds."""
    try:
        connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError as error:
        raise JournalError(
            f"Journal {path} is rewritten, but another process read it all the time, so its file is still as"
            " large as it was; end that process or try again"
        ) from error


def _size(path: Path) -> int:
    log = Path(f"{path}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
