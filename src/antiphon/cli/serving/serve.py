"""`antiphon serve`: teams over HTTP and WebSocket, on this machine."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from antiphon import __version__
from antiphon.cli import exit_codes
from antiphon.cli.commands.run import endpoint_option, folder_option, model_option
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.serving.browser import open_browser, tell_address
from antiphon.cli.serving.sources import source_of
from antiphon.cli.session.drive import on_signals
from antiphon.cli.session.project_rules import PROJECTS
from antiphon.cli.source import journal_option
from antiphon.cli.store import knowledge_store, url_of
from antiphon.cli.target import FORMS, TakesNoFolder, Target, load_declared, load_target, own_servers
from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError, UserError
from antiphon.host import Host, HostedTeam
from antiphon.host.projects import Project, Projects
from antiphon.host.team import check_label
from antiphon.journal.listing import Labels
from antiphon.models import default_model
from antiphon.models.resolve import locate
from antiphon.tools.knowledge import KnowledgeLibrary
from antiphon.tools.knowledge.monitor import followed
from antiphon.view.traces import SpanSender

if TYPE_CHECKING:
    from antiphon.server.app import ServerSettings
    from antiphon.server.log import LogForm
    from antiphon.tools.mcp import McpServer

PORT = 8000
TOKEN = "ANTIPHON_SERVER_TOKEN"
"""The setting with a token that outlives restarts."""
LEAVING = "leaving the runs in good order (once more: at once)"
DRAIN_SECONDS = 8.0
"""What is in flight gets so long to end; with the rest it is less than ten seconds."""


@click.command(epilog=f"TARGET is {FORMS}; NAME=TARGET says what the team is called here.")
@click.argument("targets", metavar="[TARGET...]", nargs=-1)
@click.option(
    "--projects",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="A folder of projects, each with teams of its own, rules and files; made when it is not there."
    f" [default: ${PROJECTS}, if set]",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0: any free one."
)
@click.option(
    "--host", "address", default="127.0.0.1", show_default=True, help="Others than 127.0.0.1 need --users."
)
@click.option(
    "--users", type=click.Path(exists=True, dir_okay=False), help="A file with users, hosts, origins."
)
@click.option(
    "--new-token",
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=lambda *given: _new_token(*given),
    help="Print a token and a user of that name for the file, and end.",
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
    "--max-runs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Runs at work at once; more wait.",
)
@click.option(
    "--log",
    "form",
    type=click.Choice(["text", "json"]),
    help="Write a line for each request and for how runs stand to standard error. [default: warnings only]",
)
@click.option("--otel", is_flag=True, help="Send spans of runs to the tracer provider that is set up.")
@click.option("--content", is_flag=True, help="With --otel: what was asked, said and called, too.")
@click.option("--start", metavar="NAME=MESSAGE", help="Start a run of that team once it serves.")
@click.option("--open", "opens", is_flag=True, help="Open a browser on the page.")
def serve(
    targets: tuple[str, ...], projects: str | None, port: int, address: str, journal: str | None,
    model: str | None, endpoints: tuple[str, ...], folder: str | None, policy: Any, max_runs: int,
    users: str | None, form: LogForm | None, otel: bool, content: bool, start: str | None, opens: bool,
) -> int:  # fmt: skip
    """Serve teams over HTTP and WebSocket: start runs, watch them, answer what they ask.

    A TARGET may be left out where projects bring teams. It prints an address and a token, which every request
    names in a header; ANTIPHON_SERVER_TOKEN sets one that outlives restarts. Ctrl-C and SIGTERM leave runs in
    good order; the next start takes them up.
    """
    need_server("serve")
    projects = projects or environment().get(PROJECTS, "").strip() or None
    if not targets and projects is None:
        raise click.UsageError("There is nothing to serve: give a TARGET, or --projects DIR.")
    if content and not otel:
        raise click.UsageError("--content goes with --otel.")
    from antiphon.server.log import begin_log

    sender = SpanSender(version=__version__) if otel else None
    library = KnowledgeLibrary(knowledge_store(environment()))
    opening = TeamOptions(model, endpoints, policy, library)
    teams = hosted_teams(targets, folder, opening)
    settings, token = _settings(users, address)
    first = _first(start, teams) if start is not None else None
    hosting: dict[str, Any] = {
        "teams": teams, "max_runs": max_runs, "models": offered_models(teams.values(), model),
        "projects": Projects(projects, opening.load) if projects is not None else None,
    }  # fmt: skip
    where = url_of(journal, environment())

    def host() -> Host:
        return Host(
            where, drain_seconds=DRAIN_SECONDS, send_spans=sender.send if sender is not None else None,
            trace_content=content, **hosting,
        )  # fmt: skip

    begin_log(form, sys.stderr)
    with followed(library):
        code = asyncio.run(_serve(host, settings, address, port, token, form, first, opens=opens))
    if sender is not None:
        sender.flush()
    return code


def _first(text: str, teams: dict[str, HostedTeam]) -> tuple[str, str]:
    """The team and the message of the run that is started. Raises UsageError."""
    name, _, message = text.partition("=")
    if name not in teams or not message.strip():
        raise click.UsageError(f"--start is NAME=MESSAGE, NAME one of: {', '.join(sorted(teams))}.")
    return name, message


def need_server(name: str) -> None:
    """Raise ConfigError where the packages that serve are not installed."""
    try:
        import antiphon.server.app  # noqa: F401 - the extra is there, or is asked for before anything is loaded
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"`antiphon {name}` needs {error.name}, of the extra `server`: pip install 'antiphon[server]'"
        ) from error


def _new_token(context: click.Context, option: click.Parameter, name: str | None) -> None:
    """Print a token, and what stands for it in the file."""
    if name is None:
        return
    from antiphon.server.subjects import digest_of

    try:
        check_label("user", name)
    except UserError as error:
        raise click.BadParameter(str(error), context, option) from error
    token = secrets.token_urlsafe(32)
    output.say(f"token for {name}: {token}\n")
    output.say(f"- name: {name}\n  token_sha256: {digest_of(token)}")
    context.exit(exit_codes.COMPLETED)


def _settings(users: str | None, address: str) -> tuple[ServerSettings, str]:
    """Who may come in, and the token of the user where there is only one.

    Raises ConfigError for an address that needs users.
    """
    from antiphon.server.app import ServerSettings
    from antiphon.server.gate import LOOPBACK
    from antiphon.server.serve import is_loopback
    from antiphon.server.subjects import one_token
    from antiphon.server.users import FollowedUsers

    if users is not None:
        followed = FollowedUsers(users)
        known = followed.first
        if not is_loopback(address) and not known.hosts:
            raise ConfigError("`hosts` is missing: the names by which others call this server", users, 1, 1)
        return ServerSettings(known.tokens, LOOPBACK | known.hosts, known.origins, users=followed), ""
    if not is_loopback(address):
        raise ConfigError(
            f"--host {address} can be reached from other machines, where one token is not enough. Give"
            " --users FILE, or leave it at 127.0.0.1 and reach it through a tunnel, such as ssh -L"
        )
    token = environment().get(TOKEN) or secrets.token_urlsafe(32)
    return ServerSettings((one_token(token),)), token


class TeamOptions(Struct, frozen=True):
    """What the command line says of every team."""

    model: str | None = None
    endpoints: tuple[str, ...] = ()
    policy: Any = "guarded"
    library: KnowledgeLibrary | None = None
    """Where sources of knowledge are opened; None: by each team for itself."""

    def team(self, target: Target) -> HostedTeam:
        """A target as a host knows it. Raises ConfigError."""
        return HostedTeam(
            target.agents, target.entry, self.model, target.with_endpoints(self.endpoints, self.model),
            self.policy, findings=target.findings, source=target.source, origin=source_of(target),
        )  # fmt: skip

    def load(self, path: Path, project: Project) -> HostedTeam:
        """A team of a project; see LoadTeam."""
        return self.team(load_declared(
            path, project.files.folder, self.library, project=project.id, owner=project.owner,
            knowledge=project.knowledge, servers=_servers_of(project),
        ))  # fmt: skip


def _servers_of(project: Project) -> dict[str, McpServer]:
    """The MCP servers that a project's teams may name. Raises ConfigError for one that is not set up here."""
    if not project.mcp_servers:
        return {}
    known = own_servers()
    missing = [name for name in project.mcp_servers if name not in known]
    if missing:
        have = ", ".join(known) or "none"
        raise ConfigError(f"mcp_servers: {missing[0]!r} is not set up where the server runs; it has {have}")
    return {name: known[name] for name in project.mcp_servers}


def offered_models(teams: Iterable[HostedTeam], model: str | None) -> list[str]:
    """Models that a run may be started with: those of the environment, the command line and the teams that
    can be reached with the settings there are. A script is none of them: it answers its own team."""
    env, named = environment(), list[str]()
    with suppress(ConfigError):
        named.append(default_model(env))
    named += [model] if model else []
    for team in teams:
        for agent in team.agents:
            named += [each for each in (agent.model, *agent.asking.fallback_models) if isinstance(each, str)]
    found: list[str] = []
    for each in dict.fromkeys(named):
        with suppress(ConfigError):
            if locate(each, env).string.prefix != "script":
                found.append(each)
    return found


def hosted_teams(targets: Iterable[str], folder: str | None, opening: TeamOptions) -> dict[str, HostedTeam]:
    """The teams of targets, by name. Raises ConfigError."""
    found: dict[str, HostedTeam] = {}
    refused: list[TakesNoFolder] = []
    for text in targets:
        try:
            name, target = _named(text, folder, opening.library)
        except TakesNoFolder as error:
            refused.append(error)
            name, target = _named(text, None, opening.library)
        if name in found:
            raise ConfigError(f"Two teams are called {name}; give one another name: NAME={target.text}")
        target.tell_findings()
        found[name] = opening.team(target)
    if refused and len(refused) == len(found):
        raise refused[0]
    return found


def _named(text: str, folder: str | None, library: KnowledgeLibrary | None) -> tuple[str, Target]:
    """A team's name and the team: the name that stands before it, else what its folder or file is called."""
    name, mark, rest = text.partition("=")
    if mark and "/" not in name and "\\" not in name:
        return name, load_target(rest, folder, library)
    place, _, thing = text.rpartition(":")
    path = Path(text if Path(text).exists() or not place else place).resolve()
    own = path.name if path.is_dir() else path.stem
    if own in ("team", "agents") and path.is_file():
        own = path.parent.name
    if thing and not Path(text).exists() and thing not in ("team", "agents"):
        own = thing
    return own, load_target(text, folder, library)


async def _serve(
    make_host: Callable[[], Host], settings: ServerSettings, address: str, port: int, token: str,
    form: LogForm | None, first: tuple[str, str] | None, *, opens: bool,
) -> int:  # fmt: skip
    from antiphon.server.app import make_app
    from antiphon.server.serve import listen, serve

    stop = asyncio.Event()

    def ready(url: str) -> None:
        names = ", ".join(sorted(host.teams)) or "projects"
        output.say(f"serving {terminal_escape.line(names, 200)} at {url}")
        ours = "" if environment().get(TOKEN) else token
        if ours:
            output.say(f"token: {ours}")
        if ours or opens:
            tell_address(url, ours, path)
        if opens:
            open_browser(app.state.served, url, token, path)
        sys.stdout.flush()

    with listen(address, port) as listening:
        async with make_host() as host:
            # Whoever reads JSON is told by the log, and by nothing that is none.
            leave_at_signals(stop, "" if form == "json" else LEAVING)
            app, path = make_app(host, settings), ""
            if first is not None:
                started = await host.start(*first, labels=Labels(owner=_owner(settings)))
                path = f"/run/{started.run_id}"
            await serve(app, listening, stop, DRAIN_SECONDS, ready)
    return exit_codes.COMPLETED


def _owner(settings: ServerSettings) -> str:
    """Whose the run is that the server itself starts: the first user's."""
    return settings.tokens[0].subject.name


def leave_at_signals(stop: asyncio.Event, told: str) -> None:
    """Set `stop` when somebody ends the process, and say so; the second time leave at once."""

    def leave() -> None:
        if stop.is_set():
            # What is recorded is durable; what was in flight is taken up by the next start.
            os._exit(exit_codes.SUSPENDED)
        stop.set()
        # Whoever read what is said here may have gone: that keeps no server from leaving.
        with suppress(OSError):
            if told:
                output.tell(told)

    on_signals(leave, "SIGINT", "SIGTERM", "SIGHUP")
