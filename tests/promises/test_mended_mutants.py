"""Modules of this project, broken in one place each: an agent finds and mends what their tests show."""

from __future__ import annotations

import asyncio
import random
import re
import sys
from pathlib import Path

import pytest

from antiphon import Agent, run
from antiphon.models.script import Script
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.shell import Workspace, shell_tools
from bench.hunks import Changed, Hunk
from bench.mending import MENDED, Mender, Remedy
from scripts.mutation import mutants_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="runs commands under a keeper"),
]
ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "antiphon.tools.dates": ("tests/unit/tools/test_dates.py", "from antiphon.tools.dates", "from {}"),
    "antiphon.kernel.facts.ids": (
        "tests/unit/kernel/facts/test_ids.py", "from antiphon.kernel.facts import ids", "import {} as ids",
    ),
}  # fmt: skip
"""Small modules, each with quick tests of it alone, and how these import it."""
EACH = 26
"""Mutants of one module; some are such that no test can tell."""
CHECK = f"{sys.executable} -m pytest -q --tb=no --assert=plain -p no:cacheprovider -c empty.ini ."


def broken(folder: Path) -> dict[str, Changed]:
    """Copies of the modules, each broken in one place and with its tests; by the copy's name."""
    chance, found = random.Random(17), {}
    for module, (tests, imported, instead) in MODULES.items():
        source = (ROOT / "src" / module.replace(".", "/")).with_suffix(".py").read_bytes()
        for mutant in chance.sample(mutants_of(module, source), EACH):
            name = f"{module.rpartition('.')[2]}_{len(found)}"
            mutated, right = mutant.applied(source).decode(), source.decode()
            (folder / f"{name}.py").write_text(mutated)
            text = (ROOT / tests).read_text().replace(imported, instead.format(name))
            (folder / f"test_{name}.py").write_text(text)
            found[name] = changed(f"{name}.py", mutated, right)
    (folder / "empty.ini").write_text("[pytest]\n")
    return found


def changed(path: str, before: str, after: str) -> Changed:
    """What of a file differs, as one hunk."""
    old, new = before.split("\n"), after.split("\n")
    first = next(at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
    last = next(at for at, (one, other) in enumerate(zip(old[::-1], new[::-1], strict=False)) if one != other)
    return Changed(path, before, after, (Hunk(first, len(old) - last, tuple(new[first : len(new) - last])),))


def test_thirty_mutants_are_found_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "files"
    folder.mkdir()
    mutants, failed = broken(folder), set[str]()

    def remedy(told: str) -> Remedy:
        """Of those whose tests failed; the others are left as they are."""
        failed.update(re.findall(r"(?:FAILED|ERROR) test_(\w+)\.py", told))
        return Remedy([mutants[name] for name in sorted(failed)])

    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    shell = shell_tools(Workspace(folder, read=[str(ROOT / "src"), sys.prefix], environment=environment))
    model = Script(Mender(CHECK, remedy).reply)
    agent = Agent("mender", tools=[*folder_tools(folder), *edit_tools(folder), *shell], model=model)

    result = asyncio.run(run(agent, "The tests fail."))

    assert result.output == MENDED
    assert len(failed) >= 30
    assert [each for each in failed if (folder / f"{each}.py").read_text() != mutants[each].after] == []
