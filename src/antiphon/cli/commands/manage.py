"""`runs resume`, `check`, `rename`, `move` and `cancel`: what changes a run that exists, or would."""

from __future__ import annotations

import asyncio
import sys

import click
from msgspec.structs import replace

from antiphon import Record, open_run
from antiphon.cli import exit_codes
from antiphon.cli.commands.run import (
    check_option,
    endpoint_option,
    events_option,
    folder_option,
    model_option,
    quiet_option,
)
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.tree import CallTree
from antiphon.cli.display.watch import interactive
from antiphon.cli.session.project_rules import projects_option, run_rules
from antiphon.cli.session.request import (
    COMMAND_LINE,
    DisplayOptions,
    Missing,
    Request,
    finish,
    perform,
    result_of,
)
from antiphon.cli.source import (
    RunAnywhere,
    opened_runs,
    opened_server,
    refuse_options,
    source_option,
)
from antiphon.cli.store import RunSource, find, json_option, opened, short_id
from antiphon.cli.target import Target, load_target
from antiphon.config.dotenv import environment
from antiphon.errors import AgentsMissing, UserError, visible
from antiphon.journal.listing import MAX_NAME, RunInfo, check_name
from antiphon.kernel.run.open import compare_team
from antiphon.kernel.run.rows import RecordReader, fold, fold_records
from antiphon.values.result import Difference
from antiphon.view import RunTree

CHOICES = (
    "Nothing was changed. `runs resume` with this target goes on as said above; resume with the earlier team"
    " to keep what is gone,"
    " `runs cancel` what is in flight, or resume with --renamed OLD=NEW (an agent has another name now)"
    " or --missing drop (what is gone is forgotten)."
)

PATIENCE = 5.0
"""Seconds that an owner gets to take a cancellation in before the command reports without it."""


def _renamed(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """New names by old ones, from texts OLD=NEW."""
    found: dict[str, str] = {}
    for each in given:
        old, _, new = each.partition("=")
        if not old.strip() or not new.strip():
            raise click.BadParameter(f"{each!r} is not OLD=NEW, two names of agents", context, parameter)
        if old in found:
            raise click.BadParameter(f"{old!r} is given two new names", context, parameter)
        found[old] = new
    return found


@click.command("resume", short_help="Resume a run.")
@click.argument("run_id", metavar="RUN")
@click.argument("target", required=False)
@model_option
@endpoint_option
@folder_option
@source_option
@events_option
@quiet_option
@projects_option
@click.option(
    "--renamed",
    metavar="OLD=NEW",
    multiple=True,
    callback=_renamed,
    help="The run's agent OLD is called NEW in TARGET and keeps its conversation; again for each.",
)
@click.option(
    "--missing",
    type=click.Choice(["rest", "drop", "refuse"]),
    default="rest",
    show_default=True,
    help="The run's agents that TARGET lacks: leave them at rest, forget them, or do not resume.",
)
def resume(
    run_id: str,
    target: str | None,
    model: str | None,
    endpoints: tuple[str, ...],
    folder: str | None,
    source: RunSource,
    as_json: bool,
    quiet: bool,
    projects: str | None,
    renamed: dict[str, str],
    missing: Missing,
) -> int:
    """Resume a run with the agents of TARGET. What has ended is not done again.

    A run that has ended already is not changed: its answer is printed once more. With --server the server
    goes on with it: TARGET is one of its teams then, and needed only for a run that no server has started.
    """
    if source.is_server:
        refuse_options("model", "endpoints", "folder", "renamed", "missing", "projects")
        manner = DisplayOptions(target or "", source, as_json=as_json, quiet=quiet)
        return asyncio.run(_resume_there(run_id, manner))
    if target is None:
        raise click.UsageError("Missing argument 'TARGET'.")
    loaded = load_target(target, folder)
    manner = DisplayOptions(
        target, source, folder, model, as_json, quiet, endpoints=endpoints, projects=projects
    )
    return asyncio.run(_resume(run_id, loaded, manner, Request(renamed=renamed, missing=missing)))


async def _resume_there(prefix: str, manner: DisplayOptions) -> int:
    # Only where a server is asked: it takes long to import.
    from antiphon.cli.session.elsewhere import follow

    async with opened_server(manner.source) as runs:
        entry = await runs.find(prefix)
        async with runs.connect(entry.run_id) as run:
            records = await run.records()
        tree = RunTree.of(records)
        if tree.closed or not tree.requests:
            return await _told_again(entry, records, manner)
        if not entry.owner:
            await runs.resume(entry.run_id, manner.target)
        calls = tuple(tree.requests)
        return await follow(runs, entry.run_id, calls, tree.seq, manner, resumed=not entry.owner)


async def _resume(prefix: str, target: Target, manner: DisplayOptions, asked: Request) -> int:
    async with opened(manner.source.journal) as journal:
        entry = await find(journal, prefix)
        state = await fold(journal, entry.run_id)
        user = state.activations.get(0)
        changes = bool(asked.renamed) or asked.missing != "rest"
        try:
            # A run whose first record could not be stored has nobody in it.
            if not state.closed and user is not None and user.open:
                ends_it = isinstance(state.data, dict) and COMMAND_LINE in state.data
                calls = tuple(user.open)
                request = replace(asked, run_id=entry.run_id, after=entry.seq, calls=calls, ends=ends_it)
                return await perform(request, target, manner, journal)
            if changes:
                standing, said = await run_rules(journal, manner.projects, entry.run_id)
                if said and not manner.quiet:
                    exit_codes.remark(said)
                # Nothing is to be done, but the team is another one from now on; a closed run refuses.
                async with open_run(
                    target.agents, journal=journal, model=manner.model, run_id=entry.run_id,
                    interactive=interactive(), renamed=asked.renamed, missing=asked.missing,
                    rules=standing,
                    endpoints=target.with_endpoints(manner.endpoints, manner.model),
                ) as run:  # fmt: skip
                    await run.until_durable()
                output.tell(f"run {short_id(entry.run_id)}: its agents are those of {target.text} now")
        except AgentsMissing as error:
            raise UserError(
                f"Not resumed: run {short_id(entry.run_id)} has agents that {target.text} lacks:"
                f" {', '.join(map(visible, error.names))}. Say --renamed OLD=NEW for each that has another"
                " name now, --missing drop to forget them, or --missing rest to leave them at rest"
            ) from error
        records = await RecordReader(journal, entry.run_id).read()
        return await _told_again(entry, records, manner)


async def _told_again(entry: RunInfo, records: list[Record], manner: DisplayOptions) -> int:
    """The answer of a run that is over."""
    state, tree = fold_records(records), CallTree()
    user = state.activations.get(0)
    ended = list(user.done) if user is not None else []
    if not ended:
        raise exit_codes.NotFound(
            f"Run {short_id(entry.run_id)} has no request to go on with; ask anew with `antiphon run`"
        )
    for record in records:
        tree.take(record)
    if not manner.quiet and not manner.as_json:
        output.tell(f"run {short_id(entry.run_id)} had ended already")
    result = result_of(state, entry.run_id, ended[-1])
    return finish([result], manner, entry.run_id, tree, entry.updated_at - entry.created_at)


@click.command("check", short_help="Say what resuming a run with a team would meet.")
@click.argument("run_id", metavar="RUN")
@click.argument("target", required=False)
@model_option
@endpoint_option
@folder_option
@source_option
@json_option
def check(
    run_id: str,
    target: str | None,
    model: str | None,
    endpoints: tuple[str, ...],
    folder: str | None,
    source: RunSource,
    as_json: bool,
) -> int:
    """Compare the agents of TARGET with those that RUN was last opened with, and change nothing.

    Said are agents, tools, hooks, models, prompts and options that differ, and what each means for the run;
    `!` marks what stands in the way: work in flight that fails or is done by other code, a conversation at
    rest that is out of reach, a permission that holds no more. The exit code is 0 when nothing does, else 1.
    With --server TARGET is one of its teams; by default that of the run.
    """
    if source.is_server:
        refuse_options("model", "endpoints", "folder")
        return asyncio.run(_check_there(run_id, target or "", source, as_json))
    if target is None:
        raise click.UsageError("Missing argument 'TARGET'.")
    return asyncio.run(_check(run_id, load_target(target, folder), model, endpoints, source, as_json))


async def _check(
    prefix: str, target: Target, model: str | None, endpoints: tuple[str, ...], source: RunSource,
    as_json: bool,
) -> int:  # fmt: skip
    async with opened(source.journal) as journal:
        entry = await find(journal, prefix)
        found = await compare_team(
            journal, entry.run_id, target.agents, model=model, env=environment(),
            endpoints=target.with_endpoints(endpoints, model),
        )  # fmt: skip
    return _compared(entry, found, as_json)


async def _check_there(prefix: str, team: str, source: RunSource, as_json: bool) -> int:
    async with opened_server(source) as runs:
        entry = await runs.find(prefix)
        return _compared(entry, await runs.check(entry.run_id, team), as_json)


def _compared(entry: RunInfo, found: list[Difference] | None, as_json: bool) -> int:
    """Say how a team differs from that of a run; the exit code."""
    blocked = any(each.blocks for each in found or ())
    if as_json:
        said = {"run_id": entry.run_id, "known": found is not None, "blocked": blocked}
        output.say(terminal_escape.json_text({**said, "differences": found or []}))
    elif found is None:
        output.say(f"run {short_id(entry.run_id)} names no team; there is nothing to compare")
    else:
        for each in found:
            output.say(_line(each))
        count = sum(each.blocks for each in found)
        output.say(f"{len(found)} differences, {count} in the way" if found else "the team is the same")
        if blocked:
            output.tell(CHOICES)
    return exit_codes.FAILED if blocked else exit_codes.COMPLETED


def _line(found: Difference) -> str:
    """One difference in one line."""
    whose = "" if found.agent in ("", found.name) else f" of {found.agent}"
    text = f"{'!' if found.blocks else ' '} {found.what} {found.name}{whose} {found.change}: {found.means}"
    return terminal_escape.line(text, 400)


@click.command("rename", short_help="Give a run a name.")
@click.argument("run_id", metavar="RUN")
@click.argument("name")
@source_option
def rename(run_id: str, name: str, source: RunSource) -> int:
    """Call a run NAME: it is listed under it and found by it. An empty NAME takes the name away.

    Its records do not change, so a run that is over may be renamed, and one that somebody drives.
    """
    name = name.strip()
    try:
        check_name(name)
    except UserError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from error
    return asyncio.run(_rename(run_id, name, source))


async def _rename(prefix: str, name: str, source: RunSource) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        await runs.rename(entry.run_id, name)
    short = short_id(entry.run_id)
    output.say(
        f"run {short} is called {terminal_escape.line(name, MAX_NAME)}"
        if name
        else f"run {short} has no name"
    )
    return exit_codes.COMPLETED


@click.command("move", short_help="Make a run part of a project.")
@click.argument("run_id", metavar="RUN")
@click.argument("project")
@source_option
def move(run_id: str, project: str, source: RunSource) -> int:
    """Make a run part of PROJECT: it is listed there, and the project's rules hold once it is opened again.

    An empty PROJECT makes it part of none. Its records do not change. A server takes up a run of a project's
    own team only where that team is.
    """
    if project:
        check_option("PROJECT", project)
    return asyncio.run(_move(run_id, project, source))


async def _move(prefix: str, project: str, source: RunSource) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        await runs.move(entry, project)
    short = short_id(entry.run_id)
    output.say(f"run {short} is part of {project}" if project else f"run {short} is part of no project")
    return exit_codes.COMPLETED


@click.command("fork", short_help="Begin another run as one did.")
@click.argument("run_id", metavar="RUN")
@source_option
@json_option
@click.option(
    "--at",
    type=click.IntRange(min=1),
    metavar="RECORD",
    help="The last record to take over; `runs tail` shows them. [default: as far as the run goes]",
)
def fork(run_id: str, source: RunSource, as_json: bool, at: int | None) -> int:
    """Begin another run as RUN did: with its conversations, permissions and costs up to RECORD.

    It branches off where nothing is at work, at RECORD or before, and says where. RUN does not change,
    whoever drives it. `antiphon chat --resume` and `answer` go on with the new run as with any other.
    """
    return asyncio.run(_fork(run_id, source, as_json, at))


async def _fork(prefix: str, source: RunSource, as_json: bool, at: int | None) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        made = await runs.fork(entry.run_id, at)
    if as_json:
        output.say(terminal_escape.json_text(made))
        return exit_codes.COMPLETED
    busy = terminal_escape.line(", ".join(made.at_work), 200)
    if at is not None and made.seq < at:
        why = f" ({busy})" if busy else ""
        output.tell(f"record {at:,} does not end where nothing is at work{why}: an earlier one is taken")
    elif busy:
        output.tell(f"what is at work in run {short_id(entry.run_id)} is not taken over: {busy}")
    output.say(
        f"run {short_id(made.run_id)} begins as run {short_id(entry.run_id)} did, up to record {made.seq:,}"
    )
    return exit_codes.COMPLETED


@click.command("cancel", short_help="Stop a run, or one call of it.")
@click.argument("run_id", metavar="RUN")
@click.argument("effect", metavar="[ID]", required=False)
@source_option
@click.option("--reason", default="cancelled from the command line", help="The reason that is recorded.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def cancel(run_id: str, effect: str | None, source: RunSource, reason: str, yes: bool) -> int:
    """Stop every request of a run, or only ID (an id that `runs tail --json` shows) and all under it."""
    return asyncio.run(_cancel(run_id, effect or "", source, reason, yes))


async def _cancel(prefix: str, effect: str, source: RunSource, reason: str, yes: bool) -> int:
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        short = short_id(entry.run_id)
        async with runs.connect(entry.run_id) as run:
            state = fold_records(await run.records())
            if state.closed:
                output.say(f"run {short} has ended already; nothing to cancel")
                return exit_codes.COMPLETED
            if effect and effect not in state.open:
                opened_now = (
                    ", ".join(key for each in state.activations.values() for key in each.open) or "(none)"
                )
                listed = terminal_escape.line(opened_now, 400)
                raise exit_codes.NotFound(f"Run {short} has no open effect {effect!r}. Open: {listed}")
            if not yes and not _agreed(f"cancel {'effect ' + effect + ' of ' if effect else ''}run {short}?"):
                output.say("not cancelled")
                return exit_codes.COMPLETED
            if entry.owner:
                return await _post(run, entry, effect, reason)
            if effect:
                await run.cancel(effect, reason)
                output.say(f"run {short} is suspended; {effect} will be cancelled when it is resumed")
                return exit_codes.COMPLETED
        await runs.end(entry.run_id, reason)
        output.say(f"run {short} is cancelled")
        return exit_codes.COMPLETED


def _agreed(question: str) -> bool:
    """Ask the person; without one, nothing is destroyed."""
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise click.UsageError(f"{question} Say --yes where nobody can be asked.")
    return output.confirm(question)


async def _post(run: RunAnywhere, entry: RunInfo, effect: str, reason: str) -> int:
    """Tell the owner, and see whether it listens."""
    short = short_id(entry.run_id)
    try:
        async with asyncio.timeout(PATIENCE):
            await run.taken(await run.cancel(effect, reason))
        output.say(f"run {short}: cancelled by {terminal_escape.line(entry.owner, 80)}")
        return exit_codes.COMPLETED
    except TimeoutError:
        output.say(
            f"run {short}: {terminal_escape.line(entry.owner, 80)} has been told, but did not answer within"
            f" {PATIENCE:g} s; it will cancel when it reads its commands"
        )
        return exit_codes.TAKEN
