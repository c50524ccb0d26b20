"""serialize: an environment or a team as one JSON file, and back.

The file holds data only. Which class a role or an action is of, it says by path; the class itself comes
from a list that the reader gives, so that nobody's file decides which code runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from antiphon import Agent
from antiphon.errors import UnknownName, UserError
from antiphon.styles.environment.context import Context
from antiphon.styles.environment.message import Message, from_kernel, messages_json, read_messages, to_kernel
from antiphon.styles.environment.metagpt.cost import CostManager
from antiphon.styles.environment.roles.action import Action
from antiphon.styles.environment.roles.memory import Memory
from antiphon.styles.environment.roles.record import RoleSnapshot
from antiphon.styles.environment.roles.role import Role
from antiphon.styles.environment.topic import topic_of
from antiphon.values.message import Message as KernelMessage
from antiphon.values.result import ActivationInfo

FORMAT = 1
MADE_ANEW = frozenset(
    {
        "actions",
        "context",
        "instruct_types",
        "latest_observed_msg",
        "limits",
        "planner",
        "prefix",
        "rc",
        "role",
        "states",
        "tools",
    }
)
"""Attributes that a class or an environment gives its objects itself."""
T = TypeVar("T", bound=Struct)


class Saveable(Protocol):
    """An environment, as far as a file of it is concerned."""

    name: str
    desc: str
    laps: int | None
    context: Context
    roles: dict[str, Role | Agent]

    @property
    def history(self) -> Memory:
        """All that was published."""

    def views(self) -> tuple[ActivationInfo | None, list[ActivationInfo]]:
        """Its own activation, and those of its roles."""

    def coming(self) -> list[KernelMessage]:
        """What is to be distributed."""

    def role_of(self, agent: str) -> str:
        """The name of the role that an agent of its pool reacts for."""

    def add_role(self, role: Role | Agent) -> None:
        """Add a role."""

    def recall(self, history: Iterable[Message], coming: Iterable[KernelMessage]) -> None:
        """Take what was published earlier, and what is to be distributed."""


class SavedAction(Struct, frozen=True):
    """kind: the path of its class. fields: what JSON can hold of its attributes."""

    kind: str
    fields: dict[str, Any]


class SavedRole(Struct, frozen=True):
    """As an action; data: what is on record of it. An agent has a name and nothing else."""

    kind: str = ""
    agent: str = ""
    fields: dict[str, Any] = {}
    actions: list[SavedAction] = []
    data: dict[str, Any] = {}


class SavedCosts(Struct, frozen=True):
    """What was spent, and may be, in USD and tokens."""

    max_budget: float | None
    total_budget: float
    total_prompt_tokens: int
    total_completion_tokens: int
    total_cost: float


class SavedEnvironment(Struct, frozen=True):
    """unread: messages that somebody has not taken yet, addressed to those."""

    desc: str
    name: str
    laps: int | None
    roles: list[SavedRole]
    history: list[Any]
    unread: list[Any]
    kwargs: dict[str, Any]
    costs: SavedCosts
    format: int = FORMAT


class SavedTeam(Struct, frozen=True):
    """A team with its environment."""

    idea: str
    investment: float | None
    environment: SavedEnvironment


def write(saved: Struct, path: str | os.PathLike[str]) -> None:
    """Write a file that replaces an older one whole, or not at all."""
    beside = Path(f"{os.fspath(path)}.new")
    beside.write_bytes(msgspec.json.encode(saved))
    beside.replace(path)


def read(path: str | os.PathLike[str], kind: type[T]) -> T:
    """What `write` wrote. Raises FileNotFoundError; UserError for what is no such file, and where."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(
            f"{os.fspath(path)} holds no {kind.__name__.removeprefix('Saved').lower()}: {error}"
        ) from error


# -- writing ---------------------------------------------------------------------------------------------


def saved_environment(env: Saveable) -> SavedEnvironment:
    """An environment between two runs. Raises UserError in the middle of one, and for what is not JSON."""
    unread = _unread(env)
    ids = {each.id for each in unread}
    history = [each for each in env.history.storage if each.id not in ids]
    costs = env.context.cost_manager
    return SavedEnvironment(
        env.desc,
        env.name,
        env.laps,
        [_saved_role(role) for role in env.roles.values()],
        msgspec.json.decode(messages_json(history)),
        msgspec.json.decode(messages_json(unread)),
        {name: _as_json(f"context.kwargs.{name}", value) for name, value in env.context.kwargs.items()},
        SavedCosts(
            costs.max_budget,
            costs.total_budget,
            costs.total_prompt_tokens,
            costs.total_completion_tokens,
            costs.total_cost,
        ),
    )


def _unread(env: Saveable) -> list[Message]:
    """What nobody has taken, and what single roles have not: that is addressed to them alone."""
    own, members = env.views()
    if own is not None and own.in_flight:
        raise UserError(f"{env.name} is at work; serialize it between two runs")
    found = [from_kernel(each) for each in env.coming()]
    waiting: dict[str, Message] = {}
    for view in members:
        for each in view.inbox:
            message = waiting.get(each.id)
            if message is None:
                message = waiting[each.id] = from_kernel(each)
                message.send_to = ()
            message.send_to = message.send_to | {env.role_of(view.agent)}
    return [*waiting.values(), *found]


def _saved_role(role: Role | Agent) -> SavedRole:
    if isinstance(role, Agent):
        return SavedRole(agent=role.name)
    data = RoleSnapshot(role).dump()
    actions = [SavedAction(topic_of(type(each)), _fields(each)) for each in role.actions]
    fields = {name: value for name, value in _fields(role).items() if name not in data}
    return SavedRole(topic_of(role), "", fields, actions, data)


def _fields(owner: object) -> dict[str, Any]:
    found = {}
    for name, value in vars(owner).items():
        if name.startswith("_") or name in MADE_ANEW:
            continue
        try:
            found[name] = msgspec.to_builtins(value)
        except (TypeError, ValueError):
            continue
    return found


def _as_json(what: str, value: Any) -> Any:
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"{what} cannot be written as JSON: {error}") from error


# -- reading ---------------------------------------------------------------------------------------------


def fill(
    env: Saveable,
    saved: SavedEnvironment,
    roles: Iterable[type[Role] | Agent],
    actions: Iterable[type[Action]],
) -> None:
    """Make a new environment what was saved. Raises UnknownName for a class that is not listed."""
    if saved.format != FORMAT:
        raise UserError(f"The file has format {saved.format}; this Antiphon reads {FORMAT}")
    listed = list(roles)
    kinds = {topic_of(each): each for each in listed if isinstance(each, type)}
    agents = {each.name: each for each in listed if isinstance(each, Agent)}
    acts = {topic_of(each): each for each in actions}
    for each in saved.roles:
        env.add_role(_listed("agent", each.agent, agents) if each.agent else _role(each, kinds, acts))
    history = msgspec.json.encode(saved.history).decode()
    unread = msgspec.json.encode(saved.unread).decode()
    env.recall(read_messages(history), [to_kernel(each, env.name) for each in read_messages(unread)])
    env.context.kwargs.update(saved.kwargs)
    env.context.cost_manager = CostManager(**msgspec.structs.asdict(saved.costs))


def _role(saved: SavedRole, kinds: Mapping[str, type[Role]], acts: Mapping[str, type[Action]]) -> Role:
    role = _made(_listed("role class", saved.kind, kinds), saved.fields)
    role.set_actions([_made(_listed("action class", each.kind, acts), each.fields) for each in saved.actions])
    RoleSnapshot(role).restore(saved.data, ())
    return role


M = TypeVar("M")


def _listed(what: str, path: str, known: Mapping[str, M]) -> M:
    if path not in known:
        raise UnknownName(what, path, known)
    return known[path]


def _made(kind: type[M], fields: Mapping[str, Any]) -> M:
    try:
        made = kind()
    except TypeError as error:
        raise UserError(
            f"{topic_of(kind)} cannot be made without arguments; give them defaults: {error}"
        ) from error
    for name, value in fields.items():
        setattr(made, name, value)
    return made
