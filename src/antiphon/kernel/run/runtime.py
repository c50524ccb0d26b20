"""The runtime: the one place that performs effects, appends to the journal and creates tasks.

A `Runtime` owns one run. Events are recorded through `record`: they are applied, `step` says what
follows, and all of it becomes one row. Whoever finished an effect drives on: it performs the next
one itself, and only siblings get tasks. An effect that `step` ended while it ran is cancelled; its
late result is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Protocol

import msgspec

from antiphon.errors import AntiphonError, JournalError, Parked, UserError
from antiphon.journal.port import Journal, Lease, Row
from antiphon.journal.port import chain as link
from antiphon.kernel.facts.activation import Activation, Ended, Open
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    Event,
    Options,
    RunClosed,
    RunResumed,
    RunStarted,
    encode,
    place,
)
from antiphon.kernel.facts.fold import APPLY
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.kernel.facts.state import State
from antiphon.kernel.rules.step import step
from antiphon.kernel.rules.team import Team
from antiphon.kernel.run.actions import Gate, act
from antiphon.kernel.run.clock import Clock
from antiphon.kernel.run.commands import Cancel, Letter, posted, take_in, take_in_mail
from antiphon.kernel.run.feed import Feed
from antiphon.kernel.run.perform import Threads, ask_model, use_tool
from antiphon.kernel.run.rows import LARGE, pack
from antiphon.values.codec import encode_value, whole
from antiphon.values.model import Delta
from antiphon.values.tool import ToolContext

LAPS = 64
"""Effects a driver performs before it lets timers and cancellations have the loop."""
GRACE = 1.0
"""Seconds that cancelled effects get to clean up when the run is left."""
BEAT = 5.0
"""Seconds between two signs of life of an owner."""
FOREVER = 1 << 62


class Signal(Protocol):
    """What may stop a request from outside: an `asyncio.Event`, for one."""

    def is_set(self) -> bool: ...

    async def wait(self) -> object:
        """Return once it is set."""
        ...


class Runtime:
    """The live owner of one run. Belongs to one event loop; not to be shared between threads.

    state: the folded run. deps: handed to tools. ends: requests that ended and wait to be fetched.
    """

    def __init__(
        self,
        journal: Journal,
        lease: Lease,
        team: Callable[[Options], Team],
        state: State,
        index: ActivationIndex,
        clock: Clock,
        deps: Any,
        overrides: Mapping[str, Callable[[ToolContext], Any]] | None = None,
    ) -> None:
        self.state, self.journal, self.clock, self.deps = state, journal, clock, deps
        self._overrides = overrides or {}
        self._lease, self._make_team = lease, team
        # The agents, compiled for the options that the run was started with.
        self.team = team(state.options) if lease.seq else Team({}, {}, False)
        self._seq, self._digest = lease.seq, lease.digest
        self._durable = lease.seq
        self.feed = Feed(lease.run_id, index)
        self.feed.durable = lease.seq
        self._heads: set[str] = set()
        self._performing: dict[str, asyncio.Task[None]] = {}
        self._inner: dict[str, asyncio.Future[EffectFinished]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._barriers: list[tuple[int, asyncio.Future[None]]] = []
        self._results: list[tuple[str, asyncio.Future[None]]] = []
        self._threads = Threads()
        self._failure: BaseException | None = None
        self._laps = 0

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._lease.run_id

    @property
    def seq(self) -> int:
        """The number of the last record."""
        return self._seq

    # -- recording --------------------------------------------------------------------------

    def start(self, first: Event) -> None:
        """Record the first event of this ownership; what a crash cut off is taken up again.

        Raises UserError when what a run is started with cannot be stored.
        """
        try:
            first = _read_first(encode_value(first))
        except (TypeError, ValueError, RecursionError) as error:
            raise UserError(f"Not started: options and data must be what JSON can hold: {error}") from error
        lost = isinstance(first, RunResumed)
        if isinstance(first, RunStarted):
            self.team = self._make_team(first.options)
        self.record(first)
        if lost:
            self._resume()

    def record(self, *events: Event) -> None:
        """Let facts in and do what follows from them.

        Raises Parked when the run has stopped, UserError when it is closed.
        """
        if self._failure is not None:
            raise self._parked()
        if self.state.closed:
            raise UserError(f"Run {self.run_id} is closed; nothing can follow. Start a new one")
        try:
            first = self._advance(events)
        except Exception as error:
            # Half of it may be applied: only what is stored can be trusted now.
            self._park(error)
            raise
        if first is not None:
            self.spawn(self._drive(first), first.effect.id)

    def _advance(self, events: Iterable[Event]) -> Open | None:
        """Apply events and what `step` makes of them, append it all, start what it started.

        The first started effect is the caller's to perform; its siblings get tasks.
        """
        state = self.state
        # A clock that counts in whole seconds is read back with a fraction.
        state.at = float(self.clock.now())
        given = 0
        batch: list[Event] = []
        started: list[str] = []
        heads: dict[str, bytes] = {}
        event: Any
        for event in chain(events, _STEP, step(state, self.team)):
            if event is None:
                given = len(batch)
                continue
            kind = type(event)
            APPLY[kind](state, event)
            batch.append(event)
            if kind is EffectStarted:
                if event.kind == "call":
                    self.feed.index.learn(event)
                    self._note_head(event, heads)
                elif event.purpose in _PERFORMED and event.kind != "step":
                    started.append(event.id)
                    if event.head:
                        self._note_head(event, heads)
            elif kind is EffectFinished:
                if event.id in self._performing:
                    self._performing.pop(event.id).cancel()
                elif event.id in self._inner:
                    waiter = self._inner.pop(event.id)
                    if not waiter.done():
                        waiter.set_result(event)
        if batch:
            self._append(batch, given, heads)
        first = None
        for effect_id in started:
            opened = state.open.get(effect_id)
            if opened is not None and first is None:
                first = opened
            elif opened is not None:
                self.spawn(self._drive(opened), effect_id)
        return first

    def _append(self, batch: list[Event], given: int, blobs: dict[str, bytes]) -> None:
        """Queue one row. What users hand in was made what it is read as where it came in."""
        body = encode(batch)
        refs: tuple[tuple[str, str], ...] = ()
        heads = tuple(blobs) if blobs else ()
        if len(body) > LARGE:
            body, refs, payloads = pack(batch)
            blobs.update(payloads)
        count = len(batch)
        self._seq += count
        at, epoch = self.state.at, self._lease.epoch
        self._digest = link(self._digest, self._seq, count, epoch, at, body, refs, heads, given)
        row = Row(self._seq, count, epoch, at, body, refs, self._digest, heads, given)
        if self.feed.subscribers:
            self.feed.add(self._seq, at, batch)
        self.journal.append(self._lease, row, blobs, partial(self._settled, self._seq))

    def _note_head(self, event: EffectStarted, blobs: dict[str, bytes]) -> None:
        """What an agent is told goes into the journal once per run, beside the event that names it."""
        digest = event.head or event.digest
        if digest in self._heads:
            return
        self._heads.add(digest)
        activation = self.state.activations[place(event.id)]
        member = self.team.members[event.name if event.kind == "call" else activation.agent]
        blobs[digest] = (member.entry_head if member.entry_head.digest == digest else member.head).data

    def _settled(self, seq: int, error: BaseException | None) -> None:
        """A row is durable, or the journal failed."""
        if error is not None:
            self._park(error)
            return
        self._durable = seq
        while self._barriers and self._barriers[0][0] <= seq:
            _, waiter = self._barriers.pop(0)
            if not waiter.done():
                waiter.set_result(None)
        if self.feed.subscribers:
            self.feed.reached(seq)
        else:
            self.feed.durable = seq

    async def until_durable(self) -> None:
        """Return once everything recorded so far is as durable as the journal makes it."""
        if self._failure is not None:
            raise self._parked()
        if self._durable < self._seq:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._barriers.append((self._seq, waiter))
            await waiter

    # -- performing -------------------------------------------------------------------------

    def spawn(self, work: Any, effect_id: str = "") -> asyncio.Task[None]:
        """A task that lives no longer than this ownership; `effect_id`: the effect it drives."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if effect_id:
            self._performing[effect_id] = task
        return task

    async def _drive(self, opened: Open | None) -> None:
        """Perform an effect, record its end, and go on with what follows until nothing does."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a driver runs in a task")
        try:
            while opened is not None and self._failure is None:
                self._laps += 1
                if self._laps % LAPS == 0:
                    await asyncio.sleep(0)
                    if opened.ended:
                        return
                effect_id = opened.effect.id
                self._performing[effect_id] = task
                try:
                    end = await self._perform(opened)
                except asyncio.CancelledError:
                    if task.cancelling():
                        raise
                    end = EffectFinished(
                        effect_id, "failed", why=f"[{opened.effect.name}] it cancelled itself"
                    )
                if opened.ended or self._failure is not None:
                    return
                del self._performing[effect_id]
                opened = self._advance((end,) if isinstance(end, EffectFinished) else end)
                if self._results:
                    self._deliver()
        except asyncio.CancelledError:
            # Ended by `step` while it ran: whoever recorded that end drives on.
            return
        except Exception as error:  # noqa: BLE001 - a fault in a rule must park the run, not vanish
            self._park(error)

    def _perform(self, opened: Open) -> Coroutine[Any, Any, EffectFinished | Iterator[Event]]:
        effect = opened.effect
        if effect.kind == "wait":
            return self._wait(effect)
        activation = self.state.activations[opened.activation]
        if effect.kind == "action":
            gate = Gate(self.state, self.team, activation, self.record, self._ended, self.until_durable)
            return act(self.state, self.team, activation, opened, gate, self.deps)
        member = self.team.members[activation.agent]
        if effect.kind == "model":
            emit = partial(self.feed.piece, effect.id, activation.id, activation.agent)
            choice = self.team.models[activation.agent][effect.fallback]
            asking = ask_model(
                choice, member, activation, opened, emit if self.feed.subscribers else _unheard, self.run_id
            )
            # Money that has a limit is only spent on the word of a row that cannot be lost.
            if effect.cost and self._durable < self._seq and _capped(activation):
                return self._once_durable(asking)
            return asking
        tool = member.tools.get(effect.name)
        context = None
        if tool is not None and (tool.takes_context or opened.lost):
            key = f"{self.run_id}:{effect.id}"
            attempt = 1 + opened.lost
            context = ToolContext(
                self.run_id,
                effect.id,
                activation.agent,
                key,
                attempt,
                self.deps,
                output=self.state.outputs.get,
                cancelled=lambda: opened.ended,
                overrides=self._overrides,
            )
        arguments = effect.arguments or activation.calls[opened.index].arguments
        work = use_tool(tool, arguments, opened, context, self._threads)
        if self._durable < self._seq and (tool is None or tool.acting):
            return self._once_durable(work)
        return work

    async def _ended(self, effect_id: str) -> EffectFinished:
        """The end of an effect that an action waits for."""
        waiter: asyncio.Future[EffectFinished] = asyncio.get_running_loop().create_future()
        self._inner[effect_id] = waiter
        return await waiter

    async def _wait(self, effect: EffectStarted) -> EffectFinished:
        await self.clock.sleep_until(effect.until)
        return EffectFinished(effect.id)

    async def _once_durable(self, work: Coroutine[Any, Any, EffectFinished]) -> EffectFinished:
        """An acting effect starts only when the row that says so cannot be lost any more."""
        try:
            await self.until_durable()
        except BaseException:
            work.close()
            raise
        return await work

    def _resume(self) -> None:
        """After a crash: do again, or go on waiting for, what was in flight."""
        for activation in list(self.state.activations.values()):
            for opened in list(activation.open.values()):
                effect = opened.effect
                if opened.lost and (
                    effect.kind in ("tool", "action") or effect.purpose in ("retry", "deadline")
                ):
                    self.spawn(self._drive(opened), effect.id)

    def cancel_when(self, signal: Signal, target: str, why: str) -> Callable[[], object]:
        """Cancel the effect `target` once `signal` is set; call what is returned to stop listening."""
        return self.spawn(self._heed(signal, target, why)).cancel

    async def _heed(self, signal: Signal, target: str, why: str) -> None:
        await signal.wait()
        if self._failure is None and self.state.find(target) is not None:
            self.take_in(Cancel(target, why))

    # -- results ----------------------------------------------------------------------------

    async def result(self, call_id: str) -> Ended:
        """How a user's request ended, durably: its end, and the tokens it used."""
        user = self.state.activations[0]
        if call_id not in user.done:
            if call_id not in user.open:
                raise AntiphonError(f"Run {self.run_id} has no request {call_id}")
            if self._failure is not None:
                raise self._parked()
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._results.append((call_id, waiter))
            await waiter
        ended = user.done[call_id]
        await self.until_durable()
        return ended

    def _deliver(self) -> None:
        """Wake whoever waits for a request that has ended."""
        done = self.state.activations[0].done
        if len(self._results) == 1 and self._results[0][0] not in done:
            return
        for wanted in list(self._results):
            call_id, waiter = wanted
            if call_id in done or waiter.done():
                self._results.remove(wanted)
                if not waiter.done():
                    waiter.set_result(None)

    # -- mail -------------------------------------------------------------------------------

    def take_in(self, letter: Letter, mail: int = 0) -> None:
        """Record what a letter says. Raises UserError for one that no journal can hold."""
        self.record(take_in(self.state, posted(letter), mail))
        self._deliver()

    def open_mail(self) -> None:
        """From now on take in what outsiders post, and say that this owner lives."""
        self.spawn(self._read_mail())
        self.spawn(self._beat())

    async def _read_mail(self) -> None:
        try:
            while not self.state.closed:
                for mail in await self.journal.mail(self.run_id, self.state.mail):
                    self.record(take_in_mail(self.state, mail.body, mail.number))
                    self._deliver()
                await self.journal.wait(self.run_id, FOREVER, self.state.mail)
        except (AntiphonError, ValueError) as error:
            if self._failure is None:
                self._park(error)

    async def _beat(self) -> None:
        try:
            while True:
                await asyncio.sleep(BEAT)
                await self.journal.beat()
        except JournalError as error:
            self._park(error)

    # -- the end ----------------------------------------------------------------------------

    def _park(self, error: BaseException) -> None:
        """Stop without an outcome: what is not durable is forgotten, the run can be resumed."""
        if self._failure is not None:
            return
        self._failure = error
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        for _, waiter in self._barriers:
            if not waiter.done():
                waiter.set_exception(self._parked())
        for _, waiter in self._results:
            if not waiter.done():
                waiter.set_exception(self._parked())
        self._barriers.clear()
        self._results.clear()
        self.feed.end()

    def _parked(self) -> Parked:
        parked = Parked(self.run_id, str(self._failure))
        parked.__cause__ = self._failure
        return parked

    async def close(self, why: str) -> None:
        """End the run for good; nothing may be in flight."""
        if not self.state.closed:
            self.record(RunClosed(whole(why)))
        await self.until_durable()

    async def leave(self, summary: bytes = b"") -> None:
        """Stop driving and give the run up; whoever claims it next goes on where it is."""
        tasks = [each for each in self._tasks if not each.done() and each is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE)
        self._threads.close()
        self.feed.end()
        if self._failure is None:
            await self.journal.release(self._lease, summary)
            # Whoever still waits is told, and nothing more is recorded under a lease that is gone.
            self._park(UserError("its conversation was left; open_run(run_id=...) goes on with it"))


_PERFORMED = ("", "retry", "deadline", "compact", "final")
"""Purposes of effects that the runtime performs; the others end by an answer or another effect."""


_read_first = msgspec.json.Decoder(RunStarted | RunResumed).decode
_STEP = (None,)
"""Stands between the events that are given and those that `step` computes from them."""


def _capped(activation: Activation) -> bool:
    """Whether what an activation spends is limited in USD."""
    return any(scope.limits.usd is not None for scope in activation.scopes)


def _unheard(delta: Delta) -> None:
    """Nobody watches: the reply will hold it all."""
