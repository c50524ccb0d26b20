"""project.yaml: what a project is called, whose it is, its teams and the rules for its runs.

    name: Tides
    owner: ada                          # who may see it, beside those who see everything
    teams: [desk, research=team.yaml]   # default: every team of the server
    rules:
    - {tool: "read_*", verdict: allow}
    - {tool: pay, verdict: deny, agent: clerk, arguments: {account: "9*"}}
    mcp_servers: [shop]                 # of those that the server is set up with: its own teams may name them
    knowledge: {handbook: ../handbook}  # folders that its own teams search, beside files/

A team is the name of one that the server was started with, or a YAML file or a folder of profiles inside of
the project, `NAME=` before it unless its file or folder is called so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, get_args

import yaml
from msgspec import Struct

from antiphon.config.yaml import YamlReader, compose, meant
from antiphon.errors import ConfigError, UserError
from antiphon.host.projects.names import parts_of
from antiphon.host.team import check_label
from antiphon.journal.listing import check_name
from antiphon.values.policy import Grant, Ruling, StandingRule

FILE = "project.yaml"
FILES = "files"
"""The folder with what is uploaded: no team is ever read from there."""
MAX_TEAMS = 100
MAX_RULES = 1_000
MAX_NAMED = 100
"""MCP servers, and folders of knowledge."""
_KEYS = ("name", "owner", "teams", "rules", "mcp_servers", "knowledge")
_RULE = ("tool", "verdict", "agent", "arguments")
_SOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_CODE = (".py", ".pyc", ".so", ".pyd")


class ProjectFile(Struct, frozen=True):
    """What project.yaml says."""

    name: str = ""
    """What people call the project."""
    owner: str = ""
    """Whose it is; empty: of nobody in particular."""
    served: tuple[str, ...] | None = None
    """The server's teams that it uses; None: all, as it names none at all."""
    own: Mapping[str, str] = {}
    """Paths of its own teams inside the project, by name."""
    rules: tuple[StandingRule, ...] = ()
    """For its runs."""
    mcp_servers: tuple[str, ...] = ()
    """Names of MCP servers that its own teams may name."""
    knowledge: Mapping[str, str] = {}
    """Folders that its own teams search, by name; relative to the project's."""


def parse(text: str, project: str, path: str) -> ProjectFile:
    """Read it. Raises ConfigError with file, line and column."""
    root = compose(text, path)
    return _ProjectParser(path, project).file(root) if root is not None else ProjectFile()


def written(name: str, owner: str) -> str:
    """The file of a new project."""
    lines = [f"name: {_quoted(name)}\n"] if name else []
    return "".join([*lines, f"owner: {_quoted(owner)}\n" if owner else ""])


def renamed(text: str, project: str, path: str, name: str) -> str:
    """The text with another name and nothing else changed. Raises ConfigError."""
    root = compose(text, path)
    if root is None:
        return text + ("" if not text or text.endswith("\n") else "\n") + f"name: {_quoted(name)}\n"
    node = _ProjectParser(path, project).values(root, "a project", _KEYS).get("name")
    if node is not None:
        begin, end = node.start_mark.index, node.end_mark.index
        old = text[begin:end]
        found = text[:begin] + _quoted(name) + ("\n" if old.endswith("\n") else "") + text[end:]
    elif getattr(root, "flow_style", False):
        at = root.start_mark.index + 1
        found = f"{text[:at]}name: {_quoted(name)}, {text[at:]}"
    else:
        at, indent = root.start_mark.index, " " * root.start_mark.column
        found = f"{text[:at]}name: {_quoted(name)}\n{indent}{text[at:]}"
    if parse(found, project, path).name != name:
        raise ConfigError("cannot be renamed by a program as it is written; change `name` by hand", path)
    return found


def _quoted(text: str) -> str:
    """A text as YAML: what JSON writes of one line is YAML too."""
    return json.dumps(text, ensure_ascii=False)


class _ProjectParser(YamlReader):
    def __init__(self, path: str, project: str) -> None:
        super().__init__(path)
        self._project = project

    def file(self, root: yaml.Node) -> ProjectFile:
        pairs = self.values(root, "a project", _KEYS)
        name = self._one_line(pairs["name"]) if "name" in pairs else ""
        owner = self._label(pairs["owner"], "owner") if "owner" in pairs else ""
        served, own = self._teams(pairs["teams"]) if "teams" in pairs else (None, {})
        rules: list[StandingRule] = []
        if "rules" in pairs:
            nodes = self.items(pairs["rules"], "rules")
            if len(nodes) > MAX_RULES:
                raise self.wrong(pairs["rules"], f"rules: at most {MAX_RULES} are taken")
            rules = [self._rule(each) for each in nodes]
        servers = self._servers(pairs["mcp_servers"]) if "mcp_servers" in pairs else ()
        knowledge = self._knowledge(pairs["knowledge"]) if "knowledge" in pairs else {}
        return ProjectFile(name, owner, served, own, tuple(rules), servers, knowledge)

    def _servers(self, node: yaml.Node) -> tuple[str, ...]:
        nodes = self.items(node, "mcp_servers")
        if len(nodes) > MAX_NAMED:
            raise self.wrong(node, f"mcp_servers: at most {MAX_NAMED} are taken")
        return tuple(dict.fromkeys(self.text(each, "an MCP server") for each in nodes))

    def _knowledge(self, node: yaml.Node) -> dict[str, str]:
        pairs = self.values(node, "knowledge")
        if len(pairs) > MAX_NAMED:
            raise self.wrong(node, f"knowledge: at most {MAX_NAMED} folders are taken")
        for name in pairs:
            if _SOURCE.fullmatch(name) is None:
                said = "a source is named by 1 to 40 letters, digits, dots, dashes, underscores"
                raise self.wrong(node, f"knowledge: {said}; got {name!r}")
        return {name: self.text(each, name) for name, each in pairs.items()}

    def _one_line(self, node: yaml.Node) -> str:
        name = self.text(node, "name")
        try:
            check_name(name, "A project")
        except UserError as error:
            raise self.wrong(node, str(error)) from None
        return name

    def _label(self, node: yaml.Node, what: str) -> str:
        name = self.text(node, what)
        try:
            check_label(what, name)
        except UserError as error:
            raise self.wrong(node, str(error)) from None
        return name

    def _teams(self, node: yaml.Node) -> tuple[tuple[str, ...], dict[str, str]]:
        served: dict[str, None] = {}
        own: dict[str, str] = {}
        nodes = self.items(node, "teams")
        if len(nodes) > MAX_TEAMS:
            raise self.wrong(node, f"teams: at most {MAX_TEAMS} are taken")
        for each in nodes:
            text = self.text(each, "a team")
            name, mark, path = text.partition("=")
            if not mark and not ("/" in text or text.endswith((".yaml", ".yml"))):
                name, path = self._label(each, "team"), ""
            else:
                path = self._own_path(each, path if mark else text)
                name = name if mark else _called(path)
                self._check_team(each, name)
            if name in own or name in served:
                raise self.wrong(each, f"two teams are called {name!r}; write NAME={path or 'PATH'}")
            if path:
                own[name] = path
            else:
                served[name] = None
        return tuple(served), own

    def _check_team(self, node: yaml.Node, name: str) -> None:
        try:
            check_label("team", name)
        except UserError as error:
            raise self.wrong(node, f"{error}. Write NAME=PATH") from None

    def _own_path(self, node: yaml.Node, text: str) -> str:
        """A path inside of the project, and outside of what is uploaded."""
        path = text.removeprefix("./").removesuffix("/")
        if path.partition(":")[0].endswith(_CODE) or path.endswith(_CODE):
            said = "is Python, which a project cannot bring; name it when the server is started"
            raise self.wrong(node, f"the team {text!r} {said}: antiphon serve {text}")
        try:
            parts = parts_of(path)
        except UserError as error:
            raise self.wrong(node, f"a team's path stays inside of the project: {error}") from None
        if parts[0].casefold() == FILES:
            raise self.wrong(node, f"nothing in {FILES}/ is a team, as anybody may upload there; move it")
        return "/".join(parts)

    def _rule(self, node: yaml.Node) -> StandingRule:
        pairs = self.values(node, "a rule", _RULE)
        for needed in ("tool", "verdict"):
            if needed not in pairs:
                raise self.wrong(node, f"a rule needs `{needed}`: {{tool: NAME, verdict: allow|deny|ask}}")
        verdict: Any = self.text(pairs["verdict"], "verdict")
        if verdict not in get_args(Ruling):
            raise self.wrong(pairs["verdict"], f"verdict: {verdict!r}{meant(verdict, get_args(Ruling))}")
        matched = self.values(pairs["arguments"], "arguments") if "arguments" in pairs else {}
        grant = Grant(
            tuple((name, self.text(each, name)) for name, each in matched.items()),
            self.text(pairs["agent"], "agent") if "agent" in pairs else "",
        )
        tool = self.text(pairs["tool"], "tool")
        try:
            return StandingRule(
                f"{FILE}:{node.start_mark.line + 1}", "project", self._project, tool, verdict, grant,
                f"{self._project}/{FILE}",
            )  # fmt: skip
        except UserError as error:
            raise self.wrong(node, str(error)) from None


def _called(path: str) -> str:
    """What a team is called whose file or folder this is; of `research/team.yaml` the folder's name."""
    found = PurePosixPath(path)
    own = found.stem if found.suffix in (".yaml", ".yml") else found.name
    return found.parent.name if own in ("team", "agents") and found.parent.name else own
