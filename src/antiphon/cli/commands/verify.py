"""`runs verify`: whether every record is what was written, here or in an exported file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.source import file_option
from antiphon.cli.store import find, json_option, load_export, opened, short_id
from antiphon.errors import JournalCorrupt, JournalError
from antiphon.journal import Journal
from antiphon.journal.listing import RunInfo
from antiphon.journal.port import Row
from antiphon.journal.transfer import named_blobs
from antiphon.kernel.facts.summary import RunSummary, summary_of
from antiphon.kernel.facts.summary import decode as decode_summary
from antiphon.kernel.run.commands import decode as decode_letter
from antiphon.view import export_file
from antiphon.view.export_file import fold_rows

PROMISES = {
    "power": "acknowledged records survive a power cut",
    "process": "acknowledged records survive the death of every process, not a power cut",
    "none": "records live as long as this process",
}


DIGESTS = (
    "digests: without a key; they show damage, and changes by whoever did not reckon with them."
    " Who can write the file can write records, digests and anchor anew, and no check finds it"
)
SEALED = (
    "digests: sealed with a key; nobody without it can write records, commands or names that pass."
    " Who can write all files can put an older copy of all of them back, and no check finds it"
)


class VerifyResult(Struct, frozen=True):
    """What checking one run found; `damage` is empty when all is well."""

    run_id: str
    records: int
    blobs: int
    commands: int
    damage: str = ""


class Verification(Struct, frozen=True):
    """What checking a journal or a file found. damage: of the journal beside its runs; unknown: what could
    not be checked."""

    durability: str
    runs: list[VerifyResult]
    sealed: bool = False
    damage: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@click.command("verify", short_help="Check every record against its digest.")
@click.argument("run_id", metavar="[RUN|FILE]", required=False)
@file_option
@json_option
def verify(run_id: str | None, journal: str | None, as_json: bool) -> int:
    """Check every record of RUN, of all runs, or of an exported FILE against its digest.

    Each row's digest covers the row before it, so a change, a loss or an addition shows; blobs and commands
    are checked too, and every run is folded and compared with its summary. Of a whole journal also that no
    run is gone. It says what it cannot know. Exit code 5 when anything is damaged.
    """
    if run_id and (os.sep in run_id or run_id.endswith(".json")):
        checked = Verification("", [verify_file(run_id)])
    else:
        checked = asyncio.run(_verify(run_id, journal))
    durability, found = checked.durability, checked.runs
    damaged = [each for each in found if each.damage]
    code = exit_codes.JOURNAL if damaged or checked.damage else exit_codes.COMPLETED
    if as_json:
        output.say(terminal_escape.json_text({**msgspec.structs.asdict(checked), "damaged": len(damaged)}))
        return code
    for each in found:
        if each.damage:
            output.say(f"{short_id(each.run_id)}  DAMAGED  {terminal_escape.line(each.damage)}")
        else:
            commands = f", {each.commands:,} commands" if each.commands else ""
            counts = f"{each.records:,} records, {each.blobs:,} blobs{commands}"
            output.say(f"{short_id(each.run_id)}  ok  {counts}")
    for text in checked.damage:
        output.say(f"journal  DAMAGED  {terminal_escape.line(text)}")
    for text in checked.unknown:
        output.say(f"unknown: {terminal_escape.line(text)}")
    if durability:
        output.say(f"durability: {durability} ({PROMISES[durability]})")
    output.say(SEALED if checked.sealed else DIGESTS)
    output.say(f"{len(found):,} runs checked, {len(damaged):,} damaged")
    return code


async def _verify(prefix: str | None, option: str | None) -> Verification:
    async with opened(option) as journal:
        chosen = [await find(journal, prefix)] if prefix else await journal.runs()
        found = await verify_runs(journal, chosen)
        # What a file beside its runs can tell; only the SQLite journal has one.
        audit = getattr(journal, "audit", None)
        one = chosen[0].run_id if prefix else ""
        damage, unknown = await audit(one) if audit is not None else ((), ())
        sealed = bool(getattr(journal, "sealed", False))
        return Verification(journal.durability, found, sealed, damage, unknown)


async def verify_runs(journal: Journal, entries: Sequence[RunInfo]) -> list[VerifyResult]:
    """Check everything that runs hold."""
    return [await _checked(journal, entry) for entry in entries]


async def _checked(journal: Journal, entry: RunInfo) -> VerifyResult:
    """Read everything a run holds; whatever does not verify is its damage."""
    run_id = entry.run_id
    rows: Sequence[Row] = ()
    blobs: dict[str, bytes] = {}
    commands = 0
    try:
        rows = await journal.read(run_id)
        for name in named_blobs(rows):
            blobs[name] = await journal.blob(run_id, name)
        _compare_summary(entry, rows, blobs)
        for command in await journal.commands(run_id):
            commands += 1
            decode_letter(command.body)
    except (JournalError, msgspec.MsgspecError) as error:
        return VerifyResult(run_id, _last(rows), len(blobs), commands, str(error))
    return VerifyResult(run_id, _last(rows), len(blobs), commands)


def _compare_summary(entry: RunInfo, rows: Sequence[Row], blobs: dict[str, bytes]) -> None:
    """Raise JournalCorrupt when what lists show of a run is not what its records say; folds all of them."""
    told: RunSummary | None = None
    if entry.summary:
        try:
            msgspec.json.decode(entry.summary)
            told = decode_summary(entry.summary)
        except msgspec.ValidationError:
            # Another version's own way to write it: lists do without it.
            told = None
        except msgspec.MsgspecError as error:
            raise JournalCorrupt(entry.run_id, entry.seq, f"its summary is no JSON ({error})") from error
    at = next((place for place, row in enumerate(rows, 1) if told is not None and row.seq == told.seq), 0)
    state = fold_rows(entry.run_id, rows[:at], blobs)
    found = summary_of(state, told.seq) if told is not None else None
    if told is not None and found is not None and not told.activity:
        # It was written before lists showed these.
        found = replace(found, asked=0, asked_since=0.0, questions=(), activity=(), activity_span=0.0)
    if told is not None and ((told.seq and not at) or told != found):
        raise JournalCorrupt(entry.run_id, told.seq, "its summary is not what its records say")
    fold_rows(entry.run_id, rows[at:], blobs, state)


def _last(rows: Sequence[Row]) -> int:
    return rows[-1].seq if rows else 0


def verify_file(path: str) -> VerifyResult:
    """Check an exported run without its journal. Raises NotFound, JournalError when it is no export."""
    run = load_export(path)
    try:
        export_file.checked(run)
    except JournalError as error:
        return VerifyResult(run.run_id, _last(run.rows), len(run.blobs), 0, str(error))
    return VerifyResult(run.run_id, _last(run.rows), len(run.blobs), 0)
