"""The API reference is the one that the code makes, and holds every name that the documents use."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.api_reference import FOLDER, PAGES, pages

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def imported(document: Path) -> Iterator[tuple[str, str]]:
    """Modules and names of ours that the examples of a document import."""
    blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "antiphon":
                yield from ((node.module or "", each.name) for each in node.names)


def test_the_reference_is_that_of_the_code() -> None:
    # In a process of its own: here some of the code is watched, and so is not what it says.
    command = [sys.executable, "-m", "scripts.api_reference", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr} Run `python -m scripts.api_reference`."


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_name_that_a_document_imports_is_in_it(document: Path) -> None:
    known = {id(each.thing) for found in pages().values() for each in found}
    missing = [
        f"{module}.{name}"
        for module, name in imported(document)
        if id(getattr(importlib.import_module(module), name)) not in known
        and not inspect.ismodule(getattr(importlib.import_module(module), name))
    ]
    assert missing == []


def test_every_public_name_says_what_it_is() -> None:
    silent = [
        f"{each.module}.{each.name}"
        for found in pages().values()
        for each in found
        if (isinstance(each.thing, type) or inspect.isfunction(each.thing))
        and not (inspect.getdoc(each.thing) or "").strip()
    ]
    assert silent == []


@pytest.mark.parametrize("page", PAGES)
def test_its_links_lead_somewhere(page: str) -> None:
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    for target in re.findall(r"\]\(([\w.]+\.md)", text):
        assert (FOLDER / target).is_file(), target
