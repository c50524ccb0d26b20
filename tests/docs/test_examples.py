"""Every example in README.md and docs/ is run, so that none can be out of date.

The blocks marked ```` ```python ```` of one file run in order, in one namespace and an empty folder that
holds a copy of the file; a top-level `await` is allowed. Around them a file may say, in comments
that a reader does not see and in fences that he does:

    <!-- not run: reason -->        the next block is left out
    <!-- script:                    from here on, ANTIPHON_MODEL is a script of these lines (YAML, see
    - some reply                    antiphon.models.script): a model that says what it is told to say
    -->
    ```text output                  what the block before printed, exactly

A block that needs no model, or brings its own, needs no script.
"""

import ast
import asyncio
import inspect
import logging
import re
import shutil
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parents[2]
_PART = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$"
    r"|^<!--\s*(?P<what>not run|script):(?P<said>.*?)-->",
    re.MULTILINE | re.DOTALL,
)
MODEL_SETTINGS = (
    "ANTIPHON_HOME",
    "ANTIPHON_MODEL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_DEFAULT_MODEL",
)


@dataclass(frozen=True)
class Part:
    """A piece of a document that means something here; `line` is its first, from 1."""

    kind: Literal["python", "output", "script", "not run"]
    text: str
    line: int


def parts_of(text: str) -> list[Part]:
    found: list[Part] = []
    for match in _PART.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        info = (match["info"] or "").split()
        if match["what"]:
            found.append(Part(match["what"], match["said"].strip("\n "), line))  # type: ignore[arg-type]
        elif info[:1] == ["python"]:
            found.append(Part("python", match["code"], line + 1))
        elif info == ["text", "output"]:
            found.append(Part("output", match["code"], line + 1))
    return found


def documents() -> list[Path]:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        path for path in paths if any(part.kind == "python" for part in parts_of(path.read_text("utf-8")))
    ]


def play(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> int:
    """Run a document's examples in `folder`; how many blocks were run."""
    for name in MODEL_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    shutil.copy(path, folder)
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    skip, run = False, 0
    printed: str | None = ""
    for part in parts_of(path.read_text("utf-8")):
        where = f"{path.name}:{part.line}"
        if part.kind == "not run":
            assert len(part.text) >= 10, f"{where}: say why the next block is not run"
            skip = True
        elif part.kind == "script":
            script = folder / f"script-{part.line}.yaml"
            script.write_text(part.text, encoding="utf-8")
            monkeypatch.setenv("ANTIPHON_MODEL", f"script:{script}")
        elif part.kind == "output":
            assert printed is None or printed.splitlines() == part.text.splitlines(), (
                f"{where}: the example printed something else"
            )
        elif skip:
            # What it would have printed is not known.
            skip, printed = False, None
        else:
            execute(part, path, module)
            printed, run = capsys.readouterr().out, run + 1
    return run


def execute(part: Part, path: Path, module: types.ModuleType) -> None:
    # Blank lines before it make the line numbers of a traceback those of the document.
    source = "\n" * (part.line - 1) + part.text
    code = compile(source, str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, vars(module)))
    else:
        exec(code, vars(module))


@contextmanager
def own_logging() -> Iterator[None]:
    """A log that nobody has set up; what is made of it ends with the block."""
    root, level, handlers = logging.root, logging.root.level, logging.root.handlers
    root.handlers = []
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_the_examples_of(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with own_logging():
        play(path, tmp_path, monkeypatch, capsys)


DOCUMENT = """\
<!-- script:
- said
-->

```python
x = 1
```

```python
import asyncio
import os

await asyncio.sleep(0)
print(x, os.environ["ANTIPHON_MODEL"].rpartition("-")[2])
```

```text output
1 1.yaml
```

<!-- not run: it needs a key -->

```python
raise SystemExit
```

```
nor this
```
"""


def test_what_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "document.md"
    document.write_text(DOCUMENT, encoding="utf-8")
    folder = tmp_path / "empty"
    folder.mkdir()
    assert play(document, folder, monkeypatch, capsys) == 2


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("1 1.yaml", "2 1.yaml", "document.md:18: the example printed something else"),
        ("x = 1", "x = y", "name 'y' is not defined"),
        ("it needs a key", "no", "say why the next block is not run"),
        ("not run: it needs a key", "a comment like any other", "^$"),
    ],
)
def test_what_fails(
    old: str,
    new: str,
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = tmp_path / "document.md"
    document.write_text(DOCUMENT.replace(old, new), encoding="utf-8")
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises((AssertionError, NameError, SystemExit), match=error):
        play(document, folder, monkeypatch, capsys)
