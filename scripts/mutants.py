"""Asks whether the tests bite: changes the kernel's rules in one place at a time and runs the fast tests.

    python -m scripts.mutants [--seed N] [--count N] [--modules kernel/rules,step.py] [--jobs N]

Four kinds of mutants: a comparison flipped or negated, a condition negated, a constant changed, a call
statement dropped. A sample is drawn from all mutants of the modules, the same for the same seed. Each is
tested in a copy of the tree, up to the first failure, by the tests that run the changed line, the quickest
first; by all if it runs at import. A test that hangs has failed, too; tests in processes of their own are
not counted on. Survivors that are argued for, each with its reason, stand in scripts/mutants_argued.txt;
they are told, not tested.

Exit code 1 when more than 5 % of those tested survive, and more than one.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

from scripts.mutation import Mutant, mutants_of, statement_lines

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/antiphon"
ARGUED = ROOT / "scripts/mutants_argued.txt"

# The pure part of the kernel.
MODULES = ("kernel/facts", "kernel/rules")
TESTS = (
    *(f"tests/unit/{room}" for room in ("kernel", "values", "view", "journal")),
    *("tests/styles", "tests/promises", "tests/oracle", "tests/docs"),
)
"""Those that stand on the kernel itself: what only a server's test notices has no test of its own."""

FAST = "not deep and not soak and not slow"
"""The tests that judge: a tenth of all tests take more time than the rest."""
TOLERATED = 0.05
TEST_SECONDS = 60
"""How long one test may take; the slowest of the fast ones takes 5."""
RUN_SECONDS = 900
QUICK = 25
"""Tests of a first look; most mutants that die do so here."""
MEMORY = 6 << 30
"""Bytes of address space: a rule that never ends must not take the machine along."""


def files_of(modules: Iterable[str], root: Path = ROOT) -> list[str]:
    """The files that are named: modules and folders, from the package or from the project."""
    found: set[Path] = set()
    for name in modules:
        for place in (root / PACKAGE / name, root / name, root / PACKAGE / f"{name}.py"):
            if place.exists():
                found |= set(place.rglob("*.py")) if place.is_dir() else {place}
                break
    if not found:
        raise SystemExit(f"there is no module among {', '.join(modules)}")
    return sorted(path.relative_to(root).as_posix() for path in found)


def population(paths: Iterable[str], root: Path = ROOT) -> list[Mutant]:
    """All mutants of some files."""
    return [mutant for path in paths for mutant in mutants_of(path, (root / path).read_bytes())]


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, drawn evenly, or all if there are not more; the same for the same seed."""
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


def argued(text: str) -> dict[str, str]:
    """The reasons why survivors may live, by key: `path :: line of code :: before -> after :: reason`."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            key, separator, reason = line.rpartition(" :: ")
            if not separator or key.count(" :: ") < 2 or len(reason) < 20:
                raise SystemExit(f"line {number}: wanted is path :: code :: before -> after :: reason")
            found[key] = reason.strip()
    return found


LAUNCH = """\
import importlib.util, json, os, resource, signal, sys, threading
import pytest
memory, alive = map(int, sys.argv[1:3])
def end_with_the_parent():
    os.read(alive, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=end_with_the_parent, daemon=True).start()
if memory:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
if not importlib.util.find_spec("antiphon").origin.startswith(os.getcwd()):
    sys.exit(64)
class Durations:
    spent = {}
    def pytest_runtest_logreport(self, report):
        self.spent[report.nodeid] = self.spent.get(report.nodeid, 0) + report.duration
    def pytest_sessionfinish(self, session):
        if not hasattr(session.config, "workerinput") and "DURATIONS" in os.environ:
            with open(os.environ["DURATIONS"], "w") as file:
                json.dump(self.spent, file)
sys.exit(pytest.main(sys.argv[3:], plugins=[Durations()]))
"""
"""Runs pytest on the copy and on nothing else, no longer than the other end of the pipe `alive` is open."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: `killed_by` a test, empty for one that survived."""

    mutant: Mutant
    killed_by: str
    seconds: float


class Reach:
    """Which tests run which line, and how long each takes."""

    def __init__(self, root: Path, data: Path, durations: Path) -> None:
        self._root, self._seconds = root, json.loads(durations.read_text("utf-8"))
        self._data = CoverageData(os.fspath(data))
        self._data.read()
        self._lines: dict[str, dict[int, set[str]]] = {}

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that run the statement of a mutant, the quickest first."""
        if mutant.path not in self._lines:
            found = self._data.contexts_by_lineno(os.fspath(self._root / mutant.path))
            self._lines[mutant.path] = {line: {_test(each) for each in ran} for line, ran in found.items()}
        ran = self._lines[mutant.path]
        first, last = statement_lines((ROOT / mutant.path).read_bytes(), mutant.line)
        names = set().union(*(ran.get(line, set()) for line in range(first, last + 1))) & self._seconds.keys()
        return sorted(names, key=lambda name: (self._seconds[name], name))


def _test(context: str) -> str:
    return context.rpartition("|")[0]


class Copy:
    """A copy of the project in which one mutant after the other is tested."""

    def __init__(self, folder: Path) -> None:
        self.root, self._edits = folder, 0
        self._process: subprocess.Popen[str] | None = None
        leave = shutil.ignore_patterns(
            ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", ".coverage*"
        )
        shutil.copytree(ROOT, folder, symlinks=True, ignore=leave)
        if (ROOT / ".venv").exists():
            (folder / ".venv").symlink_to(ROOT / ".venv")

    def test(self, mutant: Mutant, reach: Reach) -> Verdict:
        """Run the tests on a mutant."""
        file, start = self.root / mutant.path, time.monotonic()
        text, reached = file.read_bytes(), reach.tests_of(mutant)
        code, output = 0, ""
        try:
            self._write(file, mutant.applied(text))
            for tests in (reached[:QUICK], reached[QUICK:]) if reached else (TESTS,):
                code, output = self.run(tests) if tests else (0, "")
                if code:
                    break
        finally:
            self._write(file, text)
        # A test file that makes something when it is imported, and cannot any more, has noticed.
        if code in (4, 5, 64) and "ERROR collecting" not in output:
            raise RuntimeError(f"the tests did not run (exit code {code}):\n{output[-2000:]}")
        return Verdict(mutant, _killer(code, output), time.monotonic() - start)

    def reach(self, paths: Sequence[str], jobs: int) -> Reach:
        """Run all tests without any change, and see what each runs of some files.

        Raises RuntimeError if one fails.
        """
        data, durations = self.root / ".reach", self.root / ".durations"
        settings = self.root / ".reachrc"
        # Only these: to write down what thousands of tests run of all files takes more than to run them.
        include = "".join(f"\n  {self.root / path}" for path in paths)
        settings.write_text(f"[run]\ninclude = {include}\ndata_file = {data}\n", "utf-8")
        code, output = self.run(
            TESTS, "-n", str(jobs), "--cov", f"--cov-config={settings}", "--cov-context=test",
            "--cov-report=", memory=0,
            variables={"COVERAGE_CORE": "ctrace", "DURATIONS": str(durations)},
        )  # fmt: skip
        if code:
            raise RuntimeError(f"the tests fail without any change:\n{output[-4000:]}")
        return Reach(self.root, data, durations)

    def _write(self, file: Path, text: bytes) -> None:
        """Compiled files are told apart by whole seconds and size: each text gets a second of its own."""
        self._edits += 1
        file.write_bytes(text)
        os.utime(file, (1_000_000_000 + self._edits,) * 2)

    def run(
        self,
        tests: Sequence[str],
        *more: str,
        memory: int = MEMORY,
        variables: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Exit code and output of some tests; -1 when they took too long."""
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)
        named = self.root / ".tests"
        named.write_text("".join(f"{test}\n" for test in tests), "utf-8")
        options = [
            *("-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"),
            *("-m", FAST, "--hypothesis-seed=0", "--tb=short"),
            *("-o", f"faulthandler_timeout={TEST_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"),
            *(more or ("-n", "0", "--no-cov")),
        ]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("COV_", "PYTEST_"))},
            "PYTHONPATH": os.fspath(self.root / "src"),
            "PYTHONPYCACHEPREFIX": os.fspath(self.root / ".pycache"),
            "PYTHONHASHSEED": "0",
            **(variables or {}),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        alive, held = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(memory), str(alive), *options, f"@{named}"],
            pass_fds=(alive,),
            cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = self._process.communicate(timeout=RUN_SECONDS)
            return self._process.returncode, output
        except subprocess.TimeoutExpired:
            return -1, ""
        finally:
            self.stop()
            os.close(alive)
            os.close(held)

    def stop(self) -> None:
        """End what runs, and all that it started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _killer(code: int, output: str) -> str:
    if code == 0:
        return ""
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return named[1] if named else "a test that hung" if code == -1 or "Timeout" in output else "a crash"


def judged(mutants: Sequence[Mutant], jobs: int) -> Iterator[Verdict]:
    """The verdicts, as they come. Raises RuntimeError if the tests fail without any change."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        copies = [Copy(Path(folder, str(number))) for number in range(min(jobs, len(mutants)))]
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)

        def judge(mutant: Mutant) -> Verdict:
            copy = free.get()
            try:
                return copy.test(mutant, reach)
            finally:
                free.put(copy)

        if not copies:
            return
        reach = copies[0].reach(sorted({mutant.path for mutant in mutants}), jobs)
        pool = ThreadPoolExecutor(len(copies))
        try:
            yield from pool.map(judge, mutants)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for copy in copies:
                copy.stop()


def too_many(survivors: int, tested: int) -> bool:
    """More than 5 %; one of a small sample says nothing."""
    return survivors > max(1, tested * TOLERATED)


def seed_of_the_commit() -> int:
    """A number that is another one after every commit; 0 without git."""
    command = ["git", "-C", os.fspath(ROOT), "rev-parse", "HEAD"]
    with suppress(OSError):
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return int(found[:8] or "0", 16)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="draws the sample [default: from the commit]")
    parser.add_argument("--count", type=int, default=40, help="how many mutants [default: 40]")
    parser.add_argument("--modules", default=",".join(MODULES), help="folders and modules of the package")
    parser.add_argument("--jobs", type=int, default=1, help="copies tested side by side [default: 1]")
    parser.add_argument("--equivalent", type=Path, default=ARGUED, metavar="FILE", help="argued survivors")
    parser.add_argument("--list", action="store_true", help="print the sample, test nothing")
    given = parser.parse_args()
    seed = seed_of_the_commit() if given.seed is None else given.seed
    everything = population(files_of(given.modules.split(",")))
    chosen = sample(everything, given.count, seed)
    reasons = argued(given.equivalent.read_text("utf-8")) if given.equivalent.exists() else {}
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(m.kind for m in chosen).items()))
    print(f"seed {seed}: {len(chosen)} of {len(everything)} mutants ({kinds})", flush=True)
    if given.list:
        print("\n".join(map(str, chosen)))
        return 0
    for mutant in chosen:
        if mutant.key in reasons:
            print(f"argued    {mutant}\n{'':19}{reasons[mutant.key]}")
    open_ones = [mutant for mutant in chosen if mutant.key not in reasons]
    survivors = 0
    for verdict in judged(open_ones, given.jobs):
        survivors += not verdict.killed_by
        what = (
            f"killed    {verdict.mutant}\n{'':19}by {verdict.killed_by}"
            if verdict.killed_by
            else (f"SURVIVED  {verdict.mutant}\n{'':19}{verdict.mutant.key}")
        )
        print(f"{what}, {verdict.seconds:.0f} s", flush=True)
    killed = len(open_ones) - survivors
    share = 100 * killed / max(1, len(open_ones))
    print(f"seed {seed}: {killed} of {len(open_ones)} killed ({share:.0f} %), {survivors} survived")
    return 1 if too_many(survivors, len(open_ones)) else 0


if __name__ == "__main__":
    sys.exit(main())
