"""A team as an MCP server: what a client calls, in both eras of the protocol.

A call waits for the answer of a run that outlives it. What the run asks people meanwhile is asked of the
client's person: by a result that says what is missing (2026-07-28), or in the middle of the call before.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequests,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec.structs import replace

from antiphon import __version__
from antiphon.errors import AnsweredAlready, AntiphonError, JournalError, UserError
from antiphon.host import Host
from antiphon.host.summaries import is_closed, state_word
from antiphon.server.mcp.following import (
    FIRST,
    RequestWatch,
    Standing,
    is_request,
    last_request,
    until_closed,
)
from antiphon.server.mcp.forms import DECLINED, form_of, word_of
from antiphon.server.mcp.runs import AT_WORK, CallerRuns
from antiphon.server.mcp.shown import ASK, GET_RUN, LIST_RUNS, plain, refused, result_of, tools_of
from antiphon.values.limits import DEFAULTS, Limits
from antiphon.values.schema.declared import JsonSchema
from antiphon.view import OpenQuestion, RunConnection

Context = ServerRequestContext[Any, Any]
RunsOf = Callable[[Context], CallerRuns]
"""The runs of whoever calls."""
TAKEN_SECONDS = 2.0
"""How long it is waited until a cancel was taken in."""
MAX_STATE = 1_000
"""Characters of the state of a call that a client brings back."""
MAX_KNOWN = 1_000
"""Calls that a client may still cancel though they are not waited for any more."""
MAX_ASKED = 10
"""How often people are asked again in one call whose answers do not fit."""
CANCELLED = "the client cancelled the call"
_LOG = logging.getLogger("antiphon.mcp")


class _InputWanted(Exception):
    """What a person has to say before a call can go on, as a result says it."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("input required")
        self.result = result


class TeamServer:
    """The tools of one team of a host.

    runs_of: the runs of whoever calls. limits: of each request; a client may ask for less. source: the
    options of the command line that name the journal, for whoever has to answer there.
    """

    def __init__(
        self, host: Host, name: str, runs_of: RunsOf, *, limits: Limits | None = None, source: str = ""
    ) -> None:
        self._host, self._name, self._runs_of = host, name, runs_of
        self._limits, self._source = limits, source
        self._tools = tools_of(name, host.team(name))
        self._schemas = {each.name: JsonSchema(each.input_schema) for each in self._tools}
        self._under_way: OrderedDict[tuple[str, str], tuple[CallerRuns, str, str]] = OrderedDict()
        self._at_work = 0
        self.protocol: Server[Any] = Server(
            f"antiphon-{name}", version=__version__, title=name, on_list_tools=self._list,
            on_call_tool=self._call,
            instructions=f"A team of agents, {name}. `{ASK}` asks it; what it does is a run, which goes on"
            f" whoever waits: `{GET_RUN}` looks at one.",
        )  # fmt: skip
        self.protocol.middleware.append(self._hear_cancels)

    async def _list(self, ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    async def _call(
        self, ctx: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        schema = self._schemas.get(params.name)
        if schema is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        given = params.arguments or {}
        if fault := schema.fault(given):
            return refused(f"{params.name}: {fault}")
        if self._at_work >= AT_WORK:
            return refused(f"{AT_WORK} calls are under way, which is as many as may be; wait for one of them")
        self._at_work += 1
        try:
            return await self._done(ctx, params, given)
        except _InputWanted as wanted:
            return wanted.result
        except AntiphonError as error:
            return refused(str(error))
        except MCPError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the client is told nothing of our insides
            _LOG.exception("a call of the tool %s of team %s failed", params.name, self._name)
            raise MCPError(INTERNAL_ERROR, "This is a fault of the server; its log says more") from None
        finally:
            self._at_work -= 1

    async def _done(
        self, ctx: Context, params: CallToolRequestParams, given: Mapping[str, Any]
    ) -> CallToolResult:
        runs = self._runs_of(ctx)
        if params.request_state is not None or params.input_responses:
            return await self._go_on(ctx, params, runs, given)
        if params.name == ASK:
            return await self._ask(ctx, runs, given)
        if params.name == GET_RUN:
            async with runs.connect(given["run_id"]) as run:
                request = last_request(await run.tree())
                return await self._until_settled(
                    ctx, run, request, given.get("wait_seconds", 0.0), waits_for_people=not _has_forms(ctx)
                )
        if params.name == LIST_RUNS:
            return await self._listed(runs, given.get("limit", 20))
        return await self._cancel(runs, given)

    # -- asking, and what a run asks -------------------------------------------------------------

    async def _ask(self, ctx: Context, runs: CallerRuns, given: Mapping[str, Any]) -> CallToolResult:
        limits, message = self._limits_of(given), given["message"]
        if not message.strip():
            raise UserError("message is empty: say what you want")
        run_id, request = given.get("run_id", ""), FIRST
        # What has begun can be cancelled, so that it begins is not cut short.
        with anyio.CancelScope(shield=True):
            if run_id:
                request = await self._ask_again(runs, run_id, message, limits)
            else:
                run_id = await runs.start(message, limits=limits)
        async with self._cancellable(ctx, runs, run_id, request), runs.connect(run_id) as run:
            # Whoever stops waiting knows then where to look.
            await _tell(ctx, 0, f"run {run_id}")
            return await self._until_settled(ctx, run, request, given.get("wait_seconds"))

    async def _ask_again(self, runs: CallerRuns, run_id: str, message: str, limits: Limits | None) -> str:
        """Another request in a run; its id."""
        async with runs.connect(run_id) as run:
            number = await run.ask(self._host.team(self._name).entry, message, limits=limits)
            try:
                async with asyncio.timeout(TAKEN_SECONDS):
                    return await run.taken(number)
            except TimeoutError:
                raise UserError(
                    f"Run {run_id} will take the request in later; {GET_RUN} tells what comes of it"
                ) from None

    def _limits_of(self, given: Mapping[str, Any]) -> Limits | None:
        """What a request may use: no more than the server allows."""
        asked = {"tokens": given.get("max_tokens"), "usd": given.get("max_usd")}
        chosen = {name: value for name, value in asked.items() if value is not None}
        if not chosen:
            return self._limits
        known = self._limits or self._host.team(self._name).limits or DEFAULTS
        for name, value in chosen.items():
            most = getattr(known, name)
            chosen[name] = value if most is None else min(value, most)
        return replace(known, **chosen)

    async def _go_on(
        self, ctx: Context, params: CallToolRequestParams, runs: CallerRuns, given: Mapping[str, Any]
    ) -> CallToolResult:
        """A call that comes again with what people have said. Its state is the client's word: it names a
        request that the same caller could look at anyway."""
        run_id, request = _read_state(params.request_state)
        async with self._cancellable(ctx, runs, run_id, request), runs.connect(run_id) as run:
            asked = {each.id: each for each in await run.open_questions()}
            said = params.input_responses or {}
            wrong: dict[str, str] = {}
            closed = False
            for key, each in said.items():
                if key in asked and isinstance(each, ElicitResult):
                    took = await self._say(ctx, runs, run, asked[key], each)
                    closed = closed or took is None
                    wrong |= {key: took} if took else {}
            if closed:
                async with aclosing(RequestWatch(run, request, partial(_tell, ctx))) as watch:
                    return result_of(await watch.settled(asyncio.get_running_loop().time()), self._source)
            return await self._until_settled(ctx, run, request, given.get("wait_seconds"), wrong)

    async def _until_settled(
        self, ctx: Context, run: RunConnection, request: str, wait: float | None,
        wrong: Mapping[str, str] = {}, *, waits_for_people: bool = False,
    ) -> CallToolResult:  # fmt: skip
        """How a request stands once it has ended, or time is up; people are asked meanwhile, if that can be.

        Raises _InputWanted where a result says what they are asked.
        """
        deadline, left = None if wait is None else asyncio.get_running_loop().time() + wait, MAX_ASKED
        async with aclosing(RequestWatch(run, request, partial(_tell, ctx))) as watch:
            while True:
                stand = await watch.settled(deadline, waits_for_people=waits_for_people)
                if not stand.questions or not _has_forms(ctx) or not left:
                    return result_of(stand, self._source)
                if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    raise _InputWanted(_wanted(stand, wrong))
                told = await self._ask_people(ctx, run, stand, wrong)
                if told is None:
                    return result_of(stand, self._source)
                wrong, left = told, left - bool(told)

    async def _ask_people(
        self, ctx: Context, run: RunConnection, stand: Standing, wrong: Mapping[str, str]
    ) -> dict[str, str] | None:
        """Ask in the middle of a call, one after another; which answers did not fit. None: somebody closed
        the form, or the client cannot show it."""
        found: dict[str, str] = {}
        for each in stand.questions:
            said = await _elicited(ctx, run, each, wrong.get(each.id, ""))
            if isinstance(said, ElicitResult):
                took = await self._say(ctx, self._runs_of(ctx), run, each, said)
                if took is None:
                    return None
                found |= {each.id: took} if took else {}
            elif not said:
                return None
        return found

    async def _say(
        self, ctx: Context, runs: CallerRuns, run: RunConnection, question: OpenQuestion, said: ElicitResult
    ) -> str | None:
        """Post what a person said; why it does not fit, empty where it does. None: they said nothing."""
        word = word_of(question, said)
        if word is None:
            return None
        try:
            if word.dropped:
                number = await run.cancel(question.id, DECLINED)
            else:
                number = await run.answer(question.id, word.content, by=_by(ctx, runs), reason=word.reason)
            await run.taken(number)
        except AnsweredAlready:
            # Somebody was quicker; how it goes on is what counts.
            return ""
        except UserError as error:
            still = [each.id for each in await run.open_questions()]
            return str(error) if question.id in still else ""
        return ""

    # -- runs ------------------------------------------------------------------------------------

    async def _listed(self, runs: CallerRuns, limit: int) -> CallToolResult:
        found = []
        for info in await runs.list(limit):
            try:
                known = await self._host.summary(info)
                state, title = "closed" if is_closed(info) else state_word(info, known), known.title
            except JournalError as error:
                state, title = "damaged", str(error)
            changed = datetime.fromtimestamp(info.updated_at, UTC).isoformat(timespec="seconds")
            found.append({"run_id": info.run_id, "state": state, "title": title, "updated_at": changed})
        return plain({"runs": found})

    async def _cancel(self, runs: CallerRuns, given: Mapping[str, Any]) -> CallToolResult:
        async with runs.connect(given["run_id"]) as run:
            number = await run.cancel("", given.get("reason", CANCELLED))
            try:
                async with asyncio.timeout(TAKEN_SECONDS):
                    await run.taken(number)
            except TimeoutError:
                return plain({"run_id": run.run_id, "state": "stops once somebody drives it"})
        return plain({"run_id": run.run_id, "state": "stopped"})

    # -- a client that cancels -------------------------------------------------------------------

    @asynccontextmanager
    async def _cancellable(
        self, ctx: Context, runs: CallerRuns, run_id: str, request: str
    ) -> AsyncGenerator[None]:
        """While this is entered, and after it was cut short, the client may cancel what it has asked for.

        In a stream of its own (2026-07-28 over HTTP) it does so by closing that; else by a notification,
        which comes when the call was cut short already.
        """
        closes = ctx.request is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        key = _key(ctx, ctx.request_id)
        if not closes:
            self._under_way[key] = runs, run_id, request
            while len(self._under_way) > MAX_KNOWN:
                self._under_way.popitem(last=False)
        try:
            yield
        except asyncio.CancelledError:
            if closes and not self._host.draining:
                with anyio.CancelScope(shield=True):
                    await self._stop(runs, run_id, request)
            raise
        except BaseException:
            self._under_way.pop(key, None)
            raise
        self._under_way.pop(key, None)

    async def _hear_cancels(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: a call that is cancelled takes the request of its run with it."""
        if ctx.method == "notifications/cancelled":
            told = (ctx.params or {}).get("requestId")
            found = self._under_way.pop(_key(ctx, told), None)
            if found is not None:
                await self._stop(*found)
        return await call_next(ctx)

    async def _stop(self, runs: CallerRuns, run_id: str, request: str) -> None:
        with suppress(UserError):
            async with runs.connect(run_id) as run:
                await run.cancel(request, CANCELLED)


def _key(ctx: Context, request_id: Any) -> tuple[str, str]:
    """A call, among those of all clients: of one connection ids are its own."""
    session = ctx.request.headers.get("mcp-session-id", "") if ctx.request is not None else ""
    return session, repr(str(request_id))


def _by(ctx: Context, runs: CallerRuns) -> str:
    """Who is recorded to have answered: nobody checks that a person sat there."""
    known = ctx.session.client_params
    program = known.client_info.name[:60] if known is not None else ""
    return f"{runs.who} (MCP client {program or 'unnamed'})"


def _has_forms(ctx: Context) -> bool:
    """Whether the client says that it can show a form to a person."""
    known = ctx.session.client_capabilities
    elicits = known.elicitation if known is not None else None
    # Before 2025-11-25 forms were all that there was, and nobody said so.
    return elicits is not None and (elicits.form is not None or elicits.url is None)


def _wanted(stand: Standing, wrong: Mapping[str, str]) -> InputRequiredResult:
    state = json.dumps({"run_id": stand.run_id, "request": stand.request})
    asked: InputRequests = {each.id: form_of(each, wrong.get(each.id, "")) for each in stand.questions}
    return InputRequiredResult(input_requests=asked, request_state=state)


def _read_state(text: str | None) -> tuple[str, str]:
    """The run and the request that a state names. Raises MCPError for what is none of ours."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        found = json.loads((text or "")[: MAX_STATE + 1])
        run_id, request = found["run_id"], found["request"]
        if isinstance(run_id, str) and isinstance(request, str) and is_request(request):
            return run_id, request
    raise MCPError(INVALID_PARAMS, "requestState is none that this server gave; make the call anew")


async def _tell(ctx: Context, number: int, line: str) -> None:
    await ctx.session.report_progress(number, None, line)


async def _elicited(
    ctx: Context, run: RunConnection, question: OpenQuestion, wrong: str
) -> ElicitResult | bool:
    """What a person says in the middle of a call. True: somebody else has answered meanwhile; False: the
    client cannot ask."""
    params = form_of(question, wrong).params
    if not isinstance(params, ElicitRequestFormParams):
        return False
    asking = asyncio.ensure_future(
        ctx.session.elicit_form(params.message, params.requested_schema, ctx.request_id)
    )
    closed = asyncio.ensure_future(until_closed(run, question.id))
    both: set[asyncio.Future[Any]] = {asking, closed}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return asking.result() if asking.done() else True
    except (MCPError, ValueError):
        # It refused, answered what is no answer, or is gone.
        return False
    finally:
        for each in (asking, closed):
            each.cancel()
        await asyncio.gather(asking, closed, return_exceptions=True)
