"""Asks whether the tests bite: changes the kernel's rules in one place at a time and runs the fast tests.

    python scripts/mutants.py [--seed N] [--count N] [--modules kernel/rules,step.py] [--jobs N]

Four kinds of mutants: a comparison flipped or negated, a condition negated, a constant changed, a call
statement dropped. A sample is drawn from all mutants of the modules, the same for the same seed. Each is
tested in a copy of the tree, up to the first failure; a test that hangs has failed, too. Survivors that are
argued for, each with its reason, stand in scripts/mutants_argued.txt; they are told, not tested.

Exit code 1 when more than 5 % of those tested survive, and more than one.
"""

from __future__ import annotations

import argparse
import ast
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
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/antiphon"
ARGUED = ROOT / "scripts/mutants_argued.txt"

# The pure part of the kernel.
MODULES = ("kernel/facts", "kernel/rules")
# Where the tests stand that notice soonest; the others follow.
FIRST = ("kernel", "limits", "delegation", "unit", "seeds", "styles", "spec", "promises")
# Judged elsewhere, in need of a server or of weights, or of a quiet machine: no evidence here.
LEFT_OUT = ("acceptance", "bench", "local", "optional", "packaging", "taste")

TOLERATED = 0.05
TEST_SECONDS = 60
"""How long one test may take; the slowest of the fast ones takes 5."""
RUN_SECONDS = 900
MEMORY = 6 << 30
"""Bytes of address space: a rule that never ends must not take the machine along."""

COMPARISONS: Mapping[str, tuple[str, ...]] = {
    "==": ("!=",), "!=": ("==",), "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="),
    ">=": (">", "<"), "in": ("not in",), "not in": ("in",), "is": ("is not",), "is not": ("is",),
}  # fmt: skip
OPERATOR = re.compile(rb"==|!=|<=|>=|<|>|\bnot\s+in\b|\bis\s+not\b|\bin\b|\bis\b")
WORD = re.compile(r"\w+")
"""Texts that a program reads are one word, and are changed; sentences are for people, and are not."""


Span = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One change: bytes `start` to `end` of the file at `path`, which are `before`, become `after`.

    code: the line it begins in. which: of equal changes of equal lines in a file, from 1.
    """

    path: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str
    code: str
    which: int = 1

    @property
    def change(self) -> str:
        """The change on one line."""
        number = f" #{self.which}" if self.which > 1 else ""
        return f"{plain(self.before)} -> {plain(self.after)}{number}"

    @property
    def key(self) -> str:
        """What it is known by in the list of argued survivors, where lines may move."""
        return f"{self.path} :: {self.code} :: {self.change}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.change}\n{'':19}in {self.code}"

    def applied(self, text: bytes) -> bytes:
        """The file with the change."""
        return text[: self.start] + self.after.encode() + text[self.end :]


def plain(text: str) -> str:
    """Source text with every run of white space as one blank."""
    return " ".join(text.split())


# -- making mutants --------------------------------------------------------------------------------


def mutants_of(path: str, text: bytes) -> list[Mutant]:
    """All mutants of a file, in the order of their places, each once."""
    file = _File(text)
    found: dict[tuple[Span, str], Mutant] = {}
    counts: Counter[str] = Counter()
    changes = ((kind, span, after) for node in parts(file.tree) for kind, span, after in file.changes(node))
    for kind, (start, end), after in sorted(changes, key=lambda each: (each[1], each[2], each[0])):
        line = text.count(b"\n", 0, start) + 1
        code = plain(file.lines[line - 1].decode())
        made = Mutant(path, line, kind, start, end, text[start:end].decode(), after, code)
        if ((start, end), after) not in found:
            counts[made.key] += 1
            found[(start, end), after] = replace(made, which=counts[made.key])
    return list(found.values())


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something: no annotations, docstrings, decorators, types, keywords of a class."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        if name == "keywords" and isinstance(node, ast.ClassDef):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_declaration(child):
                yield from parts(child)


def _is_declaration(node: ast.AST) -> bool:
    """Docstrings, imports and what is there for the type checker only; f-strings have no exact places."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.Subscript(value=ast.Name(id="Literal")) | ast.Call(func=ast.Name(id="TypeVar")):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


class _File:
    """A file with the places of its nodes in bytes."""

    def __init__(self, text: bytes) -> None:
        self.text, self.tree = text, ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> Span:
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError("a parsed node has an end")
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def said(self, span: Span) -> str:
        return self.text[span[0] : span[1]].decode()

    def changes(self, node: ast.AST) -> Iterator[tuple[str, Span, str]]:
        """Kind, place and new text of every change of a node."""
        if isinstance(node, ast.Compare):
            yield from self._comparisons(node)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield from self._negated(node.test)
        elif isinstance(node, ast.comprehension):
            for condition in node.ifs:
                yield from self._negated(condition)
        elif isinstance(node, ast.match_case) and node.guard is not None:
            yield from self._negated(node.guard)
        elif isinstance(node, ast.Constant):
            yield from self._constants(node)
        elif isinstance(node, ast.Expr):
            called = node.value
            while isinstance(called, ast.Await | ast.YieldFrom):
                called = called.value
            if isinstance(called, ast.Call):
                yield "call dropped", self.span(node), "pass"

    def _comparisons(self, node: ast.Compare) -> Iterator[tuple[str, Span, str]]:
        left = node.left
        for right in node.comparators:
            gap = self.span(left)[1], self.span(right)[0]
            # What else may stand there is brackets, blanks and comments.
            code = re.sub(rb"#.*", lambda found: b" " * len(found[0]), self.text[gap[0] : gap[1]])
            operator = OPERATOR.search(code)
            if operator is not None:
                place = gap[0] + operator.start(), gap[0] + operator.end()
                for other in COMPARISONS[plain(operator[0].decode())]:
                    yield "comparison", place, other
            left = right

    def _negated(self, test: ast.expr) -> Iterator[tuple[str, Span, str]]:
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return  # its operator is negated as a comparison
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield "condition", self.span(test), f"({self.said(self.span(test.operand))})"
            return
        yield "condition", self.span(test), f"(not ({self.said(self.span(test))}))"

    def _constants(self, node: ast.Constant) -> Iterator[tuple[str, Span, str]]:
        span, value = self.span(node), node.value
        if isinstance(value, bool):
            yield "constant", span, str(not value)
        elif isinstance(value, int | float):
            yield "constant", span, repr(value + 1)
        elif value == "" or (isinstance(value, str) and WORD.fullmatch(value)):
            said = self.said(span)
            if said[1:-1] == value:  # neither put together of several texts nor marked by a letter
                yield "constant", span, f"{said[0]}{value}x{said[-1]}"


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


# -- testing them -----------------------------------------------------------------------------------

LAUNCH = """\
import importlib.util, os, resource, signal, sys, threading
import pytest
memory, alive = map(int, sys.argv[1:3])
def end_with_the_parent():
    os.read(alive, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=end_with_the_parent, daemon=True).start()
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
if not importlib.util.find_spec("antiphon").origin.startswith(os.getcwd()):
    sys.exit(64)
sys.exit(pytest.main(sys.argv[3:]))
"""
"""Runs pytest on the copy and on nothing else, no longer than the other end of the pipe `alive` is open."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: `killed_by` a test, empty for one that survived."""

    mutant: Mutant
    killed_by: str
    seconds: float


class Copy:
    """A copy of the project in which one mutant after the other is tested."""

    def __init__(self, folder: Path, tests: Sequence[str]) -> None:
        self.root, self._tests, self._edits = folder, tests, 0
        self._process: subprocess.Popen[str] | None = None
        leave = shutil.ignore_patterns(
            ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", ".coverage*"
        )
        shutil.copytree(ROOT, folder, symlinks=True, ignore=leave)
        if (ROOT / ".venv").exists():
            (folder / ".venv").symlink_to(ROOT / ".venv")

    def test(self, mutant: Mutant) -> Verdict:
        """Run the tests on a mutant."""
        file, start = self.root / mutant.path, time.monotonic()
        text = file.read_bytes()
        try:
            self._write(file, mutant.applied(text))
            code, output = self.run()
        finally:
            self._write(file, text)
        if code in (4, 5, 64):
            raise RuntimeError(f"the tests did not run (exit code {code}):\n{output[-2000:]}")
        return Verdict(mutant, _killer(code, output), time.monotonic() - start)

    def _write(self, file: Path, text: bytes) -> None:
        """Compiled files are told apart by whole seconds and size: each text gets a second of its own."""
        self._edits += 1
        file.write_bytes(text)
        os.utime(file, (1_000_000_000 + self._edits,) * 2)

    def run(self) -> tuple[int, str]:
        """Exit code and output of the tests; -1 when they took too long."""
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)
        options = [
            *("-x", "-q", "-n", "0", "--no-cov", "-p", "no:randomly", "-p", "no:cacheprovider"),
            *("-m", "not deep and not soak and not slow", "--hypothesis-seed=0", "--tb=short"),
            *("-o", f"faulthandler_timeout={TEST_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"),
        ]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("COV_", "PYTEST_"))},
            "PYTHONPATH": os.fspath(self.root / "src"),
            "PYTHONPYCACHEPREFIX": os.fspath(self.root / ".pycache"),
            "PYTHONHASHSEED": "0",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        alive, held = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(MEMORY), str(alive), *options, *self._tests],
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


def test_order(tests: Path) -> list[str]:
    """Folders and modules of tests, those first that notice soonest."""
    found = [
        entry.name
        for entry in sorted(tests.iterdir())
        if (entry.is_dir() and any(entry.rglob("test_*.py"))) or entry.match("test_*.py")
    ]
    ranked = sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return [f"tests/{name}" for name in ranked if name not in LEFT_OUT]


def judged(mutants: Sequence[Mutant], jobs: int) -> Iterator[Verdict]:
    """The verdicts, as they come. Raises RuntimeError if the tests fail without any change."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        tests = test_order(ROOT / "tests")
        copies = [Copy(Path(folder, str(number)), tests) for number in range(min(jobs, len(mutants)))]
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)

        def judge(mutant: Mutant) -> Verdict:
            copy = free.get()
            try:
                return copy.test(mutant)
            finally:
                free.put(copy)

        if copies:
            code, output = copies[0].run()
            if code:
                raise RuntimeError(f"the tests fail without any change:\n{output[-4000:]}")
        pool = ThreadPoolExecutor(max(1, len(copies)))
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
