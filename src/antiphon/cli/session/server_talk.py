"""Conversations with a team of a server: `antiphon chat --server`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from antiphon.cli import exit_codes
from antiphon.cli.display import terminal_escape
from antiphon.cli.session.elsewhere import RemoteRun, ServerRequest, has_more
from antiphon.cli.session.glance import title_of
from antiphon.cli.session.person import Person
from antiphon.cli.session.request import DisplayOptions, tell_unattended
from antiphon.cli.session.slash.commands import obey
from antiphon.cli.session.talk import Opening, Talk
from antiphon.cli.store import short_id
from antiphon.errors import JournalError, UserError
from antiphon.journal.listing import RunFilter
from antiphon.server.routes.bodies import TeamView, ToolView
from antiphon.values.message import Attachment
from antiphon.view import RunTree


class ServedAgent(Struct, frozen=True):
    """An agent of a server's team, as far as a conversation tells of it."""

    name: str
    about: str
    tools: tuple[ToolView, ...]
    model: str


class ServedTeam(Struct, frozen=True):
    """A server's team in the place of a Target."""

    text: str
    entry: str
    agents: tuple[ServedAgent, ...]


class TalkingRun(RemoteRun):
    """A run that is talked to: a server that is away for a while ends no conversation."""

    async def post(
        self, to: str, text: str, *, intent: str = "", attachments: tuple[Attachment, ...] = ()
    ) -> str:
        """See RemoteRun. Raises UserError where the server cannot be reached."""
        try:
            return await super().post(to, text, intent=intent, attachments=attachments)
        except JournalError as error:
            raise UserError(f"Not sent: {error}") from error


class ServerTalks:
    """The conversations of one call of the program, one after another. runs: ServerRuns."""

    def __init__(self, runs: Any, manner: DisplayOptions, person: Person, project: str = "") -> None:
        self._runs, self._manner, self._person, self._project = runs, manner, person, project
        self._code = exit_codes.COMPLETED
        self._last = self._team = ""

    async def all(self, run_id: str) -> int:
        """Lead one after another, the first one with a run unless `run_id` is empty; the exit code."""
        opening: Opening | None = Opening(run_id or None)
        again = False
        while opening is not None:
            try:
                opening = await self._lead(opening, again)
                # What was said there is still on the screen.
                again = opening is not None and opening.run_id == self._last != ""
            except exit_codes.NotFound as error:
                # One that cannot be opened ends none that was well before.
                if not self._last:
                    raise
                exit_codes.complain(str(error))
                opening, again = Opening(self._last), True
        return self._code

    async def _lead(self, opening: Opening, again: bool) -> Opening | None:
        """One conversation; what is opened next."""
        person, run_id, name = self._person, "", self._manner.target or self._team
        if opening.run_id is not None:
            entry = await self._runs.find(opening.run_id)
            run_id = entry.run_id
            name = entry.labels.team or name
        if not name:
            raise exit_codes.NotFound(
                f"Run {short_id(run_id)} is of no team of the server; say which one goes on"
            )
        self._team = name
        team = _served(await self._runs.team(name))
        first = ServerRequest(name, team.entry, project=self._project, conversation=True)
        run = TalkingRun(self._runs, run_id, first)
        if person.interactive and not run_id:
            person.screen.note(
                f"You talk with {terminal_escape.line(name, 40)} at the server. /help lists what can be said;"
                " Ctrl-D leaves."
            )

        async def unattended(tree: RunTree) -> bool:
            if await has_more(self._runs, run.run_id, tree):
                return False
            tell_unattended(tree, self._manner, run.run_id, "")
            return True

        talk = Talk(run, team, None, person, obey, unattended, self._runs)
        after = await talk.until_end(again=again)
        self._last = run.run_id
        self._code = exit_codes.COMPLETED if person.interactive else talk.code
        if run.run_id:
            person.farewell = f"run {short_id(run.run_id)}; to go on: {self._manner.resume(run.run_id)}"
            if talk.call:
                person.screen.note(f"({title_of(team)} goes on at the server)")
            if after is None:
                person.screen.note(person.farewell)
        if after is not None and after.model:
            person.screen.note("(the server says which models are asked)")
        return Opening(after.run_id or None) if after is not None else None


async def newest_talk(runs: Any, team: str) -> str:
    """The newest run of a team that is not closed. Raises NotFound."""
    for each in await runs.page(RunFilter(team=team or None), None, 0, 200):
        if each.known is not None and each.known.state != "closed" and each.entry.labels.team:
            found: str = each.entry.run_id
            return found
    raise exit_codes.NotFound("There is no conversation to go on with; `antiphon chat TEAM` begins one")


def _served(team: TeamView) -> ServedTeam:
    agents = tuple(
        ServedAgent(each.name, each.description, tuple(each.tools), each.model) for each in team.agents
    )
    return ServedTeam(team.name, team.entry, agents)
