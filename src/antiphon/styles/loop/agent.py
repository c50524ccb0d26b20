"""LoopAgent: one agent, one streaming tool loop, with its design document's options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from antiphon import (
    Agent,
    AntiphonError,
    Attachment,
    Limits,
    Message,
    Record,
    Run,
    RunFailed,
    Tool,
    Usage,
    open_journal,
    open_run,
)  # fmt: skip
from antiphon.errors import RunSuspended
from antiphon.kernel.context.compaction import COMPACT, HISTORY
from antiphon.styles.loop.events import FinalResponseEvent, LoopEvent, Projection
from antiphon.styles.loop.options import NAME, AgentOptions, ModelUsage, UsageSummary, agent_of
from antiphon.values.agent import equip
from antiphon.values.limits import OutputLimits
from antiphon.values.message import new_id
from antiphon.values.model import ChatMessage
from antiphon.view import RunTree
from antiphon.view.changes import Change, EffectEnd, RunResume
from antiphon.view.nodes import ModelUse

InputHandler = Callable[[Message], Awaitable[Any]]


class AbortError(AntiphonError):
    """The request was stopped by its signal."""


class _Session(Struct):
    """What is known of one session.

    tracked: whether its usage is counted. used: tokens of the last call, None when unknown. left: requests
    that a stopped process had left open when the run was opened.
    """

    run_id: str
    tracked: bool = True
    tree: RunTree = field(default_factory=lambda: RunTree(recent=True))
    summary: UsageSummary = UsageSummary()
    used: int | None = None
    model: str = ""
    open: Run | None = None
    left: tuple[str, ...] = ()

    def read(self, record: Record) -> Sequence[Change]:
        """Take note of a record, once; what it changed."""
        if record.seq <= self.tree.seq:
            return ()
        changes = self.tree.add(record)
        for change in changes:
            if isinstance(change, EffectEnd) and change.effect.model is not None and self.tracked:
                self._count(change.effect.purpose, change.effect.model)
        return changes

    def _count(self, purpose: str, use: ModelUse) -> None:
        usage, model = use.usage or Usage(), use.reply.model if use.reply is not None else ""
        if purpose != "compact" and use.reply is not None:
            # A provider that says nothing of tokens leaves it unknown how full the window is.
            self.used, self.model = (usage.total or None), model
        if usage.total:
            self.summary = _added(self.summary, usage, model or "unknown")


def _added(summary: UsageSummary, usage: Usage, model: str) -> UsageSummary:
    known = summary.by_model.get(model, ModelUsage())
    return UsageSummary(
        summary.total_calls + 1,
        summary.total_tokens + usage.total,
        summary.input + usage.input_tokens,
        summary.output + usage.output_tokens,
        summary.cached_input + usage.cache_read_tokens,
        summary.reasoning + usage.reasoning_tokens,
        {**summary.by_model, model: ModelUsage(known.calls + 1, known.total_tokens + usage.total)},
    )


class LoopAgent:
    """One agent that asks its model, does the calls of the reply one by one, and asks again.

    Made with an `AgentOptions`, or with its fields by name. A request opens its session and leaves
    it; inside `async with agent:` sessions stay open, which saves reading them again. A session
    belongs to one request at a time.
    """

    def __init__(self, options: AgentOptions | None = None, **fields: Any) -> None:
        self._options = options if options is not None else AgentOptions(**fields)
        self._agent = agent_of(self._options)
        journal = self._options.journal
        self._journal = open_journal() if journal is None else journal
        self._default = new_id()
        self._sessions: dict[str, _Session] = {}
        self._held: dict[str, AsyncExitStack] | None = None

    # -- sessions ------------------------------------------------------------------------------

    async def __aenter__(self) -> LoopAgent:
        self._held = {}
        return self

    async def __aexit__(self, *error: object) -> None:
        held, self._held = self._held or {}, None
        for run_id, stack in held.items():
            self._sessions[run_id].open = None
            await stack.aclose()

    def _session(self, session: str | None) -> _Session:
        run_id = session or self._default
        return self._sessions.setdefault(run_id, _Session(run_id, self._options.enable_usage_tracking))

    @asynccontextmanager
    async def _opened(self, known: _Session, agent: Agent, interactive: bool) -> AsyncIterator[Run]:
        """The session's run: kept open where that is asked for, and its tree brought up to date."""
        usual, options = agent is self._agent and not interactive, self._options
        known.left = ()
        if known.open is not None and usual:
            yield known.open
            return
        if known.open is not None and self._held is not None:
            known.open = None
            await self._held.pop(known.run_id).aclose()
        async with AsyncExitStack() as stack:
            opened = await stack.enter_async_context(
                open_run(
                    [agent],
                    journal=self._journal,
                    run_id=known.run_id,
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
            )
            # At once: what was left open goes on, and may end while anything here is waited for.
            known.left = await opened.open_requests()
            # One more is the record of this opening.
            if opened.seq - known.tree.seq > 1:
                for record in await opened.records(known.tree.seq):
                    known.read(record)
            if self._held is not None and usual:
                self._held[known.run_id], known.open = stack.pop_all(), opened
            yield opened

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
        async with self.run_stream(message, **options) as events:
            answers = [event.content async for event in events if isinstance(event, FinalResponseEvent)]
        if events.failure is not None:
            raise events.failure
        if not answers:
            raise AbortError("The request was stopped")
        return answers[0] if events.value is None else events.value

    def run_stream(
        self,
        message: str | None,
        *,
        signal: Any = None,
        session: str | None = None,
        force_compaction: bool = False,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        tool_choice: str | None = None,
        attachments: Iterable[Attachment] = (),
        on_input: InputHandler | None = None,
    ) -> LoopStream:
        """Ask, and hand out events while it happens; iterate over it, best in `async with`.

        message: None goes on with the request that a stopped process left open in the session; a new
        message cancels that one. signal: an asyncio.Event, say; set, it stops the request at once,
        and no `final` comes.
        session: which conversation goes on; the agent's own by default. force_compaction: compact it
        instead, the message is not taken. tools: for this request only, after the agent's own.
        on_input: shows a person an approval and returns `yes`, `no` or `always`; nobody, no.
        """
        agent = equip(self._agent, tools)
        if tool_choice is not None:
            agent = replace(agent, asking=replace(agent.asking, tool_choice=tool_choice))
        text, intent = ("", COMPACT) if force_compaction else (message, "")
        asked = _LoopRequest(text, intent, tuple(attachments), signal, on_input)
        return LoopStream(self, self._session(session), agent, asked)

    # -- what is known ---------------------------------------------------------------------------

    def get_usage_summary(self, session: str | None = None) -> UsageSummary:
        """Calls and tokens of a session, as far as its requests in this process have read it."""
        return self._session(session).summary

    def get_context_left_percent(self, session: str | None = None) -> int | None:
        """How much of the window the last call left, 0 to 100; None when either is unknown."""
        known = self._session(session)
        window = self._window(known.model) or next(iter(self._windows().values()), None)
        if known.used is None or not window:
            return None
        return min(max(round((1 - known.used / window) * 100), 0), 100)

    async def get_history_messages(self, session: str | None = None) -> list[ChatMessage]:
        """The conversation as the model would be shown it next; the system prompt first, once."""
        async with self._opened(self._session(session), self._agent, False) as opened:
            history = opened.transcript(NAME)
        prompt = self._agent.instructions
        return [ChatMessage("system", prompt)] * bool(prompt) + list(history)

    async def replace_history_messages(
        self, messages: Iterable[ChatMessage], session: str | None = None
    ) -> None:
        """Go on from these messages instead. Calls without a result get one that says so; system
        messages are left out, the agent's own prompt stays.

        Raises UserError for messages that no provider would take.
        """
        text = msgspec.json.encode(healed(messages)).decode()
        known = self._session(session)
        async with self._opened(known, self._agent, False) as opened:
            await opened.result(await opened.post(NAME, text, intent=HISTORY))
            known.used = None


def healed(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages without system prompts, every call followed by exactly one result, in order."""
    found: list[ChatMessage] = []
    given = list(messages)
    for index, each in enumerate(given):
        if each.role in ("system", "tool"):
            continue
        found.append(each)
        if not each.calls:
            continue
        results: dict[str, ChatMessage] = {}
        for later in given[index + 1 :]:
            if later.role != "tool":
                break
            results.setdefault(later.call_id, later)
        for call in each.calls:
            lost = ChatMessage("tool", "Error: interrupted", (), call.id, call.name, is_error=True)
            found.append(results.get(call.id, lost))
    return found


class _LoopRequest(Struct, frozen=True):
    """A request as it was made; without a text it is the one that was left open."""

    text: str | None
    intent: str
    attachments: tuple[Attachment, ...]
    signal: Any
    on_input: InputHandler | None


def _since_opened(projection: Projection, records: Sequence[Record]) -> list[LoopEvent]:
    """What has happened since the run was opened again; what came before was told in its time."""
    tree, found = RunTree(recent=True), list[LoopEvent]()
    for record in records:
        for change in tree.add(record):
            if isinstance(change, RunResume):
                found.clear()
            found.extend(projection.take(change, record.at))
    return found


def _events(projection: Projection, changes: Iterable[Change], at: float) -> Iterator[LoopEvent]:
    for change in changes:
        yield from projection.take(change, at)


def _ends(changes: Iterable[Change], call: str) -> bool:
    """Whether a call has ended."""
    return any(isinstance(each, EffectEnd) and each.effect.id == call for each in changes)


class LoopStream:
    """The events of one request. Leaving `async with` before the end cancels the request.

    failure: why there is no answer, if the model could not be asked. value: the typed answer.
    """

    def __init__(self, owner: LoopAgent, known: _Session, agent: Agent, asked: _LoopRequest) -> None:
        self._owner, self._known, self._agent, self._asked = owner, known, agent, asked
        self._events: AsyncIterator[LoopEvent] | None = None
        self.failure: RunFailed | None = None
        self.value: Any = None

    async def __aenter__(self) -> LoopStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop the request, if it has not ended, and leave the session."""
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    def __aiter__(self) -> LoopStream:
        return self

    async def __anext__(self) -> LoopEvent:
        if self._events is None:
            self._events = self._play()
        return await anext(self._events)

    async def _play(self) -> AsyncIterator[LoopEvent]:
        asked = self._asked
        if asked.signal is not None and asked.signal.is_set():
            return
        interactive = asked.on_input is not None
        async with self._owner._opened(self._known, self._agent, interactive) as opened:
            known, left = self._known, self._known.left
            projection, told = Projection(self._agent.asking.retry.max_attempts), list[Record]()
            if asked.text is None:
                if not left:
                    return
                call, told = left[-1], await opened.records()
                start = told[-1].seq
            else:
                for each in left:
                    await opened.cancel(each, "another message came")
                start = opened.seq
                call = await opened.post(NAME, asked.text, attachments=asked.attachments, intent=asked.intent)
            stops: list[Callable[[], object]] = []
            if asked.signal is not None:
                stops.append(opened.cancel_when(asked.signal, call, "aborted"))
            if asked.on_input is not None:
                stops.append(opened.on_input(asked.on_input))
            try:
                for earlier in told:
                    known.read(earlier)
                for event in _since_opened(projection, told):
                    yield event
                if not told or call in known.tree.requests:
                    async with aclosing(opened.events(known.tree.seq, deltas=False)) as records:
                        async for record in records:
                            if not isinstance(record, Record):
                                continue
                            changes = known.read(record)
                            for event in (
                                _events(projection, changes, record.at) if record.seq > start else ()
                            ):
                                yield event
                            if _ends(changes, call):
                                break
                await self._end(opened, call)
            finally:
                for stop in stops:
                    stop()
                # A run that has suspended says so itself; there is nothing left to cancel.
                with suppress(RunSuspended):
                    if call in await opened.open_requests():
                        await opened.cancel(call, "nobody listens any more")

    async def _end(self, opened: Run, call: str) -> None:
        try:
            self.value = (await opened.result(call)).value
        except RunFailed as failed:
            self.failure = failed
