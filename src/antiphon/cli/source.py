"""The runs that a command works on, of a journal here or of a server: one face for both.

A command that takes `source_option` works with either. One that needs the journal's file takes `file_option`
and says so where a server is named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

import click
from click.core import ParameterSource
from msgspec.structs import replace

from antiphon.cli.display import output
from antiphon.cli.exit_codes import NotFound
from antiphon.cli.store import FILE, FOLDER, ListedRun, RunSource, find, opened, state_of, url_of
from antiphon.config.dotenv import environment
from antiphon.errors import JournalError, UnknownName
from antiphon.host.summaries import in_state, stored_summary
from antiphon.journal import Journal, open_journal
from antiphon.journal.listing import RunFilter, RunInfo
from antiphon.journal.port import StoredRun
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.kernel.run.forks.fork import ForkedRun, fork
from antiphon.kernel.run.open import cancel_run
from antiphon.kernel.run.standing import all_rules, keep_rule, standing_rules
from antiphon.values.policy import Grant, StandingRule
from antiphon.view import RunTree, StoredRequest, export_file
from antiphon.view.connection import connect
from antiphon.view.export_file import Export

Command = TypeVar("Command", bound=Callable[..., Any])

SERVER = "ANTIPHON_SERVER"
journal_option = click.option(
    "--journal",
    metavar="PATH",
    help=f"The journal: a file, sqlite:///PATH or memory. [default: {FOLDER}/{FILE}, or in $ANTIPHON_HOME]",
)
_server_option = click.option(
    "--server",
    metavar="URL",
    help="Work with the runs of this `antiphon serve` instead of a journal; the token comes from"
    f" $ANTIPHON_SERVER_TOKEN. [default: ${SERVER}, if set]",
)
_token_option = click.option(
    "--token-file", metavar="PATH", help="The file that holds the token of the server, one line."
)
_plain_option = click.option(
    "--plain-http", is_flag=True, help="Send the token unencrypted to another machine, where URL is http."
)


def source_option(command: Command) -> Command:
    """A command on runs, in a journal or on a server: its parameter `source` says which."""

    @wraps(command)
    def with_source(
        *given: Any,
        journal: str | None,
        server: str | None,
        token_file: str | None,
        plain_http: bool,
        **more: Any,
    ) -> Any:
        return command(*given, source=_source(journal, server, token_file, plain_http), **more)

    found: Any = with_source
    for each in (_plain_option, _token_option, _server_option, journal_option):
        found = each(found)
    return cast("Command", found)


def _source(journal: str | None, server: str | None, token_file: str | None, plain_http: bool) -> RunSource:
    if journal is not None and server is not None:
        raise click.UsageError("--journal and --server exclude each other.")
    if journal is None and (server is not None or environment().get(SERVER, "").strip()):
        return RunSource(None, server or "", token_file, plain_http)
    if token_file is not None or plain_http:
        raise click.UsageError("--token-file and --plain-http go with --server.")
    return RunSource(journal)


def file_option(command: Command) -> Command:
    """A command that needs the journal's file: where a server is named, that is said, and nothing done."""

    @wraps(command)
    def with_file(*given: Any, journal: str | None, server: str | None, **more: Any) -> Any:
        if _source(journal, server, None, False).is_server:
            name = click.get_current_context().info_name
            raise click.UsageError(
                f"`{name}` needs the journal's file: call it where the server runs, with --journal PATH."
            )
        return command(*given, journal=journal, **more)

    found: Any = click.option("--server", metavar="URL", hidden=True)(with_file)
    return cast("Command", journal_option(found))


def refuse_options(*names: str) -> None:
    """Raise UsageError when one of these options was given, which say how a team is run here."""
    context = click.get_current_context()
    for each in context.command.params:
        given = context.get_parameter_source(each.name or "")
        if each.name in names and given not in (None, ParameterSource.DEFAULT):
            raise click.UsageError(
                f"{each.opts[0]} is for a team that runs here; with --server the server says it."
            )


class RunAnywhere(Protocol):
    """What commands do with one run: of `RunConnection` here, and of `ServerRun`."""

    @property
    def run_id(self) -> str: ...

    def events(self, after: int = 0, *, deltas: bool = True) -> EventsAnywhere: ...

    async def records(self, after: int = 0) -> list[Record]: ...

    async def tree(self, at: int | None = None) -> RunTree: ...

    async def request_of(self, effect_id: str) -> StoredRequest: ...

    async def blob(self, digest: str) -> bytes: ...

    async def answer(
        self,
        effect_id: str,
        content: str,
        *,
        arguments: str = "",
        by: str = "user",
        grant: Grant | None = None,
        reason: str = "",
    ) -> int: ...

    async def cancel(self, target: str = "", reason: str = "") -> int: ...

    async def taken(self, command: int) -> str: ...


class EventsAnywhere(Protocol):
    """Records and pieces of a run, as they come."""

    def __aiter__(self) -> EventsAnywhere: ...

    async def __anext__(self) -> Record | ReplyDelta: ...

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


class Runs(Protocol):
    """The runs of a journal or a server."""

    @property
    def source(self) -> RunSource: ...

    async def page(self, where: RunFilter, state: str | None, before: int, limit: int) -> list[ListedRun]:
        """The newest runs that are asked for, older than the one of number `before` unless that is 0."""
        ...

    async def asking(self) -> Sequence[RunInfo]:
        """The runs that ask people something now."""
        ...

    async def find(self, prefix: str) -> RunInfo:
        """The run whose id starts with `prefix`, or of that name. Raises NotFound."""
        ...

    async def find_all(self, prefixes: Sequence[str]) -> list[RunInfo]:
        """The same of several, each once."""
        ...

    def connect(self, run_id: str) -> AbstractAsyncContextManager[RunAnywhere]: ...

    async def is_held(self, entry: RunInfo) -> bool:
        """Whether somebody is at work on it who does not let go of it to have it deleted."""
        ...

    async def rename(self, run_id: str, name: str) -> None: ...

    async def move(self, entry: RunInfo, project: str) -> None:
        """Make a run part of a project, or of none. Raises UserError for one where its team is not."""
        ...

    async def end(self, run_id: str, reason: str) -> None:
        """Cancel and close a run that nobody drives."""
        ...

    async def delete(self, run_id: str) -> None:
        """Raises RunInUse."""
        ...

    async def fork(self, run_id: str, at: int | None) -> ForkedRun:
        """Begin another run as this one did. Raises UserError."""
        ...

    async def export(self, entry: RunInfo) -> tuple[Export, int]:
        """The run, and how many commands its records do not hold yet."""
        ...

    async def restore(self, run: StoredRun, path: str) -> None:
        """Take in a run that was exported to the file at `path`, and checked."""
        ...

    async def rules(self, run_id: str, project: str, owner: str) -> Sequence[StandingRule]:
        """The rules for these, oldest first; every rule where none is named."""
        ...

    async def add_rule(self, rule: StandingRule) -> StandingRule:
        """Keep a rule; as it is kept."""
        ...

    async def drop_rule(self, rule_id: str) -> None:
        """Raises NotFound."""
        ...


class JournalRuns:
    """The runs of a journal; see Runs."""

    def __init__(self, source: RunSource, journal: Journal) -> None:
        self.source, self.journal = source, journal

    async def page(self, where: RunFilter, state: str | None, before: int, limit: int) -> list[ListedRun]:
        """See Runs."""
        wanted = where if state is None else in_state(where, state)
        found = []
        for entry in await self.journal.runs(wanted, before, limit):
            try:
                known = await stored_summary(self.journal, entry)
                found.append(ListedRun(entry, known, state_of(entry, known)))
            except JournalError:
                # One damaged run must not hide the others; `verify` says what is wrong with it.
                found.append(ListedRun(entry, None, "damaged"))
        return found

    async def asking(self) -> Sequence[RunInfo]:
        """See Runs."""
        found = []
        # A run that was killed may ask more than it told: what is open is looked at, too.
        for entry in await self.journal.runs(RunFilter(states=("waiting", "open"))):
            try:
                asks = (await stored_summary(self.journal, entry)).state == "waiting"
            except JournalError:
                # One damaged run must not hide the others; `verify` says what is wrong with it.
                continue
            if asks:
                found.append(entry)
        return found

    async def find(self, prefix: str) -> RunInfo:
        """See Runs."""
        return await find(self.journal, prefix)

    async def find_all(self, prefixes: Sequence[str]) -> list[RunInfo]:
        """See Runs."""
        found = [await self.find(prefix) for prefix in prefixes]
        return list({entry.run_id: entry for entry in found}.values())

    def connect(self, run_id: str) -> AbstractAsyncContextManager[RunAnywhere]:
        """See Runs."""
        return connect(self.journal, run_id)

    async def is_held(self, entry: RunInfo) -> bool:
        """See Runs."""
        return bool(entry.owner)

    async def rename(self, run_id: str, name: str) -> None:
        """See Runs."""
        await self.journal.rename(run_id, name)

    async def move(self, entry: RunInfo, project: str) -> None:
        """See Runs."""
        await self.journal.relabel(entry.run_id, replace(entry.labels, project=project))

    async def end(self, run_id: str, reason: str) -> None:
        """See Runs."""
        await cancel_run(self.journal, run_id, reason)

    async def delete(self, run_id: str) -> None:
        """See Runs."""
        await self.journal.delete(run_id)

    async def fork(self, run_id: str, at: int | None) -> ForkedRun:
        """See Runs."""
        return await fork(self.journal, run_id, at)

    async def export(self, entry: RunInfo) -> tuple[Export, int]:
        """See Runs."""
        found, state = await export_file.export_of(self.journal, entry)
        posted = await self.journal.commands(entry.run_id)
        return found, sum(each.number > state.command for each in posted)

    async def restore(self, run: StoredRun, path: str) -> None:
        """See Runs."""
        await self.journal.restore(run)

    async def rules(self, run_id: str, project: str, owner: str) -> Sequence[StandingRule]:
        """See Runs."""
        if not (run_id or project or owner):
            return await all_rules(self.journal)
        return await standing_rules(self.journal, run=run_id, project=project, owner=owner)

    async def add_rule(self, rule: StandingRule) -> StandingRule:
        """See Runs."""
        await keep_rule(self.journal, rule)
        return rule

    async def drop_rule(self, rule_id: str) -> None:
        """See Runs."""
        try:
            await self.journal.drop_rule(rule_id)
        except UnknownName as error:
            raise NotFound(str(error)) from error


@asynccontextmanager
async def opened_runs(source: RunSource, *, create: bool = False) -> AsyncIterator[Runs]:
    """The runs of a source. create: a journal that is missing is made; else raises NotFound.

    Raises ConfigError for a server that cannot be asked.
    """
    if source.is_server:
        async with opened_server(source) as found:
            yield found
    elif create:
        journal = open_journal(url_of(source.journal, environment()))
        try:
            yield JournalRuns(source, journal)
        finally:
            await journal.close()
    else:
        async with opened(source.journal) as journal:
            yield JournalRuns(source, journal)


@asynccontextmanager
async def opened_server(source: RunSource) -> AsyncIterator[Any]:
    """The runs of a server, as ServerRuns. Raises ConfigError."""
    # Only where a server is asked: an HTTP client takes long to import.
    from antiphon.cli.remote.address import server_address
    from antiphon.cli.remote.client import ServerClient
    from antiphon.cli.remote.runs import ServerRuns

    address = server_address(source.server or None, source.token_file, source.plain_http, environment())
    async with ServerClient(address) as client:
        yield ServerRuns(source, client, output.tell)
