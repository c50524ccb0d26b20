"""The folder that the company works in: its tools to write there, and to run the tests that lie there.

Nothing is written outside of the folder, and no file is ever half written. Tests run in a copy of it, in a
process of their own that is ended after a time, or when this one dies. That bounds faults, not malice: what
the tests run could reach the network and your files. So both tools need permission, unless the policy is
`open`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from antiphon import Tool, ToolError, tool
from antiphon.errors import ConfigError
from antiphon.tools.child import run_alone
from antiphon.tools.folder.root import Root

MARK = ".company"
"""The file by which a folder is known as the company's own, hidden from its agents."""
TESTS = "tests"
FILES, FILE_BYTES = 40, 100_000
SECONDS = 30.0
"""That all tests together may take."""
SHOWN = 1_500
"""Characters of a failure that are told, from its end."""
FAILURES = 8
ENDED = (-signal.SIGKILL, -signal.SIGXCPU)
"""Exit codes of a process that has used up its time."""


class Failure(Struct):
    """One test that did not pass, and the end of its traceback."""

    test: str
    said: str


class Report(Struct):
    """What a run of the tests showed: the first failures of all. stopped: why it did not come to its end."""

    ran: int = 0
    failed: int = 0
    failures: list[Failure] = []
    missing: list[str] = []
    stopped: str = ""

    @property
    def passed(self) -> bool:
        """Whether there are tests, all of them passed, and every file of the design is there."""
        return self.ran > 0 and not (self.failed or self.missing or self.stopped)

    def told(self) -> str:
        """The report for whoever has to mend the program."""
        lines = [f"{self.ran} tests ran, {self.failed} did not pass."]
        lines += [f"The design names {path}, and there is no such file." for path in self.missing]
        lines += [self.stopped] if self.stopped else []
        for each in self.failures:
            lines += ["", f"## {each.test}", each.said]
        return "\n".join(lines)


def claim(folder: Path) -> Path:
    """The folder, made if it is not there. Raises ConfigError for one that holds somebody else's files."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError("is a file; the company needs a folder: --folder NAME", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ConfigError(
            "holds files that the company did not make, and it writes over what is there; give it a new or "
            "an empty folder: --folder NAME",
            str(folder),
        )
    return folder


def write_tool(folder: Path, *, tests: bool) -> Tool[Any, Any]:
    """A tool that writes the program's files, or with `tests` those of its tests."""
    name = "write_test" if tests else "write_file"
    what = (
        f"Write a whole test file, such as {TESTS}/test_program.py; what it held before is replaced."
        if tests
        else f"Write a whole file of the program; what it held before is replaced. {TESTS}/ is not yours."
    )

    @tool(name=name, description=what, effect="idempotent", timeout=20)
    def write(path: str, content: str) -> str:
        parts = Root(folder).parts(path)
        if not parts:
            raise ToolError("Name a file, such as program.py")
        if (parts[0] == TESTS) is not tests or (tests and len(parts) == 1):
            raise ToolError(f"{name} writes {'in' if tests else 'outside of'} {TESTS}/ only; got {path!r}")
        place(folder, parts, content.encode("utf-8"))
        return f"{'/'.join(parts)}: {content.count(chr(10)):,} lines written"

    return write


def place(folder: Path, parts: tuple[str, ...], data: bytes) -> None:
    """Put a file there, whole or not at all. Raises ToolError beyond the bounds, and for a link on it."""
    if len(data) > FILE_BYTES:
        raise ToolError(f"{len(data):,} bytes; a file may have {FILE_BYTES:,}. Split it")
    target = folder.joinpath(*parts)
    for number in range(1, len(parts) + 1):
        if folder.joinpath(*parts[:number]).is_symlink():
            raise ToolError(f"{'/'.join(parts[:number])} is a symbolic link; links are not followed")
    if target.is_dir():
        raise ToolError(f"{'/'.join(parts)} is a folder")
    if not target.exists() and sum(1 for _ in Root(folder).files()) >= FILES:
        raise ToolError(f"There are {FILES} files; no more are written")
    (folder / MARK).touch()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ToolError(f"{'/'.join(parts[:-1])} leads through a file") from error
    # The name is always the same, so that a write that is done again after a crash leaves nothing beside it.
    part = target.with_name(f".{target.name}.part")
    with open(part, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, target)


def run_tool(folder: Path) -> Tool[Any, Any]:
    """A tool that runs the tests of the folder and returns the `Report` as JSON."""

    @tool(name="run_tests", effect="idempotent", timeout=SECONDS + 30, finishes=True)
    def run(expected: list[str]) -> str:
        """Run the tests in a copy of the folder. expected: files that have to be there."""
        return msgspec.json.encode(report(folder, expected)).decode()

    return run


RUNNER = """
import json, unittest
folder, shown, most = json.loads(sys.stdin.read())
os.chdir(folder)
sys.path.insert(0, folder)
sys.dont_write_bytecode = True
report = os.fdopen(os.dup(1), "w", encoding="utf-8")
for number in (1, 2):  # what a program prints is no part of the report
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
sys.argv = ["unittest"]
found = unittest.defaultTestLoader.discover("tests", top_level_dir=folder)
result = found.run(unittest.TestResult())
found = result.failures + result.errors
found += [(test, "passed, but was expected to fail") for test in result.unexpectedSuccesses]
told = [{"test": test.id(), "said": said[-shown:]} for test, said in found[:most]]
json.dump({"ran": result.testsRun, "failed": len(found), "failures": told}, report)
report.flush()
os._exit(0)  # whatever threads the program has left behind
"""


def report(folder: Path, expected: list[str], seconds: float = SECONDS) -> Report:
    """What the tests of a folder show."""
    missing = [path for path in expected if not folder.joinpath(*Root(folder).parts(path)).is_file()]
    with tempfile.TemporaryDirectory(prefix="company-") as copied:
        copy = Path(copied).resolve() / "program"
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        if not (copy / TESTS).is_dir():
            return Report(missing=missing, stopped=f"There are no tests in {TESTS}/.")
        (copy / TESTS / "__init__.py").touch()
        given = msgspec.json.encode([str(copy), SHOWN, FAILURES]).decode()
        try:
            said = run_alone(RUNNER, given, seconds=seconds)
            found = msgspec.json.decode(said, type=Report)
        except subprocess.TimeoutExpired:
            return Report(missing=missing, stopped=f"The tests were ended after {seconds:g} seconds.")
        except subprocess.CalledProcessError as error:
            if error.returncode in ENDED:
                # So much computing as time: which of the two is over first is chance.
                return Report(missing=missing, stopped=f"The tests were ended after {seconds:g} seconds.")
            return Report(missing=missing, stopped=f"The tests ended with exit code {error.returncode}.")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Report(missing=missing, stopped="The process of the tests ended before they did.")
    found.missing = missing
    for each in found.failures:
        each.said = each.said.replace(str(copy), "…")
    return found
