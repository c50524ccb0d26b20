"""`antiphon journal` and `antiphon rules`: what concerns the journal as a whole, and not one of its runs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.cli import exit_codes
from antiphon.cli.commands.answer import my_name, name_and_pattern
from antiphon.cli.commands.verify import verify_runs
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.draw import clock
from antiphon.cli.duration import seconds_of
from antiphon.cli.source import file_option
from antiphon.cli.store import find, json_option, opened, short_id, url_of
from antiphon.config.dotenv import environment
from antiphon.errors import JournalError, UnknownName, UserError
from antiphon.journal.files.seal import VARIABLE, Seal, journal_key
from antiphon.journal.port import Journal, StoredCommand, StoredRun
from antiphon.kernel.run.standing import all_rules, keep_rule, standing_rules
from antiphon.values.message import new_id
from antiphon.values.policy import Grant, Ruling, Scope, StandingRule
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
    """Copy every run of a damaged journal, as far as its records verify, to the new journal NEW.

    The damaged journal is only read. Says of every run what was kept and what is lost.
    """
    path = journal_file(journal)
    if Path(out).exists():
        raise click.UsageError(f"{out} exists; name a file that does not.")
    copied = asyncio.run(_salvage(path, Path(out), Path(out).absolute().parent))
    damaged = [each for each in copied if each.lost]
    if as_json:
        output.say(terminal_escape.json_text({"runs": copied, "damaged": len(damaged)}))
        return exit_codes.COMPLETED
    for each in copied:
        commands = f", {each.commands:,} commands" if each.commands else ""
        lost = f"; LOST: {terminal_escape.line(each.lost)}" if each.lost else ""
        records = f"{each.records:,} records, {each.blobs:,} blobs{commands}"
        output.say(f"{short_id(each.run_id)}  {records}{lost}")
    output.say(f"{len(copied):,} runs copied to {out}, {len(damaged):,} of them not whole")
    return exit_codes.COMPLETED


async def _salvage(path: Path, out: Path, beside: Path) -> list[CopiedRun]:
    # Who only looks at runs does not load this.
    from antiphon.journal.files.salvage import salvage as salvaged
    from antiphon.journal.sqlite import SqliteJournal

    target = SqliteJournal(out, key=journal_key())
    try:
        return [await _copied(target, run) for run in salvaged(path, beside, Seal(journal_key()))]
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


# -- rules ----------------------------------------------------------------------------------------


@click.group()
def rules() -> None:
    """Allow, deny or ask for tools beyond one run: rules that the journal keeps beside the runs.

    A rule holds for one run, or for the runs of a project or an owner, in those that are opened from now on.
    Deny beats allow, which beats ask, which beats the run's preset.
    """


_scopes = (
    click.option("--run", metavar="RUN", help="For this run."),
    click.option("--project", metavar="NAME", help="For the runs of this project."),
    click.option("--owner", metavar="NAME", help="For the runs of this owner."),
)


def _scope_options(command: Callable[..., int]) -> Callable[..., int]:
    for option in reversed(_scopes):
        command = option(command)
    return command


@rules.command("add", short_help="Add a rule.")
@click.argument("tool", metavar="TOOL")
@click.argument("verdict", metavar="allow|deny|ask", type=click.Choice(["allow", "deny", "ask"]))
@_scope_options
@click.option("--match", metavar="NAME=PATTERN", multiple=True,
              help="Only calls whose argument NAME matches, as file names do.")  # fmt: skip
@click.option("--agent", metavar="NAME", default="", help="Only calls of this agent.")
@click.option("--expires-in", "span", metavar="TIME", help="Only for so long, such as 30m, 2h or 1d.")
@click.option("--by", metavar="NAME", help="Who makes it. [default: your user name]")
@file_option
@json_option
def add(
    tool: str, verdict: Ruling, run: str | None, project: str | None, owner: str | None,
    match: Sequence[str], agent: str, span: str | None, by: str | None, journal: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Add a rule on TOOL (`*` and `?` match as in file names) for a run, a project or an owner.

    A run that is driven now takes it in when it is opened the next time.
    """
    now = time.time()
    until = now + seconds_of("--expires-in", span) if span is not None else 0.0
    grant = Grant(tuple(map(name_and_pattern, match)), agent, until)
    scope, key = _one_scope(run, project, owner)
    made = asyncio.run(_add(journal, StandingRule(
        f"rule-{new_id()[:12]}", scope, key, tool, verdict, grant, by or my_name(), now
    )))  # fmt: skip
    _say_rules([made], as_json)
    return exit_codes.COMPLETED


async def _add(option: str | None, rule: StandingRule) -> StandingRule:
    async with opened(option) as journal:
        if rule.scope == "run":
            rule = replace(rule, key=(await find(journal, rule.key)).run_id)
        await keep_rule(journal, rule)
    return rule


def _one_scope(run: str | None, project: str | None, owner: str | None) -> tuple[Scope, str]:
    given: list[tuple[Scope, str | None]] = [("run", run), ("project", project), ("owner", owner)]
    found = [(scope, key) for scope, key in given if key is not None]
    if len(found) != 1 or not found[0][1].strip():
        raise click.UsageError("A rule holds for something: give one of --run, --project and --owner.")
    return found[0]


@rules.command("ls", short_help="List rules.")
@_scope_options
@file_option
@json_option
def ls(run: str | None, project: str | None, owner: str | None, journal: str | None, as_json: bool) -> int:
    """List the rules, oldest first; with --run, --project, --owner those for these."""
    _say_rules(asyncio.run(_listed(journal, run, project or "", owner or "")), as_json)
    return exit_codes.COMPLETED


async def _listed(option: str | None, run: str | None, project: str, owner: str) -> Sequence[StandingRule]:
    async with opened(option) as journal:
        if run is None and not project and not owner:
            return await all_rules(journal)
        run_id = (await find(journal, run)).run_id if run is not None else ""
        return await standing_rules(journal, run=run_id, project=project, owner=owner)


@rules.command("rm", short_help="Drop rules.")
@click.argument("rule_ids", metavar="ID...", nargs=-1, required=True)
@file_option
def rm(rule_ids: Sequence[str], journal: str | None) -> int:
    """Drop rules, as `rules ls` names them. A run that is driven now keeps what it was opened with."""
    asyncio.run(_drop(journal, rule_ids))
    return exit_codes.COMPLETED


async def _drop(option: str | None, rule_ids: Sequence[str]) -> None:
    async with opened(option) as journal:
        for each in rule_ids:
            try:
                await journal.drop_rule(each)
            except UnknownName as error:
                raise exit_codes.NotFound(str(error)) from error
            output.say(f"dropped {terminal_escape.line(each, 80)}")


def _say_rules(found: Sequence[StandingRule], as_json: bool) -> None:
    if as_json:
        output.say(terminal_escape.json_text([msgspec.to_builtins(each) for each in found]))
        return
    for each in found:
        key = short_id(each.key) if each.scope == "run" else each.key
        parts = [each.id, each.verdict, each.tool, f"for {each.scope} {key}"]
        parts += [f"{name}={pattern}" for name, pattern in each.grant.arguments]
        parts += [f"of {each.grant.agent}"] if each.grant.agent else []
        parts += [f"until {clock('%Y-%m-%d %H:%M', each.grant.until)}"] if each.grant.until else []
        parts += [f"by {each.author}"] if each.author else []
        output.say("  ".join(terminal_escape.line(part, 120) for part in parts))
    if not found:
        output.say("no rules")
