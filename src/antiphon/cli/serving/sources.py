"""Where a target comes from: the files of its profiles, its team file, or the line that names it in code."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from antiphon.cli.target import Target
from antiphon.config.yaml import read_text
from antiphon.errors import ConfigError
from antiphon.host.sources import digest_of
from antiphon.host.team import SourceFile, SourceFinding, TeamSource
from antiphon.styles.profiles import ProfileTeam
from antiphon.styles.profiles.files.diagnostics import Diagnostic
from antiphon.styles.profiles.files.loader import ENDINGS

FOLDERS = ("profiles", "llm_configs", "handover_protocols")


def source_of(target: Target) -> TeamSource:
    """Where a team comes from; called when it has just been loaded. Reads its files."""
    if isinstance(target.source, ProfileTeam):
        library = target.source.library
        places = [each.place for each in library.profiles.values()]
        named = [each.file for each in (*places, *(one.place for one in library.findings)) if each.file]
        root = min((Path(each).parent.parent for each in named), default=Path("."))
        files = _files(root, library.findings) if named else ()
        return TeamSource(_place(target.text), root.resolve(), tuple(files))
    path = Path(target.text)
    if path.suffix in ENDINGS:
        home = path.resolve().parent
        return TeamSource(target.text, home, (SourceFile(path.name, digest_of(home, path.name)),))
    return TeamSource(_place(target.text), path.resolve().parent)


def _files(root: Path, findings: Iterable[Diagnostic]) -> Iterator[SourceFile]:
    """The files of a folder of profiles, each with what is wrong in it."""
    wrong: dict[str, list[SourceFinding]] = {}
    for each in sorted(findings, key=lambda finding: finding.place.line):
        text = f"{each.place.path}: {each.text}" if each.place.path else each.text
        found = SourceFinding(each.place.line, each.place.column, each.severity, text)
        wrong.setdefault(os.path.abspath(each.place.file), []).append(found)
    for folder in FOLDERS:
        above = root / folder
        for path in sorted(above.iterdir()) if above.is_dir() else ():
            if path.suffix in ENDINGS:
                name = f"{folder}/{path.name}"
                own = tuple(wrong.get(os.path.abspath(path), ()))
                yield SourceFile(name, digest_of(root.resolve(), name), own)


def _place(text: str) -> str:
    """A target as it was named, and of one in code the line where the name gets its value."""
    if Path(text).is_dir():
        return text
    module, _, name = text.rpartition(":")
    if not module or Path(module).is_dir():
        return text
    file = module if module.endswith(".py") else getattr(sys.modules.get(module), "__file__", None)
    line = _line_of(name.partition(".")[0], file) if file else 0
    return f"{module}:{line} ({name})" if line else text


def _line_of(name: str, file: str) -> int:
    """Where a module last gives a name its value, from 1; 0 where that cannot be seen."""
    try:
        tree = ast.parse(read_text(file))
    except (ConfigError, SyntaxError, ValueError):
        return 0
    lines = [each.lineno for each in tree.body if name in _names(each)]
    return lines[-1] if lines else 0


def _names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((each.asname or each.name).partition(".")[0] for each in statement.names)
        return
    for each in ast.walk(statement):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
