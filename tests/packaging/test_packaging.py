"""What is installed is what is in the tree, and not much of it."""

import re
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_BASE = 19


def pins(name: str) -> list[str]:
    """The lines of a lock file that pin a distribution, markers included."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    return [line for line in text.splitlines() if re.match(r"[A-Za-z0-9]", line)]


@pytest.mark.slow
@pytest.mark.usefixtures("built_page")
def test_the_wheel_holds_the_source_tree(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix(): path.read_bytes()
        for path in (source / "antiphon").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert found.keys() == wanted.keys()
    assert "antiphon/view/page/assets/file.js" in found
    assert [name for name in wanted if found[name] != wanted[name]] == []


@pytest.mark.slow
def test_the_wheel_carries_licence_and_command_and_no_path_file(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    (licence,) = (name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
    (commands,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    assert b"Apache License" in wheel.read(licence)
    assert b"antiphon = antiphon.cli:main" in wheel.read(commands)
    assert b"\nLicense-Expression: Apache-2.0\n" in wheel.read(metadata)
    assert not [name for name in names if name.endswith(".pth")]


def test_the_base_is_small() -> None:
    # Counted with the markers of every platform, so no machine gets more than this.
    assert len(pins("base")) + len(["antiphon"]) <= MAX_BASE


@pytest.mark.parametrize(
    "name", ["base", "dev", "knowledge", "llmock", "local", "mcp", "office", "pyright", "server", "weights"]
)
def test_every_pin_is_exact_and_hashed(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    loose = [
        entry.splitlines()[0]
        for entry in entries
        if not re.match(r"[\w.-]+==[\w.!+-]+ ", entry) or "--hash=sha256:" not in entry
    ]
    assert loose == []


def test_the_locks_agree() -> None:
    seen: dict[str, set[str]] = {}
    for name in ("base", "knowledge", "local", "dev", "server", "mcp", "office", "weights"):
        own: dict[str, set[str]] = {}
        for pin in pins(name):
            distribution, version = pin.split()[0].split("==")
            # One distribution may have a version for each Python.
            own.setdefault(distribution, set()).add(version)
        for distribution, versions in own.items():
            assert seen.setdefault(distribution, versions) == versions, distribution


def test_the_lock_knows_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    names = {
        "base": project["project"]["dependencies"],
        "knowledge": project["project"]["optional-dependencies"]["knowledge"],
        "local": project["project"]["optional-dependencies"]["local"],
        "mcp": project["project"]["optional-dependencies"]["mcp"],
        "office": project["project"]["optional-dependencies"]["office"],
        "server": project["project"]["optional-dependencies"]["server"],
        "dev": project["dependency-groups"]["dev"],
    }
    for lock, wanted in names.items():
        locked = {pin.split("==")[0] for pin in pins(lock)}
        missing = [name for name in wanted if re.split(r"[>=<[]", name)[0].lower() not in locked]
        assert not missing, f"run requirements/lock: {missing} not in {lock}.txt"
