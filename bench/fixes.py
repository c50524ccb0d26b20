"""Real bug fixes, replayed whole: the commit's tests fail with its parent's sources; an agent mends them.

The agent is given the tools of the sets `files`, `edits` and `shell`, in a copy of the repository, confined
as everywhere. Its model is scripted, see `mending.py`. It has done it when it has run the tests, found, read
and edited what the commit changed, and the tests pass.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from antiphon import Agent, Limits, open_run
from antiphon.models.script import Script
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.shell import Workspace, shell_tools
from antiphon.values.tool import ToolContext
from bench.hunks import changed_in, git
from bench.mending import MENDED, Mender, Remedy

SECONDS = 600
"""For which the tests of one commit may run."""


@dataclass(frozen=True)
class Fix:
    """A commit that changed tests and what they test. tests: the files that are run."""

    commit: str
    parent: str
    tests: tuple[str, ...]
    of_tests: tuple[str, ...]
    """Everything that it changed among the tests."""
    remedy: Remedy


@dataclass
class FixFigures:
    """What became of the commits, and of those that were not mended why."""

    told: Counter[str] = field(default_factory=Counter)
    why: dict[str, str] = field(default_factory=dict)

    @property
    def mended(self) -> int:
        return self.told[MENDED]

    @property
    def fixes(self) -> int:
        """Those whose tests fail before and pass afterwards."""
        return self.told[MENDED] + self.told["not mended"]

    def __str__(self) -> str:
        known = (MENDED, "not mended")
        others = ", ".join(
            f"{count} {what}" for what, count in sorted(self.told.items()) if what not in known
        )
        lines = [f"{self.mended} of {self.fixes} bug fixes mended whole" + (f" ({others})" if others else "")]
        lines += [f"{commit[:12]}: {why}" for commit, why in self.why.items()]
        return "\n".join(lines)


def fixes(clone: str) -> Iterator[Fix]:
    """The commits of a clone that change tests and Python beside them, newest first."""
    for commit in (
        git(clone, "log", "--no-merges", "--format=%H", "--diff-filter=M", "--", "*.py").decode().split()
    ):
        with suppress(UnicodeDecodeError, subprocess.CalledProcessError):
            if (fix := _fix(clone, commit)) is not None:
                yield fix


def _fix(clone: str, commit: str) -> Fix | None:
    parent = git(clone, "rev-parse", f"{commit}^").decode().strip()
    told = git(clone, "diff-tree", "-r", "--no-renames", "--name-status", "-z", "--no-commit-id", commit)
    parts = told.decode().split("\0")
    status = dict(zip(parts[1::2], parts[::2], strict=False))
    of_tests = tuple(path for path in status if is_of_tests(path))
    tests = tuple(path for path in of_tests if is_test(path) and status[path] != "D")
    beside = {path: what for path, what in status.items() if path not in of_tests}
    if not tests or not any(path.endswith(".py") for path in beside):
        return None
    changed = [each for each in changed_in(clone, commit) if each.path in beside]
    fresh = {
        path: git(clone, "show", f"{commit}:{path}").decode() for path, what in beside.items() if what == "A"
    }
    gone = [path for path, what in beside.items() if what == "D"]
    return Fix(commit, parent, tests, of_tests, Remedy(changed, fresh, gone))


def is_of_tests(path: str) -> bool:
    """Whether a file is among the tests."""
    return any(each in ("test", "tests") for each in PurePosixPath(path).parts[:-1]) or is_test(path)


def is_test(path: str) -> bool:
    """Whether a file holds tests."""
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


class Replay:
    """A copy of a clone, in which one fix after the other is replayed. run: the command that runs tests,
    without their names."""

    def __init__(self, clone: str, folder: Path, run: str) -> None:
        self._clone, self._folder, self._run = clone, folder / "copy", run
        git(clone, "clone", "-q", "--shared", "--no-checkout", os.path.abspath(clone), str(self._folder))

    def replay(self, fix: Fix) -> tuple[str, str]:
        """What became of it, and why."""
        check = f"{self._run} {shlex.join(fix.tests)}"
        self._put(fix.parent)
        self._put_tests(fix)
        said = asyncio.run(self._mend(Mender(check, lambda told: fix.remedy)))
        if said == MENDED:
            return MENDED, ""
        if said == "nothing is broken":
            return "whose tests pass before", ""
        self._put(fix.commit)
        if not self._told(check).startswith("exit code 0"):
            return "whose tests fail afterwards", ""
        return "not mended", said

    async def _mend(self, mender: Mender) -> str:
        tools = [*folder_tools(self._folder), *edit_tools(self._folder), *shell_tools(self._workspace())]
        agent = Agent("mender", tools=tools, model=Script(mender.reply), tool_execution="sequential")
        async with open_run([agent], limits=Limits(turns=20)) as run:
            result = await run.result(await run.post("mender", "The tests fail."))
        return str(result.output)

    def _workspace(self) -> Workspace:
        source = [str(self._folder / each) for each in ("src", ".") if (self._folder / each).is_dir()]
        environment = {"PYTHONPATH": os.pathsep.join(source), "PYTHONDONTWRITEBYTECODE": "1"}
        return Workspace(self._folder, environment=environment)

    def _told(self, check: str) -> str:
        (shell, *_) = shell_tools(self._workspace())
        return str(asyncio.run(shell.function(ToolContext(), check, SECONDS, False)))

    def _put(self, commit: str) -> None:
        git(str(self._folder), "checkout", "-q", "-f", commit)
        git(str(self._folder), "clean", "-q", "-f", "-d", "-x")

    def _put_tests(self, fix: Fix) -> None:
        for path in fix.of_tests:
            try:
                git(str(self._folder), "checkout", "-q", fix.commit, "--", path)
            except subprocess.CalledProcessError:
                (self._folder / path).unlink(missing_ok=True)


def measure_fixes(clone: str, count: int, run: str) -> FixFigures:
    """The last so many commits whose tests fail before and pass afterwards, replayed. run: see Replay."""
    figures = FixFigures()
    with tempfile.TemporaryDirectory(prefix="fixes-") as folder:
        replay = Replay(clone, Path(folder), run)
        for fix in fixes(clone):
            if figures.fixes >= count:
                break
            what, why = replay.replay(fix)
            figures.told[what] += 1
            if why:
                figures.why[fix.commit] = why
            sys.stderr.write(f"{fix.commit[:12]} {what} {why.splitlines()[0] if why else ''}\n")
    return figures
