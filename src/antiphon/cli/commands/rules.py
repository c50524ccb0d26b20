"""`antiphon rules`: what tools may do beyond one run, in a journal or on a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import click
import msgspec

from antiphon.cli import exit_codes
from antiphon.cli.commands.answer import name_and_pattern
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.draw import clock
from antiphon.cli.duration import seconds_of
from antiphon.cli.source import opened_runs, source_option
from antiphon.cli.store import RunSource, json_option, short_id
from antiphon.cli.user import my_name
from antiphon.values.message import new_id
from antiphon.values.policy import Grant, Ruling, Scope, StandingRule


@click.group()
def rules() -> None:
    """Allow, deny or ask for tools beyond one run: rules that are kept beside the runs.

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
@source_option
@json_option
def add(
    tool: str, verdict: Ruling, run: str | None, project: str | None, owner: str | None,
    match: Sequence[str], agent: str, span: str | None, by: str | None, source: RunSource, as_json: bool,
) -> int:  # fmt: skip
    """Add a rule on TOOL (`*` and `?` match as in file names) for a run, a project or an owner.

    A run that is driven now takes it in when it is opened the next time.
    """
    if source.is_server and by is not None:
        raise click.UsageError("--by is for a journal; a server records whose token it is.")
    now = time.time()
    until = now + seconds_of("--expires-in", span) if span is not None else 0.0
    grant = Grant(tuple(map(name_and_pattern, match)), agent, until)
    scope, key = _one_scope(run, project, owner)
    made = asyncio.run(_add(source, StandingRule(
        f"rule-{new_id()[:12]}", scope, key, tool, verdict, grant, by or my_name(), now
    )))  # fmt: skip
    _say_rules([made], as_json)
    return exit_codes.COMPLETED


async def _add(source: RunSource, rule: StandingRule) -> StandingRule:
    async with opened_runs(source) as runs:
        if rule.scope == "run":
            rule = msgspec.structs.replace(rule, key=(await runs.find(rule.key)).run_id)
        return await runs.add_rule(rule)


def _one_scope(run: str | None, project: str | None, owner: str | None) -> tuple[Scope, str]:
    given: list[tuple[Scope, str | None]] = [("run", run), ("project", project), ("owner", owner)]
    found = [(scope, key) for scope, key in given if key is not None]
    if len(found) != 1 or not found[0][1].strip():
        raise click.UsageError("A rule holds for something: give one of --run, --project and --owner.")
    return found[0]


@rules.command("ls", short_help="List rules.")
@_scope_options
@source_option
@json_option
def ls(run: str | None, project: str | None, owner: str | None, source: RunSource, as_json: bool) -> int:
    """List the rules, oldest first; with --run, --project, --owner those for these."""
    _say_rules(asyncio.run(_listed(source, run, project or "", owner or "")), as_json)
    return exit_codes.COMPLETED


async def _listed(source: RunSource, run: str | None, project: str, owner: str) -> Sequence[StandingRule]:
    async with opened_runs(source) as runs:
        run_id = (await runs.find(run)).run_id if run is not None else ""
        return await runs.rules(run_id, project, owner)


@rules.command("rm", short_help="Drop rules.")
@click.argument("rule_ids", metavar="ID...", nargs=-1, required=True)
@source_option
def rm(rule_ids: Sequence[str], source: RunSource) -> int:
    """Drop rules, as `rules ls` names them. A run that is driven now keeps what it was opened with."""
    asyncio.run(_drop(source, rule_ids))
    return exit_codes.COMPLETED


async def _drop(source: RunSource, rule_ids: Sequence[str]) -> None:
    async with opened_runs(source) as runs:
        for each in rule_ids:
            await runs.drop_rule(each)
            output.say(f"dropped {terminal_escape.line(each, 80)}")


def _say_rules(found: Sequence[StandingRule], as_json: bool) -> None:
    if as_json:
        output.say(terminal_escape.json_text([msgspec.to_builtins(each) for each in found]))
        return
    for each in found:
        key = short_id(each.key) if each.scope == "run" else each.key
        parts = [each.id, each.verdict, each.tool, f"for {each.scope} {key}"]
        reaches = [[f"{name}={pattern}" for name, pattern in reach] for reach in each.grant.reaches]
        parts += [part for at, reach in enumerate(reaches) for part in (["or"] * bool(at) + reach)]
        parts += [f"of {each.grant.agent}"] if each.grant.agent else []
        parts += [f"until {clock('%Y-%m-%d %H:%M', each.grant.until)}"] if each.grant.until else []
        parts += [f"by {each.author}"] if each.author else []
        output.say("  ".join(terminal_escape.line(part, 120) for part in parts))
    if not found:
        output.say("no rules")
