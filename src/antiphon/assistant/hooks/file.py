"""Reading which hooks there are: JSON with `hooks`, as other programs have it.

    {"hooks": {
      "PreToolUse": [{"matcher": "edit_file|write_file", "hooks": [{"type": "command", "command": "./may"}]}],
      "Stop": [{"hooks": [{"type": "command", "command": "make lint", "timeout": 60}]}]
    }}

Every fault of a file is found, and said with its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal, get_args

from msgspec import Struct

from antiphon.assistant.hooks.scripts import MAX_SECONDS, SECONDS
from antiphon.config.json_file import JsonNode, JsonPlace, parse_json
from antiphon.config.yaml import meant
from antiphon.errors import ConfigError

HookEvent = Literal["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
OF_TOOLS: tuple[HookEvent, ...] = ("PreToolUse", "PostToolUse")
"""Events whose hooks may say for which tools they are."""
MAX_HOOKS = 100


class HookCommand(Struct, frozen=True):
    """One program that is asked. matcher: which tools it is for, a regular expression on the whole name;
    empty for all. origin: the file and line that say it."""

    event: HookEvent
    command: str
    matcher: str = ""
    seconds: float = SECONDS
    origin: str = ""

    def is_for(self, event: HookEvent, tool: str) -> bool:
        """Whether it is asked at an event, of a tool if there is one."""
        return event == self.event and (not self.matcher or re.fullmatch(self.matcher, tool) is not None)


def read_hooks(text: str, path: str) -> tuple[tuple[HookCommand, ...], tuple[ConfigError, ...]]:
    """The hooks in a file, and what is wrong with it; with any fault there are none."""
    try:
        root = parse_json(text, path)
    except ConfigError as error:
        return (), (error,)
    reader = _HooksReader(path)
    found = reader.whole(root)
    return (() if reader.faults else tuple(found)), tuple(reader.faults)


class _HooksReader:
    """The values of one file. faults: what is wrong in it so far."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.faults: list[ConfigError] = []

    def whole(self, root: JsonNode) -> list[HookCommand]:
        found: list[HookCommand] = []
        given = self._members(root, "", ("hooks",), ("hooks",))
        events = self._members(given["hooks"], "hooks", EVENTS) if "hooks" in given else {}
        for event in EVENTS:
            if event in events:
                found += self._event(event, events[event])
        if len(found) > MAX_HOOKS:
            self._note(root.place, f"holds more than {MAX_HOOKS} hooks")
        return found

    def _event(self, event: HookEvent, node: JsonNode) -> list[HookCommand]:
        found: list[HookCommand] = []
        for group in self._items(node, event):
            known = ("matcher", "hooks") if event in OF_TOOLS else ("hooks", "matcher")
            given = self._members(group, event, known, ("hooks",))
            matcher = self._matcher(event, given["matcher"]) if "matcher" in given else ""
            for each in self._items(given["hooks"], f"{event}: hooks") if "hooks" in given else ():
                made = self._command(event, matcher, each)
                found += [made] if made is not None else []
        return found

    def _command(self, event: HookEvent, matcher: str, node: JsonNode) -> HookCommand | None:
        given = self._members(node, f"{event}: a hook", ("type", "command", "timeout"), ("command",))
        kind = given["type"].value if "type" in given else "command"
        if kind != "command":
            self._note(given["type"].place, f'{event}: the type is "command": nothing else is run')
        seconds = given["timeout"].value if "timeout" in given else SECONDS
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, int | float)
            or not 0 < seconds <= MAX_SECONDS
        ):
            text = f"{event}: timeout is a number of seconds above 0, at most {MAX_SECONDS:g}"
            self._note(given["timeout"].place, text)
            return None
        command = given["command"].value if "command" in given else ""
        if not isinstance(command, str) or not command.strip() or "\x00" in command:
            if "command" in given:
                self._note(
                    given["command"].place, f"{event}: command is a line for sh, a text that is not empty"
                )
            return None
        origin = f"{self._path}:{node.place.line}"
        return HookCommand(event, command, matcher, float(seconds), origin)

    def _matcher(self, event: HookEvent, node: JsonNode) -> str:
        text = node.value
        if text in ("", "*"):
            return ""
        if event not in OF_TOOLS:
            self._note(node.place, f"{event}: a matcher goes with {' and '.join(OF_TOOLS)}; take it out")
            return ""
        try:
            re.compile(text)
        except (re.error, TypeError, RecursionError):
            self._note(node.place, f"{event}: matcher is a regular expression on names of tools")
        return text if isinstance(text, str) else ""

    def _members(
        self, node: JsonNode, what: str, known: Collection[str], needed: Collection[str] = ()
    ) -> Mapping[str, JsonNode]:
        if not isinstance(node.value, dict):
            self._note(node.place, f"{what}: an object {{...}} is expected, not {node.kind}".lstrip(": "))
            return {}
        for key in node.value.keys() - set(known):
            self._note(node.keys[key], f"{what}: unknown key {key[:80]!r}{meant(key, known)}".lstrip(": "))
        for key in set(needed) - node.value.keys():
            self._note(node.place, f'{what}: the key "{key}" is missing'.lstrip(": "))
        return node.value

    def _items(self, node: JsonNode, what: str) -> list[JsonNode]:
        if not isinstance(node.value, list):
            self._note(node.place, f"{what}: a list [...] is expected, not {node.kind}")
            return []
        return node.value

    def _note(self, place: JsonPlace, text: str) -> None:
        self.faults.append(ConfigError(text, self._path, place.line, place.column))
