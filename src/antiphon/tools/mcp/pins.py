"""Pins: the definitions of tools as they were when a server was first met, or when somebody approved them.

A server may say something else of a tool later, to lead models astray or to have done what nobody allowed.
So a definition that has changed in any field is shown to no model: the tool stays as it was pinned,
and its calls are refused with the difference, until a person has approved it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.mcp.offers import Definition
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.secret import shown

MAX_SHOWN = 160
"""Characters of a field that a difference shows, before and after."""


class PinnedServer(Struct):
    """What is pinned of one server: whole definitions by the names of tools. `name` is for people."""

    name: str
    tools: dict[str, dict[str, Any]] = {}


class PinFile(Struct):
    """All pins, by what stands for a server: its name, and its program or address without credentials."""

    servers: dict[str, PinnedServer] = {}


def _key(server: McpServer) -> str:
    known = [server.name, server.command, server.args, server.url.partition("?")[0]]
    return blake2b(msgspec.json.encode(known), digest_size=16).hexdigest()


def pinned(server: McpServer, definitions: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pinned definitions of a server's tools by their names; what was never met is pinned now.

    Raises ToolError when the file cannot be read or written: nothing is taken for approved then.
    """
    file = _read(server.pins)
    kept = file.servers.setdefault(_key(server), PinnedServer(server.name))
    new = {str(each["name"]): dict(each) for each in definitions if each["name"] not in kept.tools}
    if new:
        kept.tools |= new
        _write(server.pins, file)
    return kept.tools


def approved(server: McpServer, definitions: Sequence[Mapping[str, Any]]) -> list[Definition]:
    """The definitions as models may be shown them: where the server has pins, as they were pinned, with what
    has changed since. Raises ToolError as `pinned`."""
    if not server.pins:
        return [Definition.of(each) for each in definitions]
    kept = pinned(server, definitions)
    return [Definition.of(kept[each["name"]], difference(kept[each["name"]], each)) for each in definitions]


def approve(server: McpServer, definitions: Iterable[Mapping[str, Any]]) -> None:
    """Pin definitions as they are now. Raises ToolError as `pinned`."""
    file = _read(server.pins)
    kept = file.servers.setdefault(_key(server), PinnedServer(server.name))
    kept.tools |= {str(each["name"]): dict(each) for each in definitions}
    _write(server.pins, file)


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What has changed in a definition, a line for each field; empty: nothing."""
    return [
        f"{field}: {_short(before.get(field))} -> {_short(now.get(field))}"
        for field in dict.fromkeys((*before, *now))
        if before.get(field) != now.get(field)
    ]


def _short(value: object) -> str:
    return "nothing" if value is None else shown(msgspec.json.encode(value).decode(), limit=MAX_SHOWN)


def _read(path: str) -> PinFile:
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=PinFile)
    except FileNotFoundError:
        return PinFile()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        told = "its approved tools cannot be read; mend the file, or take it away and approve them anew"
        raise ToolError(f"{told}: {path}: {error}") from error


def _write(path: str, file: PinFile) -> None:
    """All of it or nothing, for the user alone."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("wb", dir=Path(path).parent, prefix=".pins-", delete=False) as written:
            written.write(msgspec.json.encode(file, order="sorted"))
        try:
            os.replace(written.name, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(written.name)
    except OSError as error:
        raise ToolError(f"its approved tools cannot be written: {path}: {error}") from error
