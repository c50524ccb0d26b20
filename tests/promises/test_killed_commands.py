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
from antiphon.tools.shell import commands, shell_tools
from antiphon.tools.shell.keeping import place

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


def play(folder: Path, journal: str, run_id: str | None = None) -> dict[str, tuple[str, str]]:
    """The run, from its beginning or from where it was killed; how its calls of tools ended."""

    async def scene() -> dict[str, tuple[str, str]]:
        agent = Agent("a", tools=[*folder_tools(folder), *edit_tools(folder), *shell_tools(folder)])
        model = Script(LINES, by="turn")
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
        ends = play(folder, journal, (here / "run").read_text())
        assert settled(folder) == LOG, f"killed before phase {point}: {ends}"
        told = {each: end for each, end in ends.items() if not each.startswith("0/")}
        assert {outcome for outcome, _ in told.values()} == {"completed"}, (
            f"killed before phase {point}: {ends}"
        )
        assert told["1/1.c1"][1] == "exit code 0\ntwo\n", f"killed before phase {point}: {ends}"
        assert told["1/2.c2"][1] == "exit code 7", f"killed before phase {point}: {ends}"
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
