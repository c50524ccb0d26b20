"""Drive one run from the command line until its request ends, or somebody stops it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from antiphon import Record, ReplyDelta, Result, Run, RunFailed, UserError
from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.tree import CallTree
from antiphon.cli.display.watch import Watcher
from antiphon.cli.session.questions import Keyboard, Question, Questions, answer_to, show
from antiphon.journal import Journal
from antiphon.values.message import Attachment
from antiphon.values.policy import Grant
from antiphon.view.changes import EffectEnd, EffectStart

DRAIN_SECONDS = 5.0
"""Seconds that what is in flight gets to end when somebody stops a run."""
_SHOWN = 3
"""Names of what is waited for; the rest is a number."""


class WakeSignal:
    """Lets a callback of the event loop (a signal, a typed line) interrupt a coroutine that waits."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self._rung = False

    def ring(self) -> None:
        """Whoever listens goes on at once; who listens later goes on at once then."""
        self._rung = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def listen(self, watching: Any) -> bool:
        """Await `watching` until it is done (True) or the bell rings (False), which cancels it."""
        if self._rang():
            watching.close()
            return False
        try:
            async with asyncio.timeout(None) as self._scope:
                await watching
        except TimeoutError:
            if not self._rang():
                raise
            return False
        finally:
            self._scope = None
        return True

    def _rang(self) -> bool:
        rung, self._rung = self._rung, False
        return rung


class Stop:
    """Ctrl-C, SIGTERM and a closed terminal: the first drains the run, the second leaves at once.

    `farewell` is told to the person before leaving at once; the run itself needs no care. `polite`:
    SIGTERM asked first, so whoever stops processes here wants to hear that all is well.
    """

    def __init__(self, bell: WakeSignal) -> None:
        self.asked = False
        self.polite = False
        self.farewell = ""
        self._bell = bell

    def install(self) -> None:
        """Take the signals over, for as long as the event loop lives."""
        on_signals(self.come, "SIGINT", "SIGHUP")
        on_signals(self._terminate, "SIGTERM")

    def _terminate(self) -> None:
        self.polite = self.polite or not self.asked
        self.come()

    def code(self, journal: Journal) -> int:
        """The exit code of a run that was suspended, cleanly."""
        return exit_codes.COMPLETED if self.polite and journal.durability != "none" else exit_codes.SUSPENDED

    def come(self) -> None:
        """Somebody wants to stop."""
        if self.asked:
            with suppress(OSError):
                os.write(2, f"\n{self.farewell}\n".encode())
            os._exit(exit_codes.SUSPENDED)
        self.asked = True
        self._bell.ring()


def on_signals(come: Callable[[], None], *names: str) -> None:
    """Call `come` at these signals, for as long as the event loop lives."""
    loop = asyncio.get_running_loop()
    for name in names:
        # What the caller has told us to ignore (nohup, a job in the background) stays ignored.
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            # Windows has no such loops; there Ctrl-C cancels the main task, which suspends too.
            with suppress(NotImplementedError):
                loop.add_signal_handler(getattr(signal, name), come)


class FollowedEvents(Protocol):
    """Records and pieces as they come, of a run that is driven here or elsewhere; see Subscription."""

    def __aiter__(self) -> FollowedEvents: ...

    async def __anext__(self) -> Record | ReplyDelta: ...

    def wake(self) -> None: ...

    async def aclose(self) -> None: ...


class FollowedRun(Protocol):
    """What a terminal does with a run, driven here or elsewhere; see Run."""

    @property
    def run_id(self) -> str: ...

    def events(self, after: int = 0) -> FollowedEvents: ...

    async def records(self, after: int = 0) -> list[Record]: ...

    async def open_requests(self) -> tuple[str, ...]: ...

    async def result(self, call_id: str) -> Result: ...

    async def post(
        self, to: str, text: str, *, intent: str = "", attachments: tuple[Attachment, ...] = ()
    ) -> str: ...

    async def answer(
        self, effect_id: str, content: str, *, arguments: str = "", grant: Grant | None = None,
        reason: str = "",
    ) -> None: ...  # fmt: skip

    async def cancel(self, effect_id: str = "", reason: str = "") -> object: ...


class Drive(Struct):
    """What a command gives to drive: the open run, its requests, and where the new records begin.

    announce: called once, when the requests are durable and the run can be resumed. leave: awaited when
    somebody stops it before its end, and when it waits for people and there are none (`interactive`).
    unread: whether something was posted in the run that may be the answer it waits for. settled_at: the
    record from which on what stands in the records is how things are.
    """

    run: FollowedRun
    calls: tuple[str, ...]
    after: int
    tree: CallTree
    watcher: Watcher
    interactive: bool
    announce: Any
    leave: Callable[[], Awaitable[None]]
    unread: Callable[[], Awaitable[bool]]
    settled_at: int


class Driver:
    """One drive. Nothing here is a task: the event loop's callbacks ring, and one coroutine does."""

    def __init__(self, drive: Drive, bell: WakeSignal, stop: Stop) -> None:
        self._drive, self._bell, self._stop = drive, bell, stop
        self._open = set(drive.calls)
        self._questions = Questions(drive.tree.run)
        self._asking: Question | None = None
        self._typed: list[str | None] = []
        self._keyboard = Keyboard(self._on_line) if drive.interactive else None
        self._started = self._announced = False
        self.unattended = False
        """It was left because it waits for people, and none is here."""

    async def until_end(self) -> list[Result] | None:
        """The results of the requests; None when the run was left before. Raises RunSuspended."""
        run = self._drive.run
        subscription = run.events()
        try:
            while self._open and not self._stop.asked:
                if not await self._bell.listen(self._watch(subscription)):
                    # The interrupted reader may have taken the signal of something it had not read.
                    subscription.wake()
                elif self._open:
                    break
                await self._hear()
        finally:
            await subscription.aclose()
            if self._keyboard is not None:
                self._keyboard.close()
            self._drive.watcher.stop()
        if self._open and (self._stop.asked or self.unattended):
            await self._drive.leave()
            if not self._open.isdisjoint(await run.open_requests()):
                return None
        return [await _result(run, call) for call in self._drive.calls]

    async def _watch(self, subscription: FollowedEvents) -> None:
        """Show what happens, until the requests have ended or a person must be asked."""
        drive = self._drive
        async for found in subscription:
            drive.tree.take(found)
            drive.watcher.take(found)
            if not isinstance(found, Record):
                continue
            if found.seq > drive.after:
                self._note(found)
            self._close()
            if not self._open:
                return
            if self._keyboard is None and found.last_of_row and found.seq >= drive.settled_at:
                self.unattended = self._waits() and not await drive.unread()
                if self.unattended:
                    return

    def _waits(self) -> bool:
        """Whether people are waited for, and nothing else goes on: one request may stand behind another."""
        tree = self._drive.tree.run
        known = [tree.effects[each] for each in self._open if each in tree.effects]
        behind = [each for each in known if not tree.waits(each.id)]
        return len(known) > len(behind) and all(each.callee is None for each in behind)

    def _note(self, record: Record) -> None:
        """A new record: the ones of this drive."""
        change = self._drive.tree.change
        if not self._started:
            self._started = True
            self._drive.watcher.start()
            self._drive.watcher.take(record)
        known = isinstance(change, EffectStart) and change.effect.id in self._open
        if not self._announced and (known or self._drive.after):
            self._announced = True
            self._pausing(self._drive.announce)
        if self._asking is not None and not self._questions.is_open(self._asking):
            output.tell("\n(it was settled elsewhere)")
            self._asking = None
            self._drive.watcher.start()
        self._ask()

    def _close(self) -> None:
        """A request that has ended is waited for no more."""
        for change in self._drive.tree.changes:
            if isinstance(change, EffectEnd):
                self._open.discard(change.effect.id)

    def _pausing(self, say: Any) -> None:
        self._drive.watcher.pause()
        say()
        self._drive.watcher.start()

    # -- questions --------------------------------------------------------------------------

    def _ask(self) -> None:
        """Put the oldest open question to the person, one at a time."""
        question = self._questions.next()
        if question is None or self._asking is not None or self._keyboard is None:
            return
        self._asking = question
        if question.tool in self._questions.always:
            self._on_line("always")
            return
        self._drive.watcher.pause()
        self._keyboard.listen()
        show(output.terminal(), question)

    def _on_line(self, line: str | None) -> None:
        self._typed.append(line)
        self._bell.ring()

    async def _hear(self) -> None:
        """Take up what was typed."""
        typed, self._typed = self._typed, []
        for line in typed:
            question = self._asking
            if line is None:
                self._stop.asked = True
                return
            if question is not None:
                await self._answer(question, line)
        self._ask()

    async def _answer(self, question: Question, line: str) -> None:
        answer: str | None = None
        try:
            answer = answer_to(question, line)
        except ValueError as error:
            output.tell(f"({error})")
        if not answer:
            whole = bool(question.tool) and line.strip().lower() in ("v", "view")
            show(output.terminal(), question, whole)
            return
        try:
            await self._drive.run.answer(question.id, answer)
        except UserError:
            output.tell("(it was settled elsewhere)")
        self._questions.answered(question, answer)
        self._asking = None
        if self._questions.next() is None:
            if self._keyboard is not None:
                self._keyboard.close()
            self._drive.watcher.start()


async def drain(run: Run, tree: CallTree, tell: Callable[[str], object]) -> None:
    """Suspend a run in good order: what is in flight may end, for so long, and the person is told of it."""
    at_work = [
        each.name for each in tree.run.effects.values()
        if each.has_row and each.wait is None and each.callee is None and each.ended_at is None
    ]  # fmt: skip
    waits = f": waiting for {_named(at_work)}" if at_work else ""
    tell(f"suspending the run{waits} (Ctrl-C once more: leave at once)")
    left = await run.drain(DRAIN_SECONDS)
    if left:
        effects = tree.run.effects
        names = _named([effects[each].name if each in effects else each for each in left])
        tell(f"cut off after {DRAIN_SECONDS:g} s: {names}")


def _named(given: Iterable[str]) -> str:
    names = [terminal_escape.line(each, 40) for each in dict.fromkeys(given)]
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join(names[:_SHOWN] + more)


async def _result(run: FollowedRun, call: str) -> Result:
    try:
        return await run.result(call)
    except RunFailed as failed:
        if isinstance(failed.result, Result):
            return failed.result
        raise
