"""Role: observes what it watches, thinks which action is due, acts, and publishes what came of it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from antiphon.errors import UserError
from antiphon.styles.environment.message import AIMessage, Message
from antiphon.styles.environment.metagpt.plan import Task, TaskResult
from antiphon.styles.environment.metagpt.planner import Planner
from antiphon.styles.environment.roles.action import Action
from antiphon.styles.environment.roles.memory import Memory
from antiphon.styles.environment.roles.rc import RoleContext, RoleReactMode
from antiphon.styles.environment.roles.think import choice, question
from antiphon.styles.environment.topic import (
    MESSAGE_ROUTE_TO_SELF,
    addresses_of,
    topic_of,
)

if TYPE_CHECKING:
    from antiphon.styles.environment.context import Context
    from antiphon.values.actions import ActionContext
    from antiphon.values.limits import Limits
    from antiphon.values.model import Model


class Role:
    """One member of an environment. Subclass it; set actions and topics in `__init__`.

    name: how others address it; profile, goal, constraints: what its model is told. is_human: a person
    answers in place of a model. llm: its model, before the settings' and the environment's. tools: what
    its model may use. consume: whether a reaction takes the `one` oldest message, or `all` that wait.
    limits: of one reaction. A subclass's own annotated fields are recorded after every reaction, as far as
    JSON can hold them.

    Fields may be given to the constructor, with `actions` and `watch`; unknown ones become attributes.
    """

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
    llm: str | Model | None = None
    tools: Iterable[Any] = ()
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
            if type(action).run is Action.run:
                raise UserError(f"{self.key}: the action {action.name} has no `run`; write one")
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

    # -- its cycle -----------------------------------------------------------------------------

    async def run(self, with_message: str | Message | list[str] | None = None) -> Message | None:
        """React to what is new, and to `with_message`; None when there is nothing.

        In an environment it is run by `Environment.run`; called by hand, it reacts on its own, once.
        """
        if self._ctx is None:
            from antiphon.styles.environment.roles.alone import run_alone

            return await run_alone(self, with_message)
        if with_message is not None:
            self.rc.msg_buffer.push(message_of(with_message))
        if not await self._observe():
            return None
        try:
            response = await self.react()
        except Exception:
            # What failed is done first when it reacts to the same again.
            self.recovered = self.rc.state >= 0
            for message in self.rc.news:
                if message in self.rc.memory.storage:
                    self.rc.memory.delete(message)
            raise
        self.rc.todo, self.rc.news = None, []
        self.publish_message(response)
        return response

    async def _observe(self) -> int:
        """Take what was delivered; how much of it is news."""
        batch = self.rc.msg_buffer.pop_all()
        heard = Memory(each for each in batch if self._concerns(each)).storage
        # It remembers what it said; that is news all the same when it comes back to it.
        news = [each for each in heard if each.sent_from == self.key or self.rc.memory.find_news([each])]
        if self.enable_memory:
            self.rc.memory.add_batch(batch if self.observe_all_msg_from_buffer else news)
        self.rc.news = news
        self.latest_observed_msg = news[-1] if news else self.latest_observed_msg
        return len(news)

    def _concerns(self, message: Message) -> bool:
        # What is delivered to one that does not listen to everything is always for it.
        if not self.observe_all_msg_from_buffer:
            return True
        return message.cause_by in self.rc.watch or bool(message.send_to & (self.addresses | {self.key}))

    async def _think(self) -> bool:
        """Choose the next action; whether there is one."""
        if self.recovered and self.rc.state >= 0:
            self.recovered = False
            self._set_state(self.rc.state)
            return self.rc.todo is not None
        if len(self.actions) < 2:
            self._set_state(0 if self.actions else -1)
        elif self.rc.react_mode is RoleReactMode.BY_ORDER:
            following = self.rc.state + 1
            self._set_state(following if following < len(self.actions) else -1)
        else:
            said = await self._aask(question(self))
            self._set_state(choice(said, len(self.actions)))
        return self.rc.todo is not None

    async def _act(self) -> Message:
        """Do what is due; what came of it as a message, which is remembered."""
        todo = self.rc.todo
        if todo is None:
            raise UserError(f"{self.key} has nothing to do; `_think` chooses an action first")
        found = await todo.run(self.rc.history)
        if isinstance(found, Message):
            message = found
            if not message.caused:
                message.cause_by = todo
        elif found is None or isinstance(found, str):
            message = AIMessage(found or "", cause_by=todo)
        else:
            message = AIMessage("", instruct_content=found, cause_by=todo)
        message.sent_from = message.sent_from or self.key
        self.rc.memory.add(message)
        return message

    async def react(self) -> Message | None:
        """Think and act until nothing is due; the last message, None when it did nothing."""
        response: Message | None
        if self.rc.react_mode is RoleReactMode.PLAN_AND_ACT:
            response = await self._plan_and_act()
        else:
            response = await self._react()
        self._set_state(-1)
        return response

    async def _react(self) -> Message | None:
        response, done = None, 0
        if self.rc.react_mode is RoleReactMode.BY_ORDER:
            self.rc.max_react_loop = len(self.actions)
        while done < self.rc.max_react_loop and await self._think():
            response = await self._act()
            done += 1
        return response

    async def _plan_and_act(self) -> Message | None:
        """Make a plan for what was asked, and work on one task after the other."""
        goal = self.rc.history[-1].content if self.rc.history else ""
        await self.planner.update_plan(goal)
        while (task := self.planner.current_task) is not None:
            result = await self._act_on_task(task)
            await self.planner.process_task_result(result)
        response = AIMessage(self.planner.summary(), cause_by=type(self), sent_from=self.key)
        self.rc.memory.add(response)
        return response

    async def _act_on_task(self, current_task: Task) -> TaskResult:
        """Work on one task of the plan; write it for a role that plans."""
        raise NotImplementedError(f"{type(self).__name__} plans, and so needs `_act_on_task`")

    def _set_state(self, state: int) -> None:
        self.rc.state = state
        self.rc.todo = self.actions[state] if 0 <= state < len(self.actions) else None

    # -- what it says ----------------------------------------------------------------------------

    def get_memories(self, k: int = 0) -> list[Message]:
        """The last `k` messages it remembers, all for 0."""
        return self.rc.memory.get(k)

    def publish_message(self, message: Message | None) -> None:
        """Publish to its environment; without one nothing is sent. None is nothing."""
        if message is None:
            return
        if MESSAGE_ROUTE_TO_SELF in message.send_to:
            message.send_to = (message.send_to - {MESSAGE_ROUTE_TO_SELF}) | {topic_of(type(self))}
        message.sent_from = message.sent_from or self.key
        if self.rc.env is not None:
            self.rc.env.publish_message(message)

    def put_message(self, message: Message | None) -> None:
        """Leave a message for it alone. None is nothing."""
        if message is None:
            return
        if self.rc.env is not None:
            message.send_to = {self.key}
            self.rc.env.publish_message(message)
        else:
            self.rc.msg_buffer.push(message)

    async def _aask(
        self, prompt: str, system_msgs: list[str] | None = None, action: Action | None = None
    ) -> str:
        said = "\n\n".join([*(system_msgs or ()), prompt])
        if self.is_human:
            return await self.ctx.question(said)
        if action is not None and action.llm_name_or_type:
            return await self.ctx.call(own_model_of(self, action), said)
        return await self.ctx.ask(said)

    def __str__(self) -> str:
        return f"{self.key} ({self.profile})" if self.profile else self.key


def _own_lists(kind: type[Role]) -> Iterable[tuple[str, Any]]:
    """Defaults of annotated fields that must not be shared by all roles of a class."""
    for owner in reversed(kind.__mro__):
        for name in inspect.get_annotations(owner):
            default = vars(owner).get(name)
            if isinstance(default, list | dict | set):
                yield name, default


def own_model_of(role: Role, action: Action) -> str:
    """The agent that an action with a model of its own asks."""
    return f"{role.key}/{action.name}"


def message_of(said: str | Message | list[str]) -> Message:
    """What somebody says, as a message: a text, several lines, or a message as it is."""
    if isinstance(said, Message):
        return said
    return Message("\n".join(said) if isinstance(said, list) else said)
