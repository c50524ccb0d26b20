"""The API reference, docs/api/, made from signatures, fields and docstrings.

    python -m scripts.api_reference            writes it anew
    python -m scripts.api_reference --check    names the pages that are not what the code says; exit code 1

One page per subject; each name stands on one page and is found by the index. `tests/docs/test_api.py` says
that the pages are those of the code, and hold every name that the documents import.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "api"

PAGES: Mapping[str, tuple[str, Sequence[str]]] = {
    "antiphon": ("What `from antiphon import …` has: agents, runs, results.", ["antiphon"]),
    "values": (
        "Values that few programs name: options of options, what a run in the middle looks like.",
        ["antiphon.values.agent", "antiphon.values.limits", "antiphon.values.policy",
         "antiphon.values.result", "antiphon.values.message", "antiphon.values.tool",
         "antiphon.values.tool.toolset"],
    ),
    "hooks": ("Rules and coroutines of your own.", ["antiphon.values.hooks", "antiphon.values.actions"]),
    "models": (
        "The port of models and its adapters.",
        ["antiphon.values.model", "antiphon.models", "antiphon.models.script", "antiphon.models.openai",
         "antiphon.models.providers", "antiphon.models.endpoints", "antiphon.models.bounded",
         "antiphon.models.catalog", "antiphon.models.usage"],
    ),
    "tools": (
        "Tools that ship.",
        ["antiphon.tools", "antiphon.tools.knowledge", "antiphon.tools.knowledge.scripted",
         "antiphon.tools.mcp", "antiphon.tools.mcp.source", "antiphon.tools.web", "antiphon.tools.web.client",
         "antiphon.tools.web.search", "antiphon.tools.web.source", "antiphon.tools.shell"],
    ),
    "errors": ("Every error: whose fault it is, what to do.", ["antiphon.errors"]),
    "journal": (
        "Where runs are kept.", ["antiphon.journal", "antiphon.journal.sqlite", "antiphon.journal.port"]
    ),
    "view": (
        "Reading a run that is stored, or while it goes on.",
        [
            f"antiphon.view{each}"
            for each in ("", ".nodes", ".changes", ".connection", ".notebook", ".traces")
        ],
    ),
    "assistant": ("An assistant for one folder.", ["antiphon.assistant"]),
    "host": ("Many runs of teams known by name; a run undone.", ["antiphon.host", "antiphon.host.undo"]),
    "server": (
        "A host over HTTP in a program of one's own.",
        ["antiphon.server.app", "antiphon.server.routes.mounts", "antiphon.server.subjects"],
    ),
    "delegation": ("Agents that call agents: its log and its trace.", ["antiphon.styles.delegation"]),
    "loop": ("One agent in a streaming tool loop.", ["antiphon.styles.loop"]),
    "environment": ("Roles that publish and subscribe.", ["antiphon.styles.environment"]),
    "tasks": ("A controller that gives tasks to workers.", ["antiphon.styles.tasks"]),
    "profiles": ("Teams in YAML.", ["antiphon.styles.profiles"]),
    "testing": (
        "For tests of teams: invariants, crashes, replay, faults, clocks.",
        ["antiphon.testing.clock", "antiphon.testing.invariants", "antiphon.testing.crash",
         "antiphon.testing.replay", "antiphon.testing.world", "antiphon.testing.wire",
         "antiphon.testing.power", "antiphon.testing.census", "antiphon.testing.provider"],
    ),
}  # fmt: skip
"""Pages by name: what a page is about, and the modules whose public names it holds."""
MADE = "Made from the docstrings by `python -m scripts.api_reference`."
WIDE = 100
"""Characters of a signature on one line."""
LONGEST = 300
"""Characters of a value."""


class Entry(NamedTuple):
    """A public name, and the module that users import it from."""

    module: str
    name: str
    thing: Any


def entries(module_name: str) -> Iterator[Entry]:
    """The public names of a module: those it lists, else those it defines."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if name[0] != "_" and getattr(thing, "__module__", "") == module_name and _has_words(thing)
    ]
    for name in names:
        yield Entry(module_name, name, getattr(module, name))


def _has_words(thing: Any) -> bool:
    return isinstance(thing, type) or inspect.isfunction(thing)


def pages() -> dict[str, list[Entry]]:
    """What stands on each page: every thing once, on the first page that has it."""
    seen: set[int] = set()
    found: dict[str, list[Entry]] = {}
    for page, (_, modules) in PAGES.items():
        found[page] = []
        for entry in (each for module in modules for each in entries(module)):
            if id(entry.thing) not in seen:
                found[page].append(entry)
            if _has_words(entry.thing):
                seen.add(id(entry.thing))
    return found


def written() -> dict[str, str]:
    """The files of the reference, by name."""
    found = pages()
    files = {f"{page}.md": "\n".join(_page(page, found[page])) + "\n" for page in found}
    return files | {"README.md": "\n".join(_index(found)) + "\n"}


def _page(page: str, found: Sequence[Entry]) -> Iterator[str]:
    about, modules = PAGES[page]
    yield f"# {page}\n"
    yield f"{about} {MADE} All names: [index](README.md)."
    for module in modules:
        own = [each for each in found if each.module == module]
        if own and len(modules) > 1:
            yield f"\n## `{module}`\n\n{_paragraphs(inspect.getdoc(importlib.import_module(module)))}"
        for entry in own:
            yield "\n".join(_entry(entry))


def _index(found: Mapping[str, Sequence[Entry]]) -> Iterator[str]:
    yield f"# API reference\n\nEvery public name. {MADE}\n"
    yield "| page | |\n|---|---|"
    for page, (about, _) in PAGES.items():
        yield f"| [{page}]({page}.md) | {about} |"
    yield "\n| name | from | |\n|---|---|---|"
    everything = [(each, page) for page, those in found.items() for each in those]
    for entry, page in sorted(everything, key=lambda pair: (pair[0].name.lower(), pair[0].module)):
        first = _first_sentence(inspect.getdoc(entry.thing)) if _has_words(entry.thing) else ""
        yield f"| [`{entry.name}`]({page}.md#{_anchor(entry.name)}) | `{entry.module}` | {_cell(first)} |"


def _anchor(name: str) -> str:
    return name.lower()


def _entry(entry: Entry) -> Iterator[str]:
    name, thing = entry.name, entry.thing
    yield f"\n### {name}\n"
    if isinstance(thing, type):
        yield from _class(name, thing)
    elif get_origin(thing) is not None:
        yield _code(f"{name} = {_alias(thing)}")
    elif callable(thing):
        function = inspect.unwrap(thing)
        yield _code(_signature(function, name))
        yield _paragraphs(inspect.getdoc(function))
    else:
        yield _code(f"{name} = {_default(thing)}")


def _class(name: str, thing: type) -> Iterator[str]:
    parents = [each.__name__ for each in thing.__mro__[1:2] if each.__module__.startswith("antiphon")]
    public = [each for each in parents if each in _public_names()]
    yield f"*{_kind(thing)}*" + (f", a [`{public[0]}`](README.md)" if public else "")
    yield ""
    if "__init__" in vars(thing) and not issubclass(thing, msgspec.Struct) and _kind(thing) == "class":
        yield _code(_signature(thing.__init__, name, skip_first=True))
    yield _paragraphs(inspect.getdoc(thing))
    fields = list(_fields(thing))
    if fields:
        yield "\n| field | type | default | |\n|---|---|---|---|"
        for field, kind, default, said in fields:
            yield f"| `{field}` | {_mono(kind)} | {_mono(default)} | {_cell(said)} |"
    for member, value in vars(thing).items():
        if member[0] == "_" or member in getattr(thing, "__struct_fields__", ()):
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(value, property):
            kind = inspect.get_annotations(value.fget).get("return", "") if value.fget else ""
            yield f"\n**`{name}.{member}`**: `{kind}`. {_paragraphs(inspect.getdoc(value))}"
        elif inspect.isfunction(function) and inspect.getdoc(function):
            first = not isinstance(value, staticmethod)
            yield f"\n**`{name}.{member}`**\n"
            yield _code(_signature(inspect.unwrap(function), member, skip_first=first))
            yield _paragraphs(inspect.getdoc(function))


@functools.cache
def _public_names() -> frozenset[str]:
    return frozenset(each.name for found in pages().values() for each in found)


def _kind(thing: type) -> str:
    if getattr(thing, "_is_protocol", False):
        return "protocol"
    if issubclass(thing, BaseException):
        return "error"
    return "value" if issubclass(thing, msgspec.Struct) else "class"


def _fields(thing: type) -> Iterator[tuple[str, str, str, str]]:
    """Fields of a struct: name, type, default, and what the text below it says."""
    if not issubclass(thing, msgspec.Struct):
        return
    said = {name: text for each in reversed(thing.__mro__) for name, text in _texts(each).items()}
    for field in msgspec.structs.fields(thing):
        if field.name[0] == "_":
            continue
        kind, text = said.get(field.name, ("", ""))
        default = "" if field.default is msgspec.NODEFAULT else _default(field.default)
        default = "…" if field.default_factory is not msgspec.NODEFAULT else default
        yield field.name, kind, default, text


@functools.cache
def _texts(thing: type) -> Mapping[str, tuple[str, str]]:
    """Of each field that a class declares, its type as written and the docstring below it."""
    try:
        tree = ast.parse(dedent(inspect.getsource(thing)))
    except (OSError, TypeError):
        return {}
    (declared,) = tree.body
    if not isinstance(declared, ast.ClassDef):
        return {}
    lines: list[ast.stmt] = []
    for line in declared.body:
        # What stands for type checkers is what users should read.
        lines += line.body if isinstance(line, ast.If) else [line]
    found = {}
    for line, below in zip(lines, [*lines[1:], None], strict=True):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            text = ""
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = inspect.cleandoc(str(below.value.value))
            found[line.target.id] = ast.unparse(line.annotation), text
    return found


def _default(value: Any) -> str:
    if inspect.isfunction(value) or isinstance(value, type):
        return value.__name__
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__name__}(…)" if value != type(value)() else f"{type(value).__name__}()"
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
    if isinstance(value, logging.Logger):
        return f"logging.getLogger({value.name!r})"
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


class _Plain:
    """A text that shows itself without quotes."""

    def __init__(self, text: object) -> None:
        self.text = text

    def __repr__(self) -> str:
        return str(self.text)


def _alias(thing: Any) -> str:
    """A type as it is written in code; every Python has a text of its own for it."""
    origin, given = get_origin(thing), get_args(thing)
    if isinstance(thing, list):
        return f"[{', '.join(_alias(each) for each in thing)}]"
    if origin in (Union, UnionType):
        return " | ".join(_alias(each) for each in given)
    if origin is not None:
        inner = ", ".join(repr(each) if origin is Literal else _alias(each) for each in given)
        return f"{getattr(origin, '__name__', 'Literal')}[{inner}]"
    return "None" if thing is NoneType else getattr(thing, "__name__", repr(thing))


def _signature(function: Any, name: str, *, skip_first: bool = False) -> str:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return f"{name}(…)"
    given = list(found.parameters.values())[1 if skip_first else 0 :]
    plain = [
        each.replace(
            annotation=each.annotation
            if each.annotation is each.empty
            else _Plain(_written(each.annotation)),
            default=each.default if each.default is each.empty else _Plain(_default(each.default)),
        )
        for each in given
    ]
    returned = found.return_annotation
    returned = returned if returned is found.empty or name[0].isupper() else _Plain(_written(returned))
    if returned is None or name[0].isupper():
        returned = found.empty
    kind = "async " if inspect.iscoroutinefunction(function) else ""
    whole = found.replace(parameters=plain, return_annotation=returned)
    line = f"{kind}{name}{whole}"
    if len(line) <= WIDE:
        return line
    end = "" if returned is found.empty else f" -> {returned!r}"
    parts = str(found.replace(parameters=plain, return_annotation=found.empty))[1:-1]
    return f"{kind}{name}(\n" + "".join(f"    {each},\n" for each in _apart(parts)) + f"){end}"


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))


def _apart(parameters: str) -> Iterator[str]:
    """The parameters of a signature, split at the commas between them."""
    depth, start = 0, 0
    for place, letter in enumerate(parameters):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            yield parameters[start:place].strip()
            start = place + 1
    yield parameters[start:].strip()


def _code(text: str) -> str:
    return f"```text\n{text}\n```\n"


def _paragraphs(text: str | None) -> str:
    return (text or "").strip()


def _first_sentence(text: str | None) -> str:
    line = " ".join(_paragraphs(text).split("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z])", line)[0]


def _mono(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def stale() -> list[str]:
    """The pages that are not what the code says, or not made any more."""
    there = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    made = written()
    return sorted(name for name in {*there, *made} if there.get(name) != made.get(name))


def main() -> None:
    """Write the pages, or with `--check` compare them; those that are no longer made are deleted."""
    if "--check" in sys.argv[1:]:
        found = stale()
        sys.exit("\n".join(found) if found else 0)
    FOLDER.mkdir(exist_ok=True)
    files = written()
    for path in FOLDER.glob("*.md"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text, "utf-8")
    print(f"wrote {len(files)} files to {FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
