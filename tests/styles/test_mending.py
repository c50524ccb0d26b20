"""An agent of each style, given the sets `files`, `edits`, `shell`, mends a bug; it is killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from antiphon.view import connect
from antiphon.view.nodes import EffectNode
from tests.styles.mending import CHECK, RUN, STYLES, Project
from tests.unit.tools.shell.running import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills a process that it has forked"),
]
Style = Callable[..., Awaitable[None]]


def begun(style: Style, project: Project) -> int:
    """The process in which the agent begins."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            asyncio.run(style(project, again=False))  # type: ignore[arg-type]
        os._exit(0)
    return child


def opened(gate: Path, child: int) -> int:
    """The end of the gate that holds the tests up, once they have come to it."""
    found: list[int] = []

    def there() -> bool:
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the agent has ended before"
        with suppress(OSError):
            found.append(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        return bool(found)

    until(there)
    return found[0]


def used(project: Project) -> list[EffectNode]:
    """The agent's calls of tools, in order."""

    async def read() -> list[EffectNode]:
        async with connect(project.journal, RUN) as run:
            effects = (await run.tree()).effects
            return [each for each in effects.values() if each.kind == "tool" and each.name in TOOLS]

    return asyncio.run(read())


TOOLS = {"shell", "grep_files", "read_lines", "edit_file"}


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__name__)
def test_a_bug_is_mended_by_who_is_killed_while_the_tests_run(
    style: Style, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = Project(tmp_path)

    child = begun(style, project)
    gate = opened(project.gate, child)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    # From now on it is open: tests that are run once more are counted, and do not hang.
    project.gate.unlink()
    project.gate.write_text("")
    os.close(gate)
    asyncio.run(style(project, again=True))  # type: ignore[arg-type]

    failed, found, read, late, edited, passed, shown = used(project)
    assert (failed.name, failed.content.splitlines()[0]) == ("shell", "exit code 1")
    assert "AssertionError: 3 != 4" in failed.content
    assert "shop.py:1: PRICES" in found.content
    assert '1: PRICES = {"tea": 3}' in read.content
    # Somebody has changed it since: it is refused, with what is different now.
    assert late.outcome == "failed"
    assert '- PRICES = {"tea": 3}\n+ PRICES = {"tea": 3, "rum": 7}' in late.reason
    assert (edited.outcome, project.shop.read_text().splitlines()[0]) == (
        "completed",
        'PRICES = {"tea": 4, "rum": 7}',
    )
    # The tests went on without their agent, and whoever took up its work shows how they ended.
    assert CHECK in passed.arguments
    assert (passed.outcome, passed.content.splitlines()[0]) == ("completed", "exit code 0")
    assert passed.content.splitlines()[-1] == "OK"
    assert project.runs == 2
    assert "shop.py | 2 +-" in shown.content
