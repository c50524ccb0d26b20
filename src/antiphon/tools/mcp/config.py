"""Reading which MCP servers there are: JSON with `mcpServers`, as other programs have it.

    {"mcpServers": {
      "files": {"command": "npx", "args": ["-y", "some-server", "."], "env": {"TOKEN": "${TOKEN}"}},
      "shop": {"url": "https://shop.example/mcp", "headers": {"Authorization": "Bearer ${SHOP}"},
               "required": true, "timeout": 30, "tools": ["find"], "effect": {"buy": "once"}}
    }}

Every fault of a file is found, and said with its line, its column, the path of keys and what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from antiphon.config.json_file import JsonNode, JsonPlace, read_json
from antiphon.config.yaml import meant
from antiphon.errors import ConfigError, UserError
from antiphon.tools.mcp.servers import NAME, URL, McpServer
from antiphon.values.tool import Effect

PROJECT_FILE = ".mcp.json"
"""In the folder of a project."""
USER_FILE = "mcp.json"
"""In the user's own folder."""
PINS_FILE = "mcp-pins.json"
"""Beside it."""
MAX_SERVERS = 100
KEYS = (
    "type", "command", "args", "env", "cwd", "url", "headers", "required", "timeout", "tools", "effect",
)  # fmt: skip
TYPES: Mapping[str, str] = {
    "stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url",
}  # fmt: skip
"""Words of other programs for what a server is, and the key that it needs."""
EFFECTS: tuple[str, ...] = get_args(Effect)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


class McpConfigError(ConfigError):
    """What is wrong with files that say which MCP servers there are; `faults`: each, with its place."""

    def __init__(self, faults: Iterable[ConfigError]) -> None:
        self.faults = tuple(faults)
        first = self.faults[0]
        more = "".join(f"\n{each}" for each in self.faults[1:])
        super().__init__(f"{first.text}{more}", first.path, first.line, first.column)


def user_folder(env: Mapping[str, str]) -> Path:
    """Where a user keeps the servers that all of their projects have."""
    return Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME") or Path.home()) / ".config") / "antiphon"


def configured_servers(
    folder: str | os.PathLike[str] = ".", env: Mapping[str, str] | None = None
) -> dict[str, McpServer]:
    """The servers of a project and of the user by name; of two of one name the project's counts.

    folder: the project's. env: for `${NAME}`; None: the process's. Their tools are pinned in the user's own
    folder. Raises McpConfigError with all that is wrong in both files.
    """
    known = os.environ if env is None else env
    found: dict[str, McpServer] = {}
    faults: list[ConfigError] = []
    for path in (user_folder(known) / USER_FILE, Path(folder) / PROJECT_FILE):
        if not path.is_file():
            continue
        try:
            found |= read_servers(path, known, pins=os.fspath(user_folder(known) / PINS_FILE))
        except McpConfigError as error:
            faults += error.faults
    if faults:
        raise McpConfigError(faults)
    return found


def read_servers(
    path: str | os.PathLike[str], env: Mapping[str, str] | None = None, *, pins: str = ""
) -> dict[str, McpServer]:
    """The servers in a file by name. pins: where their tools are pinned, see McpServer. Raises McpConfigError
    with all that is wrong in it."""
    try:
        root = read_json(path)
    except ConfigError as error:
        raise McpConfigError([error]) from error
    return _ConfigReader(os.fspath(path), os.environ if env is None else env, pins).servers(root)


class _Unread(Exception):
    """A value is not what it should be, and is left out; the fault is noted."""


class _ConfigReader:
    """The values of one file. faults: what is wrong in it so far."""

    def __init__(self, path: str, env: Mapping[str, str], pins: str) -> None:
        self._path, self._env, self._pins = path, env, pins
        self.faults: list[ConfigError] = []

    def servers(self, root: JsonNode) -> dict[str, McpServer]:
        found: dict[str, McpServer] = {}
        for name, node in self._members(root).items():
            server = self._server(name, node)
            if server is not None:
                found[name] = server
        if self.faults:
            raise McpConfigError(sorted(self.faults, key=lambda each: (each.line, each.column)))
        return found

    def _members(self, root: JsonNode) -> dict[str, JsonNode]:
        try:
            given = self._object(root, "")
            for key in given.keys() - {"mcpServers"}:
                self._note(root.keys[key], key, f"unknown key{meant(key, ['mcpServers'])}")
            if "mcpServers" not in given:
                raise self._wrong(
                    root, "", 'the key "mcpServers" is missing: an object with a server for each name'
                )
            members = self._object(given["mcpServers"], "mcpServers")
        except _Unread:
            return {}
        if len(members) > MAX_SERVERS:
            self._note(given["mcpServers"].place, "mcpServers", f"more than {MAX_SERVERS} servers")
            return {}
        return members

    def _server(self, name: str, node: JsonNode) -> McpServer | None:
        at, before = f"mcpServers.{name[:80]}", len(self.faults)
        if not NAME.fullmatch(name):
            text = "a server's name is 1 to 32 letters, digits, '_' and '-': it begins the names of its tools"
            self._note(node.place, at, text)
        try:
            given = self._object(node, at)
        except _Unread:
            return None
        for key in given:
            if key not in KEYS:
                self._note(node.keys[key], f"{at}.{key}", f"unknown key{meant(key, KEYS)}")
        fields = {key: self._field(key, given, at) for key in KEYS if key in given}
        self._whole(node, given, fields, at)
        if len(self.faults) > before:
            return None
        kind, effect = fields.pop("type", None), fields.pop("effect", "read")
        del kind
        more = {"effects": effect} if isinstance(effect, dict) else {"effect": effect}
        try:
            return McpServer(name, **fields, **more, pins=self._pins, origin=self._path)
        except UserError as error:
            self._note(node.place, at, str(error))
            return None

    def _whole(
        self, node: JsonNode, given: Mapping[str, JsonNode], fields: Mapping[str, Any], at: str
    ) -> None:
        """What a server needs as a whole."""
        if "command" in given and "url" in given:
            text = "a server has a command, which is started, or a url, which is asked; take one of them out"
            self._note(node.keys["url"], f"{at}.url", text)
        elif "command" not in given and "url" not in given:
            text = 'neither "command" (a program to start) nor "url" (an address) is there; give one of them'
            self._note(node.place, at, text)
        of = {"url": ("args", "env", "cwd"), "command": ("headers",)}
        for kind, others in of.items():
            for key in others:
                if kind in given and key in given and len(given.keys() & {"command", "url"}) == 1:
                    text = f"means nothing for a server with a {kind}; take it out"
                    self._note(node.keys[key], f"{at}.{key}", text)
        needed = TYPES.get(fields.get("type") or "", "")
        if needed and needed not in given and given.keys() & {"command", "url"}:
            self._note(node.keys["type"], f"{at}.type", f'{fields["type"]!r} needs "{needed}"')

    def _field(self, key: str, given: Mapping[str, JsonNode], at: str) -> Any:
        """What a key says; None after its fault was noted."""
        read: Mapping[str, Callable[[JsonNode, str], Any]] = {
            "type": self._type, "command": self._filled, "args": self._texts, "env": self._variables,
            "cwd": self._filled, "url": self._url, "headers": self._headers, "required": self._flag,
            "timeout": self._timeout, "tools": self._texts, "effect": self._effect,
        }  # fmt: skip
        try:
            return read[key](given[key], f"{at}.{key}")
        except _Unread:
            return None

    # -- values -------------------------------------------------------------------------------

    def _note(self, place: JsonPlace, at: str, text: str) -> None:
        told = f"{at}: {text}" if at else text
        self.faults.append(ConfigError(told, self._path, place.line, place.column))

    def _wrong(self, node: JsonNode, at: str, text: str) -> _Unread:
        self._note(node.place, at, text)
        return _Unread()

    def _object(self, node: JsonNode, at: str) -> dict[str, JsonNode]:
        if not isinstance(node.value, dict):
            raise self._wrong(node, at, f"an object {{...}} is expected, not {node.kind}")
        return node.value

    def _text(self, node: JsonNode, at: str) -> str:
        if not isinstance(node.value, str) or not node.value:
            what = "an empty text" if node.value == "" else node.kind
            raise self._wrong(node, at, f"a text is expected, not {what}")
        if "\x00" in node.value:
            raise self._wrong(node, at, "a text holds no NUL character")
        return node.value

    def _filled(self, node: JsonNode, at: str) -> str:
        """A text with its `${NAME}` filled in."""
        text, wrong = self._text(node, at), False

        def fill(found: re.Match[str]) -> str:
            nonlocal wrong
            said = _VARIABLE_NAME.fullmatch(found[1])
            if said is None:
                wrong = True
                self._note(
                    node.place, at, f"{found[0][:80]!r} is no variable; write ${{NAME}} or ${{NAME:-default}}"
                )
                return ""
            value = self._env.get(said[1])
            if value is None and said[2] is None:
                wrong = True
                told = f"the variable {said[1]} is not set; set it, or write ${{{said[1]}:-default}}"
                self._note(node.place, at, told)
            return (said[2] or "") if value is None else value

        filled = _VARIABLE.sub(fill, text)
        if wrong:
            raise _Unread
        if "\x00" in filled:
            raise self._wrong(node, at, "what a variable holds has a NUL character")
        return filled

    def _texts(self, node: JsonNode, at: str) -> tuple[str, ...]:
        if not isinstance(node.value, list):
            raise self._wrong(node, at, f"a list of texts is expected, not {node.kind}")
        found, before = [], len(self.faults)
        for number, each in enumerate(node.value):
            if each.value == "":
                found.append("")
                continue
            try:
                found.append(self._filled(each, f"{at}[{number}]"))
            except _Unread:
                continue
        if len(self.faults) > before:
            raise _Unread
        return tuple(found)

    def _variables(self, node: JsonNode, at: str) -> dict[str, str]:
        found, before = {}, len(self.faults)
        for key, each in self._object(node, at).items():
            if not key or "=" in key or "\x00" in key:
                self._note(node.keys[key], at, f"{key[:80]!r} is no name of a variable")
                continue
            try:
                found[key] = "" if each.value == "" else self._filled(each, f"{at}.{key[:80]}")
            except _Unread:
                continue
        if len(self.faults) > before:
            raise _Unread
        return found

    def _headers(self, node: JsonNode, at: str) -> dict[str, str]:
        found = self._variables(node, at)
        for key, value in found.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", key):
                raise self._wrong(node, at, f"{key[:80]!r} is no name of a header")
            if not value.isascii() or re.search(r"[\r\n\x00]", value):
                raise self._wrong(node.value[key], f"{at}.{key}", "a header is one line of ASCII")
        return found

    def _url(self, node: JsonNode, at: str) -> str:
        url = self._filled(node, at)
        if not URL.fullmatch(url):
            text = "an http or https address is expected, without user, password and fragment, such as https://host/mcp"
            raise self._wrong(node, at, text)
        return url

    def _type(self, node: JsonNode, at: str) -> str:
        kind = self._text(node, at)
        if kind == "sse":
            text = "the transport of 2024 (sse) is not spoken here; give its streamable HTTP address as url"
            raise self._wrong(node, at, text)
        if kind not in TYPES:
            raise self._wrong(node, at, f"unknown type {kind[:80]!r}{meant(kind, TYPES)}")
        return kind

    def _flag(self, node: JsonNode, at: str) -> bool:
        if not isinstance(node.value, bool):
            raise self._wrong(node, at, f"true or false is expected, not {node.kind}")
        return node.value

    def _timeout(self, node: JsonNode, at: str) -> float:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
            raise self._wrong(node, at, "seconds are expected: a number above 0, at most 86400")
        return float(value)

    def _effect(self, node: JsonNode, at: str) -> str | dict[str, str]:
        """What its tools do to the world: for all, the most that is believed; for single ones, what holds."""
        if isinstance(node.value, dict):
            found = {tool: self._one_effect(each, f"{at}.{tool[:80]}") for tool, each in node.value.items()}
            return found
        return self._one_effect(node, at)

    def _one_effect(self, node: JsonNode, at: str) -> str:
        if node.value not in EFFECTS:
            said = f"{str(node.value)[:80]!r}" if isinstance(node.value, str) else node.kind
            raise self._wrong(node, at, f"one of {', '.join(EFFECTS)} is expected, not {said}")
        return str(node.value)
