"""A request to a run that a server drives: asked, watched and answered here as if it were driven here.

Who leaves leaves the run alone: it goes on there. That is said when it begins.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

from msgspec import Struct

from antiphon import Limits, Record, ReplyDelta, Result
from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.tree import CallTree
from antiphon.cli.display.watch import interactive, watcher
from antiphon.cli.remote.client import ServerRefused
from antiphon.cli.session.drive import Drive, Driver, Stop, WakeSignal
from antiphon.cli.session.request import DisplayOptions, finish, result_of, tell_unattended
from antiphon.cli.store import command, short_id
from antiphon.errors import AntiphonError, JournalError, RunSuspended
from antiphon.kernel.facts import ids
from antiphon.kernel.run.rows import fold_records
from antiphon.server.routes.bodies import CreateRun
from antiphon.values.message import Attachment, new_id
from antiphon.values.policy import Grant
from antiphon.view import RunTree

SETTLED = frozenset({"refused", "closed", "too_late"})
"""Refusals of an answer whose question is not open any more."""


class ServerRequest(Struct, frozen=True):
    """What a new run on a server begins with, but for the message. See CreateRun."""

    team: str
    entry: str
    limits: Limits | None = None
    project: str = ""
    conversation: bool = False


class RemoteRun:
    """A run of a server with the face of FollowedRun; it begins with the first request. runs: ServerRuns."""

    def __init__(self, runs: Any, run_id: str = "", first: ServerRequest | None = None) -> None:
        self._runs, self._first = runs, first
        self._run_id = run_id
        self._begun = asyncio.Event()
        if run_id:
            self._begun.set()

    @property
    def run_id(self) -> str:
        """Its id; empty until it has begun."""
        return self._run_id

    def events(self, after: int = 0) -> RemoteEvents:
        """See FollowedRun."""
        return RemoteEvents(self, after)

    async def begun(self) -> None:
        """Wait until there is a run."""
        await self._begun.wait()

    async def records(self, after: int = 0) -> list[Record]:
        """See FollowedRun."""
        if not self._run_id:
            return []
        async with self._runs.connect(self._run_id) as run:
            found: list[Record] = await run.records(after)
            return found

    async def open_requests(self) -> tuple[str, ...]:
        """See FollowedRun."""
        return tuple(RunTree.of(await self.records()).requests)

    async def result(self, call_id: str) -> Result:
        """See FollowedRun. Raises RunSuspended for a request that has not ended."""
        state = fold_records(await self.records())
        if call_id not in state.activations[0].done:
            raise RunSuspended(self._run_id, "its stream ended before the request did")
        return result_of(state, self._run_id, call_id)

    async def post(
        self, to: str, text: str, *, intent: str = "", attachments: tuple[Attachment, ...] = ()
    ) -> str:
        """See FollowedRun: `to` is an agent, or the id of an open call."""
        if not self._run_id:
            given = self._first or ServerRequest("", "")
            body = CreateRun(
                given.team, text, to, limits=given.limits, project=given.project,
                conversation=given.conversation, attachments=attachments,
            )  # fmt: skip
            self._run_id = await self._runs.start(body, new_id())
            self._begun.set()
            return ids.call_id(0, 1, 0)
        async with self._runs.connect(self._run_id) as run:
            if "/" in to:
                await run.post(to, text, attachments=attachments)
                return to
            taken: str = await run.taken(
                await run.ask(to, text, intent=intent, attachments=attachments, key=new_id())
            )
            return taken

    async def answer(
        self, effect_id: str, content: str, *, arguments: str = "", grant: Grant | None = None,
        reason: str = "",
    ) -> None:  # fmt: skip
        """See FollowedRun."""
        try:
            async with self._runs.connect(self._run_id) as run:
                await run.answer(effect_id, content, arguments=arguments, grant=grant, reason=reason)
        except ServerRefused as error:
            if error.code not in SETTLED:
                raise JournalError(f"The answer was not taken: {error}") from error
            raise

    async def cancel(self, effect_id: str = "", reason: str = "") -> None:
        """See FollowedRun."""
        async with self._runs.connect(self._run_id) as run:
            await run.cancel(effect_id, reason)

    def opened(self, after: int) -> Any:
        """Its stream, as ServerEvents; ends with RunSuspended when nobody drives it any more."""
        return self._runs.events(self._run_id, after, self._check)

    async def _check(self) -> None:
        line = await self._runs.line(self._run_id)
        if line.state == "suspended":
            raise RunSuspended(self._run_id, line.reason or "the server does not drive it")


class RemoteEvents:
    """The stream of a RemoteRun, from when it begins."""

    def __init__(self, run: RemoteRun, after: int) -> None:
        self._run, self._after = run, after
        self._events: Any = None

    def __aiter__(self) -> RemoteEvents:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        if self._events is None:
            await self._run.begun()
            self._events = self._run.opened(self._after)
        found: Record | ReplyDelta = await anext(self._events)
        return found

    def wake(self) -> None:
        """See FollowedEvents; nothing is lost here."""

    async def aclose(self) -> None:
        """Stop watching."""
        if self._events is not None:
            await self._events.aclose()


async def ask_there(runs: Any, first: ServerRequest, message: str, manner: DisplayOptions) -> int:
    """Start a run with one request on a server, show it to its end and close it, as `perform` does here."""
    run = RemoteRun(runs, first=first)
    call = await run.post(first.entry, message)
    return await follow(runs, run.run_id, (call,), 0, manner, ends=True)


async def follow(
    runs: Any, run_id: str, calls: tuple[str, ...], after: int, manner: DisplayOptions, *,
    ends: bool = False, resumed: bool = False,
) -> int:  # fmt: skip
    """Show requests of a run to their end, and answer what it asks; the exit code. runs: ServerRuns.

    after: what lies before is known. ends: the run is closed then. resumed: the server has just taken it up.
    """
    bell, tree = WakeSignal(), CallTree()
    stop = Stop(bell)
    stop.install()
    runs.client.patient = True
    run, started = RemoteRun(runs, run_id), time.monotonic()
    stop.farewell = _farewell(manner, run_id)
    people = interactive() and not manner.as_json
    view = watcher(tree, as_json=manner.as_json, quiet=manner.quiet)
    drive = Drive(
        run, calls, after, tree, view, people, partial(_announce, manner, run_id), _nothing,
        partial(has_more, runs, run_id, tree.run), after + 1 if resumed else after,
    )  # fmt: skip
    driver = Driver(drive, bell, stop)
    results = await driver.until_end()
    if results is None and driver.unattended:
        return tell_unattended(tree.run, manner, run_id, _farewell(manner, run_id))
    if results is None:
        return _left(manner, run_id, stop)
    if ends and not tree.run.requests and not tree.run.closed:
        await _close(runs, run_id)
    return finish(results, manner, run_id, tree, time.monotonic() - started)


async def _nothing() -> None:
    """Leaving does nothing to a run that somebody else drives."""


async def has_more(runs: Any, run_id: str, tree: RunTree) -> bool:
    """Whether the server has more of the run than was read here."""
    line = await runs.line(run_id)
    return bool(line.records > tree.seq)


async def _close(runs: Any, run_id: str) -> None:
    try:
        await runs.end(run_id, "")
    except AntiphonError as error:
        # The answer is there; that the run stays open is no reason to lose it.
        exit_codes.remark(f"run {short_id(run_id)} was not closed: {error}")


def _announce(manner: DisplayOptions, run_id: str) -> None:
    if not (manner.quiet or manner.as_json):
        output.tell(f"run {short_id(run_id)}, driven by the server; Ctrl-C leaves it going there")


def _farewell(manner: DisplayOptions, run_id: str) -> str:
    short = short_id(run_id)
    return "\n".join([
        f"run {short} goes on at the server. To see it, to wait for its answer, to stop it:",
        f"  {command('runs', 'tail', '-f', run_id[:12], source=manner.source)}",
        f"  {manner.resume(run_id)}",
        f"  {command('runs', 'cancel', run_id[:12], source=manner.source)}",
    ])  # fmt: skip


def _left(manner: DisplayOptions, run_id: str, stop: Stop) -> int:
    if manner.as_json:
        output.say(terminal_escape.json_line({"type": "RunLeft", "run_id": run_id}))
    else:
        output.tell(_farewell(manner, run_id))
    return exit_codes.COMPLETED if stop.polite else exit_codes.INTERRUPTED
