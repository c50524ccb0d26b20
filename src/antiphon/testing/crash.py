"""The crash enumerator: a run dies at every point where a process can die, and is then looked at.

    crash_test(team, "Hello")                   # raises CrashTestFailed

    report = enumerate_crashes(Scenario("hello", agents, model, (("a", "Hello"),)), tmp_path)
    assert not report.bad                       # says more, and can be told more

Pass 1 plays the scenario and counts the points: before each append, once it is queued, once it is
durable, around each claim, release and command, before each statement of a fork, and around each model and
tool call and step. Pass 2 plays it
once per point in a process of its own that SIGKILLs itself there, lets a fresh process resume, and
judges journal, answers and the world (`antiphon.testing.verdict`). Pass 3, when asked for, kills
the resuming process too, at all or some of its points. Needs `fork`; every process has 20 s.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import shutil
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.journal.port import Row
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.facts.records import Record
from antiphon.kernel.run.commands import AskAgent, Command, encode
from antiphon.kernel.run.forks.fork import fork
from antiphon.kernel.run.open import open_run
from antiphon.kernel.run.rows import fold
from antiphon.kernel.run.run import Run
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Line, Script
from antiphon.testing.clock import VirtualClock
from antiphon.testing.points import Points, SynchronousJournal, count_effects, mark_effects
from antiphon.testing.verdict import ProcessSnapshot, RunOutcome, account_of, judge, judge_forks, look
from antiphon.testing.world import World, add_line
from antiphon.values.agent import Agent, AnyAgent, agents_of
from antiphon.values.model import Model

PATIENCE_S = 20
Commit = Literal["at once", "deferred", "when waited for"]


def nobody(record: Record) -> Sequence[tuple[str, Command]]:
    """The outside of a scenario in which nobody answers."""
    return ()


class Scenario(Struct, frozen=True):
    """What is played. Everything in it must do the same each time it is played.

    agents: the team; tools call `world.did(ctx)` where they act, unless they are counted: then each call
    of a tool's or a step's function is noted by itself. model: made anew in each process;
    it may know only what a request says (`Script(by="turn")`). requests: (agent, text), or commands that
    say more, which come from the queue. outside: the (key, command) that somebody posts on seeing a
    record; shown every record in every process, so a key must be the same each time. options: further
    ones of open_run. forks: once its requests have ended it is forked, once.
    """

    name: str
    agents: Callable[[World], Sequence[Agent]]
    model: Callable[[], Model | None]
    requests: tuple[tuple[str, str] | AskAgent, ...]
    outside: Callable[[Record], Sequence[tuple[str, Command]]] = nobody
    options: dict[str, Any] = {}
    counted: bool = False
    forks: bool = False


class CrashTestFailed(AssertionError):
    """After a crash something was lost, repeated or another; the text says after which, and what."""


class Bad(Struct, frozen=True):
    """A crash, or two, after which something was wrong: (number of the point, its name) each."""

    crashes: tuple[tuple[int, str], ...]
    wrong: tuple[str, ...]


class Report(Struct):
    """What was tried. names: how often each kind of point was there to die at."""

    scenario: str
    points: int = 0
    pairs: int = 0
    names: dict[str, int] = {}
    bad: list[Bad] = []

    def __str__(self) -> str:
        found = [f"{self.scenario}: {self.points} points, {self.pairs} pairs, {len(self.bad)} bad"]
        found += [f"  {each.crashes}: {'; '.join(each.wrong)}" for each in self.bad[:5]]
        return "\n".join(found)


def crash_test(
    team: AnyAgent | Iterable[AnyAgent], text: str = "Hello", *,
    replies: Sequence[Line] | Mapping[str, Sequence[Line]] | None = None,
    every: int = 1, commit: Commit = "deferred", folder: Path | None = None, **options: Any,
) -> Report:  # fmt: skip
    """Ask the first agent, kill the process at every point where it can die, resume, and judge.

    Nothing acknowledged may be lost, nothing completed done again, no `once` tool run twice, and the
    conversation is the one of the uninterrupted run. Tools and steps are really called, many times, so what
    they act on must be a fake. replies: what the models say, a script by turn; None asks the agents' own,
    which may know only what a request says. every: only each n-th point. commit: when an append is durable.
    folder: an empty place for the journals, None for one that is removed. options: further ones of open_run;
    nobody answers, so what asks a person needs a policy, or a Scenario.

    Raises CrashTestFailed; RuntimeError when the run does not even end uninterrupted; UserError for a
    script by call, inside an event loop, and where processes cannot fork.
    """
    members = _members(team)

    def model() -> Model | None:
        return None if replies is None else Script(replies, by="turn")

    if replies is None:
        forgetful = [each.name for each in members if getattr(each.model, "by", "") == "call"]
        if forgetful:
            raise UserError(
                f"crash_test: the script of {forgetful[0]} counts calls, and each process begins anew; "
                'make it Script(..., by="turn"), or pass its lines as replies='
            )
    scenario = Scenario(
        "crash_test", lambda world: members, model, ((members[0].name, text),), options=options, counted=True
    )
    try:
        with tempfile.TemporaryDirectory(prefix="antiphon-crash-") as place:
            report = enumerate_crashes(scenario, folder or Path(place), commit=commit, every=every)
    finally:
        gc.unfreeze()
    if report.bad:
        raise CrashTestFailed(str(report))
    return report


def _members(team: AnyAgent | Iterable[AnyAgent]) -> tuple[Agent, ...]:
    """The agents of a team that can be killed here."""
    given: Any = team
    listed = given if isinstance(given, Iterable) else (given,)
    members = tuple(each for one in listed for each in agents_of(one))
    if not members or not all(isinstance(each, Agent) for each in members):
        raise UserError("crash_test(team) takes an agent, or a list of agents, at least one")
    if not hasattr(os, "fork"):
        raise UserError("crash_test forks processes, which this system cannot")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return members
    raise UserError("crash_test forks processes: call it from a plain function, not in an event loop")


def enumerate_crashes(
    scenario: Scenario,
    folder: Path,
    *,
    commit: Commit = "at once",
    durability: str = "process",
    pairs: int | None = 0,
    seed: int = 0,
    every: int = 1,
) -> Report:
    """Play, kill, resume and judge. folder: an empty place for the journals.

    commit: when an append is durable; `deferred` lets the runtime run ahead of the disk, and `when waited
    for` until it waits. pairs: how many second crashes to draw with `seed`; None tries all. every: only each
    n-th point (a sample).
    Raises RuntimeError when the scenario does not even end uninterrupted.
    """
    stage = _Stage(scenario, folder, commit, durability)
    whole = stage.fresh("whole")
    wrong = stage.play(whole)
    if wrong:
        raise RuntimeError(f"{scenario.name} does not work without a crash: {'; '.join(wrong)}")
    stage.expected = whole / "account.json"
    # What is made once per process is made here, not in each of hundreds of children.
    rehearse(scenario, stage.fresh("rehearsal"), commit=commit, durability=durability)
    gc.freeze()
    names = stage.names(whole)
    report = Report(scenario.name, names=dict(Counter(names)), bad=[])
    seconds: list[tuple[int, int]] = []
    keep = pairs is None or pairs > 0
    for first in range(1, len(names) + 1, every):
        crashed = stage.fresh(f"crashed {first}")
        died = stage.play(crashed, fatal=first)
        resumed = crashed
        if keep:
            resumed = stage.copy(crashed, "resumed")
        wrong = died or stage.play(resumed)
        report.points += 1
        if wrong:
            report.bad.append(Bad(((first, names[first - 1]),), tuple(wrong)))
        seconds += [(first, second) for second in range(1, len(stage.names(resumed)) + 1)]
        if not keep:
            shutil.rmtree(crashed)
    if pairs is not None:
        seconds = sorted(random.Random(seed).sample(seconds, min(pairs, len(seconds))))
    for first, second in seconds:
        again = stage.copy(folder / f"crashed {first}", "again")
        wrong = stage.play(again, fatal=second) or stage.play(again)
        report.pairs += 1
        if wrong:
            report.bad.append(Bad(((first, names[first - 1]), (second, "in recovery")), tuple(wrong)))
    return report


def rehearse(
    scenario: Scenario, folder: Path, *, commit: Commit = "at once", durability: str = "process"
) -> list[str]:
    """Play it once in this process, or go on with what lies in `folder`; what was wrong.

    For a debugger: an enumerated crash leaves its journal, and this resumes it where you can watch.
    """
    stage = _Stage(scenario, folder, commit, durability)
    folder.mkdir(parents=True, exist_ok=True)
    return asyncio.run(stage.live(folder, Points()))


class _Stage:
    """Plays one scenario in child processes. expected: the account of the uninterrupted run."""

    def __init__(self, scenario: Scenario, folder: Path, commit: Commit, durability: str) -> None:
        self._scenario, self._folder = scenario, folder
        self._commit, self._durability = commit, durability
        self.expected: Path | None = None

    def fresh(self, name: str) -> Path:
        place = self._folder / name
        place.mkdir(parents=True)
        return place

    def copy(self, source: Path, name: str) -> Path:
        place = self._folder / name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        return place

    def names(self, place: Path) -> list[str]:
        """The points that the last process to end in `place` passed."""
        passed = place / "points.json"
        found: list[str] = msgspec.json.decode(passed.read_bytes()) if passed.exists() else []
        return found

    def play(self, place: Path, fatal: int = 0) -> list[str]:
        """One process, from the start or from where the last one died; what was wrong.

        A process that is to die and has no such point ends in order: it was a sample too far.
        """
        with warnings.catch_warnings():
            # Threads of the caller do not come along; none of ours holds a lock at this point.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            self._child(place, fatal)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if fatal and number == signal.SIGKILL:
                return []
            return [
                f"the process hung for {PATIENCE_S} s" if number == signal.SIGALRM else f"signal {number}"
            ]
        if os.WEXITSTATUS(status):
            return [(place / "error.txt").read_text(encoding="utf-8")]
        wrong: list[str] = msgspec.json.decode((place / "wrong.json").read_bytes())
        return wrong

    def _child(self, place: Path, fatal: int) -> None:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE_S)
            gc.disable()
            points = Points(fatal)
            if self._scenario.counted:
                count_effects(World(place / "world", counted=True))
            mark_effects(points)
            wrong = asyncio.run(self.live(place, points))
            (place / "points.json").write_bytes(msgspec.json.encode(points.names))
            (place / "wrong.json").write_bytes(msgspec.json.encode(wrong))
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent is told
            (place / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(code)

    async def live(self, place: Path, points: Points) -> list[str]:
        """Open or resume the run, see it through, and judge it."""
        scenario = self._scenario
        world = World(place / "world", counted=scenario.counted)
        armed: list[Callable[[str], None]] = []

        def acknowledged(row: Row) -> None:
            add_line(place / "acknowledged", b"%d %s" % (row.seq, row.digest.hex().encode()))

        journal = SynchronousJournal(
            place / "journal.db",
            self._durability,
            point=lambda name: armed[0](name) if armed else None,
            acknowledged=acknowledged,
            deferred=self._commit == "deferred",
            hurries=self._commit == "when waited for",
        )
        agents = scenario.agents(world)
        try:
            entries = await journal.runs()
            # The oldest: others are its forks.
            run_id = entries[-1].run_id if entries else None
            life = await look(journal, run_id, world) if run_id else ProcessSnapshot()
            add_line(place / "lives", msgspec.json.encode(life))
            armed.append(points)
            if run_id is None or not (await fold(journal, run_id)).closed:
                async with open_run(
                    agents,
                    journal=journal,
                    run_id=run_id,
                    model=scenario.model(),
                    clock=VirtualClock(),
                    env={},
                    **scenario.options,
                ) as run:
                    run_id = run.run_id
                    await self._drive(run, journal)
                    if scenario.forks and len(entries) < 2:
                        await fork(journal, run_id, clock=VirtualClock())
                    await run.close()
            armed.clear()
            account = await account_of(journal, run_id)
            expected = None
            if self.expected is None:
                (place / "account.json").write_bytes(msgspec.json.encode(account))
            else:
                expected = msgspec.json.decode(self.expected.read_bytes(), type=RunOutcome)
            wrong = await judge(journal, run_id, place, agents, world, account, expected)
            return wrong + (await judge_forks(journal, run_id, account) if scenario.forks else [])
        finally:
            armed.clear()
            await journal.close()
            # Providers of toolsets outlive a run, and may have processes of their own.
            await close_unused()

    async def _drive(self, run: Run, journal: SynchronousJournal) -> None:
        scenario, run_id = self._scenario, run.run_id
        for number, asked in enumerate(scenario.requests):
            ask = asked if isinstance(asked, AskAgent) else AskAgent(*asked)
            await journal.post(run_id, f"request {number}", encode(ask))
        ended = 0
        watching = run.events(deltas=False)
        async with aclosing(watching.__aiter__()) as records:
            async for record in records:
                if not isinstance(record, Record):
                    continue
                for key, command in scenario.outside(record):
                    await journal.post(run_id, key, encode(command))
                if type(record.event) is EffectFinished and record.event.id.startswith("0/"):
                    ended += 1
                if ended == len(scenario.requests):
                    break
        watching.close()
        if ended < len(scenario.requests):
            raise RuntimeError("the run stopped before its requests had ended")
