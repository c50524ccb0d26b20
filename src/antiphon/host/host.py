"""Host: it starts runs of its teams, drives them, lets go of those that rest, and takes up what was left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

from msgspec.structs import replace

from antiphon.errors import JournalError, RunInUse, RunIsClosed, UnknownName, UserError
from antiphon.host.choices import check_model, no_looser
from antiphon.host.hosted import FirstRequest, HostedRun, conversation_with, talking
from antiphon.host.known_teams import KnownTeams
from antiphon.host.labels import checked, first_key, known_first
from antiphon.host.listed import runs_of, undriven
from antiphon.host.project_runs import is_at_work, is_idle, rules_in_project
from antiphon.host.projects import Projects
from antiphon.host.removal import Removal
from antiphon.host.slots import Slots
from antiphon.host.starting import HostDraining, KeyUsed, NotMoved, StartedRun, run_of
from antiphon.host.summaries import current_summary, is_closed
from antiphon.host.team import HostedTeam, Team, teams_of
from antiphon.journal import Journal, open_journal
from antiphon.journal.listing import NO_LABELS, Labels, RunInfo
from antiphon.kernel.facts.summary import RunSummary, summary_of
from antiphon.kernel.run.clock import Clock
from antiphon.kernel.run.commands import AskAgent, encode, known_history, known_options, posted
from antiphon.kernel.run.forks.fork import ForkedRun, fork
from antiphon.kernel.run.open import cancel_run, compare_team, system_clock
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.values.agent import RequestOptions
from antiphon.values.fields import fit
from antiphon.values.limits import Limits
from antiphon.values.message import Attachment, new_id
from antiphon.values.model import ChatMessage
from antiphon.values.policy import Preset, StandingRule
from antiphon.values.result import Difference
from antiphon.view.connection import RunConnection, connect, connection_to
from antiphon.view.reading.folded import FoldedRun
from antiphon.view.reading.kept import KeptReadings
from antiphon.view.traces import LiveTrace, SendSpans

WATCHED = 500
"""Runs at rest that hear at once what others post; of more, those that rested last. Others hear it later."""
SURVEY_SECONDS = 15.0
"""How often a host looks for runs of its teams whose owner has died."""


class HostReadsOnly(UserError):
    """A host that only reads was asked for something else."""


class Host:
    """Runs of teams, many at once. Use it as an async context manager, in one event loop.

    journal: a Journal, which stays open, or the URL of one. teams: by name. max_runs: driven at once; more
    wait in a line. idle_seconds: after so long at rest a run is let go; what is posted takes it up again.
    drain_seconds: what is in flight gets so long to end when the host is left. clock: of the runs, too.
    projects: folders with teams, rules and files that runs share. models: strings, of which a run may be
    started with one for all of its agents. send_spans: takes the spans of runs as they end, such as
    `SpanSender().send`; trace_content: they hold what was said, too. drives: False only reads the journal:
    no run is taken up, and whatever would change one is refused.
    """

    def __init__(
        self, journal: Journal | str, teams: Mapping[str, Team], *, max_runs: int = 100,
        idle_seconds: float = 60.0, drain_seconds: float = 8.0, clock: Clock | None = None,
        projects: Projects | None = None, models: Iterable[str] = (),
        send_spans: SendSpans | None = None, trace_content: bool = False, drives: bool = True,
    ) -> None:  # fmt: skip
        self.known = KnownTeams(teams_of(teams), projects)
        """The teams that runs may be of, and the projects."""
        self.models = tuple(dict.fromkeys(models))
        """What a run may be started with instead of its agents' own models."""
        self.drives = fit(drives, bool, "Host(drives)")
        """False: it only reads."""
        self._max_runs = fit(max_runs, int, "Host(max_runs)")
        self._idle_seconds = fit(idle_seconds, float, "Host(idle_seconds)")
        self._drain_seconds = fit(drain_seconds, float, "Host(drain_seconds)")
        if self._max_runs < 1 or self._idle_seconds < 0 or self._drain_seconds < 0:
            raise UserError("Host takes max_runs of at least 1, and seconds that are not below 0")
        self._given, self._clock = journal, clock
        self.clock: Clock = clock or system_clock()
        """What time it is here."""
        self._send_spans, self._trace_content = send_spans, trace_content
        self._opened: Journal | None = None
        self._runs: dict[str, HostedRun] = {}
        self._starting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._surveying: asyncio.Task[None] | None = None
        self._removal, self.readings = Removal(), KeptReadings()
        """What was made of the runs that were read last, each by a key of the one who makes it."""
        self.draining = False
        """Nothing is started or taken up any more."""

    async def __aenter__(self) -> Host:
        self._opened, self._slots = open_journal(self._given), Slots(self._max_runs)
        if not self.drives:
            return self
        try:
            await self._survey(first=True)
        except BaseException:
            await self.__aexit__()
            raise
        self._surveying = asyncio.get_running_loop().create_task(self._survey_on(), name="survey of runs")
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.drain(self._drain_seconds)
        finally:
            await close_unused()
            if self.journal is not self._given:
                await self.journal.close()

    @property
    def journal(self) -> Journal:
        """The journal of its runs. Raises UserError outside of the `async with`."""
        if self._opened is None:
            raise UserError("A Host is used inside `async with Host(...) as host:`")
        return self._opened

    @property
    def teams(self) -> Mapping[str, HostedTeam]:
        """What can be started, by name."""
        return self.known.served

    def team(self, name: str) -> HostedTeam:
        """A team. Raises UnknownName."""
        if name not in self.known.served:
            raise UnknownName("team", name, self.known.served)
        return self.known.served[name]

    @property
    def runs(self) -> Mapping[str, HostedRun]:
        """The runs that it drives, watches or had to give up, by id."""
        return self._runs

    # -- runs ---------------------------------------------------------------------------------

    async def start(
        self, team: str, message: str, *, entry: str = "", attachments: Iterable[Attachment] = (),
        data: Any = None, limits: Limits | None = None, key: str = "", run_id: str = "",
        labels: Labels = NO_LABELS, files: Iterable[str] = (), model: str = "", policy: Preset | None = None,
        traceparent: str = "", history: Iterable[ChatMessage] = (), conversation: bool = False,
        options: RequestOptions | None = None,
    ) -> StartedRun:  # fmt: skip
        """Start a run with a request to `entry`, or the team's first agent; durable on return.

        It may have to wait for a slot. key: starts it once, however often it is asked for by the same owner.
        data, limits, history (what was said before), options: of the request. labels: its owner and project;
        in a project of this host the team may be the project's own. files: of the project, enclosed in the
        request. model: of `models`, for every agent; policy: one that allows no more than the team's; both
        hold as long as the run does. conversation: whether the agent remembers at each further request what
        was said before. traceparent: the span of whoever asks (W3C Trace Context), under which the run's
        stand; no part of what the key stands for. Raises UnknownName, KeyUsed when the key came with another
        request, UserError for what JSON cannot hold or is not to be chosen, a history that no provider would
        take and options that cannot be, JournalError.
        """
        self._check_starts()
        found = checked(Labels(labels.project, labels.owner, team))
        with self._removal.starting(found.project):
            known = await self.known.to_start(found)
            agent = entry or known.entry
            if agent not in (names := [each.name for each in known.agents]):
                raise UnknownName(f"agent of team {team}", agent, names)
            given = (*attachments, *await self.known.enclosed(found.project, files))
            said, own = known_history(history), known_options(options, known.agents[names.index(agent)])
            asked = posted(AskAgent(agent, message, given, "", "", data, (), (), limits, "", said, own))
            first = FirstRequest(
                first_key(found, encode(asked), model, policy or ""),
                encode(replace(asked, traceparent=traceparent)), found,
                check_model(model, self.models) if model else "",
                no_looser(known, policy) if policy is not None else None,
                agent if conversation else "",
            )  # fmt: skip
            return await self._start_once(first, known, key, run_id)

    async def _start_once(self, first: FirstRequest, known: HostedTeam, key: str, run_id: str) -> StartedRun:
        if not key:
            return await self._start(run_id or new_id(), known, first)
        named = run_of(first.labels.owner, key)
        lock = self._starting.setdefault(named, asyncio.Lock())
        async with lock:
            return await self._start(named, known, first, again=True)

    async def _start(
        self, run_id: str, team: HostedTeam, first: FirstRequest, *, again: bool = False
    ) -> StartedRun:
        try:
            before = await known_first(self.journal, run_id)
        except UnknownName:
            before = ""
        if before:
            if not again or before != first.key:
                raise KeyUsed(f"Run {run_id} has begun with another request; use a new key for a new run")
            await self.watch(run_id)
            return StartedRun(run_id, False)
        self._check_starts()
        hosted = self._host(run_id, team)
        hosted.begin(f"run {run_id}", first)
        try:
            # Whoever asked may leave meanwhile; the run is begun all the same.
            await asyncio.shield(hosted.founded)
        except Exception:
            self._forget(hosted)
            raise
        return StartedRun(run_id, True)

    async def resume(self, run_id: str, team: str = "") -> None:
        """Take up a run that nobody drives, whatever it waits for.

        team: whose it is, where no host has started it and several teams would do. Raises UnknownName,
        RunInUse, UserError when it is closed or it cannot be told which team does it.
        """
        self._check_starts()
        hosted = self._runs.get(run_id)
        if hosted is not None and hosted.state in ("queued", "running"):
            return
        info = await self.info(run_id)
        if is_closed(info):
            raise RunIsClosed(run_id)
        if info.owner:
            raise RunInUse(run_id, info.owner)
        name = team or info.labels.team
        if not name:
            name = await self._guess(run_id)
        known = await self.known.of(replace(info.labels, team=name))
        self._check_starts()
        self._take_up(run_id, known, drives=True)

    async def fork(self, run_id: str, at: int | None = None, *, labels: Labels | None = None) -> ForkedRun:
        """A new run from the beginning of another, of the same team; driven once something is posted in it.

        See `antiphon.view.fork`. labels: its owner and project, and the other run's team; None: all of that.
        """
        self._check_starts()
        made = await fork(self.journal, run_id, at, labels=labels, clock=self._clock)
        await self.watch(made.run_id)
        return made

    async def compare(self, run_id: str, team: str = "") -> list[Difference] | None:
        """What taking a run up would meet, against its last team; nothing is changed.

        team: as for `resume`. None when the run never had a team. Raises UnknownName, UserError,
        JournalError.
        """
        info = await self.info(run_id)
        name = team or info.labels.team or await self._guess(run_id)
        known = await self.known.of(replace(info.labels, team=name))
        agents = talking(known.agents, await conversation_with(self.journal, run_id))
        return await compare_team(self.journal, run_id, agents, model=known.model, endpoints=known.endpoints)

    async def _guess(self, run_id: str) -> str:
        """The only team that has all of a run's agents."""
        async with connect(self.journal, run_id) as run:
            tree = await run.tree()
        return self.known.guess(run_id, {each.agent for each in tree.activations.values() if each.id})

    @asynccontextmanager
    async def connect(self, run_id: str) -> AsyncIterator[RunConnection]:
        """A connection to any run of the journal; one of its own that rests is taken up when it is posted to.

        See `antiphon.view.connect`. Raises UnknownName.
        """
        run = await connection_to(self.journal, run_id, lambda: self.folded(run_id))
        await self.watch(run_id)
        yield run

    def folded(self, run_id: str) -> FoldedRun:
        """A run as it was folded for those who read it last, however far: `read_on` before you look."""
        return self.readings.of(
            ("run", run_id), FoldedRun, lambda: FoldedRun(self.journal, run_id, recent=False)
        )

    async def watch(self, run_id: str) -> None:
        """See that a run of one of the teams here is taken up when something is posted in it."""
        hosted = self._runs.get(run_id)
        if self.draining or not self.drives or (hosted is not None and not hosted.is_done):
            return
        info = await self.info(run_id)
        if not info.owner and not is_closed(info) and info.labels.team:
            known = current_summary(info)
            # Of one in which nothing is open nobody has to be told that it cannot go on.
            await self._take_up_of(info, refuses=known is None or known.state != "idle")

    async def _take_up_of(self, info: RunInfo, *, refuses: bool = True) -> None:
        """Take up a run that nobody drives, or know why it cannot be, where that `refuses` it."""
        try:
            team = await self.known.of(info.labels)
        except UserError as error:
            hosted = self._runs.get(info.run_id)
            if hosted is None and refuses:
                hosted = self._host(info.run_id, HostedTeam(()))
            if hosted is not None and hosted.is_done:
                hosted.refuse(str(error))
        else:
            if not self.draining:
                self._take_up(info.run_id, team)

    async def close(self, run_id: str, reason: str = "") -> None:
        """End a run for good; what is still open in it is cancelled first.

        Raises UnknownName, RunInUse when another process drives it, UserError when it is closed already.
        """
        self._check_drives()
        hosted = self._runs.get(run_id)
        if hosted is not None and hosted.run is not None:
            await hosted.close(reason)
            await self._end(hosted)
        else:
            if hosted is not None:
                await self._end(hosted)
            await cancel_run(self.journal, run_id, reason)

    async def delete(self, run_id: str) -> None:
        """Remove a run for good. Raises UnknownName, RunInUse while it is at work or driven elsewhere."""
        self._check_drives()
        hosted = self._runs.get(run_id)
        if hosted is not None:
            if hosted.run is not None and not await is_idle(hosted.run):
                raise RunInUse(run_id, "this host; cancel or close it first")
            await self._end(hosted)
        await self.journal.delete(run_id)

    async def move(self, run_id: str, project: str) -> None:
        """Make a run part of another project, or of none. Raises UnknownName, UserError for a run of a team
        that the project does not have, RunInUse while such a run is at work."""
        info = await self.info(run_id)
        labels = replace(info.labels, project=project)
        if project:
            checked(labels)
        with self._removal.starting(project):
            if project and self.known.projects is not None:
                await self.known.project(project)
            if self.known.is_own(info.labels) or self.known.is_own(labels):
                await self._check_movable(info, labels)
            await self.journal.relabel(run_id, labels)
        hosted = self._runs.get(run_id)
        if hosted is not None and hosted.state == "resting":
            # It may be of another project's team now.
            await self._end(hosted)
        await self.watch(run_id)

    async def _check_movable(self, info: RunInfo, labels: Labels) -> None:
        if is_closed(info) or self.known.projects is None:
            return
        try:
            await self.known.of(labels)
        except UserError as error:
            raise NotMoved(f"Not moved: {error}") from None
        hosted = self._runs.get(info.run_id)
        driven = hosted is not None and hosted.state in ("queued", "running")
        if hosted is not None and driven and hosted.run is not None and await is_idle(hosted.run):
            await self._end(hosted)
        elif driven or info.owner:
            raise RunInUse(info.run_id, f"{info.owner or 'this host'}; move it once it rests")

    async def delete_project(self, project: str) -> None:
        """Remove a project, its files and the rules kept for it.

        Its runs stay, and those of a team of its own cannot go on. Raises UnknownName, RunInUse while one of
        them is at work.
        """
        with self._removal.of(project):
            found = await self.known.project(project)
            async for info in runs_of(self.journal, project):
                if await is_at_work(info, self._runs.get(info.run_id)):
                    owner = f"{info.owner or 'this host'}; stop the runs of project {project} first"
                    raise RunInUse(info.run_id, owner)
            if self.known.projects is not None:
                await asyncio.to_thread(self.known.projects.delete, found.id)
            for rule in await self.journal.rules():
                if (rule.scope, rule.key) == ("project", project):
                    with suppress(UnknownName):
                        await self.journal.drop_rule(rule.id)
            async for info in runs_of(self.journal, project):
                hosted = self._runs.get(info.run_id)
                if hosted is not None and self.known.is_own(info.labels):
                    await self._end(hosted)

    # -- what it knows --------------------------------------------------------------------------

    async def summary(self, info: RunInfo) -> RunSummary:
        """A run in one line: as its last owner wrote it down, or folded where that is missing or old.

        Raises JournalError.
        """
        known = current_summary(info)
        if known is not None:
            return known
        folded = self.folded(info.run_id)
        await folded.read_on()
        return summary_of(folded.state, folded.seq)

    async def info(self, run_id: str) -> RunInfo:
        """A run's line of the list of runs. Raises UnknownName, which names no others."""
        return await self.journal.info(run_id)

    # -- taking up, and leaving -------------------------------------------------------------------

    def _host(self, run_id: str, team: HostedTeam) -> HostedRun:
        trace = self._trace if self._send_spans is not None else None
        hosted = HostedRun(
            self.journal, run_id, team, self._slots, self._clock, self._idle_seconds, self._rules_of, trace
        )
        self._runs.pop(run_id, None)
        self._runs[run_id] = hosted
        return hosted

    async def _rules_of(self, run_id: str, labels: Labels) -> tuple[StandingRule, ...]:
        return await rules_in_project(self.journal, self.known.projects, run_id, labels)

    def _trace(self, run_id: str, after: int) -> LiveTrace:
        send = self._send_spans or (lambda _: None)
        return LiveTrace(self.journal, run_id, send, after, content=self._trace_content)

    def _forget(self, hosted: HostedRun) -> None:
        if self._runs.get(hosted.run_id) is hosted:
            del self._runs[hosted.run_id]

    def _take_up(self, run_id: str, team: HostedTeam, *, drives: bool = False) -> None:
        before = self._runs.get(run_id)
        if before is not None and not before.is_done:
            before.drive()
            return
        self._host(run_id, team).begin(f"run {run_id}", drives=drives)
        resting = [each for each in self._runs.values() if each.state == "resting"]
        for each in resting[: max(len(resting) - WATCHED, 0)]:
            each.drain(0)
            self._forget(each)
        for each in [each for each in self._runs.values() if each.is_done and each.state != "suspended"]:
            self._forget(each)

    async def _survey_on(self) -> None:
        clock = self.clock
        while True:
            await clock.sleep_until(clock.now() + SURVEY_SECONDS)
            # A journal that cannot be read now may be the next time; runs that are driven say so themselves.
            with suppress(JournalError):
                await self._survey()

    async def _survey(self, *, first: bool = False) -> None:
        """Take up what nobody drives and is open or was posted in, by index; at first, watch the newest of
        what rests too."""
        watched = 0
        async for info in undriven(self.journal, every=first):
            hosted = self._runs.get(info.run_id)
            if self.draining or is_closed(info):
                continue
            if hosted is not None and (not hosted.is_done or hosted.state == "suspended"):
                continue
            known = current_summary(info)
            rests = known is not None and known.state != "open"
            if rests and not info.posted and (not first or watched >= WATCHED):
                continue
            watched += rests
            if info.labels.team:
                await self._take_up_of(info)

    async def _end(self, hosted: HostedRun) -> None:
        """Leave a run that has nothing to do, and know nothing of it any more."""
        hosted.drain(0)
        if hosted.task is not None:
            await asyncio.wait((hosted.task,))
        self._forget(hosted)

    async def drain(self, seconds: float) -> tuple[str, ...]:
        """Leave every run without harm: nothing new starts, what is in flight gets `seconds` to end.

        What is left open is taken up by the next host. Returns the ids of the runs in which something had to
        be cut off. A second drain does nothing.
        """
        if self.draining:
            return ()
        self.draining = True
        if self._surveying is not None:
            self._surveying.cancel()
        hosted = [each for each in self._runs.values() if not each.is_done]
        for each in hosted:
            each.drain(seconds)
        tasks = [each.task for each in hosted if each.task is not None]
        if tasks:
            await asyncio.wait(tasks)
        return tuple(each.run_id for each in hosted if each.cut_off)

    def _check_drives(self) -> None:
        if not self.drives:
            raise HostReadsOnly("This host only reads its journal; runs are started and changed elsewhere")

    def _check_starts(self) -> None:
        self._check_drives()
        if self.draining:
            raise HostDraining("This host is being left, and starts nothing more; ask again in a moment")
