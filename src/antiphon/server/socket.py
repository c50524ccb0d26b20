"""One WebSocket for many runs: requests with replies, and what happens in the runs that are followed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from litestar import WebSocket, websocket
from msgspec.structs import replace

from antiphon import __version__
from antiphon.errors import AntiphonError, UserError
from antiphon.host import Host
from antiphon.journal.listing import Labels, check_name
from antiphon.server import messages
from antiphon.server.changes import (
    ChangeRunReply,
    ChangeRunRequest,
    ManageWorkModules,
    ManageWorkModulesReply,
)
from antiphon.server.gate import MAX_BODY, caller_of
from antiphon.server.log import LOG
from antiphon.server.permissions import Permission, allowed, scope_refusal
from antiphon.server.problems import Refusal, invalid, refusal_of
from antiphon.server.routes.answers import answered, receipt
from antiphon.server.routes.bodies import AnswerBody, AskBody, ChangeRun
from antiphon.server.routes.loading import FromHost, FromServed, check_room, loaded
from antiphon.server.routes.projects.projects import check_project
from antiphon.server.routes.reading import run_context_of
from antiphon.server.routes.runs import changed, known, once, run_line
from antiphon.server.routes.teams import startable, team_view
from antiphon.server.routes.work_modules import changed_modules
from antiphon.server.served import Served
from antiphon.server.streams.event_stream import ALIVE_SECONDS
from antiphon.server.streams.updates import RunUpdates, encode
from antiphon.server.subjects import Subject
from antiphon.view import OpenQuestion, RunConnection
from antiphon.view.connection import open_questions

HELLO_SECONDS = 10.0
"""How long a connection has for its first frame."""
AT_ONCE = 32
"""Requests of one connection that are worked on at once."""
FOLLOWED = 200
"""Runs that one connection follows."""
REFUSED = 1008
_decode = msgspec.json.Decoder(messages.ClientRequest).decode


@websocket("/ws", **allowed("first_frame"))
async def websocket_route(socket: WebSocket[Any, Any, Any], host: FromHost, served: FromServed) -> None:
    """See docs/server.md. The first frame is `hello`."""
    await socket.accept()
    named = socket.scope.get("user")
    subject = await _hello(socket, served, named if isinstance(named, Subject) else None)
    if subject is None:
        await socket.close(REFUSED, "The first frame is hello with a valid token or ticket")
        return
    caller = caller_of(socket.scope, subject)
    try:
        served.rates.connect(caller)
    except Refusal as refusal:
        await socket.close(REFUSED, str(refusal))
        return
    connection = SocketConnection(socket, host, served, subject, caller)
    try:
        await connection.until_closed()
    finally:
        served.rates.disconnect(caller)


async def _hello(socket: WebSocket[Any, Any, Any], served: Served, named: Subject | None) -> Subject | None:
    """Who the first frame says it is. named: by the header of the request."""
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            text = await _frame(socket)
        hello = _decode(text) if text is not None else None
    except (TimeoutError, Refusal, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if not isinstance(hello, messages.Hello):
        return None
    subject = named
    if hello.token:
        subject = served.subjects.by_token(hello.token)
    elif hello.ticket:
        subject = served.subjects.by_ticket(hello.ticket)
    if subject is not None:
        reply = messages.HelloReply(
            hello.request_id, subject.name, tuple(sorted(subject.scopes)), __version__
        )
        await socket.send_text(encode(reply))
    return subject


async def _frame(socket: WebSocket[Any, Any, Any]) -> str | None:
    """The next frame; None when the other side has left. Raises Refusal."""
    found: Any = await socket.receive()
    if found["type"] != "websocket.receive":
        return None
    text = found.get("text")
    if text is None:
        raise Refusal(400, "not_text", "A message is a text frame", "Send JSON as text")
    # A character may take four bytes; a text that could be longer is counted.
    if len(text) > MAX_BODY or (len(text) * 4 > MAX_BODY and len(text.encode("utf-8", "replace")) > MAX_BODY):
        raise Refusal(413, "too_large", "The message is larger than 1 MiB", "Send less at once")
    return str(text)


class SocketConnection:
    """One connection, and its tasks: one for each request and each run that is followed."""

    def __init__(
        self, socket: WebSocket[Any, Any, Any], host: Host, served: Served, subject: Subject, caller: str
    ) -> None:
        self._socket, self._host, self._served = socket, host, served
        self._subject, self._caller = subject, caller
        self._sending = asyncio.Lock()
        self._closed = False
        self._unknown = asyncio.Event()
        self._following: dict[str, asyncio.Task[None]] = {}
        self._working: set[asyncio.Task[None]] = set()

    async def until_closed(self) -> None:
        """Take requests until the other side leaves or the server does."""
        leaving = asyncio.ensure_future(self._served.leaving.wait())
        unknown = asyncio.ensure_future(self._unknown.wait())
        frame: asyncio.Future[str | None] | None = None
        self._served.readers[id(self)] = self._look
        try:
            while True:
                frame = asyncio.ensure_future(_frame(self._socket))
                waited: set[asyncio.Future[Any]] = {frame, leaving, unknown}
                while not any(each.done() for each in waited):
                    await asyncio.wait(waited, timeout=ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                    # What was opened with a token ends with it, before anything more is done for it.
                    self._look()
                if self._unknown.is_set():
                    async with self._sending:
                        await self._revoked()
                    return
                if not frame.done():
                    await self._say_goodbye()
                    return
                try:
                    text = frame.result()
                except Refusal as refusal:
                    await self._refuse("", refusal)
                    continue
                if text is None:
                    return
                await self._take(text)
        finally:
            del self._served.readers[id(self)]
            tasks: set[asyncio.Future[Any]] = {leaving, unknown, *self._following.values(), *self._working}
            tasks |= {frame} if frame is not None else set()
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks)

    async def _say_goodbye(self) -> None:
        for run_id in list(self._following):
            self._following.pop(run_id).cancel()
            await self._send(messages.StreamEnded(run_id, "server_left"))
        with suppress(RuntimeError):
            await self._socket.close(1001, "The server is being left; connect again in a moment")

    async def _take(self, text: str) -> None:
        """Begin what a frame asks for; a frame that is none is answered too."""
        try:
            request = _decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            await self._refuse(_request_id(text), invalid(error))
            return
        try:
            self._check(request)
        except Refusal as refusal:
            await self._refuse(request.request_id, refusal)
            return
        if isinstance(request, messages.Unsubscribe):
            # At once: what follows it on this connection comes after it.
            await self._do(request)
            return
        task = asyncio.ensure_future(self._do(request))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        task.add_done_callback(self._ended)

    def _check(self, request: messages.ClientRequest) -> None:
        needed, _ = ACTIONS[type(request)]
        if needed not in self._subject.scopes:
            raise scope_refusal(needed, self._served)
        if len(self._working) >= AT_ONCE or not self._served.rates.take(self._caller):
            raise Refusal(429, "rate", "Too many requests", "Wait for replies, then ask again")

    async def _do(self, request: messages.ClientRequest) -> None:
        try:
            await ACTIONS[type(request)][1](self, request)
        except Exception as error:  # noqa: BLE001 - each request has its own answer, and the connection lives
            refusal = refusal_of(error)
            if refusal.code == "fault":
                self._served.tell_fault(error)
            await self._refuse(request.request_id, refusal)

    async def _refuse(self, request_id: str, refusal: Refusal) -> None:
        await self._send(messages.ErrorMessage(request_id, refusal.code, refusal.problem))

    async def _send(self, message: messages.ServerReply | messages.RunUpdate) -> None:
        """Send it, one after the other; waits while the other side reads slowly.

        A connection whose token was revoked or has expired is closed instead.
        """
        await self._send_text(encode(message))

    async def _send_text(self, text: str) -> None:
        async with self._sending:
            if not self._served.subjects.is_known(self._subject):
                await self._revoked()
                return
            await self._socket.send_text(text)

    def _look(self) -> None:
        """See whether it must be closed though nothing is sent."""
        if not self._served.subjects.is_known(self._subject):
            self._unknown.set()

    async def _revoked(self) -> None:
        if not self._closed:
            self._closed = True
            await self._socket.close(REFUSED, "The token is revoked or has expired")

    # -- requests -------------------------------------------------------------------------------

    async def hello_again(self, request: messages.Hello) -> None:
        """A second hello is refused."""
        raise Refusal(400, "hello", "hello is the first frame only", "Connect anew to be somebody else")

    async def subscribe(self, request: messages.Subscribe) -> None:
        """Follow a run."""
        async with loaded(self._host, self._subject, request.run_id) as run:
            if not 0 <= request.after <= run.seq:
                raise Refusal(
                    400, "cursor", f"The cursor {request.after} is none: the last record is {run.seq}",
                    "Begin with an earlier one",
                )  # fmt: skip
            before = self._following.pop(request.run_id, None)
            if before is not None:
                before.cancel()
            if len(self._following) >= FOLLOWED:
                raise Refusal(429, "followed", f"{FOLLOWED} runs are followed here", "Unsubscribe from some")
            asked = await _questions(run, request.after)
            line = await run_line(self._host, await self._host.info(run.run_id))
            await self._send(
                messages.SubscribeReply(request.request_id, run.run_id, request.after, line, asked)
            )
            following = self._follow(run, request)
            task = asyncio.ensure_future(following)
            task.add_done_callback(self._ended)
            self._following[run.run_id] = task

    async def _follow(self, run: RunConnection, request: messages.Subscribe) -> None:
        updates = RunUpdates(
            self._host, run.run_id, request.after, request.view, self._served.update_encodings
        )
        try:
            async with aclosing(run.events(request.after, deltas=request.view == "all")) as events:
                while not events.is_over:
                    for message in await updates.of(await events.batch()):
                        whole = message if isinstance(message, str) else await _whole(run, message)
                        await self._send_text(whole)
            await self._send(messages.StreamEnded(run.run_id, "closed"))
        except AntiphonError as error:
            await self._send(messages.StreamEnded(run.run_id, "failed", refusal_of(error).problem))
        if self._following.get(run.run_id) is asyncio.current_task():
            del self._following[run.run_id]

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task that fails has nobody who waits for it: the other side has gone, most likely."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            LOG.info("a run is followed no longer: %s", type(error).__name__)

    async def unsubscribe(self, request: messages.Unsubscribe) -> None:
        """Follow a run no longer."""
        task = self._following.pop(request.run_id, None)
        if task is not None:
            task.cancel()
        await self._send(messages.UnsubscribeReply(request.request_id, request.run_id))

    async def start_run(self, request: messages.StartRun) -> None:
        """Start a run."""
        check_name(request.name)
        await check_project(self._host, self._subject, request.project)
        await check_room(self._served, self._subject)
        started = await self._host.start(
            request.team, request.message, entry=request.entry, data=request.data, limits=request.limits,
            key=request.key, labels=Labels(request.project, self._subject.name), files=request.files,
            model=request.model, policy=request.policy, traceparent=known(request.traceparent),
            history=request.history, conversation=request.conversation, options=request.options,
        )  # fmt: skip
        if request.name and started.created:
            await self._host.journal.rename(started.run_id, request.name)
        await self._send(messages.RunReady(request.request_id, started.run_id, started.created))

    async def send_to_run(self, request: messages.SendToRun) -> None:
        """Ask, or tell."""
        async with loaded(self._host, self._subject, request.run_id) as run:
            if request.call_id:
                _check_alone(request)
                number = await run.post(request.call_id, request.message)
            else:
                agent = request.agent or await self._entry(run.run_id)
                asked = AskBody(
                    agent, request.message, data=request.data, limits=request.limits, history=request.history,
                    intent=request.intent, options=request.options,
                )  # fmt: skip
                key = await once(self._host, run.run_id, request.key, asked) if request.key else ""
                number = await run.ask(
                    agent, request.message, intent=request.intent, data=request.data, limits=request.limits,
                    key=key, traceparent=known(request.traceparent), history=request.history,
                    options=request.options,
                )  # fmt: skip
            posted = await receipt(run, number)
            await self._send(messages.SendReply(request.request_id, run.run_id, posted))

    async def _entry(self, run_id: str) -> str:
        """Whom the user asked last."""
        known = await self._host.summary(await self._host.info(run_id))
        if not known.entry:
            raise UserError(f"Nobody was asked in run {run_id} yet; name the agent")
        return known.entry

    async def answer(self, request: messages.AnswerQuestion) -> None:
        """Answer a question."""
        given = AnswerBody(
            request.question,
            request.content,
            request.arguments,
            request.grant,
            request.scope,
            request.reason,
            request.ends_turn,
        )
        async with loaded(self._host, self._subject, request.run_id) as run:
            posted = await answered(self._host, self._subject, run, given)
            await self._send(messages.AnswerReply(request.request_id, run.run_id, posted))

    async def stop_run(self, request: messages.StopRun) -> None:
        """Stop what goes on."""
        async with loaded(self._host, self._subject, request.run_id) as run:
            posted = await receipt(run, await run.cancel(request.target, request.reason))
            await self._send(messages.StopReply(request.request_id, run.run_id, posted))

    async def change_run(self, request: ChangeRunRequest) -> None:
        """Rename a run, or move it."""
        given = ChangeRun(request.name, request.project)
        async with loaded(self._host, self._subject, request.run_id) as run:
            line = await changed(self._host, self._subject, run.run_id, given)
            await self._send(ChangeRunReply(request.request_id, run.run_id, line))

    async def run_context(self, request: messages.RequestRunContext) -> None:
        """A run's RunContext."""
        async with loaded(self._host, self._subject, request.run_id) as run:
            context = await run_context_of(run, self._host)
            await self._send(messages.RunContextReply(request.request_id, run.run_id, context))

    async def run_profiles(self, request: messages.RequestRunProfiles) -> None:
        """The agents of a run's team."""
        async with loaded(self._host, self._subject, request.run_id) as run:
            labels = (await self._host.info(run.run_id)).labels
            view = team_view(labels.team, await self._host.known.of(labels))
            await self._send(messages.RunProfilesReply(request.request_id, run.run_id, view))

    async def toolsets(self, request: messages.RequestAvailableToolsets) -> None:
        """The tools of a team."""
        team = await startable(self._host, self._subject, request.team, request.project)
        view = team_view(request.team, team)
        by_agent = {
            each.name: [*each.tools, *(tool for one in each.toolsets for tool in one.tools or ())]
            for each in view.agents
        }
        await self._send(messages.ToolsetsReply(request.request_id, request.team, by_agent))

    async def manage_modules(self, request: ManageWorkModules) -> None:
        """Change the plan of a run of profiles."""
        async with loaded(self._host, self._subject, request.run_id) as run:
            posted = await changed_modules(self._host, self._subject, run, request.change, request.key)
            await self._send(ManageWorkModulesReply(request.request_id, run.run_id, posted))


async def _questions(run: RunConnection, after: int) -> tuple[OpenQuestion, ...]:
    """What was asked as of record `after`; what is still open with the form of its answer."""
    whole = {each.id: each for each in await run.open_questions()}
    folded = await run.folded()
    asked = open_questions(folded.tree if folded.seq == after else await run.tree(after))
    return tuple(whole.get(each.id, each) for each in asked)


async def _whole(run: RunConnection, message: messages.QuestionMessage) -> str:
    """A question; one that is still open with the form of its answer."""
    for each in await run.open_questions():
        if each.id == message.question.id:
            return encode(replace(message, question=each))
    return encode(message)


Action = Callable[[SocketConnection, Any], Awaitable[None]]
ACTIONS: Mapping[type[Any], tuple[Permission, Action]] = {
    messages.Hello: ("read", SocketConnection.hello_again),
    messages.Subscribe: ("read", SocketConnection.subscribe),
    messages.Unsubscribe: ("read", SocketConnection.unsubscribe),
    messages.StartRun: ("write", SocketConnection.start_run),
    messages.SendToRun: ("write", SocketConnection.send_to_run),
    messages.AnswerQuestion: ("write", SocketConnection.answer),
    messages.StopRun: ("write", SocketConnection.stop_run),
    ChangeRunRequest: ("write", SocketConnection.change_run),
    messages.RequestRunContext: ("read", SocketConnection.run_context),
    messages.RequestRunProfiles: ("read", SocketConnection.run_profiles),
    messages.RequestAvailableToolsets: ("read", SocketConnection.toolsets),
    ManageWorkModules: ("write", SocketConnection.manage_modules),
}
"""What each request needs, and who does it: one that is not here cannot be asked."""


def _check_alone(request: messages.SendToRun) -> None:
    """Raise UserError for what only a request of its own can have."""
    for name in ("agent", "history", "intent", "limits", "data", "traceparent", "options", "key"):
        if getattr(request, name) != getattr(_TOLD, name):
            raise UserError(
                f"An open call is told a message; {name} goes with a request: leave it out, or call_id"
            )


_TOLD = messages.SendToRun("", "", "")


def _request_id(text: str) -> str:
    """The request id of a message that is refused, where it can be found."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    given = found.get("request_id") if isinstance(found, dict) else None
    return given if isinstance(given, str) else ""
