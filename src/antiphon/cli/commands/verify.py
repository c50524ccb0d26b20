"""`runs verify`: whether every record is what was written, here or in an exported file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import click
import msgspec
from msgspec import Struct

from antiphon.cli import exit_codes, export_file
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import find, journal_option, json_option, opened, short_id
from antiphon.errors import JournalError
from antiphon.journal import Journal
from antiphon.journal.port import Row
from antiphon.journal.transfer import named_blobs
from antiphon.kernel.run.commands import decode as decode_letter

PROMISES = {
    "power": "acknowledged records survive a power cut",
    "process": "acknowledged records survive the death of every process, not a power cut",
    "none": "records live as long as this process",
}


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
        output.say(
            terminal_escape.json_text({"durability": durability, "runs": found, "damaged": len(damaged)})
        )
        return exit_codes.JOURNAL if damaged else exit_codes.COMPLETED
    for each in found:
        if each.damage:
            output.say(f"{short_id(each.run_id)}  DAMAGED  {terminal_escape.line(each.damage)}")
        else:
            commands = f", {each.commands:,} commands" if each.commands else ""
            output.say(
                f"{short_id(each.run_id)}  ok  {each.records:,} records, {each.blobs:,} blobs{commands}"
            )
    if durability:
        output.say(f"durability: {durability} ({PROMISES[durability]})")
    output.say(f"{len(found):,} runs checked, {len(damaged):,} damaged")
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
        for name in named_blobs(rows):
            blobs[name] = await journal.blob(run_id, name)
        export_file.fold_rows(run_id, rows, blobs)
        for command in await journal.commands(run_id):
            commands += 1
            decode_letter(command.body)
    except (JournalError, msgspec.MsgspecError) as error:
        return VerifyResult(run_id, _last(rows), len(blobs), commands, str(error))
    return VerifyResult(run_id, _last(rows), len(blobs), commands)


def _last(rows: Sequence[Row]) -> int:
    return rows[-1].seq if rows else 0


def verify_file(path: str) -> VerifyResult:
    """Check an exported run without its journal. Raises NotFound, JournalError when it is no export."""
    run = export_file.load(path)
    try:
        export_file.checked(run)
    except JournalError as error:
        return VerifyResult(run.run_id, _last(run.rows), len(run.blobs), 0, str(error))
    return VerifyResult(run.run_id, _last(run.rows), len(run.blobs), 0)
