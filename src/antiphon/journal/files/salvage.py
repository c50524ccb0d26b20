"""What can still be read of a damaged SQLite journal, from private copies of its files.

Two copies are tried: one whose log is mended (every frame of it kept, its checksums computed anew) and one
whose log is cut where SQLite would cut it. The digests of rows, blobs and commands decide what of them is
good, so a changed bit costs only what it lies in.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec
from msgspec import Struct

from antiphon.errors import JournalDamaged, JournalError, UnknownName, UserError
from antiphon.journal.files.log import FRAME_HEADER, HEADER, MAGIC, checksum, log_of
from antiphon.journal.files.seal import Seal
from antiphon.journal.listing import Labels, check_labels, check_name
from antiphon.journal.port import Row, StoredCommand, StoredRule, follows, genesis
from antiphon.journal.sqlite import reader as reading
from antiphon.journal.sqlite.file import open_copy, seal_of, value
from antiphon.journal.sqlite.runs import (
    RULES_AS_THEY_LIE,
    RULES_FROM_THE_END,
    judged_rules,
    stored_labels,
    stored_name,
)
from antiphon.journal.transfer import named_blobs

PAGE = 4096
_LITTLE = 0x377F0682
_WAL_FORMAT = 3_007_000

_RUN_IDS = "select run_id from runs order by key"
_NAME = (
    "select runs.name, value from runs left join meta on meta.name = 'name of ' || run_id where run_id = ?"
)
_LABELS = "select label_project, label_owner, label_team, labels from runs where run_id = ?"
_NEWEST = "select coalesce(max(last), 0) from runs"
_ROWS = (
    "select n, seq, count, epoch, at, digest, blobs, body, given from rows where run = ? and n > ? order by n"
)
_ROW = "select n, seq, count, epoch, at, digest, blobs, body, given from rows where run = ? and n = ?"
_COMMANDS = "select number, key, digest, body, seal from commands where run = ? order by number"


class SalvagedRun(Struct, frozen=True):
    """What is left of one run: rows from its first on, each good, with every blob that they name.

    lost: what is not, in words; empty when the run is whole.
    """

    run_id: str
    name: str
    origin: str
    rows: list[Row]
    blobs: dict[str, bytes]
    commands: list[StoredCommand]
    lost: str = ""
    labels: Labels = Labels()


class Salvage:
    """What can be read of one journal."""

    def __init__(self, copies: list[apsw.Connection], seals: list[Seal]) -> None:
        self._copies, self._seals = copies, seals

    def runs(self) -> Iterator[SalvagedRun]:
        """Every run, as much of it as can be read."""
        for run_id in _run_ids(self._copies):
            pairs = zip(self._copies, self._seals, strict=True)
            found = [run for each, seal in pairs if (run := _run(each, run_id, seal)) is not None]
            if found:
                yield max(found, key=lambda run: (len(run.rows), len(run.commands)))

    def rules(self) -> tuple[list[StoredRule], list[str]]:
        """The rules beside the runs, oldest first; and what is lost of them, in words."""
        good: dict[str, StoredRule] = {}
        bad: dict[str, str] = {}
        lost = dict[str, None]()
        copies = zip(self._copies, self._seals, strict=True)
        # From both ends: what lies behind a page that cannot be read is reached from the other one.
        for (connection, seal), statement in product(copies, (RULES_AS_THEY_LIE, RULES_FROM_THE_END)):
            try:
                for rule, is_whole in judged_rules(seal, connection, statement):
                    if is_whole:
                        good[rule.id] = rule
                    else:
                        bad[rule.id] = f"the rule {rule.id}, which is not as it was written"
            except apsw.Error:
                # The first copy has whatever the others have; what it lacks may be nowhere.
                if connection is self._copies[0]:
                    lost["rules beside the runs that cannot be read"] = None
        found = [*lost, *(what for name, what in bad.items() if name not in good)]
        return sorted(good.values(), key=lambda rule: (rule.created_at, rule.id)), found


@contextmanager
def salvage(path: Path, beside: Path, seal: Seal) -> Iterator[Salvage]:
    """The journal at `path`, as far as it can be read. Its files are only read.

    beside: a folder that has room for two copies. Raises JournalDamaged when nothing can be read at all,
    JournalError when it is sealed with another key than that of `seal`.
    """
    with TemporaryDirectory(prefix=".salvage-", dir=beside) as folder, ExitStack() as open_copies:
        copies, failure = [], JournalError("no copy")
        for name, make in (("mended", _mend), ("cut", _cut)):
            copy = Path(folder) / name
            shutil.copyfile(path, copy)
            try:
                if log_of(path).exists():
                    shutil.copyfile(log_of(path), f"{copy}-wal")
                    make(copy)
                connection = open_copy(copy)
            except (JournalError, apsw.Error) as error:
                failure = error if isinstance(error, JournalError) else JournalError(str(error))
                continue
            open_copies.callback(connection.close, force=True)
            with suppress(apsw.Error):
                # An index is made of what it points to.
                connection.execute("reindex")
            copies.append(connection)
        if not copies:
            raise JournalDamaged(path, f"nothing of it can be read; restore a copy ({failure})")
        yield Salvage(copies, [_seal_of(each, path, seal) for each in copies])


def _run_ids(copies: list[apsw.Connection]) -> list[str]:
    found: dict[str, None] = {}
    for connection in copies:
        with suppress(apsw.Error):
            for (run_id,) in connection.execute(_RUN_IDS):
                found[str(run_id)] = None
    return list(found)


def _seal_of(connection: apsw.Connection, path: Path, seal: Seal) -> Seal:
    try:
        return seal_of(connection, path, seal)
    except apsw.Error:
        # What cannot be read cannot say that it was sealed.
        return seal


def _run(connection: apsw.Connection, run_id: str, seal: Seal) -> SalvagedRun | None:
    try:
        head = reading.head(connection, run_id)
    except (apsw.Error, UnknownName):
        return None
    lost = list[str]()
    name = _name(connection, run_id, seal)
    if name is None:
        lost.append("its name")
    labels = _labels(connection, run_id, seal)
    if labels is None:
        lost.append("its labels")
    try:
        rows = reading.rows(connection, run_id, 0)
    except (apsw.Error, JournalError):
        rows = _good_rows(connection, run_id, head)
    rows, blobs = _with_blobs(connection, run_id, rows)
    last = rows[-1].seq if rows else 0
    if last < head.seq:
        lost.append(f"{head.seq - last:,} of {head.seq:,} records, from {last + 1:,} on")
    elif head.seal != seal.end(seal.head(run_id, head.origin, head.imported), last, head.digest):
        lost.append("its seal: somebody without the journal's key wrote its end")
    commands = _good_commands(connection, run_id, head, seal)
    newest = commands[-1].number if commands else 0
    with suppress(apsw.Error):
        newest = newest or reading.commands_elsewhere(connection, run_id)
    if newest < head.commands:
        lost.append(f"the commands from {newest + 1:,} to {head.commands:,}")
    what = "; ".join(lost)
    return SalvagedRun(run_id, name or "", head.origin, rows, blobs, commands, what, labels or Labels())


def _name(connection: apsw.Connection, run_id: str, seal: Seal) -> str | None:
    """What the run is called; None when that cannot be read, or is not what it was given."""
    try:
        ((name, given),) = connection.execute(_NAME, (run_id,))
        check_name(name)
    except (apsw.Error, UserError, TypeError, ValueError):
        return None
    return name if given is None or given == stored_name(seal, run_id, name) else None


def _labels(connection: apsw.Connection, run_id: str, seal: Seal) -> Labels | None:
    """The run's labels; None when they cannot be read, or are not those that it was given."""
    try:
        ((*texts, given),) = connection.execute(_LABELS, (run_id,))
        labels = Labels(*map(str, texts))
        check_labels(labels)
    except (apsw.Error, UserError, ValueError):
        return None
    if labels == Labels() and not given:
        return labels
    return labels if given == stored_labels(seal, run_id, labels) else None


def _good_rows(connection: apsw.Connection, run_id: str, head: reading.RunHead) -> list[Row]:
    """The run's rows from its first on, up to the first that is missing or does not verify."""
    rows: list[Row] = []
    digest, seq = genesis(run_id, head.origin), 0
    for _, number, count, epoch, at, stored, named, body, given in _read_rows(connection, head.key):
        with suppress(msgspec.MsgspecError, ValueError, TypeError):
            refs, blobs = reading.unpack(named) if named is not None else ((), ())
            row = Row(number, count, epoch, at, body, refs, stored, blobs, given)
            if number - count == seq and follows(row, digest):
                rows.append(row)
                digest, seq = stored, number
    return rows


def _read_rows(connection: apsw.Connection, run: int) -> Iterator[tuple[Any, ...]]:
    """A run's rows as they are stored, without those on pages that cannot be read."""
    after = 0
    while True:
        try:
            for row in connection.execute(_ROWS, (run, after)):
                after = row[0]
                yield row
            return
        except apsw.Error:
            found = _next_readable(connection, run, after)
            if found is None:
                return
            after = found[0]
            yield found


def _next_readable(connection: apsw.Connection, run: int, after: int) -> tuple[Any, ...] | None:
    newest = 0
    with suppress(apsw.Error):
        newest = value(connection, _NEWEST)
    for n in range(after + 1, newest + 1):
        with suppress(apsw.Error):
            found: tuple[Any, ...] | None = connection.execute(_ROW, (run, n)).fetchone()
            if found is not None:
                return found
    return None


def _with_blobs(
    connection: apsw.Connection, run_id: str, rows: list[Row]
) -> tuple[list[Row], dict[str, bytes]]:
    """The rows up to the first of which a blob is lost, and the blobs of those."""
    blobs: dict[str, bytes] = {}
    for place, row in enumerate(rows):
        for name in named_blobs((row,)) - set(blobs):
            try:
                blobs[name] = reading.blob(connection, run_id, name)
            except (apsw.Error, JournalError):
                rows = rows[:place]
                named = named_blobs(rows)
                return rows, {name: data for name, data in blobs.items() if name in named}
    return rows, blobs


def _good_commands(
    connection: apsw.Connection, run_id: str, head: reading.RunHead, seal: Seal
) -> list[StoredCommand]:
    """The run's commands from its first on, up to the first that is missing or does not verify."""
    found: list[StoredCommand] = []
    with suppress(apsw.Error, TypeError):
        for number, key, digest, body, sealed in connection.execute(_COMMANDS, (head.key,)):
            if found and number != found[-1].number + 1:
                break
            if reading.command_digest(run_id, number, key, body) != digest or sealed != seal.command(digest):
                break
            found.append(StoredCommand(number, key, body))
    return found


def _cut(copy: Path) -> None:
    """End the log of a copy where SQLite stops reading it."""
    connection = apsw.Connection(str(copy))
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with suppress(apsw.Error):
            connection.pragma("schema_version")
        recovered, _ = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    finally:
        connection.close(force=True)
    os.truncate(log_of(copy), HEADER + recovered * (PAGE + FRAME_HEADER) if recovered > 0 else 0)


def _mend(copy: Path) -> None:
    """Write the log of a copy anew so that every frame of its newest generation verifies."""
    log = log_of(copy)
    data = bytearray(log.read_bytes())
    size = PAGE + FRAME_HEADER
    places = range(HEADER, len(data) - size + 1, size)
    told = Counter(bytes(data[at + 8 : at + 16]) for at in places)
    first = [bytes(data[at + 8 : at + 16]) for at in places[:3]]
    if not first:
        return
    # A bit of the header may be the one that changed: its frames know the salts too.
    salts = max((bytes(data[16:24]), *first), key=lambda each: told[each])
    struct.pack_into(">IIII", data, 0, _LITTLE, _WAL_FORMAT, PAGE, 0)
    data[16:24] = salts
    order = MAGIC[_LITTLE]
    state = checksum(order, data[:24], (0, 0))
    struct.pack_into(">II", data, 24, *state)
    ends = [at for at in places if data[at + 8 : at + 16] == salts]
    end = ends[-1] + size if ends else HEADER
    for at in range(HEADER, end, size):
        data[at + 8 : at + 16] = salts
        state = checksum(order, data[at : at + 8], state)
        state = checksum(order, data[at + FRAME_HEADER : at + size], state)
        struct.pack_into(">II", data, at + 16, *state)
    log.write_bytes(data[:end])
