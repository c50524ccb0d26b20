"""The app: routes, what they share, and the gate before them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.middleware import DefineMiddleware
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct, field
from prometheus_client import CollectorRegistry, Histogram

from antiphon import __version__
from antiphon.host import Host
from antiphon.server import problems, socket
from antiphon.server.gate import LOOPBACK, MAX_BODY, Bounds, CallerRates, Gate
from antiphon.server.log import RequestLog
from antiphon.server.permissions import DeclaredPermissions, allowed, check_permission
from antiphon.server.routes import (
    events,
    operation,
    page,
    reading,
    rules,
    runs,
    teams,
    transfer,
    work_modules,
)
from antiphon.server.routes.loading import run_of, subject_of
from antiphon.server.routes.mounts import Mount, Mounts
from antiphon.server.routes.projects import files, projects
from antiphon.server.served import Served
from antiphon.server.subjects import AccessToken, Subjects
from antiphon.server.users import FollowedUsers

ROUTES: tuple[Any, ...] = (
    operation.health, operation.ready, operation.status, operation.who, operation.session,
    operation.open_page, operation.metrics,
    teams.list_teams, teams.show_team, teams.show_source,
    runs.create_run, runs.list_runs, runs.show_run, runs.change_run, runs.delete_run, runs.ask, runs.tell,
    runs.answer, runs.cancel, runs.resume, runs.fork_run, runs.check, runs.close, runs.inbox,
    reading.tree, reading.records, reading.frames, reading.request, reading.chat_completion,
    reading.activation, reading.questions, reading.blob, reading.context,
    transfer.export_run, transfer.import_run, events.events, socket.websocket_route, page.page, page.asset,
    *projects.ROUTES, *files.ROUTES, *rules.ROUTES, work_modules.change_modules,
)  # fmt: skip


class ServerSettings(Struct, frozen=True):
    """How a server is reached, and by whom."""

    tokens: tuple[AccessToken, ...]
    """Whoever may come in."""
    hosts: frozenset[str] = LOOPBACK
    """Names and addresses by which it is called; a request for another is refused."""
    origins: frozenset[str] = frozenset()
    """Pages of other sites that may ask, such as `https://ui.example`. Its own may."""
    bounds: Bounds = Bounds()
    """How much one caller may ask for."""
    users: FollowedUsers | None = None
    """The file that tokens, hosts and origins come from: what it says later counts from then on."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Of a read-only look: the command lines that go on; see `SessionView`."""


def make_app(
    host: Host, settings: ServerSettings, *, now: Callable[[], float] = time.time,
    steady: Callable[[], float] = time.monotonic, more: Iterable[Any] = (), mounts: Iterable[Mount] = (),
) -> Litestar:  # fmt: skip
    """The ASGI app of an open host. more: routes of one's own, each with `**allowed(...)`. mounts: apps of
    other protocols, each under a path of its own.

    Raises UserError for a route that declares no permission, and for a mount that cannot be.
    """
    subjects, rates = Subjects(settings.tokens, now), CallerRates(settings.bounds, steady)
    served = Served(host, subjects, rates, settings.commands)
    registry = CollectorRegistry()
    registry.register(operation.HostCollector(served))
    seconds = Histogram(
        "antiphon_request_seconds",
        "Time until a response began.",
        ["method", "route", "status"],
        registry=registry,
    )
    app = Litestar(
        [*ROUTES, *more],
        dependencies={
            "host": Provide(lambda: host, sync_to_thread=False),
            "served": Provide(lambda: served, sync_to_thread=False),
            "registry": Provide(lambda: registry, sync_to_thread=False),
            "subject": Provide(subject_of, sync_to_thread=False),
            "run": Provide(run_of),
        },
        exception_handlers={Exception: problems.answer},
        guards=[check_permission],
        middleware=[DefineMiddleware(Timing, seconds=seconds)],
        openapi_config=_document(),
        plugins=[DeclaredPermissions()],
        request_max_body_size=MAX_BODY,
        debug=False,
        logging_config=None,
    )
    app.state.served = served
    gate = Gate(Mounts(app, mounts, served), subjects, rates, settings.hosts, settings.origins)
    if settings.users is not None:
        subjects.look = _following(settings.users, subjects, gate)
    app.asgi_handler = RequestLog(gate, steady)
    return app


def _following(users: FollowedUsers, subjects: Subjects, gate: Gate) -> Callable[[], None]:
    """Who may come in, and from where, as the users file says."""

    def look() -> None:
        found = users.changed()
        if found is not None:
            gate.hosts, gate.origins = LOOPBACK | found.hosts, found.origins
            subjects.replace(found.tokens)

    return look


def _document() -> OpenAPIConfig:
    token = SecurityScheme(
        type="http", scheme="bearer", description="The token that `antiphon serve` prints."
    )
    return OpenAPIConfig(
        title="Antiphon",
        version=__version__,
        path="/schema",
        render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        components=Components(security_schemes={"token": token}),
        openapi_router=Router(
            "/schema", route_handlers=[], include_in_schema=False, opt=allowed("read")["opt"]
        ),
    )


class Timing:
    """Measures how long each route takes to begin its response."""

    def __init__(self, app: ASGIApp, seconds: Histogram) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        began, request = time.monotonic(), cast("Any", scope)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                route = request.get("path_template") or "(none)"
                labels = (request["method"], route, str(message["status"]))
                self._seconds.labels(*labels).observe(time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, sent)
