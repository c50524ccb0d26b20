"""What a source was added as, and the file that keeps it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from antiphon.config.json_file import JsonNode, JsonPlace, read_json
from antiphon.errors import ConfigError

_HOW = "Mend it, or remove the source (`antiphon knowledge rm NAME --yes`) and add it again"


class McpSearch(Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server as a source."""

    server: str
    """Its name among the servers that are configured where it is searched."""
    search: str = "search"
    """The tool that searches, as the server calls it."""
    fetch: str = "fetch"
    """The tool that reads what was found."""


class SourceSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A source as it was added: a folder, an MCP server (`mcp`), or a search of the web (`web`)."""

    name: str
    folder: str = ""
    """Absolute."""
    description: str = ""
    mcp: McpSearch | None = None
    web: str = ""
    """Who searches, see `antiphon.tools.web.search.PROVIDERS`."""

    @property
    def place(self) -> str:
        """Where it is, for people."""
        if self.mcp is not None:
            return f"MCP server {self.mcp.server}"
        return self.folder or f"the web by {self.web}"

    @property
    def fault(self) -> str:
        """Why it is none; empty when it is one."""
        given = [self.folder != "", self.mcp is not None, self.web != ""]
        if sum(given) == 1:
            return ""
        return "a source is a folder, an MCP server (mcp) or a search of the web (web): one of them"


def read_spec(place: Path, file: Path) -> SourceSpec:
    """What a file says of the source that lies in `place`. Raises ConfigError: where, what, what to do."""
    try:
        root = read_json(file)
    except ConfigError as error:
        raise _wrong(file, error.text, JsonPlace(error.line, error.column)) from error
    try:
        spec = msgspec.convert(root.data, SourceSpec)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$.")
        raise _wrong(file, text, _place_of(root, path.rstrip("`"))) from error
    if spec.fault:
        raise _wrong(file, spec.fault, root.place)
    if spec.name != place.name:
        where = _place_of(root, "name")
        raise _wrong(file, f"says that it is the source {spec.name!r}, and lies elsewhere", where)
    return spec


def _wrong(file: Path, text: str, place: JsonPlace) -> ConfigError:
    return ConfigError(f"{text}. {_HOW}", os.fspath(file), place.line, place.column)


def _place_of(root: JsonNode, path: str) -> JsonPlace:
    """Where a path of keys leads, as far as there is anything."""
    node = root
    for key in path.split("."):
        if not isinstance(node.value, dict) or key not in node.value:
            break
        node = node.value[key]
    return node.place
