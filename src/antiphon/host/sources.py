"""Where a team comes from: its files, and what is wrong in them at which line; bounded, secrets masked."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import yaml
from msgspec import Struct

from antiphon.config.yaml import compose
from antiphon.errors import AntiphonError, ConfigError
from antiphon.host.projects.files import ProjectFiles
from antiphon.host.team import SourceFile, SourceFinding, TeamSource
from antiphon.values.secret import MASK, SHORTEST, is_secret_name

MAX_SOURCES = 200
"""Files of one team that are shown."""
MAX_SOURCE = 262_144
"""Bytes that are shown of a file."""
MAX_SOURCES_TOTAL = 2_000_000
"""Bytes that are shown of all files of a team."""
MAX_READ = 4_000_000
"""Bytes that are read of a file: as many as one may have that is loaded."""
_KEY = re.compile(r"""(?<![\w.-])([\w.-]{1,100})["']?[ \t]*:(?=[ \t\n])[ \t]*""")
"""A key in a file that is no YAML."""
_VALUE = re.compile(r"[^\s,{}]+")
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#[^\n]*", re.MULTILINE)
_NEAR = 200
"""Characters of a line in which a key is looked for that begins it."""
_SOURCE = frozenset({"_type", "var", "required", "path"})
"""Beside a secret: where it comes from, which is none."""
_NO_SECRET = frozenset({"content_key", "as_payload_key"})
"""What profiles call texts and payloads by."""


class SourceText(Struct, frozen=True):
    """A file of a team as it is now."""

    name: str
    """Below the team's folder, with `/`."""
    state: Literal["loaded", "changed", "missing"]
    """`loaded`: as the server has it. `changed`: not what the server goes by. `missing`: it cannot be read,
    or is no plain file of the team's folder."""
    text: str
    """What stands in it, secrets as `***`; at most its first 256 KiB."""
    size: int
    """Bytes of the whole file."""
    cut: bool
    """Whether only its beginning is here."""
    findings: tuple[SourceFinding, ...]
    """What was wrong in it when it was loaded, by line."""


def digest_of(folder: Path, name: str) -> str:
    """The digest of a file below a folder; empty when it cannot be read."""
    try:
        return _digest(_read(ProjectFiles(folder), name)[0])
    except (AntiphonError, OSError):
        return ""


def texts_of(source: TeamSource, settings: Mapping[str, str]) -> tuple[list[SourceText], int]:
    """The files of a team as they are now, and how many are left out. Reads files: for a thread.

    settings: whose secrets are masked wherever they stand.
    """
    secrets = [each for name, each in settings.items() if is_secret_name(name) and len(each) >= SHORTEST]
    files, found, room = ProjectFiles(source.folder), list[SourceText](), MAX_SOURCES_TOTAL
    for each in source.files[:MAX_SOURCES]:
        if room <= 0:
            break
        found.append(_text_of(files, each, min(room, MAX_SOURCE), secrets))
        room -= len(found[-1].text.encode())
    return found, len(source.files) - len(found)


def _text_of(files: ProjectFiles, file: SourceFile, most: int, secrets: Iterable[str]) -> SourceText:
    try:
        data, size = _read(files, file.name)
    except (AntiphonError, OSError):
        return SourceText(file.name, "missing", "", 0, False, file.findings)
    text = masked(data[:MAX_READ].decode("utf-8", "replace").removeprefix("\ufeff"), secrets)
    state: Literal["loaded", "changed"] = "loaded" if _digest(data) == file.digest else "changed"
    shown = text.encode(errors="replace")[:most].decode(errors="ignore")
    return SourceText(
        file.name, state, shown, size, len(shown) < len(text) or size > len(data), file.findings
    )


def _read(files: ProjectFiles, name: str) -> tuple[bytes, int]:
    handle, entry = files.open(name)
    with os.fdopen(handle, "rb") as file:
        return file.read(MAX_READ), entry.size


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """A file's text without its secrets: what stands under a secret's name, and each of `secrets`."""
    out, at = [], 0
    for start, end in sorted(_spans(text), key=lambda span: (span[0], -span[1])):
        if start >= at:
            # Lines keep their numbers.
            out += [text[at:start], MASK, "\n" * text.count("\n", start, end)]
            at = end
    found = "".join([*out, text[at:]])
    for each in secrets:
        found = found.replace(each, MASK)
    return found


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where values of secrets stand."""
    try:
        root = compose(text)
    except ConfigError:
        yield from _written(text, 0, len(text))
        return
    for comment in _COMMENT.finditer(text):
        yield from _written(text, *comment.span())
    waiting = [(root, False)] if root is not None else []
    while waiting:
        node, secret = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            waiting += _members(node, secret)
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(each, secret) for each in node.value]
        elif secret and node.value:
            end = node.end_mark.index
            yield node.start_mark.index, end - (text[end - 1] == "\n")


def _written(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The same in what is no YAML: a word, or after a key that begins a line all that stands deeper."""
    for key in _KEY.finditer(text, start, end):
        if not _names_secret(key[1]):
            continue
        begin = text.rfind("\n", max(0, key.start() - _NEAR), key.start()) + 1
        if begin > start or key.start() < _NEAR:
            before = text[begin : key.start()]
            if not before.strip(" \t-\"'#"):
                yield key.end(), _deeper(text, key.end(), end, len(before) - len(before.lstrip()))
                continue
        if found := _VALUE.match(text, key.end(), end):
            yield found.span()


def _deeper(text: str, at: int, end: int, depth: int) -> int:
    """Where the lines end that stand deeper than the one at `at`."""
    while (stop := text.find("\n", at, end)) >= 0:
        following = text[stop + 1 : stop + 2 + depth]
        if following.strip() or not following:
            return stop
        at = stop + 1
    return end


def _members(node: yaml.MappingNode, secret: bool) -> Iterator[tuple[yaml.Node, bool]]:
    """The values of a mapping, and whether each is a secret. secret: whether the mapping stands for one."""
    pairs = [(key.value if isinstance(key, yaml.ScalarNode) else "", value) for key, value in node.value]
    named = any(name == "var" and _names_secret(str(value.value)) for name, value in pairs)
    for name, value in pairs:
        yield value, name not in _SOURCE if secret or named else _names_secret(name)


def _names_secret(name: str) -> bool:
    return name not in _NO_SECRET and is_secret_name(name)
