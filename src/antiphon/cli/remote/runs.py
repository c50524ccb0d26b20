"""The runs of a server: listed, found, opened, changed. See `antiphon.cli.source.Runs`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import quote

from msgspec.structs import astuple

from antiphon.cli import exit_codes
from antiphon.cli.remote.address import SERVER
from antiphon.cli.remote.client import ServerClient, ServerRefused
from antiphon.cli.remote.connection import ServerRun, connect_server
from antiphon.cli.remote.events import ServerEvents
from antiphon.cli.store import ListedRun, RunSource, choose
from antiphon.errors import ConfigError, RunInUse, UserError, visible
from antiphon.host.team import check_label
from antiphon.journal.listing import Labels, RunFilter, RunInfo
from antiphon.journal.port import StoredRun
from antiphon.kernel.facts import summary
from antiphon.kernel.run.forks.fork import ForkedRun
from antiphon.server.routes.bodies import (
    CancelBody,
    ChangeRun,
    CreateRun,
    ForkBody,
    ResumeBody,
    RunCreated,
    RunLine,
    RunPage,
    TeamCheck,
    Teams,
    TeamView,
)
from antiphon.server.routes.bodies.asked import GivenGrant
from antiphon.server.routes.bodies.projects import CreateRule, RuleList
from antiphon.values.policy import StandingRule
from antiphon.values.result import Difference
from antiphon.view.export_file import Export

PAGE = 200
"""Runs of a request."""
AT_WORK = frozenset({"running", "queued"})


class ServerRuns:
    """The runs of a server that the token's subject may see. tell: says what happens to the connection."""

    def __init__(self, source: RunSource, client: ServerClient, tell: Callable[[str], object]) -> None:
        self.source, self.client, self.tell = source, client, tell

    async def page(self, where: RunFilter, state: str | None, before: int, limit: int) -> list[ListedRun]:
        """See Runs."""
        query = {
            "project": where.project, "owner": where.owner, "team": where.team, "state": state,
            "text": where.text or None,
        }  # fmt: skip
        return await self._lines(query, before, limit)

    async def _lines(
        self, query: dict[str, Any], before: int = 0, limit: int | None = None
    ) -> list[ListedRun]:
        found: list[ListedRun] = []
        while limit is None or len(found) < limit:
            asked = PAGE if limit is None else min(limit - len(found), PAGE)
            whole = {**query, "before": before, "limit": asked}
            page = await self.client.ask("GET", "/runs", RunPage, query=whole)
            found += [_listed(each) for each in page.runs]
            if not page.next or (before and page.next >= before):
                break
            before = page.next
        return found

    async def asking(self) -> Sequence[RunInfo]:
        """See Runs."""
        return [each.entry for each in await self._lines({"state": "waiting"})]

    async def find(self, prefix: str) -> RunInfo:
        """See Runs."""
        found = [each.entry for each in await self._lines({"named": prefix}, 0, PAGE)] if prefix else []
        newest = [each.entry for each in await self._lines({}, 0, 5)] if not found else None
        return choose(found, prefix, newest)

    async def find_all(self, prefixes: Sequence[str]) -> list[RunInfo]:
        """See Runs."""
        found = [await self.find(prefix) for prefix in prefixes]
        return list({entry.run_id: entry for entry in found}.values())

    def connect(self, run_id: str) -> AbstractAsyncContextManager[ServerRun]:
        """See Runs."""
        return connect_server(self.client, run_id, self.tell)

    async def is_held(self, entry: RunInfo) -> bool:
        """See Runs: a server lets go of what rests."""
        return (await self.line(entry.run_id)).state in AT_WORK

    async def line(self, run_id: str) -> RunLine:
        """A run in the list."""
        return await self.client.ask("GET", _path(run_id), RunLine)

    async def rename(self, run_id: str, name: str) -> None:
        """See Runs."""
        await self.client.ask("PATCH", _path(run_id), RunLine, body=ChangeRun(name))

    async def move(self, entry: RunInfo, project: str) -> None:
        """See Runs."""
        await self.client.ask("PATCH", _path(entry.run_id), RunLine, body=ChangeRun(project=project))

    async def end(self, run_id: str, reason: str) -> None:
        """See Runs."""
        await self.client.ask("POST", _path(run_id, "/close"), RunLine, body=CancelBody("", reason))

    async def delete(self, run_id: str) -> None:
        """See Runs."""
        try:
            await self.client.fetch("DELETE", _path(run_id))
        except ServerRefused as error:
            if error.code == "in_use":
                raise RunInUse(run_id, f"the server at {self.client.url}") from error
            raise

    async def fork(self, run_id: str, at: int | None) -> ForkedRun:
        """See Runs."""
        return await self.client.ask("POST", _path(run_id, "/fork"), ForkedRun, body=ForkBody(at))

    async def export(self, entry: RunInfo) -> tuple[Export, int]:
        """See Runs."""
        headers, data = await self.client.fetch("GET", _path(entry.run_id, "/export"), long=True)
        waiting = headers.get("commands-waiting", "0")
        return self.client.decoded(data, Export), int(waiting) if waiting.isdecimal() and len(
            waiting
        ) < 9 else 0

    async def restore(self, run: StoredRun, path: str) -> None:
        """See Runs."""
        try:
            with open(path, "rb") as file:  # noqa: ASYNC230 - nothing else waits for it
                data = file.read()
        except OSError as error:
            raise exit_codes.NotFound(f"{path} cannot be read: {error.strerror}") from error
        await self.client.ask("POST", "/runs/import", RunCreated, body=data, long=True)

    async def rules(self, run_id: str, project: str, owner: str) -> Sequence[StandingRule]:
        """See Runs."""
        query = {"run": run_id or None, "project": project or None, "owner": owner or None}
        return (await self.client.ask("GET", "/rules", RuleList, query=query)).rules

    async def add_rule(self, rule: StandingRule) -> StandingRule:
        """See Runs; the server names it, and says who has made it."""
        said = CreateRule(rule.scope, rule.key, rule.tool, rule.verdict, GivenGrant(*astuple(rule.grant)))
        return await self.client.ask("POST", "/rules", StandingRule, body=said)

    async def drop_rule(self, rule_id: str) -> None:
        """See Runs."""
        await self.client.fetch("DELETE", f"/rules/{quote(rule_id, safe='')}")

    # -- what only a server has ---------------------------------------------------------------

    async def team(self, name: str) -> TeamView:
        """A team of the server, by its name. Raises ConfigError, which names those that there are."""
        try:
            check_label("team", name)
            return await self.client.ask("GET", f"/teams/{quote(name, safe='')}", TeamView)
        except (exit_codes.NotFound, UserError) as error:
            if isinstance(error, ServerRefused):
                raise
            known = [each.name for each in (await self.client.ask("GET", "/teams", Teams)).teams]
            raise ConfigError(
                f"The server at {self.client.url} has no team {visible(name[:80])}: with --server TARGET is"
                f" the name of one of its teams: {', '.join(map(visible, known)) or '(none)'}{self._hint}"
            ) from error

    @property
    def _hint(self) -> str:
        """What to do where a team of this machine was meant, and the server comes from the settings."""
        return "" if self.source.server else f". For a team here unset {SERVER}, or give --journal PATH"

    async def start(self, body: CreateRun, key: str) -> str:
        """Start a run; its id. key: started once, however often it is asked for."""
        headers = {"idempotency-key": key}
        return (await self.client.ask("POST", "/runs", RunCreated, body=body, headers=headers)).run_id

    def events(self, run_id: str, after: int, check: Callable[[], Awaitable[None]]) -> ServerEvents:
        """A run's stream. check: see ServerEvents."""
        return ServerEvents(self.client, run_id, after, True, self.tell, check)

    async def check(self, run_id: str, team: str) -> list[Difference] | None:
        """What taking a run up with a team would meet; None when it never had one."""
        query = {"team": team or None}
        found = await self.client.ask("GET", _path(run_id, "/check"), TeamCheck, query=query)
        return found.differences if found.known else None

    async def resume(self, run_id: str, team: str) -> None:
        """Have the server drive a run that nobody drives."""
        await self.client.ask("POST", _path(run_id, "/resume"), RunLine, body=ResumeBody(team))


def _path(run_id: str, rest: str = "") -> str:
    return f"/runs/{quote(run_id, safe='')}{rest}"


def _listed(line: RunLine) -> ListedRun:
    entry = RunInfo(
        line.run_id, line.created_at, line.updated_at, line.records, 0, line.driven_by,
        summary.encode(line.summary), line.name, labels=Labels(line.project, line.owner, line.team),
        number=line.number,
    )  # fmt: skip
    return ListedRun(entry, None if line.state == "damaged" else line.summary, line.state)
