"""A command whose agent is killed, at any moment: it is run once, and its end is known to whoever goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, open_run
from antiphon.models.script import Script, call
from antiphon.testing.crash import Scenario, enumerate_crashes
from antiphon.testing.world import World
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.shell import Workspace, changes, commands, shell_tools
from antiphon.tools.shell.keeping import place
from antiphon.values.message import FileChange, FileState
from antiphon.view import connect
from tests.unit.tools.shell.running import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills a process that it has forked")

PHASES = {
    commands: (
        "begin",
        "carry_out",
        "_start",
        "_keeper",
        "_told",
        "_ended",
        "_report",
        "output_of",
        "is_kept",
    ),
    changes: ("_rows", "_from_git", "_state"),
    place: ("write", "read", "begin"),
}
"""What of a command is done in the agent's process; it is killed before each."""
LINES: list[Any] = [
    call("shell", command="echo one >> log; sleep 0.1; echo two >> log; tail -n 1 log"),
    [call("shell", command="echo three >> log"), call("shell", command="exit 7")],
    call("shell", command="echo four >> log; exec sleep 1000", background=True),
    "done",
]
LOG = ["four", "one", "three", "two"]


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def play(
    folder: Path, journal: str, run_id: str | None = None, lines: list[Any] = LINES
) -> dict[str, tuple[str, str]]:
    """The run, from its beginning or from where it was killed; how its calls of tools ended."""

    async def scene() -> dict[str, tuple[str, str]]:
        agent = Agent("a", tools=[*folder_tools(folder), *edit_tools(folder), *shell_tools(folder)])
        model = Script(lines, by="turn")
        async with open_run([agent], journal=journal, model=model, run_id=run_id) as run:
            if run_id is None:
                (folder.parent / "run").write_text(run.run_id)
                await run.post("a", "go")
            await run.result("0/1.c1")
            found = {}
            async for item in run.events(0, deltas=False):
                event: Any = item.event
                if item.type == "EffectFinished" and ".c" in event.id and ":" not in event.id:
                    found[event.id] = (event.outcome, event.content)
                if item.seq == run.seq:
                    return found
        raise AssertionError("the run ended")

    return asyncio.run(scene())


def changed(journal: str, run_id: str) -> dict[str, tuple[FileChange, ...]]:
    """By call, the files that it changed."""

    async def scene() -> dict[str, tuple[FileChange, ...]]:
        async with connect(journal, run_id) as run:
            return (await run.tree()).files

    return asyncio.run(scene())


def killed_at(point: int, folder: Path, journal: str) -> bool:
    """Play it in a process that is killed before phase `point`; whether it was."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(function: Any) -> Any:
            def before(*arguments: Any, **named: Any) -> Any:
                nonlocal count
                count += 1
                if count == point:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **named)

            return before

        for module, names in PHASES.items():
            for name in names:
                setattr(module, name, counted(getattr(module, name)))
        play(folder, journal)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def settled(folder: Path) -> list[str]:
    """What the commands wrote, once those that were in the background are ended."""
    tools = {each.name: each.function for each in shell_tools(folder)}
    for row in tools["list_jobs"]().splitlines():
        tools["stop_job"](commands.ToolContext(), row.partition(":")[0])
    return sorted((folder / "log").read_text().split())


def killed_in(tmp_path: Path, points: range) -> bool:
    """Play it killed at each of these points, and go on; whether the last was reached."""
    for point in points:
        here = tmp_path / str(point)
        (here / "files").mkdir(parents=True)
        folder, journal = here / "files", f"sqlite:///{here / 'runs.db'}"
        killed = killed_at(point, folder, journal)
        if not killed:
            settled(folder)
            return False
        # Where its agent was not even made, there is no run to go on with.
        run_id = (here / "run").read_text() if (here / "run").exists() else None
        ends = play(folder, journal, run_id)
        assert settled(folder) == LOG, f"killed before phase {point}: {ends}"
        told = {each: end for each, end in ends.items() if not each.startswith("0/")}
        assert {outcome for outcome, _ in told.values()} == {"completed"}, (
            f"killed before phase {point}: {ends}"
        )
        assert told["1/1.c1"][1] == "exit code 0\ntwo\n", f"killed before phase {point}: {ends}"
        assert told["1/2.c2"][1] == "exit code 7", f"killed before phase {point}: {ends}"
        files = changed(journal, (here / "run").read_text())
        log = FileState.of(b"one\ntwo\n")
        (first,), (second,) = files["1/1.c1"], files["1/2.c1"]
        assert (first.path, first.before, first.after) == ("log", None, log), f"killed before phase {point}"
        assert (second.path, second.before, second.after) == ("log", log, FileState.of(b"one\ntwo\nthree\n"))
        shutil.rmtree(here)
    return True


@pytest.mark.slow
def test_killed_while_a_command_runs(tmp_path: Path) -> None:
    """In some of the phases; all of them in the deep check."""
    for point in (3, 6, 9, 12, 15):
        assert killed_in(tmp_path, range(point, point + 1))


@pytest.mark.deep
def test_killed_in_every_phase_of_every_command(tmp_path: Path) -> None:
    assert not killed_in(tmp_path, range(1, 500))


@pytest.mark.slow
def test_what_a_command_changed_is_known_to_who_comes_later(tmp_path: Path) -> None:
    """As it was when the command ended, also if somebody has changed it since."""
    folder, journal = tmp_path / "files", f"sqlite:///{tmp_path / 'runs.db'}"
    folder.mkdir()
    (folder / "old").write_text("old\n")
    lines = [
        call("shell", command="echo one > made; sleep 0.5; echo two >> made; sed -i s/old/new/ old"),
        "end",
    ]
    child = os.fork()
    if child == 0:
        play(folder, journal, lines=lines)
        os._exit(0)
    until(lambda: (folder / "made").exists())
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    until(lambda: any(place.read(each, "ended") is not None for each in Workspace(folder).places()))
    (folder / "made").write_text("mine\n")
    run_id = (tmp_path / "run").read_text()
    assert play(folder, journal, run_id, lines)["1/1.c1"] == ("completed", "exit code 0")
    here = str(folder)
    assert changed(journal, run_id)["1/1.c1"] == (
        FileChange(here, "made", None, FileState.of(b"one\ntwo\n")),
        FileChange(here, "old", FileState.of(b"old\n"), FileState.of(b"new\n")),
    )


def team(world: World) -> list[Agent]:
    folder = Path(f"{world._path}.files")
    folder.mkdir(exist_ok=True)
    return [Agent("a", tools=shell_tools(folder))]


@pytest.mark.parametrize(
    "every", [pytest.param(9, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.deep)]
)
def test_killed_at_records(tmp_path: Path, every: int) -> None:
    scenario = Scenario(
        "commands", team, lambda: Script({"a": [*LINES[:2], "done"]}, by="turn"), (("a", "go"),), counted=True
    )
    report = enumerate_crashes(scenario, tmp_path, commit="deferred", every=every)
    assert not report.bad, str(report)
