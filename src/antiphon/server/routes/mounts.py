"""Apps of other protocols beside the routes: behind the same gate, with a permission, on one's own runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from litestar import Litestar
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.host import Host
from antiphon.host.starting import StartedRun
from antiphon.journal.listing import EVERY_RUN, Labels, RunFilter, RunInfo
from antiphon.server.gate import MAX_BODY, caller_of, refuse
from antiphon.server.permissions import Permission, check_scope
from antiphon.server.problems import Refusal, refusal_of
from antiphon.server.routes.loading import check_room, loaded, visible
from antiphon.server.routes.projects.projects import check_project
from antiphon.server.served import Served
from antiphon.server.subjects import Subject
from antiphon.view import RunConnection

OWN_RUNS = "antiphon.runs"
"""Where a mounted app finds OwnRuns in the scope, None where it is public; `scope["user"]` is the Subject."""
LOOK_SECONDS = 15.0
"""How often it is looked whether the token of an open request has expired; a revoked one is seen at once."""
REVOKED = "The token is revoked or has expired"
_PATH = re.compile(r"/[A-Za-z0-9_-]+")


class Mount(Struct, frozen=True):
    """An ASGI app under a path of the server.

    What it is sent has passed the gate (host, origin, token, rate), has the permission, and counts as a
    connection of the caller while it goes on. Its lifespan is the program's that mounts it.
    """

    path: str
    """Such as `/a2a`: the app's `root_path`, with which the `path` of each request begins."""
    app: ASGIApp
    """HTTP and WebSocket."""
    permission: Permission
    """What a caller needs."""
    max_body: int = MAX_BODY
    """Bytes of a request's body; a longer one is refused with 413."""


class OwnRuns:
    """The runs that a subject may see, and no others: what a mounted app does runs with.

    A run outlives the request that began it, and whoever leaves cancels nothing.
    """

    def __init__(self, served: Served, subject: Subject) -> None:
        self._served, self.subject = served, subject

    @property
    def _host(self) -> Host:
        return self._served.host

    def connect(self, run_id: str) -> AbstractAsyncContextManager[RunConnection]:
        """Watch, ask, answer and stop a run. Raises UnknownName, of another's run as of none."""
        return loaded(self._host, self.subject, run_id)

    async def start(self, team: str, message: str, *, project: str = "", **options: Any) -> StartedRun:
        """Start a run of the subject's; options as of `Host.start`, but for labels.

        key: under which the same start, sent again, is the same run, after a restart too. Raises Refusal
        where the subject has too many at work, UnknownName, UserError.
        """
        await check_project(self._host, self.subject, project)
        await check_room(self._served, self.subject)
        labels = Labels(project, self.subject.name)
        return await self._host.start(team, message, labels=labels, **options)

    async def list(self, where: RunFilter = EVERY_RUN, before: int = 0, limit: int = 50) -> Sequence[RunInfo]:
        """A page of the runs, newest first; see `Journal.runs`."""
        mine = visible(self.subject, where)
        return [] if mine is None else await self._host.journal.runs(mine, before, limit)


class Mounts:
    """ASGI middleware between the gate and the routes. Raises UserError for a mount that cannot be."""

    def __init__(self, app: Litestar, mounts: Iterable[Mount], served: Served) -> None:
        self._app, self._served, self._mounts = app.asgi_handler, served, tuple(mounts)
        taken = {f"/{route.path.split('/')[1]}" for route in app.routes}
        for mount in self._mounts:
            if _PATH.fullmatch(mount.path) is None or mount.path in taken:
                raise UserError(
                    f"A mount has a path of one part that no route has, such as /a2a; got {mount.path!r}"
                )
            if mount.permission not in ("public", "read", "write"):
                raise UserError(f"The mount {mount.path} declares no permission: public, read or write")
            taken.add(mount.path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        found = self._mount(scope)
        if found is None:
            await self._app(scope, receive, send)
            return
        begun = False

        async def sent(message: Any) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._ask(found, scope, receive, sent)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal.code == "fault":
                self._served.tell_fault(error)
            if begun and refusal.code == "fault":
                raise
            if begun:
                # It cannot be said any more: what was begun is cut off.
                return
            await refuse(scope, refusal, send)

    def _mount(self, scope: Scope) -> Mount | None:
        if scope["type"] in ("http", "websocket"):
            for each in self._mounts:
                if scope["path"] == each.path or scope["path"].startswith(f"{each.path}/"):
                    return each
        return None

    async def _ask(self, mount: Mount, scope: Any, receive: Receive, send: Send) -> None:
        scope["path_template"] = mount.path
        subject, own = scope["user"], None
        if mount.permission != "public":
            own = OwnRuns(self._served, check_scope(subject, mount.permission, self._served))
        _check_length(scope, mount.max_body)
        caller = caller_of(scope, subject)
        self._served.rates.connect(caller)
        try:
            given = scope | {"root_path": scope.get("root_path", "") + mount.path, OWN_RUNS: own}
            await self._while_known(
                subject, mount.app(given, _BoundedBody(receive, mount.max_body), send), scope, send
            )
        finally:
            self._served.rates.disconnect(caller)

    async def _while_known(
        self, subject: Subject | None, work: Awaitable[None], scope: Any, send: Send
    ) -> None:
        """What an app does with a request, ended once the caller's token is revoked or has expired: what was
        opened with a token ends with it. Raises Refusal then."""
        if subject is None:
            await work
            return
        subjects, readers, loop = self._served.subjects, self._served.readers, asyncio.get_running_loop()

        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            timer.cancel()
            timer = loop.call_later(LOOK_SECONDS, look)
            if not subjects.is_known(subject):
                known.reschedule(loop.time())

        def wake() -> None:
            loop.call_soon(look)

        timer, known = loop.call_later(LOOK_SECONDS, look), asyncio.timeout(None)
        readers[id(look)] = wake
        try:
            async with known:
                await work
        except TimeoutError:
            if not known.expired():
                raise
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": REVOKED})
            raise Refusal(401, "token", REVOKED, "Ask for another one") from None
        finally:
            del readers[id(look)]
            timer.cancel()


def _check_length(scope: Any, most: int) -> None:
    told = dict(scope["headers"]).get(b"content-length", b"")
    if told.isdigit() and int(told) > most:
        raise _too_long(most)


def _too_long(most: int) -> Refusal:
    return Refusal(413, "too_large", f"The body is larger than {most:,} bytes", "Send less at once")


class _BoundedBody:
    """ASGI receive that ends with a refusal where a body goes on too long."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._left, self._most = receive, most, most

    async def __call__(self) -> Any:
        """ASGI."""
        message: Any = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _too_long(self._most)
        return message
