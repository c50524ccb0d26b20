"""Reading an SQLite journal and asking its anchor too: nothing is told that does not reach as far as it must.

The anchor is asked first, the journal after: it may only have got further.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from antiphon.errors import JournalCorrupt, UnknownName
from antiphon.journal.files.anchor import Anchor, AnchoredRun, check_end, check_passes, run_hash
from antiphon.journal.files.seal import Seal
from antiphon.journal.listing import Labels
from antiphon.journal.port import Row, StoredCommand, genesis
from antiphon.journal.sqlite import reader as reading
from antiphon.journal.sqlite.file import check_seal
from antiphon.journal.sqlite.runs import stored_labels, stored_name

_NAMES = "select run_id, runs.name, value from runs join meta on meta.name = 'name of ' || run_id"

_LABELS = (
    "select run_id, label_project, label_owner, label_team, labels from runs"
    " where labels != x'' or label_project != '' or label_owner != '' or label_team != ''"
)
_LAST_ROW = "select seq, digest from rows where n = ? and run = ?"


def check_head(
    anchor: Anchor, seal: Seal, run_id: str, top: reading.RunHead, connection: apsw.Connection
) -> None:
    """Raise JournalCorrupt for a head that is not its last row's, not sealed, or ends before its anchor."""
    end: object = (0, genesis(run_id, top.origin))
    if top.last:
        end = connection.execute(_LAST_ROW, (top.last, top.key)).fetchone()
    if end != (top.seq, top.digest):
        raise JournalCorrupt(run_id, top.seq, "the run's head does not match its last row")
    _check_seal(seal, run_id, top, connection)
    check_end(anchor.run(top.key), run_id, top.epoch, top.seq, top.digest)


def _check_seal(seal: Seal, run_id: str, top: reading.RunHead, connection: apsw.Connection) -> None:
    if top.seal != seal.end(seal.head(run_id, top.origin, top.imported), top.seq, top.digest):
        check_seal(connection, Path(connection.filename), seal)
        raise JournalCorrupt(
            run_id, top.seq, "the run's end was written by somebody without the journal's key"
        )


def rows(
    anchor: Anchor,
    seal: Seal,
    run_id: str,
    read: Callable[[apsw.Connection], list[Row]],
    connection: apsw.Connection,
) -> list[Row]:
    """What `read` reads of a run's rows, if that is sealed and reaches as far as its anchor says. Raises
    JournalCorrupt."""
    _, must = _anchored(anchor, run_id, connection)
    top = reading.head(connection, run_id)
    _check_seal(seal, run_id, top, connection)
    check_end(must, run_id, top.epoch, top.seq, top.digest)
    found = read(connection)
    check_passes(must, run_id, found)
    return found


def commands(
    anchor: Anchor, seal: Seal, run_id: str, after: int, connection: apsw.Connection
) -> list[StoredCommand]:
    """As `sqlite_reader.commands`, with the one that the anchor names. Raises JournalCorrupt."""
    key, _ = _anchored(anchor, run_id, connection)
    number, digest = anchor.command_of(key, run_hash(run_id))
    found = reading.commands(connection, run_id, after, seal)
    if number > max(after, 0):
        named = next((each for each in found if each.number == number), None)
        if named is None:
            raise JournalCorrupt(run_id, number, "this command is lost, the run's anchor names it")
        if reading.command_digest(run_id, number, named.key, named.body) != digest:
            raise JournalCorrupt(run_id, number, "this command is not the one that the run's anchor names")
    return found


def audit(
    anchor: Anchor, seal: Seal, run_id: str, connection: apsw.Connection
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is damaged beside the rows, and what cannot be known; see `SqliteJournal.audit`."""
    named: list[tuple[str, str, bytes]] = list(connection.execute(_NAMES))
    names = tuple(
        f"the name of run {each} is not the one that it was given"
        for each, name, given in named
        if run_id in ("", each) and given != stored_name(seal, each, name)
    )
    labels: list[tuple[str, str, str, str, bytes]] = list(connection.execute(_LABELS))
    names += tuple(
        f"the labels of run {each} are not those that it was given"
        for each, project, owner, team, given in labels
        if run_id in ("", each) and given != stored_labels(seal, each, Labels(project, owner, team))
    )
    if run_id:
        return names, ()
    report = anchor.report(connection)
    found = [str(text) for (text,) in connection.execute("pragma integrity_check(5)")]
    pages = () if found == ["ok"] else tuple(f"the file's pages: {text}" for text in found)
    return (*names, *report.gone, *pages), report.unknown


def _anchored(anchor: Anchor, run_id: str, connection: apsw.Connection) -> tuple[int, AnchoredRun | None]:
    """The key of a run, and how far it must reach."""
    try:
        key = reading.head(connection, run_id).key
    except UnknownName:
        anchor.missing(run_id)
        raise
    return key, anchor.run(key)
