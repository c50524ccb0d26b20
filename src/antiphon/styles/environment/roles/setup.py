"""setup: who a role is, what it can do, and what it watches."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal

from antiphon.errors import UserError
from antiphon.styles.environment.message import Message
from antiphon.styles.environment.metagpt.planner import Planner
from antiphon.styles.environment.roles.action import Action
from antiphon.styles.environment.roles.rc import RoleContext, RoleReactMode
from antiphon.styles.environment.topic import addresses_of, topic_of

if TYPE_CHECKING:
    from antiphon.styles.environment.context import Context
    from antiphon.values.actions import ActionContext
    from antiphon.values.limits import Limits
    from antiphon.values.model import Model


class RoleSetup:
    """A role without its cycle, which `Role` adds; the fields are documented there."""

    name: str = ""
    profile: str = ""
    goal: str = ""
    constraints: str = ""
    desc: str = ""
    role_id: str = ""
    is_human: bool = False
    enable_memory: bool = True
    observe_all_msg_from_buffer: bool = False
    recovered: bool = False
    latest_observed_msg: Message | None = None
    consume: Literal["one", "all"] = "one"
    join: int = 1
    pool: int = 1
    llm: str | Model | None = None
    tools: Iterable[Any] = ()
    instruct_types: Collection[Any] = ()
    limits: Limits | None = None
    auto_run: bool = True

    def __init__(self, **fields: Any) -> None:
        for name, default in _own_lists(type(self)):
            setattr(self, name, copy.deepcopy(default))
        self.rc = RoleContext()
        self.actions: list[Action] = []
        self.states: list[str] = []
        self.planner = Planner(self)
        self.context: Context | None = None
        self._addresses: set[str] | None = None
        self._ctx: ActionContext | None = None
        actions, watch = fields.pop("actions", None), fields.pop("watch", None)
        for key, value in fields.items():
            setattr(self, key, value)
        if actions is not None:
            self.set_actions(actions)
        if watch is not None:
            self._watch(watch)

    # -- who it is ---------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """What it is called in its environment: its name, or else its class's."""
        return self.name or type(self).__name__

    @property
    def addresses(self) -> set[str]:
        """Where messages reach it: the path of its class and its name, unless others were set."""
        return (
            self._addresses
            if self._addresses is not None
            else addresses_of({topic_of(type(self)), self.name})
        )

    @property
    def members(self) -> tuple[str, ...]:
        """The agents that react in its name: itself, and the others of its pool."""
        return (self.key, *(f"{self.key}#{number}" for number in range(2, self.pool + 1)))

    def set_addresses(self, addresses: Iterable[Any]) -> None:
        """From now on messages reach it under these addresses only."""
        self._addresses = addresses_of(list(addresses))

    @property
    def ctx(self) -> ActionContext:
        """The reaction at hand: `step`, `ask`, `call`, `question`. Raises UserError between reactions."""
        if self._ctx is None:
            raise UserError(f"{self.key} is not reacting to anything now")
        return self._ctx

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for it."""
        waits = self.rc.env is not None and self.rc.env.waits_for(self)
        return not waits and self._ctx is None and self.rc.msg_buffer.empty()

    @property
    def _setting(self) -> str:
        """Who it is, for a line of the log: `Alice(Coder)`."""
        return f"{self.key}({self.profile})"

    def _get_prefix(self) -> str:
        """What its model is told first."""
        if self.desc:
            return self.desc
        said = f"You are a {self.profile or self.key}, named {self.key}"
        said += f", your goal is {self.goal}." if self.goal else "."
        return f"{said} The constraint is {self.constraints}." if self.constraints else said

    # -- what it does, and when ----------------------------------------------------------------

    def set_action(self, action: Action | type[Action]) -> None:
        """It can do this only."""
        self.set_actions([action])

    def set_actions(self, actions: Iterable[Action | type[Action]]) -> None:
        """It can do these. Raises UserError for what is no Action, or has no `run`."""
        self.actions, self.states = [], []
        for each in actions:
            action = each() if isinstance(each, type) and issubclass(each, Action) else each
            if not isinstance(action, Action):
                raise UserError(f"{self.key}: an action is an Action or a subclass of it; got {each!r}")
            if type(action).run is Action.run and not action.instruction:
                said = f"the action {action.name} has no `run`; write one, or give it an `instruction`"
                raise UserError(f"{self.key}: {said}")
            if action.role is not None and action.role is not self:
                action = copy.copy(action)
            action.role = self
            self.states.append(f"{len(self.actions)}. {action.desc or action.name}")
            self.actions.append(action.set_prefix(self._get_prefix()))

    def _watch(self, actions: Iterable[Any]) -> None:
        """From now on it reacts to these topics: classes of actions, or texts. Raises UserError."""
        several = [actions] if isinstance(actions, str | type) else list(actions)
        for each in several:
            if not isinstance(each, str | Action) and not (
                isinstance(each, type) and issubclass(each, Action)
            ):
                raise UserError(f"{self.key}: a topic is an Action's class or a text; got {each!r}")
        self.rc.watch = addresses_of(several)

    def _set_react_mode(self, react_mode: str, max_react_loop: int = 1, auto_run: bool = True) -> None:
        """How it chooses what to do. Raises UserError for an unknown mode."""
        self.rc.react_mode = RoleReactMode.of(react_mode)
        self.rc.max_react_loop = max_react_loop
        self.auto_run = auto_run

    def _set_state(self, state: int) -> None:
        self.rc.state = state
        self.rc.todo = self.actions[state] if 0 <= state < len(self.actions) else None

    async def run(self, with_message: str | Message | list[str] | None = None) -> Message | None:
        """React to what is new."""
        raise NotImplementedError(f"{type(self).__name__} has no cycle; make it a Role")

    async def _aask(
        self, prompt: str, system_msgs: list[str] | None = None, action: Action | None = None
    ) -> str:
        said = "\n\n".join([*(system_msgs or ()), prompt])
        if self.is_human:
            return await self.ctx.ask_user(said)
        if action is not None and action.llm_name_or_type:
            return await self.ctx.call(own_model_of(self, action), said)
        return await self.ctx.ask_model(said)

    def __str__(self) -> str:
        return f"{self.key} ({self.profile})" if self.profile else self.key


def _own_lists(kind: type[RoleSetup]) -> Iterable[tuple[str, Any]]:
    """Defaults of annotated fields that must not be shared by all roles of a class."""
    for owner in reversed(kind.__mro__):
        for name in inspect.get_annotations(owner):
            default = vars(owner).get(name)
            if isinstance(default, list | dict | set):
                yield name, default


def own_model_of(role: RoleSetup, action: Action) -> str:
    """The agent that an action with a model of its own asks."""
    return f"{role.key}/{action.name}"
