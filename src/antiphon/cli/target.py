"""What a run is asked of: a team file, a folder of profiles, or an object in the user's own code.

The only module that imports user code, and only what the command line names.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from antiphon import Agent, Tool
from antiphon.cli.display import output
from antiphon.cli.store import knowledge_store
from antiphon.config.dotenv import environment
from antiphon.errors import AntiphonError, ConfigError
from antiphon.models import default_model
from antiphon.models.endpoints import read_endpoints
from antiphon.models.endpoints.choice import above
from antiphon.values.agent import EndpointOptions
from antiphon.view.graph import Graph

if TYPE_CHECKING:
    from antiphon.tools.knowledge import Federation, KnowledgeLibrary
    from antiphon.tools.mcp import McpServer

FORMS = (
    "a team file (team.yaml), a folder of profiles (folder:NAME begins with that profile), file.py:name or "
    "package.module:name"
)
IN_CODE = "team.py"
"""The file of a folder whose `team` the folder stands for."""


class Target(Struct, frozen=True):
    """A team that can be asked. `entry`: who is asked. `text`: the target as it was given.

    graph: the team's own word on who reaches whom, None without one. findings: what is wrong with its files,
    errors first; told when a run of it begins. endpoints: what its file says of them.
    """

    text: str
    entry: str
    agents: tuple[Agent, ...]
    graph: Graph | None = None
    findings: tuple[str, ...] = ()
    endpoints: Mapping[str, EndpointOptions] = {}
    source: Any = None

    def with_endpoints(self, texts: Sequence[str], model: str | None) -> dict[str, EndpointOptions] | None:
        """What the command line says of endpoints goes before what the file says; None when nobody says it.

        model: asked by every agent instead of its own. Raises ConfigError.
        """
        if not texts:
            return dict(self.endpoints) or None
        specs = [each for agent in self.agents for each in (agent.model, *agent.asking.fallback_models)]
        with suppress(ConfigError):
            specs.append(default_model(environment()))
        models = [each for each in (model, *specs) if isinstance(each, str)]
        return above(read_endpoints(texts, models, "--endpoint"), self.endpoints) or None

    def tell_findings(self) -> None:
        """Write them to the error output."""
        for each in self.findings:
            output.tell(each)


def load_target(text: str, folder: str | None = None, library: KnowledgeLibrary | None = None) -> Target:
    """The team that `text` names; `folder` is what its file tools may read (default: here).

    library: where its sources of knowledge are opened; None: for it alone. Raises ConfigError that says what
    is wrong and where, in the user's file when it is there.
    """
    sources = _sources(folder or ".", library)
    if Path(text).is_dir():
        return _of_folder(text, folder, sources)
    if text.endswith((".yaml", ".yml")):
        return _of_file(text, folder or ".", sources, own_servers)
    place, colon, name = text.rpartition(":")
    if place and name and Path(place).is_dir():
        return _of_folder(place, folder, sources, name)
    if not colon or not place or not name:
        raise ConfigError(f"{text!r} names no target; it is {FORMS}{_candidates(text)}")
    module = _from_file(place) if place.endswith(".py") else _from_module(place)
    return _team(text, _attribute(module, place, name), folder)


def _sources(
    folder: str, library: KnowledgeLibrary | None, project: str = "", owner: str = "",
    named: Mapping[str, Path] = {},
) -> Callable[[], Federation]:  # fmt: skip
    """The sources of knowledge of a team, opened when a tool that searches them is taken."""

    @functools.cache
    def found() -> Federation:
        from antiphon.tools.knowledge import KnowledgeKey, KnowledgeLibrary

        opening = library if library is not None else KnowledgeLibrary(knowledge_store(environment()))
        return opening.federation(KnowledgeKey(project, owner), folder, named)

    return found


def own_servers() -> dict[str, McpServer]:
    """The MCP servers of whoever sits here, in this folder. Raises McpConfigError."""
    from antiphon.tools.mcp import configured_servers

    return configured_servers(".", environment())


def _of_folder(
    text: str, folder: str | None, sources: Callable[[], Federation], entry: str | None = None
) -> Target:
    """The team in a folder: `team` of its team.py, or what its profiles describe with the tools that ship.

    entry: who is asked instead of the first.
    """
    home = Path(text)
    if (home / IN_CODE).is_file():
        return _entered(load_target(f"{home / IN_CODE}:team", folder), entry)
    if not (home / "profiles").is_dir():
        raise ConfigError(
            f"{text} is a folder without a {IN_CODE} and without profiles/; a target is {FORMS}"
        )
    found = _of_profiles(home, folder or ".", sources, entry, own_servers())
    return replace(found, text=f"{text}:{entry}" if entry else text)


def load_declared(
    path: Path, folder: Path, library: KnowledgeLibrary | None = None, *, project: str = "", owner: str = "",
    knowledge: Mapping[str, Path] = {}, servers: Mapping[str, McpServer] = {},
) -> Target:  # fmt: skip
    """The team that a YAML file or a folder of profiles declares; nothing of it is ever imported.

    project, owner: whose sources of knowledge it searches, knowledge: folders beside these, by name. servers:
    the MCP servers that it may name; they are programs and credentials of whoever sits here. Raises
    ConfigError, also where it is, or brings, Python.
    """
    text, sources = os.fspath(path), _sources(os.fspath(folder), library, project, owner, knowledge)
    if path.is_dir():
        if (path / IN_CODE).exists():
            raise ConfigError(f"holds {IN_CODE}; what is not on the command line is never imported", text)
        if not (path / "profiles").is_dir():
            raise ConfigError("is a folder without profiles/", text)
        return _of_profiles(path, os.fspath(folder), sources, servers=servers)
    if not text.endswith((".yaml", ".yml")):
        raise ConfigError("is neither a team file (YAML) nor a folder of profiles", text)
    return _of_file(text, os.fspath(folder), sources, lambda: servers)


def _of_file(
    text: str, folder: str, sources: Callable[[], Federation],
    servers: Callable[[], Mapping[str, McpServer]] = dict,
) -> Target:  # fmt: skip
    """The team that a YAML file describes, with the tools that ship and those of servers."""
    # Not at import, as below: most commands read no team, and the tools that ship take as long as the rest.
    from antiphon.cli.team_file import read_team

    found = read_team(text, folder, sources, functools.cache(servers))
    return Target(text, found.entry, found.agents, endpoints=found.endpoints)


def _of_profiles(
    home: Path, folder: str, sources: Callable[[], Federation], entry: str | None = None,
    servers: Mapping[str, McpServer] = {},
) -> Target:  # fmt: skip
    """The team that the profiles of a folder describe, with the tools that ship and those of servers."""
    from antiphon.cli.team_file import SETS, check_sets, toolbox
    from antiphon.styles.profiles import ProfileTeam
    from antiphon.tools.mcp import mcp_toolset

    check_sets(servers)
    box = toolbox(folder, sources)
    tools = {name: mcp_toolset(each) for name, each in servers.items()} | {name: box[name]() for name in SETS}
    team = ProfileTeam(home, tools=tools, entry=entry)
    return _drawn(f"{home}:{entry}" if entry else os.fspath(home), team)


def _entered(target: Target, entry: str | None) -> Target:
    """The same team, of which another agent is asked."""
    names = [agent.name for agent in target.agents]
    if entry is not None and entry not in names:
        raise ConfigError(f"{target.text}: the entry {entry!r} is none of its agents: {', '.join(names)}")
    return replace(target, entry=entry) if entry else target


def _candidates(text: str) -> str:
    """What a file offers when its name came without an object's."""
    if not (text.endswith(".py") and Path(text).is_file()):
        return ""
    found = [name for name, value in vars(_from_file(text)).items() if _is_team(value) or name == "team"]
    return f". {text} has: {', '.join(f'{text}:{name}' for name in found)}" if found else ""


def _is_team(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, Agent) for each in value)
    return isinstance(value, Agent) or _has_agents(value)


def _has_agents(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "agents", None))


def _from_file(path: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise ConfigError(f"There is no file {path}; a target is {FORMS}")
    name = _module_name(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be imported; give a .py file")
    module = importlib.util.module_from_spec(spec)
    folder = os.fspath(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # Registered under its name, as dataclasses, annotations and pickled types of the user expect it.
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise _broken(error, path) from error
    return module


def _module_name(file: Path) -> str:
    """The file's own name, with a number where another module has it: every folder may have its team.py."""
    own = os.fspath(file.resolve())
    for number in itertools.count(1):
        name = file.stem if number == 1 else f"{file.stem}_{number}"
        known = sys.modules.get(name)
        if known is None or os.path.realpath(getattr(known, "__file__", None) or "") == own:
            return name
    raise AssertionError("there is always a free number")


def _from_module(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            text = f"There is no module {error.name}, neither installed nor in {here}; a target is {FORMS}"
            raise ConfigError(text) from error
        raise _broken(error, name) from error
    except (Exception, SystemExit) as error:
        raise _broken(error, name) from error


def _broken(error: BaseException, target: str) -> ConfigError:
    """The user's code failed: say where, in the last line of it that is not ours or Python's."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        where = _shown(error.filename)
        return ConfigError(f"SyntaxError: {error.msg}", where, error.lineno or 0, error.offset or 0)
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", ours, sys.base_prefix, sys.prefix))
    ]
    if not frames:
        return ConfigError(f"{target}: {text}")
    return ConfigError(
        f"{text} (while loading {target})", _shown(frames[-1].filename), frames[-1].lineno or 0
    )


class TakesNoFolder(ConfigError):
    """A folder was given for a team that reads none."""


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _attribute(module: ModuleType, place: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = sorted(each for each, value in vars(module).items() if _is_team(value) or each == "team")
            listed = ", ".join(known) or "(none)"
            raise ConfigError(f"{place} has no {name}. Agents and teams in it: {listed}")
        found = getattr(found, part)
    return found


def _team(text: str, found: Any, folder: str | None) -> Target:
    if callable(found) and not isinstance(found, Tool | type) and not _is_team(found):
        found = _called(text, found, folder)
    elif folder is not None:
        raise TakesNoFolder(
            f"{text} takes no folder; --folder needs a function team(folder=...) or a team file"
        )
    if isinstance(found, Agent):
        return Target(text, found.name, (found,))
    if _has_agents(found):
        return _drawn(text, found)
    if isinstance(found, Sequence) and _is_team(found):
        return Target(text, found[0].name, tuple(found))
    if (
        isinstance(found, tuple)
        and len(found) == 2
        and isinstance(found[1], list | tuple)
        and _is_team(found[1])
    ):
        entry, agents = found
        name = entry.name if isinstance(entry, Agent) else entry
        if name in [agent.name for agent in agents]:
            return Target(text, str(name), tuple(agents))
        if isinstance(entry, Agent):
            return Target(text, entry.name, (entry, *agents))
        raise ConfigError(f"{text}: the entry {name!r} is none of its agents")
    raise ConfigError(
        f"{text} is a {type(found).__name__}; expected an Agent, a list of Agents, something with "
        "agents() such as an Environment, or a function that returns one of these or (entry, agents)"
    )


def _drawn(text: str, found: Any) -> Target:
    """An environment, a team of profiles: whatever says itself which agents it is, the first one asked."""
    findings = sorted(getattr(found, "findings", ()), key=lambda each: str(each.severity))
    agents = tuple(found.agents())
    drawn = found.graph() if callable(getattr(found, "graph", None)) else None
    return Target(
        text, agents[0].name, agents, drawn, tuple(each.labelled for each in findings), source=found
    )


def _called(text: str, function: Any, folder: str | None) -> Any:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    takes = any(each.name == "folder" or each.kind is each.VAR_KEYWORD for each in parameters)
    if folder is not None and not takes:
        raise TakesNoFolder(f"{text} takes no folder; give the function a parameter `folder`")
    try:
        return function(folder=Path(folder or ".")) if takes else function()
    except AntiphonError:
        raise
    except Exception as error:
        raise _broken(error, text) from error
