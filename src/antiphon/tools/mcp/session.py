"""One connection to a server: opened, watched and closed in a task of its own.

The SDK's scopes belong to the task that enters them, and cut that short when a connection fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import anyio
from mcp import Client, ClientSession, MCPError
from mcp.client._transport import TransportStreams
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_REQUEST,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    ElicitRequest,
    ErrorData,
    Implementation,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    ListRootsRequest,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from pydantic import TypeAdapter, ValidationError

from antiphon.errors import EffectFailed, ToolError
from antiphon.tools.mcp.child import child_streams
from antiphon.tools.mcp.fence import FencedStream
from antiphon.tools.mcp.inputs import answer, roots_of
from antiphon.tools.mcp.library import reading_tools
from antiphon.tools.mcp.offers import shown_result, tools_of
from antiphon.tools.mcp.pins import approved
from antiphon.tools.mcp.remote import remote_streams
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.secret import shown
from antiphon.values.tool import Tool, ToolContext
from antiphon.values.tool.toolset import ProviderLost, ToolsetLink

MAX_SESSIONS = 8
"""Connections to one server in an event loop: one for each of its users' credentials."""
LOOK_SECONDS = 60.0
"""How often a server is asked what it offers, whatever it says by itself; who does not answer is gone."""
LIST_SECONDS = 20.0
"""What it may take to say that."""
MAX_PAGES = 100
STOP_SECONDS = 3.5
"""What ending a connection may take, before it is cut."""
LISTEN_AGAIN = 5.0
"""Seconds until what a server's word on changes is listened to again, once that was cut."""
MAX_ROUNDS = 20
"""How often a server may ask back in one call."""
ASK_AGAIN = 0.25
"""Seconds until a server that asks nothing, and is not ready, is asked again."""
SUCCESSOR_SECONDS = 30.0
"""How long it is waited for another connection, to give a server the answers that it asked for."""
_KEPT_AS = "antiphon_mcp_sessions"
_OPEN_AS = "antiphon_mcp_open"
ASKED_BACK = "asked back"
"""The step under which it is on record what a server asks back."""
_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
_LOG = logging.getLogger("antiphon.mcp")


@asynccontextmanager
async def _fenced(server: McpServer, ended: Callable[[str], None]) -> AsyncGenerator[TransportStreams, None]:
    """Messages from and to a server, however it is reached."""
    streams = child_streams(server, ended) if server.command else remote_streams(server)
    async with streams as (receive, send):
        yield FencedStream(receive, ended), send


def sessions_here() -> dict[Any, McpSession]:
    """The connections of the running event loop that are up, by their servers' keys; kept on the loop."""
    loop: Any = asyncio.get_running_loop()
    found: dict[Any, McpSession] | None = getattr(loop, _KEPT_AS, None)
    if found is None:
        found = loop.antiphon_mcp_sessions = {}
    return found


def _open_here() -> set[McpSession]:
    """The connections of the running event loop that are not closed; kept on the loop."""
    loop: Any = asyncio.get_running_loop()
    found: set[McpSession] | None = getattr(loop, _OPEN_AS, None)
    if found is None:
        found = loop.antiphon_mcp_open = set()
    return found


def _plain(found: CallToolResult | InputRequiredResult) -> dict[str, Any]:
    return found.model_dump(by_alias=True, mode="json", exclude_none=True)


class McpSession:
    """A connection to a server. link: is told what it offers, and that it is lost."""

    def __init__(self, server: McpServer, link: ToolsetLink) -> None:
        self._server, self._link = server, link
        self._news = asyncio.Event()
        self._stopping = self._changed = False
        self._gone = ""
        self._calls: list[ToolContext] = []
        self.definitions: list[dict[str, Any]] = []
        """What it said of its tools last."""
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[list[Tool]] = asyncio.get_running_loop().create_future()

    async def start(self) -> list[Tool]:
        """Connect; what it offers. Raises ToolError with why it cannot be used."""
        here = _open_here()
        if sum(each._server.place == self._server.place for each in here) >= MAX_SESSIONS:
            raise ToolError(f"{MAX_SESSIONS} connections to it are open, with other credentials")
        here.add(self)
        name = f"mcp server {self._server.name}"
        self._task = asyncio.get_running_loop().create_task(self._live(), name=name)
        self._task.add_done_callback(lambda _: here.discard(self))
        return await self._ready

    async def stop(self) -> None:
        """End the connection."""
        self.leave()
        if self._task is None:
            return
        _, running = await asyncio.wait({self._task}, timeout=STOP_SECONDS if self._client else 0)
        if running:
            # What it started is ended all the same.
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1.0 if self._client else STOP_SECONDS)

    def leave(self) -> None:
        """Begin to end the connection, without waiting for that."""
        self._stopping = True
        self._news.set()

    # -- its task ---------------------------------------------------------------------------------

    async def _live(self) -> None:
        reason = ""
        try:
            async with self._connection() as client:
                tools = await self._listed(client)
                self._client, sessions_here()[self._server.key] = client, self
                if not self._ready.done():
                    self._ready.set_result(tools)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._listen, client)
                    await self._watch(client)
                    group.cancel_scope.cancel()
        except asyncio.CancelledError:
            reason = "its connection was cut"
        except BaseException as error:  # noqa: BLE001 - whatever ends it, its runs go on without it
            reason = self._told(error)
        self._client = None
        if sessions_here().get(self._server.key) is self:
            del sessions_here()[self._server.key]
        reason = self._gone or reason or "it ended the connection"
        if not self._ready.done():
            self._ready.set_exception(ToolError(reason))
        elif not self._stopping:
            self._link.lost(reason)

    def _connection(self) -> Client:
        return Client(
            _fenced(self._server, self._ended), mode="auto", cache=None, message_handler=self._heard,
            client_info=Implementation(name="antiphon", version="1"),
            elicitation_callback=lambda _, params: self._asked(ElicitRequest(params=params)),
            sampling_callback=lambda _, params: self._asked(CreateMessageRequest(params=params)),
            list_roots_callback=lambda _: self._asked(ListRootsRequest()),
        )  # fmt: skip

    def _ended(self, reason: str) -> None:
        """Its program is gone, or is none that can be spoken with."""
        self._gone = self._gone or reason
        self._news.set()

    async def _heard(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed = True
            self._news.set()

    async def _watch(self, client: Client) -> None:
        """Until it is stopped or gone: look what it offers when it says so, and now and then."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._news.wait()
            self._news.clear()
            if self._stopping or self._gone:
                return
            self._changed = False
            self._link.offer(await self._listed(client))

    async def _listen(self, client: Client) -> None:
        """Take in a modern server's word that it offers other tools; an older one says it unasked."""
        while True:
            try:
                async with client.listen(tools_list_changed=True) as said:
                    async for _ in said:
                        self._changed = True
                        self._news.set()
            except (ListenNotSupportedError, MCPError, TimeoutError):
                return
            except SubscriptionLost:
                self._news.set()
            await asyncio.sleep(LISTEN_AGAIN)

    async def _listed(self, client: Client) -> list[Tool]:
        """Raises ToolError, MCPError, ValidationError, TimeoutError."""
        self.definitions = found = await self._fetched(client)
        tools = tools_of(self._server, await asyncio.to_thread(approved, self._server, found), self.call)
        names = {each.name for each in tools}
        return [*tools, *reading_tools(self._server, client.server_capabilities, self._fetch, names)]

    async def _fetched(self, client: Client) -> list[dict[str, Any]]:
        """The definitions of its tools, page by page."""
        found: list[dict[str, Any]] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        async with asyncio.timeout(LIST_SECONDS):
            while cursor not in cursors and len(cursors) < MAX_PAGES:
                cursors.add(cursor)
                params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
                page = await client.session.list_tools(params=params)
                found += [
                    each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in page.tools
                ]
                cursor = page.next_cursor
                if cursor is None:
                    return found
        raise ToolError(f"its list of tools does not end after {len(cursors)} pages")

    # -- calls ------------------------------------------------------------------------------------

    async def call(self, ctx: ToolContext, name: str, arguments: dict[str, Any], once: bool) -> Any:
        """Call a tool; what a model is shown of its result, see `result`."""
        found = await self.result(ctx, name, arguments, once)
        blocks = [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in found.content]
        return shown_result(blocks, found.structured_content, failed=found.is_error)

    async def result(
        self, ctx: ToolContext, name: str, arguments: dict[str, Any], once: bool = False
    ) -> CallToolResult:
        """Call a tool; its result as it is. once: never a second time after a crash.

        Raises ToolError for what the server says against it, ProviderLost when it is gone, TimeoutError for
        an answer that says nothing of what was done.
        """
        params, rounds = CallToolRequestParams(name=name, arguments=arguments), 0
        with self._at_work(ctx):
            while True:
                session = await self._successor() if rounds else self
                found = await session._answered(ctx, params, once and not rounds)
                if isinstance(found, CallToolResult):
                    return found
                rounds += 1
                if rounds > MAX_ROUNDS:
                    raise ToolError(f"it asked back more than {MAX_ROUNDS} times")
                requests = found.input_requests or {}
                answers = {key: await self._answer(ctx, each) for key, each in requests.items()}
                if not answers:
                    await asyncio.sleep(ASK_AGAIN)
                params = CallToolRequestParams(
                    name=name, arguments=arguments, input_responses=answers or None,
                    request_state=found.request_state,
                )  # fmt: skip

    @property
    def has_resources(self) -> bool:
        """Whether the server has resources, now that it is connected."""
        return self._client is not None and self._client.server_capabilities.resources is not None

    async def resource(self, uri: str) -> str:
        """The text of a resource. Raises ToolError, ProviderLost."""
        answer = await self._fetch(lambda asked: asked.read_resource(uri))
        return "\n\n".join([each.text for each in answer.contents if getattr(each, "text", None)])

    async def _successor(self) -> McpSession:
        """The connection that there is now, or soon: people may take days, and this one may be lost."""
        sessions = sessions_here()
        for _ in range(int(SUCCESSOR_SECONDS / ASK_AGAIN)):
            found = sessions.get(self._server.key, self)
            if found._client is not None:
                return found
            await asyncio.sleep(ASK_AGAIN)
        return self

    async def _answered(
        self, ctx: ToolContext, params: CallToolRequestParams, once: bool
    ) -> CallToolResult | InputRequiredResult:
        """What the server says to a call; that it asks back is on record before anybody is asked.

        A call that is run again after a crash goes on from there: what the server has answered before, it is
        not asked once more. An older server asks in the middle of a call that it has begun, so that there is
        nothing to go on from.
        """
        failed: list[BaseException] = []

        async def ask() -> Any:
            try:
                if once:
                    raise TimeoutError("the process stopped while it was asking")
                return _plain(await self._ask(ctx, params))
            except BaseException as error:
                failed.append(error)
                raise

        if ctx.attempt == 1:
            found = await self._ask(ctx, params)
            if isinstance(found, InputRequiredResult):
                await ctx.step(ASKED_BACK, partial(_plain, found))
            return found
        try:
            return _ANSWER.validate_python(await ctx.step(ASKED_BACK, ask), by_name=False)
        except EffectFailed:
            if failed:
                raise failed[0] from None
            raise

    async def _answer(self, ctx: ToolContext, request: InputRequest) -> InputResponse:
        found = await answer(ctx, self._server, request)
        if isinstance(found, ErrorData):
            raise ToolError(f"it asked what cannot be answered: {found.message}")
        return found

    @contextmanager
    def _at_work(self, ctx: ToolContext) -> Iterator[None]:
        """A call is under way."""
        self._calls.append(ctx)
        try:
            yield
        finally:
            self._calls.remove(ctx)

    async def _asked(self, request: InputRequest) -> Any:
        """An older server asks by itself: for the call that is under way, if there is but one."""
        if isinstance(request, ListRootsRequest):
            return roots_of(self._server)
        if len(self._calls) != 1:
            told = f"{len(self._calls)} calls are under way, and it is not said which one asks"
            return ErrorData(code=INVALID_REQUEST, message=told)
        return await answer(self._calls[0], self._server, request)

    async def _ask(
        self, ctx: ToolContext, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        async def tell(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total is not None else f"{progress:g}"
            ctx.report_progress(shown(f"{message} ({share})" if message else share, self._server.secrets))

        request = CallToolRequest(params=params)
        with self._faults() as client:
            try:
                return await client.session.send_request(request, _ANSWER, progress_callback=tell)
            except MCPError as error:
                if error.code != HEADER_MISMATCH:
                    raise
            # It knows the tool otherwise than we do: what it offers is looked up, and it is asked once more.
            await self._listed(client)
            return await client.session.send_request(request, _ANSWER, progress_callback=tell)

    async def _fetch(self, ask: Callable[[ClientSession], Awaitable[Any]]) -> Any:
        """See `Fetch`."""
        with self._faults() as client:
            try:
                return await ask(client.session)
            except RuntimeError as error:
                raise ToolError(self._told(error)) from error

    @contextmanager
    def _faults(self) -> Iterator[Client]:
        """What goes wrong with the connection, or is said against what was asked, as a tool raises it."""
        client = self._client
        if client is None:
            raise ProviderLost(self._gone or "it is not connected")
        try:
            yield client
        except MCPError as error:
            said = self._told(error)
            # A server may give this code to errors of its own: over pipes it is known if they are closed.
            closed = error.code == CONNECTION_CLOSED and (self._client is None or bool(self._server.url))
            if self._gone or closed or error.message == "Session terminated":
                raise ProviderLost(self._gone or said) from error
            raise ToolError(said) from error
        except ValidationError as error:
            raise TimeoutError(f"its answer is none to what it was asked: {self._told(error)}") from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ProviderLost(self._gone or "its connection is closed") from error

    def _told(self, error: BaseException) -> str:
        """An error in one line, without what is secret."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, TimeoutError):
            return "it did not answer in time"
        text = error.message if isinstance(error, MCPError) else str(error)
        return shown(text or type(error).__name__, self._server.secrets, 500)
