"""The company leaves a tested program in a folder: what it writes, what it refuses, and after a crash."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon import Policy, RunFailed, ToolError, run_sync
from antiphon.cli.target import load_target
from antiphon.errors import ConfigError
from antiphon.models.script import Script, call
from tests.unit.cli.shell import PATIENCE, SETTINGS, SRC

COMPANY = Path(__file__).resolve().parents[2] / "examples/company"
SCRIPT = COMPANY / "script.yaml"
IDEA = "A command line tool that summarises the columns of a CSV file"
LEFT = [".company", "README.md", "csvsum.py", "tests/test_csvsum.py"]
END = "README.md, csvsum.py, tests/: all 10 tests pass, in round 2."


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of its tools."""
    monkeypatch.syspath_prepend(COMPANY)
    import workshop  # type: ignore[import-not-found]

    yield workshop
    for name in ("workshop", "team"):
        sys.modules.pop(name, None)


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder and what is in them, hidden ones too."""
    found = [each for each in folder.rglob("*") if not each.is_dir()]
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in sorted(found)}


def build(folder: Path, model: Any, policy: str = "open") -> str:
    """What the company says in the end of an idea that it works on in `folder`."""
    target = load_target(str(COMPANY), str(folder))
    result = run_sync(target.entry, IDEA, agents=target.agents, model=model, policy=Policy(policy))  # type: ignore[arg-type]
    return str(result.output)


# -- with its script ------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_leaves_a_program_that_works(tmp_path: Path, workshop: Any) -> None:
    out = tmp_path / "out"
    assert build(out, Script.load(SCRIPT)) == f"{out}: {END}"
    assert list(files(out)) == LEFT

    sales = tmp_path / "sales.csv"
    with sales.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([["region", "price"], ["north", 10], ["south, far", ""], ["north", 20]])
    program = [sys.executable, out / "csvsum.py", sales]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout == "region: 3 values, 2 different\nprice: 2 values, sum 30, mean 15, min 10, max 20\n"


@pytest.mark.slow
def test_its_first_version_has_the_faults_that_its_tests_find(tmp_path: Path, workshop: Any) -> None:
    told: list[str] = []
    script = Script.load(SCRIPT)

    class Overheard:
        name = "overheard"

        async def complete(self, request: Any, emit: Any) -> Any:
            if 'You are "mender"' in request.system:
                told.append(request.messages[0].content)
            return await script.complete(request, emit)

    build(tmp_path / "out", Overheard())
    shown = told[0].partition("# What the tests showed")[2]
    assert shown.startswith("\n10 tests ran, 3 did not pass.")
    assert [line for line in shown.splitlines() if line.startswith("## ")] == [
        f"## tests.test_csvsum.Columns.test_{each}"
        for each in ("a_byte_order_mark_is_no_part_of_a_name", "a_column_without_a_filled_cell",
                     "empty_cells_are_no_values")
    ]  # fmt: skip
    assert "'price: 2 values, sum 30, mean 15, min 10, max 20\\n' not found in" in shown
    assert told[0].startswith("# Requirements\ncsvsum tells at a glance")


# -- with models that do other things ----------------------------------------------------------------

DESIGN = json.dumps(
    {
        "program": "one.py",
        "files": [{"path": "one.py", "purpose": "says 1"}, {"path": "README.md", "purpose": "how"}],
        "interface": "main(arguments) -> int",
    }
)
RIGHT = """import unittest, one
class T(unittest.TestCase):
    def test_one(self): self.assertEqual(one.main([]), 1)
"""


def team_of(**others: Any) -> Script:
    """A company whose colleagues do this; those not named do as they should."""
    lines: dict[str, Any] = {
        "ProductManager": ["1. It returns 1."],
        "designer": [DESIGN],
        "programmer": [
            [call("write_file", path="one.py", content="def main(arguments): return 1\n"),
             call("write_file", path="README.md", content="One.\n")],
            "written",
        ],
        "test_author": [call("write_test", path="tests/test_one.py", content=RIGHT), "tested"],
        "mender": [],
    }  # fmt: skip
    return Script(lines | others, by="turn")


WRONG = [call("write_file", path="one.py", content="def main(arguments): return 2\n"), "written"]


@pytest.mark.slow
def test_when_the_rounds_are_over_the_run_has_failed(tmp_path: Path, workshop: Any) -> None:
    model = team_of(programmer=WRONG, mender=["I see no fault."])
    with pytest.raises(
        RunFailed, match=r"Tester: .*5 rounds are over and the tests do not pass\. 1 tests ran, 1 did not"
    ):
        build(tmp_path, model)
    said = [each for each in model.requests if 'You are "mender"' in each.system]
    assert len(said) == 4
    assert "The design names README.md, and there is no such file." in said[0].messages[0].content


@pytest.mark.slow
def test_a_disputed_test_is_looked_at_by_who_wrote_it(tmp_path: Path, workshop: Any) -> None:
    def author(request: Any) -> Any:
        spoken = sum(each.role == "assistant" for each in request.messages)
        told = request.messages[0].content
        disputed = "The engineer says that a test is wrong: it must be 1\n" in told
        content = RIGHT if disputed else RIGHT.replace(", 1)", ", 3)")
        return "tested" if spoken else call("write_test", path="tests/test_one.py", content=content)

    model = team_of(test_author=author, mender=["The test asks for 3.\nDISPUTED: it must be 1"])
    assert build(tmp_path, model).endswith("all 1 tests pass, in round 2.")


@pytest.mark.slow
def test_a_tester_that_has_written_no_test_is_asked_once_more(tmp_path: Path, workshop: Any) -> None:
    def author(request: Any) -> Any:
        if "So far no test could be run: 0 tests ran" not in request.messages[0].content:
            return "All is well."
        spoken = sum(each.role == "assistant" for each in request.messages)
        return "tested" if spoken else call("write_test", path="tests/test_one.py", content=RIGHT)

    assert build(tmp_path, team_of(test_author=author)).endswith("all 1 tests pass, in the first round.")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"path": "one.py"', '"path": "../one.py"', "no path inside the folder"),
        ('"path": "one.py"', '"path": "tests/one.py"', "one of tests/"),
        ('"program": "one.py"', '"program": "two.py"', "is none of the files"),
        ('"path": "README.md"', '"path": "LIESMICH.md"', "README.md has to be one of them"),
        ('"path": "README.md"', '"path": "one.py"', "each once"),
    ],
)
def test_a_design_that_cannot_be_built_is_told_and_made_again(
    old: str, new: str, said: str, tmp_path: Path, workshop: Any
) -> None:
    model = team_of(designer=[DESIGN.replace(old, new), DESIGN.replace(old, new), DESIGN], programmer=[])
    with pytest.raises(RunFailed):
        build(tmp_path, model)
    asked = [each for each in model.requests if 'You are "designer"' in each.system]
    assert len(asked) == 3
    assert said in asked[-1].messages[-1].content


def test_without_permission_nothing_is_written_and_the_run_fails(tmp_path: Path, workshop: Any) -> None:
    with pytest.raises(RunFailed, match=r"Tester: .*run_tests acts on the world, and nobody is there to ask"):
        build(tmp_path, team_of(), policy="guarded")
    assert files(tmp_path) == {}


# -- its folder -------------------------------------------------------------------------------------


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path, workshop: Any) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds files that the company did not make.*--folder NAME"):
        load_target(str(COMPANY), str(tmp_path))
    with pytest.raises(ConfigError, match="is a file; the company needs a folder"):
        load_target(str(COMPANY), str(tmp_path / "README.md"))
    assert files(tmp_path) == {"README.md": b"mine"}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../out.py", "leads out of the folder"),
        ("/etc/out.py", "absolute"),
        ("a/../../out.py", "leads out of the folder"),
        (".company", "hidden"),
        ("away/out.py", "symbolic link"),
        ("link.py", "symbolic link"),
        ("tests/test_out.py", "outside of tests/ only"),
        ("", "Name a file"),
        ("lib", "is a folder"),
        ("one.py/two.py", "leads through a file"),
    ],
)
def test_nothing_is_written_elsewhere(path: str, said: str, tmp_path: Path, workshop: Any) -> None:
    folder, other = tmp_path / "out", tmp_path / "other"
    for each in (folder / "lib", other):
        each.mkdir(parents=True)
    (folder / "one.py").write_text("1")
    (other / "kept.py").write_text("kept")
    (folder / "away").symlink_to(other)
    (folder / "link.py").symlink_to(other / "kept.py")
    before = files(tmp_path)
    with pytest.raises(ToolError, match=said):
        workshop.write_tool(folder, tests=False).function(path, "x")
    assert {name: each for name, each in files(tmp_path).items() if name != "out/.company"} == before


def test_tests_are_written_among_the_tests_only(tmp_path: Path, workshop: Any) -> None:
    write = workshop.write_tool(tmp_path, tests=True).function
    for path in ("one.py", "tests"):
        with pytest.raises(ToolError, match="in tests/ only"):
            write(path, "x")
    assert write("tests/test_one.py", "a\nb\n") == "tests/test_one.py: 2 lines written"


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write = workshop.write_tool(tmp_path, tests=False).function
    write("one.py", "first\n")

    def dies(*names: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dies)
        with pytest.raises(KeyboardInterrupt):
            write("one.py", "second\n")
    assert (tmp_path / "one.py").read_text() == "first\n"
    write("one.py", "second\n")
    assert files(tmp_path) == {".company": b"", "one.py": b"second\n"}


def test_there_is_an_end_to_what_is_written(tmp_path: Path, workshop: Any) -> None:
    write = workshop.write_tool(tmp_path, tests=False).function
    with pytest.raises(ToolError, match="100,001 bytes; a file may have 100,000"):
        write("one.py", "x" * 100_001)
    for number in range(workshop.FILES):
        (tmp_path / f"{number}.py").touch()
    with pytest.raises(ToolError, match="There are 40 files"):
        write("one.py", "x")
    write("3.py", "x")


# -- the tests it runs -------------------------------------------------------------------------------

HEAD = "import os, sys, time, unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "stopped", "failed"),
    [
        ("pass", "", 0),
        ("self.fail('because')", "", 1),
        ("while True: pass", "The tests were ended after 1 seconds", 0),
        ("os._exit(0)", "The process of the tests ended before they did", 0),
        ("os._exit(3)", "The tests ended with exit code 3", 0),
        ("os.write(1, b'\\xff'); print('{}'); os.write(2, b'x')", "", 0),
        ("bytearray(1 << 40)", "", 1),
        ("sys.exit(0)", "", 1),
        ("open('new.txt', 'w').write('x')", "", 0),
    ],
)
def test_what_tests_show(body: str, stopped: str, failed: int, tmp_path: Path, workshop: Any) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_one.py").write_text(HEAD + body)
    before = files(tmp_path)
    found = workshop.report(tmp_path, ["one.py"], seconds=1 if "while" in body else 20)
    assert found.stopped.startswith(stopped)
    assert bool(found.stopped) is bool(stopped)
    assert (found.failed, len(found.failures)) == (failed, failed)
    assert found.missing == ["one.py"]
    assert not found.passed
    assert files(tmp_path) == before, "it ran in a copy"


@pytest.mark.slow
def test_of_many_failures_the_first_are_told(tmp_path: Path, workshop: Any) -> None:
    (tmp_path / "tests").mkdir()
    body = "for number in range(30):\n            with self.subTest(number): self.fail('x' * 9_000)"
    (tmp_path / "tests/test_one.py").write_text(HEAD + body)
    found = workshop.report(tmp_path, [])
    assert (found.ran, found.failed, len(found.failures)) == (1, 30, workshop.FAILURES)
    assert max(len(each.said) for each in found.failures) <= workshop.SHOWN
    assert found.told().startswith("1 tests ran, 30 did not pass.")


@pytest.mark.slow
def test_a_file_that_is_no_python_is_a_failed_test(tmp_path: Path, workshop: Any) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_one.py").write_text("import nothing_of_that_name")
    (failure,) = workshop.report(tmp_path, []).failures
    assert "nothing_of_that_name" in failure.said


# -- after a crash -------------------------------------------------------------------------------------

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """The command in a process, beside an empty folder."""
    (tmp_path / "out").mkdir()
    env = {key: value for key, value in os.environ.items() if not SETTINGS.match(key)}
    env |= {"PYTHONPATH": os.fspath(SRC), "PYTHONUTF8": "1"}

    def started(*words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "antiphon.cli", *map(str, words)], cwd=tmp_path, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding="utf-8",
        )  # fmt: skip

    return started


def kill_at(process: "subprocess.Popen[str]", moment: int) -> str:
    """End a process that writes its events as JSON, at once, when record `moment` is there; the run's id."""
    run_id = ""
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line)
                run_id = run_id or said.get("run_id", "")
                if said.get("seq", 0) >= moment:
                    break
        finally:
            process.send_signal(signal.SIGKILL)
    return run_id


OPTIONS = ("--folder", "out", "--model", f"script:{SCRIPT}")
MOMENTS = [
    (12, 40),
    pytest.param((25, 33, 60), marks=pytest.mark.deep),
    pytest.param((18, 30, 36, 48, 54, 70, 78), marks=pytest.mark.deep),
]


@pytest.mark.slow
@pytest.mark.parametrize("moments", MOMENTS, ids=str)
def test_killed_and_resumed_it_leaves_the_same_folder(
    moments: tuple[int, ...], start: Start, tmp_path: Path, workshop: Any
) -> None:
    build(tmp_path / "whole", Script.load(SCRIPT))
    kill_at(start("run", COMPANY, IDEA, *OPTIONS, "--policy", "open", "--json"), moments[0])
    with start("runs", "ls", "--json") as listed:
        ((found,)) = json.loads(listed.communicate(timeout=PATIENCE)[0])
    run_id = found["run_id"]
    for moment in moments[1:]:
        kill_at(start("runs", "resume", run_id, COMPANY, *OPTIONS, "--json"), moment)
    with start("runs", "resume", run_id, COMPANY, *OPTIONS) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, f"out: {END}\n"), err
    assert files(tmp_path / "out") == files(tmp_path / "whole")
