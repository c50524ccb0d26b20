"""LoopAgent: one agent, one streaming tool loop, with its design document's options."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from antiphon import (
    Agent,
    AntiphonError,
    Attachment,
    Limits,
    Run,
    Tool,
    UserError,
    open_journal,
    open_run,
)  # fmt: skip
from antiphon.errors import RunSuspended
from antiphon.kernel.context.compaction import COMPACT, HISTORY
from antiphon.styles.loop.events import FinalResponseEvent
from antiphon.styles.loop.options import AgentOptions, UsageSummary, agent_of
from antiphon.styles.loop.permission import AsyncPermission, is_async
from antiphon.styles.loop.session import OpenSession, Place, Session
from antiphon.styles.loop.store import SessionStore, healed, session_key, stored
from antiphon.styles.loop.stream import InputHandler, LoopRequest, LoopStream
from antiphon.values.agent import agents_of, equip
from antiphon.values.limits import OutputLimits
from antiphon.values.message import new_id
from antiphon.values.model import ChatMessage


class AbortError(AntiphonError):
    """The request was stopped by its signal."""


class LoopAgent:
    """One agent that asks its model, does the calls of the reply one by one, and asks again.

    Made with an `AgentOptions`, or with its fields by name. A request opens its session and leaves
    it; inside `async with agent:` sessions stay open, which saves reading them again. Requests of one
    session queue: each begins when the one before it has ended, and sees its answer.
    """

    def __init__(self, options: AgentOptions | None = None, **fields: Any) -> None:
        self._options = options if options is not None else AgentOptions(**fields)
        self._agent = agent_of(self._options)
        journal = self._options.journal
        self._journal = open_journal() if journal is None else journal
        self._default = new_id()
        self._sessions: dict[str, Session] = {}
        self._keeps = False

    # -- sessions ------------------------------------------------------------------------------

    async def __aenter__(self) -> LoopAgent:
        self._keeps = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._keeps = False
        for known in self._sessions.values():
            async with known.lock():
                if known.open is not None and known.open.kept:
                    await self._close(known)

    def _session(self, session: str | SessionStore | None) -> Session:
        run_id = session_key(session) or self._default
        return self._sessions.setdefault(run_id, Session(run_id, self._options.enable_usage_tracking))

    @asynccontextmanager
    async def _opened(self, known: Session, agent: Agent, interactive: bool) -> AsyncIterator[OpenSession]:
        """The session's run, shared with whoever still reads of it, and its tree brought up to date."""
        async with known.lock():
            opened = await self._open(known, agent, interactive)
            opened.users += 1
        try:
            yield opened
        except RunSuspended:
            opened.kept = False
            raise
        finally:
            opened.users -= 1
            if not opened.users and not opened.kept:
                async with known.lock():
                    if known.open is opened and not opened.users:
                        await self._close(known)

    async def _open(self, known: Session, agent: Agent, interactive: bool) -> OpenSession:
        opened, loop = known.open, asyncio.get_running_loop()
        if opened is not None and opened.loop is loop:
            if opened.agent is agent and opened.interactive == interactive:
                return opened
            # Every request in it has ended; who still reads of one needs the journal only.
            await self._close(known)
        async with AsyncExitStack() as stack:
            run = await stack.enter_async_context(self._run(known.run_id, agent, interactive))
            # At once: what was left open goes on, and may end while anything here is waited for.
            left = await run.open_requests()
            # One more is the record of this opening.
            if run.seq - known.tree.seq > 1:
                known.read_all(await run.records(known.tree.seq))
            kept = self._keeps and agent is self._agent and not interactive
            known.open = OpenSession(run, agent, interactive, stack.pop_all(), loop, left, kept=kept)
        return known.open

    async def _close(self, known: Session) -> None:
        opened, known.open = known.open, None
        if opened is not None:
            await opened.stack.aclose()

    @asynccontextmanager
    async def _alone(self, known: Session) -> AsyncIterator[tuple[OpenSession, Place]]:
        """The session between two requests."""
        place = known.queue()
        try:
            await place.come()
            async with self._opened(known, self._agent, False) as opened:
                yield opened, place
        finally:
            known.leave(place)

    def agents(self) -> tuple[Agent, ...]:
        """The agent, and behind it its colleagues: to be asked, or called, in a run of others.

            await run(agent, "…")    open_run([agent, writer])    LoopAgent(agents=[agent])

        Journal, deps, limits of a request and whoever is asked are then that run's. Raises UserError when
        `can_execute_tool` is async: only `run` and `run_stream` wait for one.
        """
        if is_async(self._options.can_execute_tool):
            raise UserError(
                f"{self._agent.name}: an async can_execute_tool is waited for by LoopAgent.run and run_stream"
                " only. In a run of others give a plain function, which may answer 'ask' to wait for a person"
            )
        behind = [each for one in self._options.agents for each in agents_of(one)]
        return (self._agent, *behind)

    def _run(self, run_id: str, agent: Agent, interactive: bool) -> AbstractAsyncContextManager[Run]:
        options = self._options
        return open_run(
            [agent, *options.agents],
            journal=self._journal,
            run_id=run_id,
            create=True,
            context_windows=self._windows(),
            limits=replace(options.limits or Limits(), turns=None),
            interactive=interactive,
            output_limits=options.tool_output_cache or OutputLimits(None, None),
            deps=options.deps,
            dependency_overrides=options.overrides(),
            clock=options.services.clock,
            env=options.env,
        )

    def _windows(self) -> dict[str, int]:
        names = [each if isinstance(each, str) else each.name for each in self._options.models()]
        found = {name: self._window(name) for name in names}
        return {name: window for name, window in found.items() if window}

    def _window(self, model: str) -> int | None:
        registry = self._options.model_registry
        spec = registry.find(model) if registry is not None else None
        if spec is not None and spec.input_limit:
            return spec.input_limit
        for each in self._options.models():
            if not isinstance(each, str) and each.name == model:
                return getattr(each, "window", None)
        return None

    # -- requests ------------------------------------------------------------------------------

    async def run(self, message: str | None, **options: Any) -> Any:
        """Ask, and return the final answer: its text, or with `output_type` the value.

        options: as of `run_stream`. Raises AbortError when the signal stopped it, RunFailed when the
        model could not be asked.
        """
        async with self.run_stream(message, **{"deltas": False} | options) as events:
            answers = [event.content async for event in events if isinstance(event, FinalResponseEvent)]
        if not answers:
            raise AbortError("The request was stopped")
        return answers[0] if events.value is None else events.value

    def run_stream(
        self,
        message: str | None,
        *,
        signal: Any = None,
        session: str | SessionStore | None = None,
        force_compaction: bool = False,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        tool_choice: str | None = None,
        attachments: Iterable[Attachment] = (),
        on_input: InputHandler | None = None,
        deltas: bool = True,
    ) -> LoopStream:
        """Ask, and hand out events while it happens; iterate over it, best in `async with`.

        Iterating raises RunFailed when the model could not be asked, RunSuspended when the journal failed.

        message: None goes on with the request that a stopped process left open in the session; a new
        message cancels that one. signal: an asyncio.Event, say; set, it stops the request at once,
        and no `final` comes.
        session: which conversation goes on, once its requests before this one have ended: a name, an object
        of the user's own (see SessionStore), or the agent's own. force_compaction: compact it instead, the
        message is not taken. tools: for this request only, after the agent's own.
        on_input: shows a person an approval and returns `yes`, `no` or `always`; nobody, no.
        deltas: hand out pieces of replies and progress of tools too, as they come.
        """
        agent = equip(self._agent, tools)
        if tool_choice is not None:
            agent = replace(agent, asking=replace(agent.asking, tool_choice=tool_choice))
        text, intent = ("", COMPACT) if force_compaction else (message, "")
        handler: InputHandler | AsyncPermission | None = on_input
        check = self._options.can_execute_tool
        if check is not None and is_async(check):
            handler = AsyncPermission(check, agent, on_input)
        known = self._session(session)
        store = stored(session, known.numbers)
        asked = LoopRequest(
            text, intent, tuple(attachments), signal, handler, deltas, store, self._options.env
        )
        return LoopStream(self._opened, known, agent, asked)

    # -- what is known ---------------------------------------------------------------------------

    def get_usage_summary(self, session: str | SessionStore | None = None) -> UsageSummary:
        """Calls and tokens of a session, as far as its requests in this process have read it."""
        return self._session(session).summary

    def get_context_left_percent(self, session: str | SessionStore | None = None) -> int | None:
        """How much of the window the last call left, 0 to 100; None when either is unknown."""
        known = self._session(session)
        window = self._window(known.model) or next(iter(self._windows().values()), None)
        if known.used is None or not window:
            return None
        return min(max(round((1 - known.used / window) * 100), 0), 100)

    async def get_history_messages(self, session: str | SessionStore | None = None) -> list[ChatMessage]:
        """The conversation as the model would be shown it next; its prompt first, if that is a text."""
        async with self._alone(self._session(session)) as (opened, _):
            if (store := stored(session)) is not None:
                await store.load(opened.run, self._agent)
            history = opened.run.transcript(self._agent)
        prompt = self._agent.instructions
        known = isinstance(prompt, str) and prompt
        return [*([ChatMessage("system", known)] if known else []), *history]

    async def replace_history_messages(
        self, messages: Iterable[ChatMessage], session: str | SessionStore | None = None
    ) -> None:
        """Go on from these messages instead. Calls without a result get one that says so; system
        messages are left out, the agent's own prompt stays.

        Raises UserError for messages that no provider would take.
        """
        text = msgspec.json.encode(healed(messages)).decode()
        known = self._session(session)
        async with self._alone(known) as (opened, place):
            call = await opened.run.post(self._agent, text, intent=HISTORY)
            place.begin(opened.run, call)
            await opened.run.result(call)
            known.used = None
            if (store := stored(session)) is not None:
                await store.save(opened.run, self._agent)
