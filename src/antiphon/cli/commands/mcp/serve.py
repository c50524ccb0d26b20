"""`antiphon mcp serve`: a team as an MCP server, over the standard input and output, or HTTP."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from antiphon.cli import exit_codes
from antiphon.cli.commands.run import (
    chosen_limits,
    endpoint_option,
    folder_option,
    limit_option,
    model_option,
    target_argument,
)
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.source import journal_option
from antiphon.cli.store import knowledge_store, url_of
from antiphon.cli.target import FORMS
from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError
from antiphon.values.limits import Limits

if TYPE_CHECKING:
    from antiphon.host import Host

PORT = 8001


@click.command(
    short_help="Serve a team as an MCP server.",
    epilog=f"TARGET is {FORMS}; NAME=TARGET says what the team is called here.",
)
@target_argument
@click.option("--http", "over_http", is_flag=True, help="Over HTTP on this machine, at /mcp.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="With --http. 0: any free.",
)
@journal_option
@model_option
@endpoint_option
@folder_option
@click.option(
    "--policy",
    type=click.Choice(["open", "guarded", "strict"]),
    default="guarded",
    show_default=True,
    help="What tools may do: guarded asks before a tool acts, strict allows nothing, open everything.",
)
@click.option(
    "--max-runs", type=click.IntRange(min=1), default=100, show_default=True, help="Runs at work at once."
)
@limit_option("tokens", "Tokens that a request may use, input and output.")
@limit_option("turns", "Turns of one agent.")
@limit_option("calls", "Tool and agent calls.")
@limit_option("depth", "Agent calls within agent calls.")
def serve(
    target: str, over_http: bool, port: int, journal: str | None, model: str | None,
    endpoints: tuple[str, ...], folder: str | None, policy: Any, max_runs: int, **limits: Any,
) -> int:  # fmt: skip
    """Serve the team TARGET as an MCP server: its tools ask the team, and look at its runs.

    It speaks over its standard input and output, as programs that start servers expect it; with --http it
    prints an address and a token. What a run asks a person is asked of the client's. Runs outlive the
    client: the next start takes them up.
    """
    _need(server=over_http)
    from antiphon.cli.serving.serve import DRAIN_SECONDS, TeamOptions, hosted_teams
    from antiphon.host import Host
    from antiphon.tools.knowledge import KnowledgeLibrary
    from antiphon.tools.knowledge.monitor import followed

    library = KnowledgeLibrary(knowledge_store(environment()))
    teams = hosted_teams([target], folder, TeamOptions(model, endpoints, policy, library))
    where = url_of(journal, environment())
    source = f" --journal {shlex.quote(journal)}" if journal else ""
    caps = chosen_limits(limits) if any(each is not None for each in limits.values()) else None

    def host() -> Host:
        return Host(where, teams, max_runs=max_runs, drain_seconds=DRAIN_SECONDS)

    with followed(library):
        if over_http:
            return asyncio.run(_over_http(host, next(iter(teams)), caps, source, port))
        return asyncio.run(_over_pipes(host, next(iter(teams)), caps, source))


def _need(*, server: bool) -> None:
    """Raise ConfigError where a package is not installed."""
    extra = "mcp"
    try:
        import antiphon.server.mcp.team_server

        if server:
            extra = "server"
            import antiphon.server.app  # noqa: F401 - the extra is there, or is asked for first
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"`antiphon mcp serve` needs {error.name}, of an extra: pip install 'antiphon[{extra}]'"
        ) from error


async def _over_pipes(make_host: Callable[[], Host], team: str, limits: Limits | None, source: str) -> int:
    from antiphon.cli.serving.serve import DRAIN_SECONDS, LEAVING, leave_at_signals
    from antiphon.server.mcp.pipes import own_pipes, serve_pipes
    from antiphon.server.mcp.runs import LocalRuns
    from antiphon.server.mcp.team_server import TeamServer
    from antiphon.values.message import USER

    stop = asyncio.Event()
    async with own_pipes() as (read, write), make_host() as host:
        leave_at_signals(stop, LEAVING)
        runs = LocalRuns(host, team, USER)
        server = TeamServer(host, team, lambda _: runs, limits=limits, source=source)
        await serve_pipes(server.protocol, read, write, stop)
        await host.drain(DRAIN_SECONDS)
    return exit_codes.COMPLETED


async def _over_http(
    make_host: Callable[[], Host], team: str, limits: Limits | None, source: str, port: int
) -> int:
    from antiphon.cli.serving.serve import DRAIN_SECONDS, LEAVING, TOKEN, leave_at_signals
    from antiphon.server.app import ServerSettings, make_app
    from antiphon.server.log import begin_log
    from antiphon.server.mcp.http import PATH, mounted
    from antiphon.server.serve import listen
    from antiphon.server.serve import serve as serve_app
    from antiphon.server.subjects import one_token

    stop, known = asyncio.Event(), environment().get(TOKEN)
    token = known or secrets.token_urlsafe(32)

    def ready(url: str) -> None:
        output.say(f"serving {terminal_escape.line(team, 60)} at {url}{PATH}")
        if not known:
            output.say(f"token: {token}")
        sys.stdout.flush()

    begin_log(None, sys.stderr)
    with listen("127.0.0.1", port) as listening:
        async with make_host() as host, mounted(host, team, limits=limits, source=source) as mount:
            leave_at_signals(stop, LEAVING)
            app = make_app(host, ServerSettings((one_token(token),)), mounts=[mount])
            await serve_app(app, listening, stop, DRAIN_SECONDS, ready)
    return exit_codes.COMPLETED
