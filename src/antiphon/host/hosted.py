"""One run in a host: driven while there is something to do, watched while there is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import AntiphonError, RunInUse
from antiphon.host.slots import Slots
from antiphon.host.team import HostedTeam
from antiphon.journal import Journal
from antiphon.journal.listing import NO_LABELS, Labels, RunInfo
from antiphon.kernel.run.clock import Clock
from antiphon.kernel.run.open import open_run, system_clock
from antiphon.kernel.run.rows import events_of, fold
from antiphon.kernel.run.run import Run
from antiphon.kernel.run.snapshots.keeping import latest_state
from antiphon.kernel.run.stopping import next_due, rests
from antiphon.values.agent import Agent
from antiphon.values.codec import type_and_text
from antiphon.values.policy import Policy, Preset, StandingRule
from antiphon.view.traces import LiveTrace

NO_RECORD = 1 << 62
"""A record's number that never comes: to wait for commands alone."""

MakeTrace = Callable[[str, int], LiveTrace]
"""Makes the trace of a run from its id, and the record up to which spans were sent before."""
HostedState = Literal["queued", "running", "resting", "suspended", "elsewhere", "closed"]
"""`queued`: it waits for a slot. `running`: driven here. `resting`: nothing to do, taken up when something is
posted. `suspended`: it stopped with the reason. `elsewhere`: another process drives it."""


RulesOf = Callable[[str, Labels], Awaitable[tuple[StandingRule, ...]]]
"""The rules that hold for a run with these labels."""
CONVERSATION = "conversation"
"""The key in a run's data that names the agent that it is a conversation with."""


async def conversation_with(journal: Journal, run_id: str) -> str:
    """The agent that a run was begun with as a conversation; empty for any other run."""
    rows = await journal.read(run_id, 0, 1)
    first = next(iter(await events_of(journal, run_id, rows[0])), None) if rows else None
    data = getattr(first, "data", None)
    found = data.get(CONVERSATION) if isinstance(data, dict) else None
    return found if isinstance(found, str) else ""


def talking(agents: Iterable[Agent], name: str) -> list[Agent]:
    """The agents of a conversation with the one of that name."""
    return [replace(each, context="continue") if each.name == name else each for each in agents]


class FirstRequest(Struct, frozen=True):
    """The request that a run begins with, as it is posted, and how the run is opened for it."""

    key: str
    body: bytes
    labels: Labels = NO_LABELS
    model: str = ""
    """For every agent, instead of what the team says."""
    policy: Policy | Preset | None = None
    """Instead of the team's."""
    talks: str = ""
    """The agent that is asked, where the run is a conversation with it."""


class HostedRun:
    """A run, its state and the one task that `live`s for it. Made by a host.

    reason: why it is suspended. cut_off: what a drain did not wait for. founded: done once a
    new run and its first request are durable.
    """

    def __init__(
        self, journal: Journal, run_id: str, team: HostedTeam, slots: Slots, clock: Clock | None,
        idle_seconds: float, rules: RulesOf, trace: MakeTrace | None = None,
    ) -> None:  # fmt: skip
        self.run_id = run_id
        self.state: HostedState = "queued"
        self.reason = ""
        self.run: Run | None = None
        self.task: asyncio.Task[None] | None = None
        self.founded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.cut_off: tuple[str, ...] = ()
        self._journal, self._team, self._slots = journal, team, slots
        self._given_clock, self._clock = clock, clock or system_clock()
        self._idle_seconds, self._rules, self._trace = idle_seconds, rules, trace
        self._first: FirstRequest | None = None
        self._command = 0
        self._due_at: float | None = None
        self._drain_seconds: float | None = None
        self._signal = asyncio.Event()

    def begin(self, name: str, first: FirstRequest | None = None, *, drives: bool = False) -> None:
        """Make the task. first: of a new run. drives: it is opened though nothing in it asks for that."""
        self._first = first
        if first is None:
            self.founded.set_result(None)
        self.task = asyncio.get_running_loop().create_task(self._live(drives or first is not None), name=name)

    @property
    def is_done(self) -> bool:
        """Whether nothing follows here: its task has ended."""
        return self.task is None or self.task.done()

    async def _live(self, drives: bool) -> None:
        try:
            if self._first is not None:
                if self._slots.full:
                    # Durable though it must wait: a process that dies now has lost nothing. The request is
                    # posted once it was left, so that nothing begins that would be cut off.
                    async with self._open() as run:
                        await run.until_durable()
                    await self._post_first()
            else:
                drives = drives or await self._has_work()
            while not self._is_over():
                if drives:
                    await self._drive()
                    if self._is_over():
                        return
                self.state, drives = "resting", True
                await self._until_posted()
        except RunInUse as error:
            self.state, self.reason = "elsewhere", str(error)
            self._fail(error)
        except AntiphonError as error:
            self.state, self.reason = "suspended", str(error)
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a fault in one team must not end the runs of the others
            self.state, self.reason = "suspended", type_and_text(error)
            self._fail(error)
        finally:
            self.founded.cancel()

    async def _until_posted(self) -> None:
        """Wait until somebody posts in it or wants it to be driven, or its next timer ends."""
        loop = asyncio.get_running_loop()
        self._signal.clear()
        posted_to = loop.create_task(self._journal.wait(self.run_id, NO_RECORD, self._command))
        waits = {posted_to, loop.create_task(self._signal.wait())}
        if self._due_at is not None:
            waits.add(loop.create_task(self._clock.sleep_until(self._due_at)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if posted_to.done():
                posted_to.result()
        finally:
            for each in waits:
                each.cancel()

    def _fail(self, error: Exception) -> None:
        if not self.founded.done():
            self.founded.set_exception(error)
            # Whoever asked may have left: then nobody looks at it.
            self.founded.exception()

    async def _has_work(self) -> bool:
        """Whether a stored run waits for somebody who drives it, and not for a person."""
        state = (await latest_state(self._journal, self.run_id)).state
        self._command = state.command
        self._due_at = next_due(state)
        if state.closed:
            self.state = "closed"
            return False
        return not rests(state) or bool(await self._journal.commands(self.run_id, state.command))

    async def _drive(self) -> None:
        """Drive it in a slot until it has rested for long enough, is closed, or must be left."""
        self.state = "queued"
        async with self._slots.one(self), self._traced() as begin_trace, self._open() as run:
            self.run, self.state = run, "running"
            begin_trace()
            try:
                if self._first is not None:
                    await run.until_durable()
                    await self._post_first()
                await self._until_left(run)
                if self._drain_seconds is not None and not run.is_over:
                    self.cut_off = await run.drain(self._drain_seconds)
                self._command, self._due_at = run.command, run.due_at
            finally:
                self.run = None

    @asynccontextmanager
    async def _traced(self) -> AsyncIterator[Callable[[], object]]:
        """Send spans from where the driving begins, once the run is there, until it was left."""
        if self._trace is None:
            yield lambda: None
            return
        after = 0 if self._first is not None else (await self._journal.info(self.run_id)).seq
        trace, following = self._trace(self.run_id, after), list[asyncio.Task[None]]()
        loop = asyncio.get_running_loop()
        try:
            yield lambda: following.append(loop.create_task(trace.follow(), name=f"trace {self.run_id}"))
        finally:
            for each in following:
                each.cancel()
                await asyncio.wait((each,))
                await trace.read_on()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Run]:
        first, team = self._first, self._team
        if first is not None:
            labels, policy = first.labels, team.policy if first.policy is None else first.policy
            options: dict[str, Any] = {
                "model": first.model or team.model, "policy": policy, "labels": labels,
            }  # fmt: skip
        else:
            info = await self._journal.info(self.run_id)
            labels, options = info.labels, {"model": await chosen_model(self._journal, info) or team.model}
        talks = first.talks if first is not None else await conversation_with(self._journal, self.run_id)
        if first is not None and talks:
            options["data"] = {CONVERSATION: talks}
        async with open_run(
            talking(team.agents, talks), journal=self._journal, run_id=self.run_id, create=first is not None,
            limits=team.limits, endpoints=team.endpoints, deps=team.deps, clock=self._given_clock,
            rules=await self._rules(self.run_id, labels), **options,
        ) as run:  # fmt: skip
            yield run

    async def _post_first(self) -> None:
        """Post the first request in the run, which is there to keep it."""
        first, self._first = self._first, None
        if first is not None:
            await self._journal.post(self.run_id, first.key, first.body)
        if not self.founded.done():
            self.founded.set_result(None)

    async def _until_left(self, run: Run) -> None:
        """Wait until it is to be left, stops with an error, or has rested for long enough."""
        loop = asyncio.get_running_loop()
        over = loop.create_task(run.until_over())
        try:
            while not self._is_over():
                self._signal.clear()
                seen = run.seq, run.command
                rest = min(self._idle_seconds, 1.0) if self._slots.wanted else self._idle_seconds
                nap = loop.create_task(self._clock.sleep_until(self._clock.now() + rest))
                rung = loop.create_task(self._signal.wait())
                try:
                    await asyncio.wait({over, nap, rung}, return_when=asyncio.FIRST_COMPLETED)
                    if run.is_over:
                        # Raises what it stopped with.
                        await run.until_durable()
                        return
                    if nap.done() and (run.seq, run.command) == seen and self._may_leave(run):
                        return
                finally:
                    nap.cancel()
                    rung.cancel()
        finally:
            over.cancel()

    def _may_leave(self, run: Run) -> bool:
        """Whether nothing is to be done in it for a while."""
        due = run.due_at
        return run.at_rest and (due is None or due > self._clock.now() + self._idle_seconds)

    def _is_over(self) -> bool:
        return self.state == "closed" or self._drain_seconds is not None

    def refuse(self, reason: str) -> None:
        """It cannot be driven here."""
        self.state, self.reason = "suspended", reason
        self.founded.cancel()

    def drive(self) -> None:
        """Take it up, if it rests."""
        if self.state == "resting":
            self._signal.set()

    def hurry(self) -> None:
        """See `Slots`: it is left after a second of rest."""
        self._signal.set()

    async def close(self, reason: str) -> None:
        """Close the run that is driven here, and leave it. Raises RunSuspended."""
        if self.run is not None:
            await self.run.close(reason)
        self.state = "closed"
        self._signal.set()

    def drain(self, seconds: float) -> None:
        """Leave in good order: what is in flight gets so long to end; what is not driven just ends."""
        self._drain_seconds = seconds
        self._signal.set()
        if self.run is None and self.task is not None:
            self.task.cancel()


async def chosen_model(journal: Journal, info: RunInfo) -> str:
    """The model string that a run was started with for all of its agents; empty without one.

    What came from elsewhere does not choose what is asked here. Raises JournalError.
    """
    return "" if info.imported else (await fold(journal, info.run_id, upto=1)).options.model
