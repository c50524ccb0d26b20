"""The runtime: the one place that performs effects, appends to the journal and creates tasks.

A `Runtime` owns one run. Events are recorded through `record`: they are applied, `step` says what
follows, and all of it becomes one row. Whoever finished an effect drives on: it performs the next
one itself, and only siblings get tasks. An effect that `step` ended while it ran is cancelled; its
late result is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

from msgspec.structs import replace

from antiphon.errors import AntiphonError, JournalError, RunSuspended, UserError
from antiphon.journal.port import Journal, Lease, Row
from antiphon.journal.port import chain as link
from antiphon.kernel.facts.activation import Activation, FinishedCall, OpenEffect
from antiphon.kernel.facts.events import (
    HUMAN_INPUTS,
    ActionEffect,
    CallEffect,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    Event,
    InstructionsEffect,
    ModelEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    TimerEffect,
    encode,
)
from antiphon.kernel.facts.fold.apply import Folding
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.kernel.facts.state import RunState, open_span
from antiphon.kernel.rules.actions import end_tool
from antiphon.kernel.rules.answers import unanswered
from antiphon.kernel.rules.step import step
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam, at_work, named_prefix
from antiphon.kernel.rules.team.manifest import manifest_of
from antiphon.kernel.run import commands
from antiphon.kernel.run.actions import ActionExecutor, Given, RunAccess, act, write_instructions
from antiphon.kernel.run.clock import Clock, wait_until
from antiphon.kernel.run.live.deltas import WAITING, Emitted
from antiphon.kernel.run.live.feed import Feed
from antiphon.kernel.run.log import records
from antiphon.kernel.run.log.failures import Failures
from antiphon.kernel.run.log.listing import SHOWN, SOON_S, Listing
from antiphon.kernel.run.perform import PERFORMED, ToolExecutor, ask_model, capped, once
from antiphon.kernel.run.requests import AwaitedRequests, EndedRequests
from antiphon.kernel.run.rows import LARGE, pack
from antiphon.kernel.run.snapshots.keeping import SnapshotKeeper
from antiphon.kernel.run.stopping import DRAINED, Drain, stop
from antiphon.kernel.run.tools.door import Door
from antiphon.kernel.run.toolsets.uses import ToolsetUses
from antiphon.values.codec import clean_text
from antiphon.values.model import Emit
from antiphon.values.tool import ToolContext

EFFECTS_PER_YIELD = 64
"""Effects a driver performs before it lets timers and cancellations have the loop."""


class Runtime:
    """The live owner of one run. Belongs to one event loop; not to be shared between threads.

    run_id: its id. state: the folded run. deps: handed to tools.
    """

    # Of most runs they stay so, and an object of more than 30 attributes takes a table of its own.
    _ended_requests: EndedRequests | None = None
    _failure: BaseException | None = None
    _effects_performed = 0
    _reader: asyncio.Task[None] | None = None

    def __init__(
        self, journal: Journal, lease: Lease, team: Callable[[Options], CompiledTeam], state: RunState,
        cast: ActivationIndex, clock: Clock, deps: Any,
        overrides: Mapping[str, Callable[[ToolContext], Any]] | None = None,
        toolsets: ToolsetUses | None = None, snapshots: SnapshotKeeper | None = None,
    ) -> None:  # fmt: skip
        self.state, self.journal, self.clock, self.deps = state, journal, clock, deps
        self.run_id, self._lease, self._make_team, self._toolsets = lease.run_id, lease, team, toolsets
        self._folding = Folding(state)
        self.team = team(state.options) if lease.seq else CompiledTeam({}, {}, False)
        self._seq, self._durable, self._digest = lease.seq, lease.seq, lease.digest
        self.feed = Feed(lease.run_id, cast, lease.seq)
        self._log = records.RunLog(state, lease.run_id, cast) if records.LOG.hasHandlers() else None
        self._listing = Listing(journal, lease, state, lambda: self._seq)
        self._snapshots = snapshots or SnapshotKeeper(journal, lease)
        self._prefixes: set[str] = set()
        self._blobs: dict[str, bytes] = {}
        self._performing: dict[str, asyncio.Task[None]] = {}
        self._inner: dict[str, asyncio.Future[EffectFinished]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._barriers: list[tuple[int, asyncio.Future[None]]] = []
        self._requests, self.failures = AwaitedRequests(), Failures(lease.run_id)
        self._access = RunAccess(
            state, lambda: self.team, self.record, self._inner, self.until_may_act,
            lambda effect_id: self._drain.may_start(effect_id), self.spawn,
        )  # fmt: skip
        self._tools = ToolExecutor(
            journal, lease, state, self.until_may_act, partial(Door, self._access), deps, overrides,
            self.feed, self.failures, toolsets,
        )  # fmt: skip

    @cached_property
    def _drain(self) -> Drain:
        return Drain(self.state, self._performing, self._inner)

    @property
    def seq(self) -> int:
        """The number of the last record."""
        return self._seq

    # -- recording --------------------------------------------------------------------------

    def start(self, first: RunStarted | RunResumed) -> None:
        """Record the first event of this ownership; what a crash cut off is taken up again."""
        lost = isinstance(first, RunResumed)
        if isinstance(first, RunStarted):
            self.team = self._make_team(first.options)
        elif first.interactive != self.state.options.interactive:
            # Agents are told whether somebody is there to answer.
            self.team = self._make_team(replace(self.state.options, interactive=first.interactive))
        if self.team.members:
            manifest = manifest_of(self.team)
            self._blobs[manifest.digest] = manifest.data
            first = replace(first, manifest=manifest.digest)
        self.record(first)
        if lost:
            self._resume()

    def record(self, given: Event | Given) -> None:
        """Let facts in and do what follows from them.

        Raises RunSuspended when the run has stopped, UserError when it is closed.
        """
        if self._failure is not None:
            raise self._suspended()
        if self.state.closed:
            raise UserError(f"Run {self.run_id} is closed; nothing can follow. Start a new one")
        try:
            first = self._advance(given)
        except Exception as error:
            # Half of it may be applied: only what is stored can be trusted now.
            self._suspend(error)
            raise
        if first is not None:
            self.spawn(self._drive(first), first.id)

    def _advance(self, given: Event | Given) -> OpenEffect | None:
        """Apply facts and what `step` makes of them, append it all, start what it started.

        The first started effect is the caller's to perform; its siblings get tasks.
        """
        state = self.state
        # A clock that counts in whole seconds is read back with a fraction.
        state.at, folding = max(float(self.clock.now()), state.at), self._folding
        batch = folding.batch = []
        if callable(given):
            given(folding.emit)
        else:
            folding.emit(given)
        if self._toolsets is not None and self._toolsets.news:
            self._toolsets.record(folding.emit, state)
        count = len(batch)
        step(folding.emit, state, self.team)
        if not batch:
            return None
        started, prefixes = self._noted(batch)
        if self._log is not None:
            self._log.note(batch)
        self._append(batch, count, prefixes)
        first = None
        for effect_id in started:
            opened = state.open.get(effect_id)
            if opened is not None and first is None:
                first = opened
            elif opened is not None:
                self.spawn(self._drive(opened), effect_id)
        return first

    def _noted(self, batch: list[Event]) -> tuple[list[str], dict[str, bytes]]:
        """Effects to perform, and prompt prefixes to store. What ended is not performed any more."""
        started: list[str] = []
        feed = self.feed
        prefixes, self._blobs = self._blobs, {}
        listing, shown = self._listing, False
        for event in batch:
            kind = type(event)
            if kind is EffectStarted:
                detail = event.detail  # type: ignore[union-attr]
                if type(detail) is CallEffect:
                    feed.index.learn(event, self._seq + 1)
                    shown = shown or event.id[:2] == "0/"  # type: ignore[union-attr]
                    if detail.digest not in self._prefixes:
                        self._note_prefix(event.id, detail, prefixes)  # type: ignore[union-attr]
                elif type(detail) in PERFORMED:
                    started.append(event.id)  # type: ignore[union-attr]
                    if type(detail) is ModelEffect and detail.prefix and detail.prefix not in self._prefixes:
                        self._note_prefix(event.id, detail, prefixes)  # type: ignore[union-attr]
                elif type(detail) in HUMAN_INPUTS:
                    listing.asked.add(event.id)  # type: ignore[union-attr]
                    shown = True
                    if detail.deadline is not None:  # type: ignore[union-attr]
                        started.append(event.id)  # type: ignore[union-attr]
            elif kind is EffectFinished:
                effect_id = event.id  # type: ignore[union-attr]
                if effect_id[:2] == "0/" or effect_id in listing.asked:
                    listing.asked.discard(effect_id)
                    shown = True
                if effect_id in feed.waiting and not feed.subscribers:
                    del feed.waiting[effect_id]
                    feed.said.pop(effect_id, None)
                if effect_id in self._performing:
                    self._performing.pop(effect_id).cancel()
                if effect_id in self._inner:
                    waiter = self._inner.pop(effect_id)
                    if not waiter.done():
                        waiter.set_result(event)  # type: ignore[arg-type]
                elif effect_id in self._requests.waiting:
                    self._requests.ended(effect_id)
            elif kind in SHOWN:
                shown = True
        if shown and self._snapshots.stored is not None:
            listing.news = True
            listing.due = listing.due or asyncio.get_running_loop().call_later(SOON_S, listing.tell)
        return started, prefixes

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
        at, epoch, activity = self.state.at, self._lease.epoch, self.state.totals.activity
        if at >= activity.until:
            open_span(activity, at)
        activity.counts[-1] += count
        self._digest = link(self._digest, self._seq, count, epoch, at, body, refs, heads, given)
        row = Row(self._seq, count, epoch, at, body, refs, self._digest, heads, given)
        if self.feed.subscribers:
            self.feed.add(self._seq, at, batch)
        self.journal.append(self._lease, row, blobs, partial(self._settled, self._seq))
        if self._seq >= self._snapshots.due:
            self._snapshots.keep(self._seq, self._digest)

    def _note_prefix(self, effect_id: str, detail: CallEffect | ModelEffect, blobs: dict[str, bytes]) -> None:
        """What an agent is told goes into the journal once per run, beside the event that names it."""
        told = named_prefix(self.team, self.state, effect_id, detail)
        if told is not None:
            self._prefixes.add(told.digest)
            blobs[told.digest] = told.data

    def _settled(self, seq: int, error: BaseException | None) -> None:
        """A row is durable, or the journal failed."""
        if error is not None:
            self._suspend(error)
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
        if self._failure is None and self._durable < self._seq:
            self.journal.hurry()
        if self._failure is not None:
            raise self._suspended()
        if self._durable < self._seq:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._barriers.append((self._seq, waiter))
            await waiter

    async def until_may_act(self) -> None:
        """Return once nothing recorded so far can be lost, and the run is known to be still this owner's."""
        if self._failure is not None or self._durable < self._seq:
            await self.until_durable()
        if not self.journal.is_fresh(self._lease):
            await self.journal.confirm(self._lease)

    # -- performing -------------------------------------------------------------------------

    def spawn(self, work: Any, effect_id: str = "") -> asyncio.Task[None]:
        """A task that lives no longer than this ownership; `effect_id`: the effect it drives."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if effect_id:
            self._performing[effect_id] = task
        return task

    def performs(self, task: object) -> bool:
        """Whether a task is one of this ownership's."""
        return task in self._tasks

    def performed_by(self, task: object) -> str:
        """The id of the effect that a task performs now, or an empty text."""
        return next((effect_id for effect_id, each in self._performing.items() if each is task), "")

    async def _drive(self, opened: OpenEffect | None) -> None:
        """Perform an effect, record its end, and go on with what follows until nothing does."""
        task: Any = asyncio.current_task()
        try:
            while opened is not None and self._failure is None:
                self._effects_performed += 1
                if self._effects_performed % EFFECTS_PER_YIELD == 0:
                    await asyncio.sleep(0)
                    if opened.ended:
                        return
                effect_id = opened.id
                self._performing[effect_id] = task
                try:
                    end = await self._perform(opened)
                except asyncio.CancelledError:
                    if task.cancelling():
                        raise
                    said = f"[{getattr(opened.detail, 'name', 'model')}] it cancelled itself"
                    end = EffectFinished(effect_id, "failed", reason=said)
                if opened.ended or self._failure is not None:
                    return
                del self._performing[effect_id]
                if opened.operations is not None and type(opened.detail) is not ActionEffect:
                    end = partial(end_tool, run=self.state, opened=opened, end=end)
                opened = self._advance(end)
        except asyncio.CancelledError:
            # Ended by `step` while it ran: whoever recorded that end drives on.
            return
        except Exception as error:  # noqa: BLE001 - a fault in a rule must suspend the run, not vanish
            self._suspend(error)

    def _perform(self, opened: OpenEffect) -> Coroutine[Any, Any, EffectFinished | Given]:
        detail = opened.detail
        if type(detail) is TimerEffect:
            return wait_until(self.clock, opened.id, detail.due_at)
        if type(detail) in HUMAN_INPUTS:
            return wait_until(self.clock, opened.id, getattr(detail, "deadline", 0.0), unanswered(opened))
        activation = self.state.activations[opened.activation]
        if type(detail) is ActionEffect:
            door = ActionExecutor(self._access, activation, opened)
            return act(self.state, self.team, activation, opened, door, self.deps, self.failures)
        member = self.team.members[activation.agent]
        if activation.conversation.cut or activation.progress.request or member.toolsets:
            member = at_work(member, activation)
        if type(detail) is ModelEffect:
            return self._ask(detail, opened, activation, member)
        if type(detail) is InstructionsEffect:
            return write_instructions(member.agent, self.state, activation, opened, self.deps, self.failures)
        return self._tools.use(opened, activation, self.team, member)

    def _ask(
        self, detail: ModelEffect, opened: OpenEffect, activation: Activation, member: CompiledAgent
    ) -> Coroutine[Any, Any, EffectFinished]:
        feed = self.feed
        waiting: deque[Emitted] = deque((), WAITING)  # noqa: RUF037 - by keyword it takes thrice as long
        feed.waiting[opened.id] = waiting
        emit: Emit = feed.emitter(waiting) if feed.subscribers else waiting.append
        if feed.timer is None and not feed.subscribers:
            feed.arm()
        option = self.team.models[activation.agent][detail.fallback]
        asking = ask_model(option, member, activation, opened, emit, self.failures, self._lease.run_id)
        # Money that has a limit is only spent on the word of a row that cannot be lost.
        if detail.held_nano_usd and self._durable < self._seq and capped(activation):
            return once(self.until_durable, asking)
        return asking

    def _resume(self) -> None:
        """After a crash: do again, or go on waiting for, what was in flight."""
        self._listing.resume()
        for activation in list(self.state.activations.values()):
            for opened in list(activation.open.values()):
                # A model call that was cut off is ended by the rules, and asked again.
                known = opened.crashes or opened.carried_over
                until = getattr(opened.detail, "deadline", None)
                if known and (until is not None or type(opened.detail) in PERFORMED - {ModelEffect}):
                    self.spawn(self._drive(opened), opened.id)

    def cancel_open(self, target: str, reason: str) -> None:
        """Cancel the effect `target`, if it is still open and the run goes on."""
        if self._failure is None and target in self.state.open:
            self.apply_command(commands.CancelEffect(target, reason))

    # -- results ----------------------------------------------------------------------------

    async def result(self, call_id: str) -> FinishedCall:
        """How a user's request ended, durably: its end, and the tokens it used."""
        user = self.state.activations[0]
        if call_id in user.open:
            if self._failure is not None or (self.state.owner.draining is not None and self._drain.over):
                raise self._suspended()
            await self._requests.until_ended(call_id)
        ended = user.done.get(call_id)
        await self.until_durable()
        if ended is not None:
            return ended
        if self._ended_requests is None:
            self._ended_requests = EndedRequests(self.journal, self.run_id)
        return await self._ended_requests.find(call_id)

    # -- commands -------------------------------------------------------------------------------

    def apply_command(self, command: commands.Command, number: int = 0) -> None:
        """Record what a command says. Raises UserError for one that no journal can hold."""
        command = commands.posted(command)
        self.record(commands.apply_command(self.state, self.team, command, self.clock.now(), number))

    def open_commands(self) -> None:
        """From now on take in what outsiders post, and say that this owner lives."""
        held = self.journal, self.state, self.team, self.clock.now, self.record
        self._reader = self.spawn(self._or_suspend(partial(commands.read_commands, *held)))
        self.spawn(self._or_suspend(partial(commands.beat, self.journal)))

    async def _or_suspend(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except (AntiphonError, ValueError) as error:
            self._suspend(error)

    # -- the end ----------------------------------------------------------------------------

    async def drain(self, seconds: float) -> tuple[str, ...]:
        """See `Run.drain`."""
        if self.state.owner.draining is None:
            if self._reader is not None:
                self._reader.cancel()
            not_begun = self._tools.withhold(self._performing, self.team)
            for effect_id in (*not_begun, *self._drain.timers()):
                self._performing.pop(effect_id).cancel()
            self.record(DrainStarted(not_begun))
        left = await self._drain.until_still(self.spawn(self.clock.sleep_until(self.clock.now() + seconds)))
        await self.until_durable()
        self._requests.give_up(self._suspended)
        return left

    def _suspend(self, error: BaseException, *, left: bool = False) -> None:
        """Stop without an outcome: what is not durable is forgotten, the run can be resumed."""
        if self._failure is not None:
            return
        self._failure = error
        self._listing.end()
        if not left:
            records.suspended(self.run_id, error)
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        for _, waiter in self._barriers:
            if not waiter.done():
                waiter.set_exception(self._suspended())
        self._barriers.clear()
        self._requests.give_up(self._suspended)
        self.feed.end("suspended" if left else "failed")

    def _suspended(self) -> RunSuspended:
        suspended = RunSuspended(self.run_id, DRAINED if self._failure is None else str(self._failure))
        suspended.__cause__ = self._failure
        return suspended

    async def close(self, reason: str) -> None:
        """End the run for good; nothing may be in flight."""
        if not self.state.closed:
            self.record(RunClosed(clean_text(reason)))
        await self.until_durable()

    async def leave(self, summary: bytes = b"") -> None:
        """Stop driving and give the run up; whoever claims it next goes on where it is."""
        tasks = [each for each in self._tasks if not each.done() and each is not asyncio.current_task()]
        names = {task: f"effect {effect_id}" for effect_id, task in self._performing.items()}
        records.still_runs(self.run_id, await stop(tasks, names) + self._tools.close())
        if not self.feed.ended:
            self.feed.end("closed" if self.state.closed else "suspended")
        if self._failure is None:
            self._snapshots.leave(self._seq, self._digest)
            await self.journal.release(self._lease, summary)
            records.left(self.state, self.run_id)
            # Whoever still waits is told, and nothing more is recorded under a lease that is gone.
            gone = UserError("its conversation was left; open_run(run_id=...) goes on with it")
            self._suspend(gone, left=True)
        else:
            # A lease that is lost, or a journal that has failed, has nothing to give back.
            with suppress(JournalError):
                await self.journal.release(self._lease)
