"""YAML as every file of ours is read: bounded before anything is built, with places for errors.

Nodes, not objects: a reader turns them into what it knows and says of anything else where it stands.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from antiphon.errors import ConfigError

MAX_BYTES = 4_000_000
MAX_DEPTH = 40


def compose_file(path: str | os.PathLike[str]) -> yaml.Node | None:
    """The root of a file of at most MAX_BYTES; None when there is nothing in it.

    Raises ConfigError with file, line and column: unreadable, too large, not UTF-8, and as `compose`.
    """
    where = os.fspath(path)
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES // 1_000_000} MB", where)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8", where, raw.count(b"\n", 0, error.start) + 1) from None
    return compose(text, where)


def compose(text: str, path: str = "") -> yaml.Node | None:
    """The root of a YAML text. Raises ConfigError: not YAML, an alias, a tag, nested too deeply."""
    try:
        return _composed(text, path, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        # Once more without the C library: it names other places, and not every machine has it.
        return _complained(text, path)


def _complained(text: str, path: str) -> yaml.Node | None:
    try:
        return _composed(text, path, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        said = error.problem or error.context or "it cannot be parsed"
        raise _at(f"is not YAML: {said}", path, error.problem_mark or error.context_mark) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"is not YAML: {' '.join(str(error).split())[:200]}", path) from None


def _composed(text: str, path: str, loader: type[yaml.SafeLoader]) -> yaml.Node | None:
    _survey(text, path, loader)
    root: yaml.Node | None = yaml.compose(text, Loader=loader)
    return root


def wrong(text: str, path: str, node: yaml.Node) -> ConfigError:
    """The error that something is wrong with a node, where it stands."""
    return _at(text, path, node.start_mark)


def _at(text: str, path: str, mark: Any) -> ConfigError:
    return ConfigError(text, path, mark.line + 1 if mark else 0, mark.column + 1 if mark else 0)


def _survey(text: str, path: str, loader: type[yaml.SafeLoader]) -> None:
    """Refuse what could cost more than its size, before a single node is made."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        refused = ""
        if isinstance(event, yaml.AliasEvent):
            refused = "aliases (*name) are not allowed here; write it out"
        elif tag := getattr(event, "tag", None):
            refused = f"the tag {tag} is not allowed here"
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            refused = f"nested deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else ""
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if refused:
            raise _at(refused, path, event.start_mark)
