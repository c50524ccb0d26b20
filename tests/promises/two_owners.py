"""Owners of one run, each of which stands still unless it is told to go on, and the time of their machine.

Each has what a process of its own would have: an event loop, a journal opened on the file that all share,
threads, a wall clock that somebody sets. No time is waited for: it passes when `Machine.wait` is called.
"""

import asyncio
import threading
from contextlib import contextmanager, suppress

import apsw
from msgspec import Struct

from antiphon import RunFailed, open_run
from antiphon.errors import AntiphonError, RunSuspended
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite import writer as sqlite_writer
from antiphon.kernel.run.clock import SystemClock
from antiphon.kernel.run.tools import threads as tool_threads
from antiphon.testing.power import FailingDisk, disk_error

DISK = "disk of two owners"
WITHOUT_SYNCS = FailingDisk(DISK, disk_error)
"""The ordinary file layer, which waits for no disk: no power fails here."""
HEARTBEAT = 5.0
WORKING = 2
"""Threads of an owner that work at once: so few that calls wait for one."""
RUN, REQUEST = "run", "0/1.c1"
NOBODY = 2**22 + 1
"""The number of no process."""


class Killed(Exception):
    """What a dead process does: nothing more."""


class Act(Struct, frozen=True):
    """A tool began to act. late: why it must not have."""

    effect_id: str
    key: str
    tool: str
    owner: str
    late: str


class Machine:
    """What the owners share: the file, a clock that nobody sets, and the world in which tools act."""

    def __init__(self, path):
        self.path, self.at, self.owners = path, 1_000.0, []
        self.holder = None
        self.ended = False
        self.acts = []

    def steady(self):
        return self.at

    def wait(self, seconds):
        """Time passes for all; who does not stand still lives in it."""
        end = self.at + seconds
        while self.at < end:
            self.at = min(end, self.at + HEARTBEAT)
            self.settle()

    def settle(self):
        """Whoever does not stand still goes on until it has nothing to do."""
        for owner in self.owners:
            if not owner.stands_still:
                owner.go_on()

    def kill(self, owner):
        """The process of an owner is gone, and everybody can see it."""
        owner.dead = owner.stands_still = True
        owner.begin_gate.open()
        owner.act_gate.open()
        owner.await_threads()
        if self.holder is owner:
            with apsw.Connection(str(self.path)) as file:
                file.set_busy_timeout(10_000)
                file.execute(
                    "update owners set pid = ? where key = (select owner from runs where run_id = ?)",
                    (NOBODY, RUN),
                )
            file.close()


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop in the machine's time.

    What threads have to say waits in `arrived` until the loop has nothing else to do and no thread is under
    way; then one of them is heard. Threads of the journal take their own time all the same, so one seed in
    ten may be told in more than one way. at_once: they are heard as they come.
    """

    def __init__(self, owner):
        self.owner, self.arrived, self.at_once = owner, [], False
        super().__init__()

    def time(self):
        return self.owner.machine.at

    def call_soon_threadsafe(self, callback, *args, context=None):
        job = getattr(args[0], "function", None) if args else None
        of_a_job = isinstance(job, Job)
        if self.at_once:
            super().call_soon_threadsafe(callback, *args, context=context)
        else:
            self.arrived.append((of_a_job, job.number if of_a_job else 0, callback, args))
        if of_a_job:
            self.owner.note(job, reported=True)
        return super().call_soon_threadsafe(self.owner.look_again)

    def wake(self):
        """Have the owner look whether there is something to do; from any thread."""
        super().call_soon_threadsafe(self.owner.look_again)

    def hear(self):
        """Hear one of those that have something to say: the journal first, then jobs, in their order."""
        first = min(self.arrived, key=lambda each: each[:2])
        self.arrived.remove(first)
        self.call_soon(first[2], *first[3])

    def hear_at_once(self):
        while self.arrived:
            self.hear()
        self.at_once = True


class WatchedJournal(SqliteJournal):
    """Knows what it has not answered yet, and says whose the run is once a claim has returned."""

    def __init__(self, owner):
        super().__init__(
            owner.machine.path, "process", vfs=DISK, wall=owner.wall, steady=owner.machine.steady
        )
        self.owner, self.unanswered = owner, 0

    def append(self, lease, row, blobs, done):
        def answered(error):
            self._answered()
            done(error)

        self.unanswered += 1
        super().append(lease, row, blobs, answered)

    async def claim(self, run_id, **given):
        async def claimed():
            lease = await super(WatchedJournal, self).claim(run_id, **given)
            self.owner.machine.holder = self.owner
            return lease

        return await self._asked(claimed())

    async def confirm(self, lease):
        await self._asked(super().confirm(lease))

    async def beat(self):
        await self._asked(super().beat())

    async def read(self, run_id, *where):
        return await self._asked(super().read(run_id, *where))

    async def commands(self, run_id, after=0):
        return await self._asked(super().commands(run_id, after))

    async def snapshot(self, run_id):
        return await self._asked(super().snapshot(run_id))

    async def wait(self, run_id, seq, command):
        # Nobody posts commands here; the real one looks now and then, in a time that is not the machine's.
        await asyncio.Event().wait()

    async def release(self, lease, summary=b""):
        await self._asked(super().release(lease, summary))

    async def _asked(self, work):
        self.unanswered += 1
        try:
            return await work
        finally:
            self._answered()
            # Here an owner may stand still: it has its answer, and has done nothing with it yet.
            await asyncio.sleep(0)

    def _answered(self):
        self.unanswered -= 1
        self.owner.was_answered()


class Job:
    """A call that is to run in a thread: where it is held it has not asked yet whether it may begin.

    given_up: its caller waits no more. reported: the event loop can hear of its end.
    """

    def __init__(self, owner, function):
        self.number = len(owner.jobs_ever)
        owner.jobs_ever.append(self)
        self._owner, self._function = owner, function
        self._caller = asyncio.current_task()
        self.given_up = False
        self.entered = self.held = self.over = self.reported = False

    @property
    def awaited(self):
        """Whether its caller waits for it. One that is being cancelled does not, though it may not know yet:
        then no thread begins what it asked for."""
        return not self.given_up and not self._caller.cancelling()

    def __call__(self):
        owner = self._owner
        owner.here.job = self
        owner.note(self, entered=True)
        try:
            owner.begin_gate.pass_through(self)
            return self._function()
        finally:
            owner.note(self, over=True)


class Gate:
    """Where an owner's threads are held while it is shut."""

    def __init__(self, owner):
        self._owner, self._shut = owner, False

    def shut(self):
        self._shut = True

    def open(self):
        with self._owner.changed:
            self._shut = False
            self._owner.changed.notify_all()

    def pass_through(self, job):
        owner = self._owner
        with owner.changed:
            while self._shut and not owner.dead:
                owner.note(job, held=True)
                owner.changed.wait()
            job.held = False
        if owner.dead:
            raise Killed


class Owner:
    """One process that drives the run, or tries to."""

    def __init__(self, machine, name, agent):
        self.machine, self.name = machine, name
        self.stands_still = self.dead = False
        self.wall_ahead = 0.0
        self.run = self.task = None
        self.refusals = []
        self.changed = threading.Condition(threading.RLock())
        self.begin_gate, self.act_gate = Gate(self), Gate(self)
        self.jobs, self.jobs_ever, self.here = [], [], threading.local()
        self._answers, self._going, self._looking = None, False, False
        self.loop = SteppedLoop(self)
        self.journal = WatchedJournal(self)
        self._agent = agent
        machine.owners.append(self)

    def wall(self):
        return 1_700_000_000.0 + self.machine.at + self.wall_ahead

    # What the process does.

    def open(self):
        """Try to own the run, and drive it until its request has ended."""
        if self.task is None or self.task.done():
            self.task = self.loop.create_task(self._drive())

    async def _drive(self):
        try:
            async with open_run(
                [self._agent], journal=self.journal, run_id=RUN, create=True,
                clock=SystemClock(self.wall), env={}, deps=self,
            ) as run:  # fmt: skip
                self.run = run
                if not any(each.type == "MessagePosted" for each in await run.records()):
                    await run.post(self._agent, "Pay")
                with suppress(RunFailed):
                    await run.result(REQUEST)
                self.machine.ended = True
        except AntiphonError as refused:
            # Another has the run; or had it meanwhile, so that the records tell of requests that this owner
            # does not know.
            self.refusals.append(refused)
        finally:
            self.run = None

    def cancel(self, effect_id):
        """Have an effect of the run cancelled."""
        run = self.run

        async def cancelling():
            with suppress(RunSuspended):
                await run.cancel(effect_id)

        self.loop.create_task(cancelling())

    def leave(self):
        """Give the run up in an orderly way."""
        if self.task is not None:
            self.task.cancel()

    # How it goes on, and where it stops.

    def go_on(self, answers=None):
        """Go on until there is nothing to do; or stop right after so many answers of the journal."""
        self._answers, self._going = answers, True
        self.look_again()
        self.loop.run_forever()
        self._going, self._answers = False, None
        self.await_threads()

    def was_answered(self):
        if self._answers is not None:
            self._answers -= 1
            if self._answers <= 0:
                self.loop.stop()

    def look_again(self):
        if not self._looking:
            self._looking = True
            self.loop.call_soon(self._look)

    def _look(self):
        self._looking = False
        if not self._going:
            return
        if self.loop._ready:
            self.look_again()
        elif self.journal.unanswered > sum(not each[0] for each in self.loop.arrived) or self._in_motion():
            # Whoever is under way says so when it has arrived.
            return
        elif self.loop.arrived:
            self.loop.hear()
            self.look_again()
        else:
            self.loop.stop()

    # Its threads.

    def note(self, job, **now):
        """Say how far a job is; in any thread."""
        with self.changed:
            for name, value in now.items():
                setattr(job, name, value)
            self.changed.notify_all()
        self.loop.wake()

    def await_threads(self):
        """Return once every thread is held, or has nothing to do."""
        with self.changed:
            self.changed.wait_for(lambda: not self._in_motion())

    def _in_motion(self):
        self.jobs = [each for each in self.jobs if not each.given_up or (each.entered and not each.reported)]
        entered = [each for each in self.jobs if each.entered]
        if any(not each.held and not each.reported for each in entered):
            return True
        free = WORKING - sum(not each.given_up and not each.over for each in entered)
        return free > 0 and any(each.awaited and not each.entered for each in self.jobs)

    # What its tools say and do.

    def begins_to_act(self, ctx, name):
        """Note it outside of every journal."""
        if self.dead:
            raise Killed
        holder = self.machine.holder
        late = "its effect is over" if ctx.is_cancelled() else ""
        if holder is not self:
            late = f"{holder.name} has the run"
        self.machine.acts.append(Act(ctx.effect_id, ctx.idempotency_key, name, self.name, late))

    async def takes(self, seconds):
        """Return when so much of the machine's time has passed."""
        await SystemClock(self.machine.steady).sleep_until(self.machine.at + seconds)

    def hold_here(self):
        """Where a tool that has begun is held."""
        self.act_gate.pass_through(self.here.job)

    def end(self):
        """Let everything of it go, and close what it has open."""
        self.begin_gate.open()
        self.act_gate.open()
        self.leave()
        self.go_on()
        self.loop.hear_at_once()
        # A run that was killed is never left, and its threads would wait for work to the end.
        pool = getattr(self.loop, tool_threads._kept_as("threads"), None)
        if pool is not None:
            pool.close()
        self.loop.run_until_complete(self.journal.close())
        self.loop.close()


@contextmanager
def held_threads(monkeypatch):
    """Inside of the block every thread of a tool passes the gates of its owner, and each owner has few."""
    run = tool_threads.Threads.run

    async def watched(self, function, tool, timeout, stop=None, limit=None):
        owner = asyncio.get_running_loop().owner
        job = Job(owner, function)
        owner.jobs.append(job)
        try:
            return await run(self, job, tool, timeout, stop, limit)
        finally:
            job.given_up = True

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_writer, "BATCH", 1)
        patch.setattr(tool_threads, "WORKING", WORKING)
        patch.setattr(tool_threads.Threads, "run", watched)
        yield
