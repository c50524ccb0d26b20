"""`runs verify`, `export` and `import`: whether every record is what was written, here or elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from antiphon.cli import exit_codes
from antiphon.cli.display import terminal_escape
from antiphon.cli.store import SHORT, find, journal_option, json_option, opened, url_of
from antiphon.config.dotenv import environment
from antiphon.errors import JournalCorrupt, JournalError
from antiphon.journal import Journal, open_journal
from antiphon.journal.port import Row, blob_digest, check_name, follows, genesis
from antiphon.journal.transfer import restore
from antiphon.kernel.facts.events import decode as decode_events
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.facts.summary import encode as encode_summary
from antiphon.kernel.facts.summary import summary_of
from antiphon.kernel.run.commands import decode as decode_letter
from antiphon.kernel.run.rows import fold_row, unpack

FORMAT = 2
"""Of an exported file; those of format 1, whose rows do not say what was given, are read too."""
PROMISES = {
    "power": "acknowledged records survive a power cut",
    "process": "acknowledged records survive the death of every process, not a power cut",
    "none": "records live as long as this process",
}


class ExportedRow(Struct, frozen=True):
    """A row as JSON; `body` is the stored text, character by character."""

    seq: int
    count: int
    epoch: int
    at: float
    body: str
    digest: str
    refs: tuple[tuple[str, str], ...] = ()
    blobs: tuple[str, ...] = ()
    given: int = 0


class Export(Struct, frozen=True):
    """One run as a file: its rows with their chain of digests, every blob they name, name and origin."""

    antiphon_export: int
    run_id: str
    created_at: float
    rows: list[ExportedRow]
    blobs: dict[str, str]
    name: str = ""
    origin: str = ""


class VerifyResult(Struct, frozen=True):
    """What checking one run found; `damage` is empty when all is well."""

    run_id: str
    records: int
    blobs: int
    commands: int
    damage: str = ""


@click.command("verify", short_help="Check every record against its digest.")
@click.argument("run_id", metavar="[RUN|FILE]", required=False)
@journal_option
@json_option
def verify(run_id: str | None, journal: str | None, as_json: bool) -> int:
    """Check every record of RUN, of all runs, or of an exported FILE against its digest.

    Each row's digest covers the row before it, so nothing can be changed, dropped or added unseen;
    blobs and commands are checked too, and every run is folded. Exit code 5 when anything is damaged.
    """
    if run_id and (os.sep in run_id or run_id.endswith(".json")):
        durability, found = "", [verify_file(run_id)]
    else:
        durability, found = asyncio.run(_verify(run_id, journal))
    damaged = [each for each in found if each.damage]
    if as_json:
        click.echo(
            terminal_escape.json_text({"durability": durability, "runs": found, "damaged": len(damaged)})
        )
        return exit_codes.JOURNAL if damaged else exit_codes.COMPLETED
    for each in found:
        if each.damage:
            click.echo(f"{each.run_id[:SHORT]}  DAMAGED  {terminal_escape.clean(each.damage)}")
        else:
            commands = f", {each.commands:,} commands" if each.commands else ""
            click.echo(f"{each.run_id[:SHORT]}  ok  {each.records:,} records, {each.blobs:,} blobs{commands}")
    if durability:
        click.echo(f"durability: {durability} ({PROMISES[durability]})")
    click.echo(f"{len(found):,} runs checked, {len(damaged):,} damaged")
    return exit_codes.JOURNAL if damaged else exit_codes.COMPLETED


async def _verify(prefix: str | None, option: str | None) -> tuple[str, list[VerifyResult]]:
    async with opened(option) as journal:
        chosen = [await find(journal, prefix)] if prefix else await journal.runs()
        return journal.durability, [await _checked(journal, entry.run_id) for entry in chosen]


async def _checked(journal: Journal, run_id: str) -> VerifyResult:
    """Read everything a run holds; whatever does not verify is its damage."""
    rows: Sequence[Row] = ()
    blobs: dict[str, bytes] = {}
    commands = 0
    try:
        rows = await journal.read(run_id)
        for row in rows:
            for name in {*row.blobs, *(name for _, name in row.refs)} - set(blobs):
                blobs[name] = await journal.blob(run_id, name)
        _fold(run_id, rows, blobs)
        for command in await journal.commands(run_id):
            commands += 1
            decode_letter(command.body)
    except (JournalError, msgspec.MsgspecError) as error:
        return VerifyResult(run_id, _last(rows), len(blobs), commands, str(error))
    return VerifyResult(run_id, _last(rows), len(blobs), commands)


def _last(rows: Sequence[Row]) -> int:
    return rows[-1].seq if rows else 0


def _fold(run_id: str, rows: Sequence[Row], blobs: dict[str, bytes]) -> RunState:
    """Fold rows whose digests are right; raises JournalCorrupt when they are no run."""
    state = RunState()
    for row in rows:
        try:
            events = decode_events(unpack(row.body, row.refs, blobs) if row.refs else row.body)
            fold_row(state, row, events)
        except (JournalError, LookupError, ValueError, TypeError) as error:
            raise JournalCorrupt(run_id, row.seq, str(error)) from error
    return state


@click.command("export", short_help="Write a run as one JSON file.")
@click.argument("run_id", metavar="RUN")
@journal_option
@click.option(
    "--out", metavar="FILE", help="Write to a new file that only you can read. [default: standard output]"
)
@click.option("--yes", "-y", is_flag=True, help="Replace FILE when it exists.")
def export(run_id: str, journal: str | None, out: str | None, yes: bool) -> int:
    """Write a run as one JSON file, with its blobs and digests; `runs verify FILE` checks it anywhere."""
    if out is not None and Path(out).exists() and not yes:
        raise click.UsageError(f"{out} exists; say --yes to replace it, or name another file.")
    found = asyncio.run(_export(run_id, journal))
    data = terminal_escape.json_text(found) + "\n"
    if out is None:
        sys.stdout.write(data)
        sys.stdout.flush()
        return exit_codes.COMPLETED
    _write(Path(out), data.encode())
    click.echo(
        f"run {found.run_id[:SHORT]}: {len(found.rows):,} rows and {len(found.blobs):,} blobs in {out}",
        err=True,
    )
    return exit_codes.COMPLETED


@click.command("import", short_help="Take in a run that was exported elsewhere.")
@click.argument("file", metavar="FILE")
@journal_option
def import_run(file: str, journal: str | None) -> int:
    """Take in a run from the FILE that `runs export` wrote; it is checked first, and keeps its id.

    It can be shown and gone on with like any other. Exit code 5 when the file is damaged.
    """
    finding, found = _read_file(file)
    if finding.damage:
        raise JournalError(f"{file} is damaged and was not taken in: {finding.damage}")
    asyncio.run(_import(found, journal))
    click.echo(f"run {found.run_id[:SHORT]}: {finding.records:,} records taken in")
    return exit_codes.COMPLETED


async def _import(found: Export, option: str | None) -> None:
    check_name(found.name)
    rows: list[Row] = []
    _chained(found, rows)
    blobs = {name: text.encode() for name, text in found.blobs.items()}
    state = _fold(found.run_id, rows, blobs)
    summary = encode_summary(summary_of(state, rows[-1].seq if rows else 0))
    journal = open_journal(url_of(option, environment()))
    try:
        await restore(journal, found.run_id, rows, blobs, summary, origin=found.origin)
        await journal.rename(found.run_id, found.name)
    finally:
        await journal.close()


async def _export(prefix: str, option: str | None) -> Export:
    async with opened(option) as journal:
        entry = await find(journal, prefix)
        rows = await journal.read(entry.run_id)
        names = {name for row in rows for name in (*row.blobs, *(each for _, each in row.refs))}
        blobs = {name: (await journal.blob(entry.run_id, name)).decode() for name in sorted(names)}
    listed = [
        ExportedRow(
            row.seq,
            row.count,
            row.epoch,
            row.at,
            row.body.decode(),
            row.digest.hex(),
            row.refs,
            row.blobs,
            row.given,
        )
        for row in rows
    ]
    return Export(FORMAT, entry.run_id, entry.created_at, listed, blobs, entry.name, entry.origin)


def _write(path: Path, data: bytes) -> None:
    """All or nothing: a reader never meets half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def verify_file(path: str) -> VerifyResult:
    """Check an exported run without its journal. Raises NotFound, JournalCorrupt when it is no export."""
    return _read_file(path)[0]


def _read_file(path: str) -> tuple[VerifyResult, Export]:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise exit_codes.NotFound(f"{path} cannot be read: {error.strerror}") from error
    try:
        found = msgspec.json.decode(data, type=Export)
    except msgspec.MsgspecError as error:
        raise JournalError(f"{path} is no exported run, or is damaged: {error}") from error
    if not 1 <= found.antiphon_export <= FORMAT:
        raise JournalError(
            f"{path} has export format {found.antiphon_export},"
            f" this Antiphon reads up to {FORMAT}; upgrade it"
        )
    blobs = {name: text.encode() for name, text in found.blobs.items()}
    rows: list[Row] = []
    try:
        for name, blob in blobs.items():
            if blob_digest(blob) != name:
                raise JournalCorrupt(found.run_id, 0, f"blob {name[:16]} does not match its digest")
        _chained(found, rows)
        _fold(found.run_id, rows, blobs)
    except JournalError as error:
        return VerifyResult(found.run_id, _last(rows), len(blobs), 0, str(error)), found
    return VerifyResult(found.run_id, _last(rows), len(blobs), 0), found


def _chained(found: Export, rows: list[Row]) -> None:
    """Check the chain from the run's genesis; the rows that are right are added to `rows`."""
    previous, seq = genesis(found.run_id, found.origin), 0
    for each in found.rows:
        body, digest = each.body.encode(), _digest(found.run_id, each)
        row = Row(each.seq, each.count, each.epoch, each.at, body, each.refs, digest, each.blobs, each.given)
        seq += each.count
        if not follows(row, previous) or each.seq != seq:
            raise JournalCorrupt(found.run_id, each.seq, "the record does not match its digest")
        rows.append(row)
        previous = digest


def _digest(run_id: str, row: ExportedRow) -> bytes:
    try:
        return bytes.fromhex(row.digest)
    except ValueError as error:
        raise JournalCorrupt(run_id, row.seq, "its digest is no hexadecimal number") from error
