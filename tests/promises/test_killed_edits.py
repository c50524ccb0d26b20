"""Tools that change files, killed in every phase of every change: it is made once, and none ends unknown."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, open_run
from antiphon.models.script import Script, call
from antiphon.testing.crash import Scenario, enumerate_crashes
from antiphon.testing.world import World
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.folder import writing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process that it has forked")

PHASES = ("_look", "_write", "_rename_with", "_remove", "_check_same")
"""What a change is made of; the process is killed before each."""
LINES: list[Any] = [
    call("read_lines", path="a.md"),
    [
        call("edit_file", path="a.md", old="one", new="one and one"),
        call("edit_file", path="a.md", old="two", new="two and two"),
    ],
    call("write_file", path="new/b.md", content="b\n"),
    [call("move_file", path="c.md", to="moved/c.md"), call("delete_file", path="d.md")],
    call("write_file", path="a.md", content="whole\n"),
    call("edit_file", path="a.md", old="whole", new="whole and whole"),
    [call("read_lines", path=path) for path in ("a.md", "new/b.md", "moved/c.md")],
    call("list_files"),
    "done",
]


def written(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a.md").write_text("one\ntwo\nthree\n")
    (folder / "c.md").write_text("c\n")
    (folder / "d.md").write_text("d\n")
    return folder


def agent(folder: Path) -> Agent:
    return Agent("a", tools=[*folder_tools(folder), *edit_tools(folder)])


def tree(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


def play(folder: Path, journal: str, run_id: str | None = None) -> list[tuple[str, str, str]]:
    """The run, from its beginning or from where it was killed; how its calls ended."""

    async def scene() -> list[tuple[str, str, str]]:
        model = Script(LINES, by="turn")
        async with open_run([agent(folder)], journal=journal, model=model, run_id=run_id) as run:
            if run_id is None:
                (folder.parent / "run").write_text(run.run_id)
                request = await run.post("a", "go")
            else:
                request = "0/1.c1"
            await run.result(request)
            found = []
            async for item in run.events(0, deltas=False):
                event: Any = item.event
                if item.type == "EffectFinished":
                    found.append((event.id, event.outcome, event.content))
                if item.seq == run.seq:
                    return sorted(found)
        raise AssertionError("the run ended")

    return asyncio.run(scene())


def killed_at(point: int, folder: Path, journal: str) -> bool:
    """Play it in a process that is killed before phase `point`; whether it was."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(function: Any) -> Any:
            def before(*arguments: Any) -> Any:
                nonlocal count
                count += 1
                if count == point:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments)

            return before

        for name in PHASES:
            setattr(writing, name, counted(getattr(writing, name)))
        play(folder, journal)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.slow
def test_killed_in_every_phase_of_every_change(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    expected_ends = play(written(tmp_path / "whole" / "files"), f"sqlite:///{tmp_path / 'whole' / 'runs.db'}")
    expected = tree(tmp_path / "whole" / "files")
    assert expected == {"a.md": "whole and whole\n", "new/b.md": "b\n", "moved/c.md": "c\n"}
    point, killed = 0, True
    while killed:
        point += 1
        place = tmp_path / str(point)
        place.mkdir()
        folder, journal = written(place / "files"), f"sqlite:///{place / 'runs.db'}"
        killed = killed_at(point, folder, journal)
        ends = play(folder, journal, (place / "run").read_text()) if killed else expected_ends
        assert tree(folder) == expected, f"killed before phase {point}"
        outcomes = {each[1] for each in ends if not each[0].startswith("0/")}
        assert outcomes <= {"completed", "interrupted"}, f"killed before phase {point}: {ends}"
        shutil.rmtree(place)
    assert point > 30


def team(world: World) -> list[Agent]:
    folder = Path(f"{world._path}.files")
    if not folder.exists():
        written(folder)
    return [agent(folder)]


@pytest.mark.parametrize(
    "every", [pytest.param(7, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.deep)]
)
def test_killed_at_records(tmp_path: Path, every: int) -> None:
    scenario = Scenario("edits", team, lambda: Script({"a": LINES}, by="turn"), (("a", "go"),), counted=True)
    report = enumerate_crashes(scenario, tmp_path, commit="deferred", every=every)
    assert not report.bad, str(report)
    assert {"append", "durable", "tool", "tool done"} <= set(report.names)
