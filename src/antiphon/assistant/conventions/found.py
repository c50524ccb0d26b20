"""All that people wrote for agents in a folder: found, read, and without what is not trusted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from antiphon.assistant.conventions.commands import UserCommand, find_commands
from antiphon.assistant.conventions.guidance import guidance
from antiphon.assistant.conventions.places import (
    AGENTS,
    folders_down_to,
    read_inside,
    state_folder,
    user_folder,
)
from antiphon.assistant.conventions.rules import read_rules
from antiphon.assistant.conventions.skills import Skill, find_skills
from antiphon.assistant.conventions.trust import TrustedThing, TrustStore, thing
from antiphon.assistant.hooks.file import HookCommand, read_hooks
from antiphon.config.yaml import read_text
from antiphon.errors import ConfigError
from antiphon.tools.mcp import McpConfigError, McpServer, read_servers
from antiphon.tools.mcp.config import PINS_FILE, PROJECT_FILE, USER_FILE
from antiphon.values.policy import StandingRule

HOOKS, RULES = "hooks.json", "rules.yaml"
"""Files in the folder AGENTS of a project, and in the user's own."""


class Conventions:
    """What holds for a folder, as it is when this is made; guidance and skills as they are when asked for.

    faults: what is wrong with files, each with its place. untrusted: what of the project can run code, and is
    left out until it is trusted.
    """

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder, self._env = folder, env
        self.folders = folders_down_to(folder)
        self.user = user_folder(env)
        self.trust = TrustStore(state_folder(folder, env))
        self.faults: list[ConfigError] = []
        self.untrusted: list[TrustedThing] = []
        self.skills, faults = find_skills(self._places("skills"))
        self.faults += faults
        self.commands = self._commands()
        self.hooks = self._hooks()
        self.servers = self._servers()
        self.rules = self._rules()

    def guidance(self) -> str:
        """What AGENTS.md and its kind say now."""
        return guidance(self.user, self.folders)

    def skills_now(self) -> dict[str, Skill]:
        """The skills as they are now."""
        return find_skills(self._places("skills"))[0]

    def trust_all(self) -> None:
        """Trust what is not trusted, as it was read; it counts where this is made anew. Raises
        ConfigError."""
        self.trust.add(self.untrusted)

    def _places(self, name: str) -> list[tuple[Path, Path | None]]:
        """Folders of that name, the user's first; what stands nearer counts more, and is later. Beside each
        what its files must lie in."""
        root = self.folders[0]
        return [(self.user / name, None), *((each / AGENTS / name, root) for each in self.folders)]

    def _files(self, name: str) -> Iterator[tuple[Path, str, bool]]:
        """The user's file of that name and the project's, each with its text, and whether it is the
        user's."""
        for path in (self.user / name, *(each / AGENTS / name for each in self.folders)):
            if path.is_file():
                own = path.parent == self.user
                try:
                    yield path, read_text(path) if own else read_inside(path, self.folders[0]), own
                except ConfigError as error:
                    self.faults.append(error)

    def _is_trusted(self, found: TrustedThing) -> bool:
        known = self.trust.has(found)
        if not known:
            self.untrusted.append(found)
        return known

    def _commands(self) -> dict[str, UserCommand]:
        found, faults = find_commands(self._places("commands"))
        self.faults += faults
        return {name: each for name, each in found.items() if self._may_run(each)}

    def _may_run(self, each: UserCommand) -> bool:
        if not each.scripts or each.path.is_relative_to(self.user):
            return True
        return self._is_trusted(thing("command", each.path, self.folder, each.body, each.scripts))

    def _hooks(self) -> tuple[HookCommand, ...]:
        found: list[HookCommand] = []
        for path, text, own in self._files(HOOKS):
            hooks, faults = read_hooks(text, os.fspath(path))
            self.faults += faults
            lines = [each.command for each in hooks]
            if hooks and (own or self._is_trusted(thing("hooks", path, self.folder, text, lines))):
                found += hooks
        return tuple(found)

    def _rules(self) -> tuple[StandingRule, ...]:
        found: list[StandingRule] = []
        for path, text, own in self._files(RULES):
            rules, faults = read_rules(text, os.fspath(path))
            self.faults += faults
            allowing = [each.id for each in rules if each.verdict == "allow"]
            trusted = (
                own
                or not allowing
                or self._is_trusted(thing("rules that allow", path, self.folder, text, allowing))
            )
            found += [each for each in rules if trusted or each.verdict != "allow"]
        return tuple(found)

    def _servers(self) -> dict[str, McpServer]:
        found: dict[str, McpServer] = {}
        pins = os.fspath(self.user / PINS_FILE)
        for path in (self.user / USER_FILE, *(each / PROJECT_FILE for each in self.folders)):
            if not path.is_file():
                continue
            try:
                servers = read_servers(path, self._env, pins=pins)
                if path.parent != self.user:
                    text = read_inside(path, self.folders[0])
                    if not self._is_trusted(thing("MCP servers", path, self.folder, text, _started(text))):
                        continue
            except McpConfigError as error:
                self.faults += error.faults
            except ConfigError as error:
                self.faults.append(error)
            else:
                found |= servers
        return found


class _Started(Struct):
    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""


class _Servers(Struct):
    servers: dict[str, _Started] = msgspec.field(name="mcpServers")


def _started(text: str) -> list[str]:
    """What the servers in a file start or ask, as it is written there, without what variables hold."""
    found = msgspec.json.decode(text, type=_Servers).servers
    return [each.url or shlex.join([each.command, *each.args]) for each in found.values()]
