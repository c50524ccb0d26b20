"""transfer: a run from elsewhere. What it must be before any journal takes it in.

A file from another machine may say anything. All of it is checked here, before the first byte is written;
then a journal stores the run in one step (`port.Journal.restore`). So nothing has to be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from antiphon.errors import UserError
from antiphon.journal.listing import check_labels, check_name
from antiphon.journal.port import (
    Row,
    StoredRule,
    StoredRun,
    blob_digest,
    check_id,
    check_rule,
    follows,
    genesis,
)

MAX_ROWS = 1_000_000
MAX_BYTES = 512 << 20
"""Bodies and blobs of one run together, in bytes: what is stored in less time than others wait for a lock."""
MAX_SEQ = 1 << 40
MAX_COMMAND = 1 << 40
MAX_EPOCH = 1 << 32
"""Far more owners than a run can have had, and far from where SQLite's integers end."""
MAX_TIME = 253_402_300_800.0
"""The year 10000, from which no calendar has a name for an instant; Unix seconds."""


def named_blobs(rows: Iterable[Row]) -> set[str]:
    """The digests of all blobs that rows name."""
    return {name for row in rows for name in (*row.blobs, *(each for _, each in row.refs))}


def present(run_id: str) -> UserError:
    """What `restore` raises for a run that the journal has."""
    return UserError(
        f"Run {run_id} is in this journal already; it is left as it is."
        " To take the other one in, delete this one first or use another journal"
    )


def check_run(run: StoredRun) -> None:
    """Raise UserError unless this is a run that a journal could have written.

    Ids, name and labels are such as `claim` and `rename` take; every number is within its bounds; the rows
    are one chain from the run's genesis; the blobs are those that the rows name, each with its digest.
    """
    _check_rows(run)
    _check_blobs(run)
    missing = sorted(named_blobs(run.rows) - set(run.blobs))
    if missing:
        raise UserError(f"Blob {missing[0][:16]!a} of the run is missing, of {len(missing)} such")


def check_fork(run: StoredRun, rules: Iterable[StoredRule]) -> None:
    """`check_run` for a run of which another one keeps blobs, and `check_rule` for what comes with it."""
    _check_rows(run)
    _check_blobs(run)
    for rule in rules:
        check_rule(rule)


def check_alike(run: StoredRun, of: str, origin: str) -> None:
    """Raise UserError for a fork whose chain does not start where that of the run `of` does.

    origin: of that one, empty where it is its own.
    """
    if (run.origin or run.run_id) != (origin or of):
        raise UserError(
            f"Run {run.run_id} cannot begin like {of}: its chain starts from {run.origin or run.run_id}, that"
            f" of {of} from {origin or of}"
        )


def _check_rows(run: StoredRun) -> None:
    check_id("run_id", run.run_id)
    if run.origin:
        check_id("origin", run.origin)
    check_name(run.name)
    check_labels(run.labels)
    if not 0 <= run.commands <= MAX_COMMAND:
        raise UserError(f"This run says that it took in {run.commands:,} commands; no run did")
    _check_size(run.rows, run.blobs)
    previous, seq, epoch = genesis(run.run_id, run.origin), 0, 1
    for row in run.rows:
        _check_numbers(row, seq, epoch)
        if not follows(row, previous):
            raise _wrong(row, "does not match its digest")
        previous, seq, epoch = row.digest, row.seq, row.epoch


def _check_size(rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
    if len(rows) > MAX_ROWS:
        raise UserError(f"This run has {len(rows):,} rows; at most {MAX_ROWS:,} are taken in")
    size = sum(len(row.body) for row in rows) + sum(map(len, blobs.values()))
    if size > MAX_BYTES:
        raise UserError(f"This run has {size:,} bytes; at most {MAX_BYTES:,} are taken in")


def _check_numbers(row: Row, seq: int, epoch: int) -> None:
    """The row's numbers, after a row that ended at `seq` and was written in `epoch`."""
    if row.count < 1 or row.seq - row.count != seq or row.seq > MAX_SEQ:
        raise _wrong(row, f"counts {row.count} events; it cannot follow event {seq}")
    if not 0 <= row.given <= row.count:
        raise _wrong(row, f"says that {row.given} of its {row.count} events were given")
    if not epoch <= row.epoch <= MAX_EPOCH:
        raise _wrong(row, f"has the epoch {row.epoch}, outside {epoch} to {MAX_EPOCH}")
    if not isfinite(row.at) or not 0 <= row.at < MAX_TIME:
        raise _wrong(row, f"has the time {row.at:g}, outside 0 to {MAX_TIME:.0f} Unix seconds")


def _check_blobs(run: StoredRun) -> None:
    for row in run.rows:
        try:
            "".join(pointer for pointer, _ in row.refs).encode()
        except UnicodeEncodeError as error:
            raise _wrong(row, "names a place for a blob that is no text") from error
    named = named_blobs(run.rows)
    for name, data in run.blobs.items():
        if blob_digest(data) != name:
            raise UserError(f"Blob {name[:16]!a} of the run does not match its digest")
        if name not in named:
            raise UserError(f"Blob {name[:16]} of the run is named by none of its rows")


def _wrong(row: Row, what: str) -> UserError:
    return UserError(f"The row that ends at record {row.seq} {what}; nothing of the run was taken in")
