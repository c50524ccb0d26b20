"""A team in YAML: agents, and which of the tools that ship with Antiphon they have.

    entry: desk                       # who is asked; the first agent unless given
    model: openai:gpt-4.1-mini        # for agents without one; optional
    endpoints:                        # how models are asked, by provider, model string or "*"; optional
      openai: {concurrency: 8, requests_per_minute: 500, retry: {max_attempts: 5}}
    agents:
      - name: desk
        instructions: You receive every question.
        can_call: [archivist]
      - name: archivist
        description: knows the files
        tools: [files, calculate]     # toolsets, single tools, MCP servers or single tools of these

Read without building any object but texts, numbers and lists; every error says line and column.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec
import yaml
from msgspec import Struct

from antiphon import Agent, Example, Limits, LoopOptions, ModelOptions, RetryPolicy, Tool
from antiphon.config.dotenv import environment
from antiphon.config.yaml import YamlReader, compose_file, is_null, meant
from antiphon.errors import AntiphonError, ConfigError, UserError
from antiphon.models.endpoints.choice import key_of
from antiphon.tools import (
    calculate,
    convert,
    date_tools,
    edit_tools,
    folder_tools,
    grep_output,
    read_output,
)
from antiphon.tools.folder.files import file_tools
from antiphon.tools.folder.review import review_tool
from antiphon.tools.folder.root import Root
from antiphon.tools.mcp import McpServer, named_toolsets, server_of
from antiphon.values.agent import EndpointOptions
from antiphon.values.tool.toolset import Toolset

if TYPE_CHECKING:
    from antiphon.tools.knowledge import Federation

SETS = (
    "documents",
    "files",
    "edits",
    "shell",
    "knowledge",
    "arithmetic",
    "dates",
    "units",
    "outputs",
    "web",
    "rag_tools",
    "file_system_tools",
    "jina_search_and_visit",
)
"""Toolsets; the last ones are what profiles of the documented generation call theirs."""
READING = (
    "search_documents", "list_files", "read_lines", "count_text", "folder_statistics", "grep_files",
    "find_files", "view_image", "attach_file",
)  # fmt: skip
EDITING = ("edit_file", "write_file", "move_file", "delete_file")
JOBS = ("list_jobs", "read_job", "stop_job")
KNOWLEDGE = ("search_knowledge", "list_sources", "read_document")
RAG = ("rag_query", "list_rag_sources")
WORKSPACE = ("write_file", "review_workspace_files")
WEB = ("web_search", "visit_url")

_TEAM = ("entry", "model", "endpoints", "agents")
_FIELDS: Mapping[str, Any] = {
    "name": str,
    "instructions": str,
    "description": str,
    "model": str,
    "can_call": tuple[str, ...],
    "completion": str,
    "tool_execution": str,
    "examples": tuple[Example, ...],
    "limits": Limits,
    "loop": LoopOptions,
}
"""Fields of an agent as they are written, beside `tools` and `asking`, and what they are."""
_ASKING: Mapping[str, Any] = {
    "max_output_tokens": int,
    "settings": dict[str, Any],
    "fallback_models": tuple[str, ...],
    "retry": RetryPolicy,
    "tool_choice": str,
}
"""The same of ModelOptions."""
_ENDPOINT: Mapping[str, Any] = get_type_hints(EndpointOptions)
"""The same of EndpointOptions."""
_STRUCTS = (Limits, LoopOptions, RetryPolicy, Example)


class TeamFile(Struct, frozen=True):
    """What a team file says. `endpoints`: by keys as `antiphon.models.endpoints.choice` looks them up."""

    entry: str
    agents: tuple[Agent, ...]
    endpoints: Mapping[str, EndpointOptions] = {}


def read_team(
    path: str, folder: str, sources: Callable[[], Federation],
    servers: Callable[[], Mapping[str, McpServer]] = dict,
) -> TeamFile:  # fmt: skip
    """The team in a file; `folder` is what its file tools read, `sources` what its knowledge is.

    Raises ConfigError with file, line and column.
    """
    root = compose_file(path)
    if root is None:
        raise ConfigError("is empty; expected a team with `agents`", path, 1, 1)
    return _TeamFileParser(path, toolbox(folder, sources), servers).team(root)


def toolbox(folder: str, sources: Callable[[], Federation]) -> dict[str, Callable[[], list[Tool]]]:
    """Toolsets and single tools by name; a folder is looked at only when one of its tools is taken."""
    tools: list[Tool] = [calculate, convert, *date_tools(), read_output, grep_output]
    single = {each.name: each for each in tools}

    def of_sources(names: Iterable[str]) -> Callable[[], list[Tool]]:
        return lambda: [each for each in _source_tools(sources()) if each.name in names]

    def of_folder(names: Iterable[str]) -> Callable[[], list[Tool]]:
        return lambda: [each for each in folder_tools(folder) if each.name in names]

    def changing(names: Iterable[str]) -> Callable[[], list[Tool]]:
        return lambda: [each for each in _editing_tools(Root(folder)) if each.name in names]

    def running(names: Iterable[str]) -> Callable[[], list[Tool]]:
        return lambda: [each for each in _running_tools(folder) if each.name in names]

    web = functools.cache(_web_tools)
    box: dict[str, Callable[[], list[Tool]]] = {
        "documents": of_folder(READING[:1]),
        "files": of_folder(READING[1:]),
        "edits": changing(EDITING),
        "shell": running(("shell", *JOBS)),
        "knowledge": of_sources(KNOWLEDGE),
        "arithmetic": lambda: [calculate],
        "dates": date_tools,
        "units": lambda: [convert],
        "outputs": lambda: [read_output, grep_output],
        "web": web,
        "rag_tools": of_sources(RAG),
        "file_system_tools": lambda: _workspace_tools(folder),
        "jina_search_and_visit": web,
    }
    box.update({name: of_folder((name,)) for name in READING})
    box.update({name: changing((name,)) for name in EDITING})
    box.update({name: running((name,)) for name in JOBS})
    box.update({name: of_sources((name,)) for name in (*KNOWLEDGE, *RAG)})
    box.update({name: lambda name=name: _workspace_tools(folder, name) for name in WORKSPACE})  # type: ignore[misc]
    box.update({name: lambda name=name: _web_tool(web(), name) for name in WEB})  # type: ignore[misc]
    box.update({name: lambda found=found: [found] for name, found in single.items()})  # type: ignore[misc]
    return box


def check_sets(servers: Iterable[str], names: Iterable[str] = SETS) -> None:
    """Raise ConfigError where an MCP server has the name of a set: nobody could say which is meant."""
    for name in servers:
        if name in names:
            raise ConfigError(
                f"{name!r} is a set of tools that comes with Antiphon, and an MCP server; rename the server"
            )


def _editing_tools(root: Root) -> list[Tool]:
    """Tools that change files, as a file names them: nobody handed them over in code, so a policy asks."""
    return [msgspec.structs.replace(each, trusted=False) for each in edit_tools(root)]


def _running_tools(folder: str) -> list[Tool]:
    """Tools that run commands, as a file names them: what acts is asked for."""
    # Not at import: most teams run no commands.
    from antiphon.tools.shell import shell_tools

    return [msgspec.structs.replace(each, trusted=not each.has_side_effects) for each in shell_tools(folder)]


def _workspace_tools(folder: str, only: str = "") -> list[Tool]:
    """`file_system_tools`: what is read with `read_lines`, can be written anew with `write_file`."""
    root = Root(folder)
    found = [*_editing_tools(root), review_tool(root), *file_tools(root)]
    return [each for each in found if each.name in ((only,) if only else (*WORKSPACE, "read_lines"))]


def _web_tools() -> list[Tool]:
    """`visit_url`, and `web_search` where the settings name somebody who searches. Raises ConfigError."""
    from antiphon.tools.web import web_tools
    from antiphon.tools.web.search import configured_search

    return web_tools(search=configured_search(environment()))


def _web_tool(found: list[Tool], name: str) -> list[Tool]:
    chosen = [each for each in found if each.name == name]
    if not chosen:
        from antiphon.tools.web.search import PROVIDERS

        keys = ", ".join(each.variable for each in PROVIDERS.values())
        raise ConfigError(f"{name} needs somebody who searches: set one of {keys} in the environment or .env")
    return chosen


def _source_tools(federation: Federation) -> list[Tool]:
    # Not at import: most teams search no sources.
    from antiphon.tools.knowledge import knowledge_tools, rag_tools

    return [*knowledge_tools(federation), *rag_tools(federation)]


class _TeamFileParser(YamlReader):
    """Nodes to agents."""

    def __init__(
        self, path: str, box: Mapping[str, Callable[[], list[Tool]]],
        servers: Callable[[], Mapping[str, McpServer]],
    ) -> None:  # fmt: skip
        super().__init__(path)
        self._plain = yaml.SafeLoader("")
        self._toolbox, self._servers = box, servers

    def team(self, root: yaml.Node) -> TeamFile:
        pairs = self.values(root, "a team", _TEAM)
        if "agents" not in pairs:
            raise self.wrong(root, "`agents` is missing: a list of agents, each with a name")
        model = self.plain(pairs["model"], str, "model") if "model" in pairs else None
        listed = pairs["agents"]
        if not isinstance(listed, yaml.SequenceNode) or not listed.value:
            raise self.wrong(listed, "`agents` is a list of agents, each starting with '- name: ...'")
        agents: dict[str, Agent] = {}
        nodes: list[tuple[Agent, yaml.Node]] = []
        for node in listed.value:
            agent = self.agent(node, model)
            if agent.name in agents:
                raise self.wrong(node, f"two agents are named {agent.name!r}; names must differ")
            agents[agent.name] = agent
            nodes.append((agent, node))
        for agent, node in nodes:
            for name in agent.can_call:
                if name not in ("*", "user") and name not in agents:
                    place = self.values(node, "an agent")["can_call"]
                    raise self.wrong(place, f"can_call names {name!r}{meant(name, agents)}")
        team = tuple(agents.values())
        endpoints = self.endpoints(pairs["endpoints"], team) if "endpoints" in pairs else {}
        if "entry" not in pairs:
            return TeamFile(team[0].name, team, endpoints)
        entry = self.plain(pairs["entry"], str, "entry")
        if entry not in agents:
            raise self.wrong(
                pairs["entry"], f"the entry {entry!r} is none of the agents{meant(entry, agents)}"
            )
        return TeamFile(entry, team, endpoints)

    def endpoints(self, node: yaml.Node, agents: tuple[Agent, ...]) -> dict[str, EndpointOptions]:
        specs = [each for agent in agents for each in (agent.model, *agent.asking.fallback_models)]
        models = [each for each in specs if isinstance(each, str)]
        found: dict[str, EndpointOptions] = {}
        for name, (place, value) in self.pairs(node, "endpoints").items():
            said = self.values(value, name, _ENDPOINT)
            fields = {each: self.plain(held, _ENDPOINT[each], each) for each, held in said.items()}
            try:
                key = key_of(name, models)
                options = EndpointOptions(**fields)
            except UserError as error:
                raise self.wrong(place, f"endpoints: {error}") from None
            if key in found:
                raise self.wrong(place, f"endpoints: {key} stands here twice, under two names")
            found[key] = options
        return found

    def agent(self, node: yaml.Node, model: str | None) -> Agent:
        pairs = self.values(node, "an agent", (*_FIELDS, "asking", "tools"))
        if "name" not in pairs:
            raise self.wrong(node, "an agent needs a `name`")
        fields = {key: self.plain(value, _FIELDS[key], key) for key, value in pairs.items() if key in _FIELDS}
        for key, choices in (
            ("completion", ("text", "finish")),
            ("tool_execution", ("parallel", "sequential", "ordered", "single")),
        ):
            if key in fields and fields[key] not in choices:
                raise self.wrong(pairs[key], f"{key} is {fields[key]!r}; it is one of: {', '.join(choices)}")
        fields.setdefault("model", model)
        if "asking" in pairs:
            asked = self.values(pairs["asking"], "asking", _ASKING)
            options = {key: self.plain(value, _ASKING[key], key) for key, value in asked.items()}
            try:
                fields["asking"] = ModelOptions(**options)
            except UserError as error:
                raise self.wrong(pairs["asking"], f"asking: {error}") from None
        if "tools" in pairs:
            fields["tools"] = self.tools(pairs["tools"])
        try:
            return Agent(**fields)
        except AntiphonError as error:
            raise self.wrong(pairs["name"], str(error)) from None

    def tools(self, node: yaml.Node) -> list[Tool | Toolset]:
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, "`tools` is a list of names")
        found: dict[str, Tool] = {}
        of_servers: list[str] = []
        for each in node.value:
            name = self.plain(each, str, "a tool's name")
            try:
                if name not in self._toolbox:
                    of_servers.append(self._of_server(name))
                    continue
                if name in SETS:
                    check_sets(self._known_servers(), (name,))
                found.update({tool.name: tool for tool in self._toolbox[name]()})
            except ConfigError as error:
                raise self.wrong(each, str(error)) from error
        return [*found.values(), *(named_toolsets(of_servers, self._servers()) if of_servers else ())]

    def _known_servers(self) -> Iterable[str]:
        """The names of servers; none where their file is wrong, which is told when one of them is named."""
        try:
            return tuple(self._servers())
        except ConfigError:
            return ()

    def _of_server(self, name: str) -> str:
        """The name of a server or of a tool of it. Raises ConfigError: of none, or they cannot be read."""
        servers = self._servers()
        if server_of(name, servers) is None:
            single = ", ".join(key for key in self._toolbox if key not in SETS)
            known = (
                f"Toolsets: {', '.join(SETS)}. Tools: {single}. MCP servers: {', '.join(servers) or 'none'}"
            )
            raise ConfigError(f"unknown tool {name!r}. {known}")
        return name

    def plain(self, node: yaml.Node, kind: Any, what: str) -> Any:
        """The value of a node as `kind`."""
        if kind is str and isinstance(node, yaml.ScalarNode) and not is_null(node):
            return node.value
        self.check_keys(node, kind, what)
        try:
            value = self._plain.construct_document(node)
        except (yaml.YAMLError, ValueError) as error:
            raise self.wrong(node, f"{what}: {' '.join(str(error).split())[:200]}") from None
        try:
            found = msgspec.convert(value, kind)
            # A journal's limits are read whatever their numbers are; a person's are checked as a program's.
            return Limits(**msgspec.structs.asdict(found)) if isinstance(found, Limits) else found
        except (msgspec.ValidationError, UserError) as error:
            raise self.wrong(node, f"{what}: {error}") from None

    def check_keys(self, node: yaml.Node, kind: Any, what: str) -> None:
        """No key twice, at any depth, and none that a struct does not have."""
        if isinstance(node, yaml.MappingNode):
            known = next((each.__struct_fields__ for each in _STRUCTS if each in (kind, *get_args(kind))), ())
            for value in self.values(node, what, known).values():
                self.check_keys(value, Any, what)
        elif isinstance(node, yaml.SequenceNode):
            for each in node.value:
                self.check_keys(each, Example if kind == tuple[Example, ...] else Any, what)
