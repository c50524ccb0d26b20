"""Users' programs, and those of the README, as strict type checkers see them beside the installed wheel.

mypy and pyright each; where what they say differs, a program's line holds both, mypy's first.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from sysconfig import get_path
from venv import EnvBuilder
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
README = ROOT / "README.md"
PYRIGHT = ROOT / ".venv/pyright/bin/basedpyright"
CHECKERS = ("mypy", "pyright")
SAID = re.compile(r"^(?P<program>\w+)\.py:(?P<line>\d+): (?:error|note): (?P<text>.*)$", re.MULTILINE)
REVEALED = re.compile(r'^(?:Revealed type|Type of ".*") is "(?P<type>.*)"$')
ROOMS = re.compile(r"\b[a-z_]+(?:\.[a-z_]+)*\.(?=[A-Z])")
ALIKE = {"[(": "[[", "),": "],", "CoroutineType[": "Coroutine["}
"""How pyright writes what mypy writes otherwise."""
UNSAID = {
    # What a function takes is not said in the README, for readers; pyright then takes the base's `| None`.
    "reportMissingParameterType", "reportUnknownParameterType", "reportUnknownArgumentType",
    "reportUnknownMemberType", "reportOptionalSubscript",
    # Its blocks are one program here.
    "reportDuplicateImport",
}  # fmt: skip

Said = dict[str, dict[int, str]]
"""What a checker says: by program and line."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(wheel: ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, and beside them an environment that has the wheel installed."""
    folder = tmp_path_factory.mktemp("programs")
    EnvBuilder(with_pip=False).create(folder / "env")
    (site,) = folder.glob("env/lib/python*/site-packages")
    wheel.extractall(site)
    # What it depends on is taken from here.
    (site / "dependencies.pth").write_text(get_path("purelib"), "utf-8")
    for name, text in programs().items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module", params=CHECKERS)
def checker(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def told(checker: str, folder: Path) -> Said:
    return said_by_mypy(folder) if checker == "mypy" else said_by_pyright(folder)


def said_by_mypy(folder: Path) -> Said:
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache"),
        *("--python-executable", str(folder / "env/bin/python"), *(f"{name}.py" for name in programs())),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found: Said = {name: {} for name in programs()}
    for match in SAID.finditer(done.stdout):
        note(found[match["program"]], int(match["line"]), match["text"])
    return found


def said_by_pyright(folder: Path) -> Said:
    if not PYRIGHT.exists():
        pytest.skip("pyright is not installed: ./check installs it into .venv/pyright")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', "utf-8")
    files = [f"{name}.py" for name in programs()]
    command = [PYRIGHT, "--pythonpath", "env/bin/python", "--outputjson", *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(programs())
    found: Said = {name: {} for name in programs()}
    for each in report["generalDiagnostics"]:
        program = Path(each["file"]).stem
        if program != "readme" or each.get("rule") not in UNSAID:
            note(found[program], each["range"]["start"]["line"] + 1, each["message"])
    return found


def note(lines: dict[int, str], line: int, text: str) -> None:
    lines[line] = lines.get(line, "") + text + "\n"


def alike(type: str) -> str:
    for written, meant in ALIKE.items():
        type = type.replace(written, meant)
    return type


def programs() -> dict[str, str]:
    """The programs by name."""
    return {each.stem: each.read_text("utf-8") for each in PROGRAMS.glob("*.py")} | {"readme": readme()}


def readme() -> str:
    """The programs of the README as one. What their functions take and return is not said, for readers."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return "# mypy: allow-untyped-defs, allow-untyped-calls\n" + "\n".join(blocks)


def expected(program: str, checker: str) -> Iterator[tuple[int, str]]:
    """What the lines of a program say that they must hear."""
    for number, line in enumerate(programs()[program].splitlines(), 1):
        _, *said = line.split("  # ")
        if said:
            yield number, said[0 if checker == "mypy" else -1]


def test_every_type_is_known(checker: str, told: Said) -> None:
    revealed = {}
    for line, said in told["typed"].items():
        match = REVEALED.match(said.strip())
        assert match, f"line {line}: {said}"
        revealed[line] = alike(ROOMS.sub("", match["type"]))
    assert revealed == dict(expected("typed", checker))


def test_every_mistake_is_found(checker: str, told: Said) -> None:
    wanted = dict(expected("mistaken", checker))
    assert told["mistaken"].keys() == wanted.keys()
    assert {line: said for line, said in wanted.items() if said not in told["mistaken"][line]} == {}


def test_the_programs_of_the_readme_have_types(told: Said) -> None:
    assert told["readme"] == {}
