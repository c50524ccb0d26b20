"""LoopStream: the events of one request, from its place in the line of its session to its end."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, aclosing, suppress
from functools import partial
from typing import Any

from msgspec import Struct

from antiphon import Agent, Attachment, Message, Record, Run, RunFailed
from antiphon.errors import RunSuspended
from antiphon.styles.loop.events import LoopEvent, Projection, request_of
from antiphon.styles.loop.permission import AsyncPermission
from antiphon.styles.loop.session import OpenSession, Place, Session, StopSignal
from antiphon.styles.loop.store import StoredSession
from antiphon.view import RunTree
from antiphon.view.changes import Change, EffectEnd, RunResume

InputHandler = Callable[[Message], Awaitable[Any]]
Opener = Callable[[Session, Agent, bool], AbstractAsyncContextManager[OpenSession]]


class LoopRequest(Struct, frozen=True):
    """A request as it was made; without a text it is the one that was left open."""

    text: str | None
    intent: str
    attachments: tuple[Attachment, ...]
    signal: StopSignal | None
    on_input: InputHandler | AsyncPermission | None
    deltas: bool
    store: StoredSession | None
    env: Mapping[str, str] | None


class LoopStream:
    """The events of one request. Leaving `async with` before the end cancels the request.

    Iterating over it raises RunFailed after the last event when the model could not be asked. failure: that
    error. value: the typed answer.
    """

    def __init__(self, opener: Opener, known: Session, agent: Agent, asked: LoopRequest) -> None:
        self._opener, self._known, self._agent, self._asked = opener, known, agent, asked
        self._events: AsyncGenerator[LoopEvent, None] | None = None
        self._projection = Projection(agent.asking.retry.max_attempts)
        self._pending: deque[LoopEvent] = deque()
        self._call, self._over = "", False
        self.failure: RunFailed | None = None
        self.value: Any = None

    async def __aenter__(self) -> LoopStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop the request, if it has not ended, and leave the session."""
        if self._events is not None:
            await self._events.aclose()

    def __aiter__(self) -> LoopStream:
        return self

    async def __anext__(self) -> LoopEvent:
        if self._events is None:
            self._events = self._play()
        return await anext(self._events)

    def take(self, change: Change, at: float) -> None:
        """Take note of a change of the request; whoever reads the session first tells all its readers."""
        self._pending.extend(self._projection.take(change, at))
        if isinstance(change, EffectEnd) and change.effect.id == self._call:
            self._over = True

    async def _play(self) -> AsyncGenerator[LoopEvent, None]:
        asked, known = self._asked, self._known
        if asked.signal is not None and asked.signal.is_set():
            return
        place = known.queue()
        try:
            if not await place.come(asked.signal):
                return
            interactive = asked.on_input is not None
            async with (
                AsyncExitStack() as stack,
                self._opener(known, self._heard(stack), interactive) as session,
                aclosing(self._ask(session, place)) as events,
            ):
                async for event in events:
                    yield event
        finally:
            known.leave(place)
        if self.failure is not None:
            raise self.failure

    def _heard(self, stack: AsyncExitStack) -> Agent:
        store = self._asked.store
        if store is not None:
            self._agent = store.heard(self._agent, self._asked.env, stack)
        return self._agent

    async def _ask(self, session: OpenSession, place: Place) -> AsyncGenerator[LoopEvent, None]:
        run, left, asked = session.run, session.left, self._asked
        session.left = ()
        if asked.text is None:
            if not left:
                return
            call = left[-1]
            told = await run.records()
        else:
            for each in left:
                await run.cancel(each, "another message came")
            if asked.store is not None:
                await asked.store.load(run, self._agent)
            call = await run.post(
                self._agent.name, asked.text, attachments=asked.attachments, intent=asked.intent
            )
            told = []
        self._call = call
        place.begin(run, call)
        with ExitStack() as stops:
            if asked.signal is not None:
                stops.callback(run.cancel_when(asked.signal, call, "aborted"))
            if asked.on_input is not None:
                person = asked.on_input
                if isinstance(person, AsyncPermission):
                    person = partial(person.answer, run)
                stops.callback(run.on_input(person))
            try:
                if told:
                    self._catch_up(told)
                self._known.readers[call] = self
                async with aclosing(self._read(run)) as events:
                    async for event in events:
                        yield event
                ended = await place.outcome()
                self.failure = ended if isinstance(ended, RunFailed) else None
                self.value = None if isinstance(ended, RunFailed) else ended.value
            finally:
                self._known.readers.pop(call, None)
                # A run that has suspended says so itself; there is nothing left to cancel.
                with suppress(RunSuspended):
                    if call in await run.open_requests():
                        await run.cancel(call, "nobody listens any more")
                    if asked.store is not None:
                        await asked.store.save(run, self._agent)

    async def _read(self, run: Run) -> AsyncGenerator[LoopEvent, None]:
        """The events up to the end of the request, as they come."""
        known, pending = self._known, self._pending
        async with aclosing(run.events(known.tree.seq, deltas=self._asked.deltas)) as items:
            while True:
                while pending:
                    yield pending.popleft()
                if self._over:
                    return
                item = await anext(items, None)
                if item is None:
                    return
                if isinstance(item, Record):
                    known.read(item)
                    continue
                whose = known.tree.activations.get(item.activation)
                if whose is not None and whose.request == self._call:
                    pending.extend(self._projection.delta(item, known.tree))

    def _catch_up(self, records: Sequence[Record]) -> None:
        """Take note of what has happened since the run was opened again; what came before was told in its
        time."""
        tree = RunTree(recent=True)
        for record in records:
            for change in tree.add(record):
                if isinstance(change, RunResume):
                    self._pending.clear()
                if request_of(change) == self._call:
                    self.take(change, record.at)
            self._known.read(record)
