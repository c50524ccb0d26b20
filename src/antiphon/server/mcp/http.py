"""Streamable HTTP as the way in: behind the server's own gate, on the caller's own runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

from litestar.types import ASGIApp
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from antiphon.errors import UserError
from antiphon.host import Host
from antiphon.journal.listing import RunFilter, RunInfo
from antiphon.server.gate import MAX_BODY
from antiphon.server.mcp.runs import check_team
from antiphon.server.mcp.team_server import Context, TeamServer
from antiphon.server.problems import Refusal
from antiphon.server.routes.mounts import OWN_RUNS, Mount, OwnRuns
from antiphon.values.limits import Limits
from antiphon.view import RunConnection

PATH = "/mcp"
MAX_SESSIONS = 100
"""Connections of clients before 2026-07-28 that are kept; later ones keep none."""
IDLE_SECONDS = 1_800.0
"""How long one is kept without a request."""


class SubjectRuns:
    """The runs of a team that the subject of a request may see."""

    def __init__(self, host: Host, team: str, own: OwnRuns) -> None:
        self._host, self._team, self._own = host, team, own
        self.who = own.subject.name

    @asynccontextmanager
    async def connect(self, run_id: str) -> AsyncGenerator[RunConnection]:
        """See CallerRuns."""
        await check_team(self._host, self._team, run_id)
        run: AbstractAsyncContextManager[RunConnection] = self._own.connect(run_id)
        async with run as found:
            yield found

    async def start(self, message: str, **options: Any) -> str:
        """See CallerRuns."""
        try:
            return (await self._own.start(self._team, message, conversation=True, **options)).run_id
        except Refusal as refusal:
            raise UserError(f"{refusal.problem.title}. {refusal.problem.detail}") from refusal

    async def list(self, limit: int) -> Sequence[RunInfo]:
        """See CallerRuns."""
        return await self._own.list(RunFilter(team=self._team), limit=limit)


@asynccontextmanager
async def mounted(
    host: Host, team: str, *, limits: Limits | None = None, source: str = ""
) -> AsyncGenerator[Mount]:
    """A team as an MCP server under `/mcp`, for `make_app(mounts=)`, while this is entered."""

    def runs_of(ctx: Context) -> SubjectRuns:
        own: OwnRuns = ctx.request.scope[OWN_RUNS]  # type: ignore[union-attr]
        return SubjectRuns(host, team, own)

    server = TeamServer(host, team, runs_of, limits=limits, source=source)
    # Who may call, from where, and how much: the gate has looked at that.
    sessions = StreamableHTTPSessionManager(
        server.protocol, max_sessions=MAX_SESSIONS, session_idle_timeout=IDLE_SECONDS,
        max_request_body_size=MAX_BODY,
    )  # fmt: skip
    async with sessions.run():
        # It is an ASGI app, in other types.
        yield Mount(PATH, cast("ASGIApp", sessions.asgi_app), "write")
