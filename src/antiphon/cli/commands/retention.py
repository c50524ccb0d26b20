"""`runs rm` and `runs prune`: runs that are no longer wanted. Nothing is deleted without --yes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.draw import clock
from antiphon.cli.duration import seconds_of
from antiphon.cli.source import JournalRuns, Runs, file_option, opened_runs, source_option
from antiphon.cli.store import RunSource, json_option, opened, short_id, state_of
from antiphon.errors import JournalError, RunInUse
from antiphon.journal import Journal
from antiphon.journal.listing import RunInfo
from antiphon.kernel.facts.summary import summary_of
from antiphon.kernel.run.rows import fold, fold_records

yes_option = click.option("--yes", "-y", is_flag=True, help="Delete them; without it they are only listed.")


class Candidate(Struct, frozen=True):
    """A run that was asked for. state: as `runs ls` shows it. unfinished: why it may not be over, or empty.

    kept: why it is not deleted, or empty.
    """

    entry: RunInfo
    state: str
    title: str
    kept: str = ""
    unfinished: str = ""


OPEN = {"open": "its request is open", "waiting": "it waits for a person"}


@click.command("rm", short_help="Delete runs.")
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@source_option
@json_option
@yes_option
def rm(run_ids: Sequence[str], source: RunSource, as_json: bool, yes: bool) -> int:
    """Delete each RUN with all its records, texts and commands. There is no way back: `runs export` first.

    A run that a living process drives is refused (exit code 9), and then none is deleted. One that is
    suspended or waits for a person is deleted, since it was named. What is deleted stays in the file, where
    nobody finds it, until `antiphon journal vacuum` makes the file smaller.
    """
    return asyncio.run(_rm(run_ids, source, as_json, yes))


async def _rm(prefixes: Sequence[str], source: RunSource, as_json: bool, yes: bool) -> int:
    async with opened_runs(source) as runs:
        chosen = await runs.find_all(prefixes)
        for entry in chosen:
            if await runs.is_held(entry):
                raise RunInUse(entry.run_id, entry.owner)
        found = [await _looked_at(runs, entry) for entry in chosen]
        return await _delete(runs, found, as_json, yes, strict=True)


@click.command("prune", short_help="Delete old runs.")
@file_option
@json_option
@yes_option
@click.option("--older", metavar="TIME", help="Only runs whose last record is older: 90d, 12h, 2w.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(min=0), help="Only runs that are not among the N newest."
)
@click.option(
    "--unfinished", is_flag=True, help="Also runs with an open request, question or unread command."
)
def prune(
    journal: str | None, as_json: bool, yes: bool, older: str | None, keep: int | None, unfinished: bool
) -> int:
    """Delete the runs that --older and --keep let go; where both are given, those that both let go.

    So `--older 90d --keep 1000` keeps every run with a record of the last 90 days, and in any case the 1000
    runs whose last records are the newest. Never deleted are runs that a living process drives, and damaged
    ones (`runs rm` deletes these); nor, without --unfinished, those with an open request or question, or with
    a command that nobody has read yet.
    """
    if older is None and keep is None:
        raise click.UsageError("Say which runs: --older TIME, --keep N, or both.")
    age = seconds_of("--older", older) if older is not None else None
    return asyncio.run(_prune(journal, as_json, yes, age, keep or 0, unfinished))


async def _prune(
    option: str | None, as_json: bool, yes: bool, age: float | None, keep: int, unfinished: bool
) -> int:
    async with opened(option) as journal:
        runs = sorted(await journal.runs(), key=lambda entry: entry.updated_at, reverse=True)
        before = time.time() - age if age is not None else float("inf")
        found = []
        for entry in runs[keep:]:
            if entry.updated_at < before:
                each = await _described(journal, entry)
                spared = each.unfinished if each.state == "damaged" or not unfinished else ""
                found.append(replace(each, kept=each.kept or spared))
        return await _delete(JournalRuns(RunSource(option), journal), found, as_json, yes, strict=False)


async def _looked_at(runs: Runs, entry: RunInfo) -> Candidate:
    """A run that was named, as its records tell it: the list of runs may be wrong."""
    try:
        async with runs.connect(entry.run_id) as run:
            known = summary_of(fold_records(await run.records()), entry.seq)
    except JournalError:
        return Candidate(entry, "damaged", "")
    return Candidate(entry, state_of(entry, known), known.title)


async def _described(journal: Journal, entry: RunInfo) -> Candidate:
    """The run and what speaks against deleting it, told by its records: the list of runs may be wrong."""
    held = f"held by {entry.owner}" if entry.owner else ""
    try:
        state = await fold(journal, entry.run_id)
        posted = await journal.commands(entry.run_id)
    except JournalError:
        return Candidate(entry, "damaged", "", held, "damaged; `runs rm` deletes it by its name")
    known = summary_of(state, entry.seq)
    unfinished = OPEN.get(known.state, "")
    if known.state == "idle" and posted and posted[-1].number > state.command:
        unfinished = "it has commands that nobody has read"
    return Candidate(entry, state_of(entry, known), known.title, held, unfinished)


async def _delete(runs: Runs, found: list[Candidate], as_json: bool, yes: bool, *, strict: bool) -> int:
    """Delete what is not kept. strict: a run that somebody has taken over meanwhile is exit code 9."""
    deleted, kept = list[Candidate](), [each for each in found if each.kept]
    code = exit_codes.COMPLETED
    for each in found:
        if each.kept:
            continue
        if yes:
            try:
                await runs.delete(each.entry.run_id)
            except RunInUse as error:
                kept.append(replace(each, state="running", kept=f"held by {error.owner}"))
                code = exit_codes.TAKEN if strict else code
                continue
        deleted.append(each)
    if as_json:
        output.say(
            terminal_escape.json_text({
                "dry": not yes,
                "deleted": [_listed(each) for each in deleted],
                "kept": [_listed(each) for each in kept],
            })
        )  # fmt: skip
        return code
    for each in deleted:
        output.say(_line(each))
    for each in kept:
        output.say(f"{_line(each)}  KEPT: {terminal_escape.line(each.kept, 100)}")
    if yes:
        output.say(f"{len(deleted):,} runs deleted; `antiphon journal vacuum` gives their space back")
    else:
        output.say(f"{len(deleted):,} runs would be deleted; nothing is without --yes")
    return code


def _line(found: Candidate) -> str:
    entry = found.entry
    day = clock("%Y-%m-%d", entry.updated_at)
    title = terminal_escape.line(f"[{entry.name}] {found.title}" if entry.name else found.title, 60)
    return (f"{short_id(entry.run_id)}  {day}  {found.state}  {entry.seq:,} records  {title}").rstrip()


def _listed(found: Candidate) -> dict[str, Any]:
    entry = found.entry
    return {
        "run_id": entry.run_id,
        "name": entry.name,
        "updated_at": entry.updated_at,
        "state": found.state,
        "records": entry.seq,
        **({"kept": found.kept} if found.kept else {}),
    }
