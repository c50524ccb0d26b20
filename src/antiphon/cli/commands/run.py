"""`antiphon run`: ask a team, watch it, get the answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from antiphon import Limits
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.session.project_rules import projects_option
from antiphon.cli.session.request import DisplayOptions, Request, perform
from antiphon.cli.source import opened_server, refuse_options, source_option
from antiphon.cli.store import RunSource, url_of
from antiphon.cli.target import FORMS, Target, load_target
from antiphon.config.dotenv import environment
from antiphon.errors import UserError
from antiphon.host.team import check_label
from antiphon.journal import open_journal
from antiphon.values.limits import DEFAULTS

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_MESSAGE = 10_000_000
"""Characters of a message from the standard input."""

target_argument = click.argument("target")
folder_option = click.option(
    "--folder",
    metavar="PATH",
    type=click.Path(exists=True, file_okay=False),
    help="What the team's file tools may read. [default: .]",
)
model_option = click.option(
    "--model", metavar="MODEL", help="For every agent, instead of its own, such as openai:gpt-4.1-mini."
)
endpoint_option = click.option(
    "--endpoint",
    "endpoints",
    metavar="TEXT",
    multiple=True,
    help='How models are asked, such as "openai concurrency=8 requests_per_minute=500 idle_timeout=30"; again'
    " for another provider or model.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print the answer only.")
events_option = click.option("--json", "as_json", is_flag=True, help="Write every event as a line of JSON.")


def chosen_limits(given: dict[str, Any]) -> Limits:
    """The limits that options say, see `limit_option`; the usual ones where they say nothing."""
    chosen = {name.removeprefix("limit_"): value for name, value in given.items() if value is not None}
    return replace(DEFAULTS, **chosen) if chosen else DEFAULTS


def limit_option(name: str, text: str) -> Callable[[Command], Command]:
    """An option for one of the limits that are whole numbers."""
    default = getattr(Limits(), name)
    return click.option(
        f"--limit-{name}", type=click.IntRange(min=0), metavar="N", help=f"{text} [default: {default:,}]"
    )


@click.command(epilog=f"TARGET is {FORMS}. MESSAGE is read from the standard input when it is not given.")
@target_argument
@click.argument("message", required=False)
@model_option
@endpoint_option
@folder_option
@source_option
@click.option(
    "--policy",
    type=click.Choice(["open", "guarded", "strict"]),
    default="guarded",
    show_default=True,
    help="What tools may do: guarded asks before a tool acts, strict allows nothing, open everything.",
)
@click.option(
    "--project", metavar="NAME", default="", help="What the run is a part of: its rules hold for the run."
)
@projects_option
@limit_option("tokens", "Tokens that the request may use, input and output.")
@limit_option("turns", "Turns of one agent.")
@limit_option("calls", "Tool and agent calls.")
@limit_option("depth", "Agent calls within agent calls.")
@events_option
@quiet_option
def run(
    target: str,
    message: str | None,
    model: str | None,
    endpoints: tuple[str, ...],
    folder: str | None,
    source: RunSource,
    policy: Any,
    project: str,
    projects: str | None,
    as_json: bool,
    quiet: bool,
    **limits: Any,
) -> int:
    """Ask the team TARGET and watch it work; the answer is printed at the end.

    Ctrl-C suspends the run: nothing is lost, and the command that resumes it is printed. With --server TARGET
    is a team of the server, which drives the run: Ctrl-C leaves it going there.
    """
    if project:
        check_option("--project", project)
    if source.is_server:
        refuse_options("model", "endpoints", "folder", "policy", "projects")
        caps = chosen_limits(limits) if any(each is not None for each in limits.values()) else None
        manner = DisplayOptions(target, source, as_json=as_json, quiet=quiet)
        return asyncio.run(_run_there(manner, message, caps, project))
    loaded = load_target(target, folder)
    loaded.tell_findings()
    manner = DisplayOptions(
        target, source, folder, model, as_json, quiet, endpoints=endpoints, projects=projects
    )
    said = _message(message, loaded.entry)
    request = Request(policy=policy, message=said, limits=chosen_limits(limits), project=project)
    return asyncio.run(_run(request, loaded, manner))


def check_option(what: str, project: str) -> None:
    """Refuse what cannot be the name of a project. Raises BadParameter."""
    try:
        check_label("project", project)
    except UserError as error:
        raise click.BadParameter(str(error), param_hint=what) from error


async def _run(request: Request, target: Target, manner: DisplayOptions) -> int:
    journal = open_journal(url_of(manner.source.journal, environment()))
    try:
        return await perform(request, target, manner, journal)
    finally:
        await journal.close()


async def _run_there(manner: DisplayOptions, message: str | None, limits: Limits | None, project: str) -> int:
    # Only where a server is asked: it takes long to import.
    from antiphon.cli.session.elsewhere import ServerRequest, ask_there

    async with opened_server(manner.source) as runs:
        team = await runs.team(manner.target)
        said = _message(message, team.entry)
        first = ServerRequest(manner.target, team.entry, limits, project)
        return await ask_there(runs, first, said, manner)


def _message(given: str | None, entry: str) -> str:
    """The message: as given, else from the standard input; asked for when that is a terminal."""
    if given is None and sys.stdin is not None:
        if sys.stdin.isatty():
            output.tell(f"What do you want from {terminal_escape.line(entry, 60)}? ", end="")
            given = sys.stdin.readline()
        else:
            given = sys.stdin.read(MAX_MESSAGE + 1)
            if len(given) > MAX_MESSAGE:
                raise click.UsageError(
                    f"The message on the standard input is longer than {MAX_MESSAGE:,} characters."
                )
    if given is None or not given.strip():
        raise click.UsageError("There is no message: give one after TARGET, or on the standard input.")
    return given.rstrip("\n")
