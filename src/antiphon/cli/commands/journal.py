"""`antiphon journal`: what concerns the journal as a whole, and not one of its runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click
from msgspec import Struct

from antiphon.cli import exit_codes
from antiphon.cli.commands.verify import verify_runs
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.source import file_option
from antiphon.cli.store import json_option, opened, short_id, url_of
from antiphon.config.dotenv import environment
from antiphon.errors import JournalError, UserError
from antiphon.journal.files.seal import VARIABLE, Seal, journal_key
from antiphon.journal.port import Journal, StoredCommand, StoredRun
from antiphon.view.export_file import fold_rows

if TYPE_CHECKING:
    from antiphon.journal.files.salvage import SalvagedRun


@click.group()
def journal() -> None:
    """Look after the journal that holds the runs."""


@journal.command("vacuum", short_help="Give the space of deleted runs back.")
@file_option
@json_option
def vacuum(journal: str | None, as_json: bool) -> int:
    """Give the space of deleted runs back to the system, by rewriting the journal without it.

    It needs twice as much free space as what is left takes, and nobody may hold a run: exit code 9 when
    somebody does, 5 when the space is missing. Nothing is lost when it is interrupted.
    """
    freed = asyncio.run(_vacuum(journal))
    if as_json:
        output.say(terminal_escape.json_text({"freed_bytes": freed}))
    else:
        output.say(f"{max(freed, 0):,} bytes given back")
    return exit_codes.COMPLETED


async def _vacuum(option: str | None) -> int:
    async with opened(option) as journal:
        return await journal.compact()


@journal.command("seal", short_help="Seal a journal with a key, or with another one.")
@file_option
@click.option(
    "--was",
    metavar="VARIABLE",
    default="",
    help="The variable of the environment that holds the key it was sealed with until now.",
)
@click.option("--off", is_flag=True, help="Take the seal away.")
@json_option
def seal(journal: str | None, was: str, off: bool, as_json: bool) -> int:
    """Seal a journal with the key in $ANTIPHON_JOURNAL_KEY, so that nobody without it can forge its runs.

    Every run is checked first, and one that is damaged stops it (exit code 5); beyond that, what stands in
    the journal is taken for genuine. Nobody may hold a run meanwhile: exit code 9 when somebody does.
    """
    key = journal_key()
    if not key:
        raise click.UsageError(f"{VARIABLE} is not set in the environment; it holds the key.")
    if was and (off or not os.environ.get(was)):
        why = "--off takes no other key" if off else f"{was} is not set in the environment"
        raise click.UsageError(f"{why}; --was names the variable that holds the key until now.")
    before = os.environ[was] if was else key if off else ""
    count = asyncio.run(_seal(journal_file(journal), before, "" if off else key))
    if as_json:
        output.say(terminal_escape.json_text({"runs": count, "sealed": not off}))
    else:
        output.say(f"{count:,} runs {'have no seal any more' if off else 'sealed'}")
    return exit_codes.COMPLETED


async def _seal(path: Path, before: str, key: str) -> int:
    from antiphon.journal.sqlite import SqliteJournal

    try:
        journal = SqliteJournal(path, key=before)
    except JournalError:
        if before or not key:
            raise
        # Sealed with this key already, or with one that nobody named.
        journal = SqliteJournal(path, key=key)
    try:
        damaged = [each for each in await verify_runs(journal, await journal.runs()) if each.damage]
        damage, _ = await journal.audit()
        if damaged or damage:
            what = f"run {short_id(damaged[0].run_id)}: {damaged[0].damage}" if damaged else damage[0]
            raise JournalError(f"Journal {path} is damaged, and was not sealed: {what}")
        return await journal.seal_all(key)
    finally:
        await journal.close()


class CopiedRun(Struct, frozen=True):
    """One run of a copy: what is in it, and what could not be read."""

    run_id: str
    records: int
    blobs: int
    commands: int
    lost: str = ""


class CopiedRules(Struct, frozen=True):
    """The rules of a copy: how many there are, and those that could not be read."""

    kept: int
    lost: list[str]


def journal_file(option: str | None) -> Path:
    """The file of the journal that a command works on. Raises NotFound."""
    url = url_of(option, environment())
    path = Path(unquote(urlsplit(url).path[1:]))
    if not url.startswith("sqlite:") or not path.is_file():
        raise exit_codes.NotFound(f"There is no journal file at {path}; --journal PATH names another")
    return path


@journal.command("salvage", short_help="Copy what can be read of a damaged journal.")
@file_option
@click.option("--out", metavar="NEW", required=True, help="The new journal; it must not exist yet.")
@json_option
def salvage(journal: str | None, out: str, as_json: bool) -> int:
    """Copy the runs and rules of a damaged journal, as far as they verify, to the new journal NEW.

    The damaged journal is only read. Says of every run what was kept and what is lost.
    """
    path = journal_file(journal)
    if Path(out).exists():
        raise click.UsageError(f"{out} exists; name a file that does not.")
    copied, rules = asyncio.run(_salvage(path, Path(out), Path(out).absolute().parent))
    damaged = [each for each in copied if each.lost]
    if as_json:
        found = {"runs": copied, "damaged": len(damaged), "rules": rules.kept, "lost_rules": rules.lost}
        output.say(terminal_escape.json_text(found))
        return exit_codes.COMPLETED
    for each in copied:
        commands = f", {each.commands:,} commands" if each.commands else ""
        lost = f"; LOST: {terminal_escape.line(each.lost)}" if each.lost else ""
        records = f"{each.records:,} records, {each.blobs:,} blobs{commands}"
        output.say(f"{short_id(each.run_id)}  {records}{lost}")
    if rules.kept:
        output.say(f"rules  {rules.kept:,} that hold beyond one run")
    for what in rules.lost:
        output.say(f"rules  LOST: {terminal_escape.line(what)}")
    output.say(f"{len(copied):,} runs copied to {out}, {len(damaged):,} of them not whole")
    return exit_codes.COMPLETED


async def _salvage(path: Path, out: Path, beside: Path) -> tuple[list[CopiedRun], CopiedRules]:
    # Who only looks at runs does not load this.
    from antiphon.journal.files.salvage import salvage as salvaged
    from antiphon.journal.sqlite import SqliteJournal

    target = SqliteJournal(out, key=journal_key())
    try:
        with salvaged(path, beside, Seal(journal_key())) as found:
            runs = [await _copied(target, run) for run in found.runs()]
            rules, lost = found.rules()
            for each in rules:
                await target.add_rule(each)
        return runs, CopiedRules(len(rules), lost)
    finally:
        await target.close()


async def _copied(target: Journal, run: SalvagedRun) -> CopiedRun:
    """Store what is left of a run; what no journal takes in (an id that the damage made) is lost."""
    taken, commands = _commands_of(run)
    try:
        kept = run.origin, run.name, b"", taken, run.labels
        await target.restore(StoredRun(run.run_id, run.rows, run.blobs, *kept))
        for command in commands:
            await target.post(run.run_id, command.key, command.body)
    except UserError as error:
        lost = "; ".join(filter(None, (run.lost, str(error))))
        return CopiedRun(run.run_id, 0, 0, 0, lost)
    last = run.rows[-1].seq if run.rows else 0
    return CopiedRun(run.run_id, last, len(run.blobs), len(commands), run.lost)


def _commands_of(run: SalvagedRun) -> tuple[int, list[StoredCommand]]:
    """The command after which the copy begins to count, and those that are posted to it: all that there are,
    when they reach as far as the run's records say that it had taken them in."""
    try:
        taken = fold_rows(run.run_id, run.rows, run.blobs).command
    except JournalError:
        # Rows that are no events of ours name no commands.
        taken = 0
    newest = run.commands[-1].number if run.commands else 0
    return (run.commands[0].number - 1, run.commands) if newest and newest >= taken else (taken, [])
