"""An undo that is killed, at any moment: asked for again it is finished, and each file is restored once."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, open_run
from antiphon.errors import UserError
from antiphon.host.undo import file_history, redo, undo, undoing
from antiphon.host.undo.file_history import undos_of
from antiphon.journal import open_journal
from antiphon.kernel.run.runtime import Runtime
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.tools import edit_tools
from antiphon.tools.folder import restoring, writing
from antiphon.tools.shell import shell_tools

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills a process that it has forked")

PHASES: dict[Any, tuple[str, ...]] = {
    writing: ("_look", "_write", "_rename_with", "_remove", "_check_same", "clear_empty"),
    restoring: ("_look", "_done", "_put", "_clear_above"),
    undoing: ("_perform", "open_run"),
    file_history: ("undo_id",),
    Runtime: ("record", "leave"),
}
"""What an undo is made of; the process is killed before each."""
Tree = dict[str, tuple[int, bytes]]


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def tree(folder: Path) -> Tree:
    return {
        str(each.relative_to(folder)): (stat.S_IMODE(each.stat().st_mode), each.read_bytes())
        for each in folder.rglob("*") if each.is_file()
    }  # fmt: skip


def played(top: Path) -> tuple[str, Tree, Tree]:
    """A run that changes files: its id, and the tree before it and after it."""
    folder = top / "files"
    (folder / "d").mkdir(parents=True)
    for name in ("a", "b", "d/c"):
        (folder / name).write_text(f"{name}\n")
    before = tree(folder)
    lines = [
        call("shell", command="sed -i s/a/A/ a; chmod 755 a; rm b; mkdir b; echo new > b/new"),
        call("move_file", path="d/c", to="e/c"),
        "done",
    ]

    async def main() -> str:
        agent = Agent("a", tools=[*edit_tools(folder), *shell_tools(folder)], model=Script(lines))
        async with open_run([agent], journal=f"sqlite:///{top / 'runs.db'}") as run:
            await run.result(await run.post("a", "go"))
            return run.run_id

    return asyncio.run(main()), before, tree(folder)


def killed_at(point: int, ask: Any) -> bool:
    """Ask in a process that is killed before phase `point`; whether it was."""
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

        for owner, names in PHASES.items():
            for name in names:
                setattr(owner, name, counted(getattr(owner, name)))
        asyncio.run(ask())
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def killed_in(top: Path, points: range) -> bool:
    """An undo and its redo, killed at each of these points and asked for again; whether the last was
    reached."""
    whole, kept = top / "whole", top / "kept"
    whole.mkdir()
    run_id, before, after = played(whole)
    journal = f"sqlite:///{whole / 'runs.db'}"
    shutil.copytree(whole, kept)
    for point in points:
        shutil.rmtree(whole)
        shutil.copytree(kept, whole)
        for asked, expected in ((undo, before), (redo, after)):
            killed = killed_at(point, partial(asked, journal, run_id))
            if not killed and asked is undo:
                return False
            # One that was killed in its last moment has nothing left to do.
            with suppress(UserError):
                asyncio.run(asked(journal, run_id))
            assert tree(whole / "files") == expected, f"{asked.__name__} killed before phase {point}"
        count, closed = asyncio.run(looked(journal, run_id))
        assert count == 2, f"killed before phase {point}"
        assert closed, f"killed before phase {point}"
    return True


async def looked(journal: str, run_id: str) -> tuple[int, bool]:
    """How many undos there are, and whether each is over; all records are sound."""
    store = open_journal(journal)
    try:
        await check_journal(store)
        found = await undos_of(store, run_id)
        return len(found), all(each.history.closed for each in found)
    finally:
        await store.close()


@pytest.mark.slow
def test_killed_in_the_middle_of_an_undo(tmp_path: Path) -> None:
    """In some of the phases; all of them in the deep check."""
    assert killed_in(tmp_path, range(2, 50, 7))


@pytest.mark.deep
def test_killed_in_every_phase_of_an_undo(tmp_path: Path) -> None:
    assert not killed_in(tmp_path, range(1, 1_000))
