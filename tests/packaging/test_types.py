"""Users' programs, and those of the README, as a strict type checker sees them beside the installed wheel."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from sysconfig import get_path
from venv import EnvBuilder
from zipfile import ZipFile

import pytest

PROGRAMS = Path(__file__).parent / "programs"
README = Path(__file__).parents[2] / "README.md"
SAID = re.compile(r"^(?P<program>\w+)\.py:(?P<line>\d+): (?:error|note): (?P<text>.*)$", re.MULTILINE)
REVEALED = re.compile(r'^Revealed type is "(?P<type>.*)"$')
ROOMS = re.compile(r"\b[a-z_]+(?:\.[a-z_]+)*\.(?=[A-Z])")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told(wheel: ZipFile, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What mypy, strict, says of programs that have the wheel installed: by program and line."""
    folder = tmp_path_factory.mktemp("programs")
    EnvBuilder(with_pip=False).create(folder / "env")
    (site,) = folder.glob("env/lib/python*/site-packages")
    wheel.extractall(site)
    # What it depends on is taken from here.
    (site / "dependencies.pth").write_text(get_path("purelib"), "utf-8")
    programs = {each.stem: each.read_text("utf-8") for each in PROGRAMS.glob("*.py")} | {"readme": readme()}
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache"),
        *("--python-executable", str(folder / "env/bin/python"), *(f"{name}.py" for name in programs)),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[str, dict[int, str]] = {name: {} for name in programs}
    for match in SAID.finditer(done.stdout):
        lines = found[match["program"]]
        lines[int(match["line"])] = lines.get(int(match["line"]), "") + match["text"] + "\n"
    return found


def readme() -> str:
    """The programs of the README as one. What their functions take and return is not said, for readers."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return "# mypy: allow-untyped-defs, allow-untyped-calls\n" + "\n".join(blocks)


def program(name: str) -> str:
    return (PROGRAMS / f"{name}.py").read_text("utf-8")


def expected(program: str) -> Iterator[tuple[int, str]]:
    """What the lines of a program say that they must hear."""
    for number, line in enumerate(program.splitlines(), 1):
        _, mark, said = line.partition("  # ")
        if mark:
            yield number, said


def test_every_type_is_known(told: dict[str, dict[int, str]]) -> None:
    revealed = {}
    for line, said in told["typed"].items():
        match = REVEALED.match(said.strip())
        assert match, f"line {line}: {said}"
        revealed[line] = ROOMS.sub("", match["type"])
    assert revealed == dict(expected(program("typed")))


def test_every_mistake_is_found(told: dict[str, dict[int, str]]) -> None:
    wanted = dict(expected(program("mistaken")))
    assert told["mistaken"].keys() == wanted.keys()
    assert {line: said for line, said in wanted.items() if said not in told["mistaken"][line]} == {}


def test_the_programs_of_the_readme_have_types(told: dict[str, dict[int, str]]) -> None:
    assert told["readme"] == {}
