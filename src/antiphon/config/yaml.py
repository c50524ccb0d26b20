"""YAML as every file of ours is read: bounded before anything is built, with places for errors.

Nodes, not objects: a `YamlReader` turns them into what it knows and says of anything else where it stands.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from antiphon.errors import ConfigError

MAX_BYTES = 4_000_000
MAX_DEPTH = 40
MAX_EVENTS = 200_000
"""Values, and beginnings and ends of lists and mappings."""
SHORT = 50_000
MAX_NAME = 100


def compose_file(path: str | os.PathLike[str]) -> yaml.Node | None:
    """The root of a file of at most MAX_BYTES; None when there is nothing in it.

    Raises ConfigError as `read_text` and `compose`.
    """
    return compose(read_text(path), os.fspath(path))


def read_text(path: str | os.PathLike[str]) -> str:
    """A file of at most MAX_BYTES. Raises ConfigError: unreadable, too large, not UTF-8 (with the line)."""
    where = os.fspath(path)
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES // 1_000_000} MB", where)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8", where, raw.count(b"\n", 0, error.start) + 1) from None


def compose(text: str, path: str = "") -> yaml.Node | None:
    """The root of a YAML text.

    Raises ConfigError: not YAML, an alias, a tag, nested too deeply, a second document.
    """
    try:
        return _composed(text, path, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        if len(text) > SHORT:
            raise _unparsable(error, path) from None
        # Once more without the C library: it names other places, and not every machine has it. It is slow.
        return _complained(text, path)


def _complained(text: str, path: str) -> yaml.Node | None:
    try:
        return _composed(text, path, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _unparsable(error, path) from None


def _unparsable(error: yaml.YAMLError, path: str) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError):
        said = error.problem or error.context or "it cannot be parsed"
        return _at(f"is not YAML: {said}", path, error.problem_mark or error.context_mark)
    return ConfigError(f"is not YAML: {' '.join(str(error).split())[:200]}", path)


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
    depth = documents = 0
    for number, event in enumerate(yaml.parse(text, Loader=loader)):
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
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            refused = "another document begins here; a file holds one" if documents > 1 else ""
        if number > MAX_EVENTS:
            refused = f"holds more than {MAX_EVENTS:,} values"
        if refused:
            raise _at(refused, path, event.start_mark)


class YamlReader:
    """Reads the nodes of one file; every error is a ConfigError with the node's line and column.

    what: what a node is, for the error; empty where that is said already.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def wrong(self, node: yaml.Node, text: str) -> ConfigError:
        """The error that something is wrong with a node."""
        return wrong(text, self._path, node)

    def pairs(
        self, node: yaml.Node, what: str, known: Collection[str] = ()
    ) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Key and value nodes of a mapping by key; refuses a key twice, and one that is not `known`."""
        found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in self.mapping(node, what):
            name = self.text(key, "a key")
            if known and name not in known:
                raise self.wrong(key, _of(what, f"unknown key {name!r}{meant(name, known)}"))
            if name in found:
                raise self.wrong(key, _of(what, f"{name!r} stands here twice"))
            found[name] = (key, value)
        return found

    def values(self, node: yaml.Node, what: str, known: Collection[str] = ()) -> dict[str, yaml.Node]:
        """The value nodes of a mapping by key; refuses as `pairs`."""
        return {name: value for name, (_, value) in self.pairs(node, what, known).items()}

    def mapping(self, node: yaml.Node, what: str) -> list[tuple[yaml.Node, yaml.Node]]:
        """Key and value nodes of a mapping as they stand there."""
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, _of(what, "expected `key: value` lines"))
        return list(node.value)

    def items(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        """The nodes of a list."""
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, _of(what, "expected a list"))
        return list(node.value)

    def text(self, node: yaml.Node, what: str) -> str:
        """A scalar as it is written, `yes` and `1.0` included; not empty and not null."""
        if not isinstance(node, yaml.ScalarNode) or not node.value or is_null(node):
            raise self.wrong(node, _of(what, "expected a text"))
        return str(node.value)

    def data(self, node: yaml.Node) -> Any:
        """A node as JSON data. Only true and false are booleans; dates and the like stay texts."""
        if isinstance(node, yaml.MappingNode):
            return {key: self.data(value) for key, value in self.values(node, "").items()}
        if isinstance(node, yaml.SequenceNode):
            return [self.data(each) for each in node.value]
        return plain(node.value) if is_plain(node) else str(node.value)


def _of(what: str, text: str) -> str:
    return f"{what}: {text}" if what else text


def is_null(node: yaml.Node) -> bool:
    """Whether a node is null: written so, as ~, or not at all."""
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def is_plain(node: yaml.Node) -> bool:
    """Whether a node is a text without quotes, which may stand for a number and the like."""
    return isinstance(node, yaml.ScalarNode) and not node.style


def meant(name: str, known: Collection[str]) -> str:
    """What an unknown name may have been meant to be, to be put after the error."""
    close = difflib.get_close_matches(name[:MAX_NAME], known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; it is one of: {', '.join(known)}"


_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18}|[0-9]{1,18})([eE][-+]?[0-9]{1,2})?")


def plain(text: str) -> Any:
    """What a text stands for when nobody put quotes around it: null, a truth value, a number, or itself."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def position(text: str, node: yaml.Node, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of the `offset`-th character of a scalar in the `text` of its file.

    Of a scalar folded over several lines, and far into a long one, it is where the scalar begins.
    """
    mark, style = node.start_mark, getattr(node, "style", None)
    raw = text[mark.index : node.end_mark.index]
    if style == "|":
        return _in_block(raw, node, offset)
    if "\n" in raw or style == ">" or offset > SHORT:
        return mark.line + 1, mark.column + 1
    at = 1 if style else 0
    for _ in range(offset):
        at += _width(raw, at, style)
    return mark.line + 1, mark.column + 1 + at


def _width(raw: str, at: int, style: str | None) -> int:
    """How many characters one character of a quoted scalar takes up."""
    if style == "'" and raw[at : at + 2] == "''":
        return 2
    if style == '"' and raw[at : at + 1] == "\\":
        return 2 + {"x": 2, "u": 4, "U": 8}.get(raw[at + 1 : at + 2], 0)
    return 1


def _in_block(raw: str, node: yaml.Node, offset: int) -> tuple[int, int]:
    before = str(node.value)[:offset]
    row, column = before.count("\n"), offset - (before.rfind("\n") + 1)
    own, written = str(node.value).splitlines(), raw.splitlines()[1:]
    indent = written[row].find(own[row]) if row < min(len(own), len(written)) else 0
    return node.start_mark.line + 2 + row, max(indent, 0) + column + 1
