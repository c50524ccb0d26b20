"""Role: observes what it watches, thinks which action is due, acts, and publishes what came of it."""

from __future__ import annotations

from antiphon.errors import UserError
from antiphon.styles.environment.log import log_taken_up
from antiphon.styles.environment.message import AIMessage, Message, message_of
from antiphon.styles.environment.metagpt.plan import Task, TaskResult
from antiphon.styles.environment.roles.action import Action
from antiphon.styles.environment.roles.alone import run_alone, work_alone
from antiphon.styles.environment.roles.memory import Memory
from antiphon.styles.environment.roles.rc import RoleReactMode
from antiphon.styles.environment.roles.setup import RoleSetup
from antiphon.styles.environment.roles.think import choice, question
from antiphon.styles.environment.topic import MESSAGE_ROUTE_TO_SELF, topic_of


class Role(RoleSetup):
    """One member of an environment. Subclass it; set actions and topics in `__init__`.

    name: how others address it; profile, goal, constraints: what its model is told. is_human: a person
    answers in place of a model. llm: its model, before the settings' and the environment's. tools: what
    its model may use. consume: whether a reaction takes the `one` oldest message, or `all` that wait.
    join: it reacts once so many messages wait, to all of them at once. pool: so many of it react at the same
    time, each to messages of its own and with memory and fields of its own. limits: of one reaction.
    instruct_types: what the structured content of its messages is read as, the first that fits; without one
    it is plain data. A subclass's own annotated fields are recorded after every reaction, as far as JSON can
    hold them.

    Fields may be given to the constructor, with `actions` and `watch`; unknown ones become attributes.
    """

    # -- its cycle -----------------------------------------------------------------------------

    async def run(self, with_message: str | Message | list[str] | None = None) -> Message | None:
        """React to what is new, and to `with_message`; None when there is nothing.

        In an environment it is run by `Environment.run`; called by hand, it reacts on its own, once.
        """
        if self._ctx is None:
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
        # What is delivered to one that does not listen to everything is always for it.
        heard = batch
        if self.observe_all_msg_from_buffer:
            heard = [each for each in batch if self._concerns(each)]
        if len(heard) > 1:
            # Equal ones are one.
            heard = Memory(heard).storage
        # It remembers what it said; that is news all the same when it comes back to it.
        own, memory = self.key, self.rc.memory
        news = [each for each in heard if each._sent_from == own or memory.find_news([each])]
        if self.enable_memory:
            memory.add_batch(batch if self.observe_all_msg_from_buffer else news)
        self.rc.news = news
        self.latest_observed_msg = news[-1] if news else self.latest_observed_msg
        return len(news)

    def _concerns(self, message: Message) -> bool:
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
            said = await self._aask(question(self.rc, self.states))
            self._set_state(choice(said, len(self.actions)))
        return self.rc.todo is not None

    async def _act(self) -> Message:
        """Do what is due; what came of it as a message, which is remembered."""
        todo = self.rc.todo
        if todo is None:
            raise UserError(f"{self.key} has nothing to do; `_think` chooses an action first")
        log_taken_up(self, self._setting, todo)
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

    # -- by hand, step by step ---------------------------------------------------------------------

    @property
    def todo(self) -> Action | None:
        """The action that is due, None when there is none."""
        return self.rc.todo

    async def think(self) -> Action | None:
        """Take what was delivered, and choose the action that is due; None when there is none."""

        async def thinking() -> Action | None:
            await self._observe()
            await self._think()
            return self.rc.todo

        return await (thinking() if self._ctx is not None else work_alone(self, thinking))

    async def act(self) -> Message:
        """Do what `think` chose; what came of it, which is remembered and not published."""
        return await (self._act() if self._ctx is not None else work_alone(self, self._act))

    # -- what it says ----------------------------------------------------------------------------

    def get_memories(self, k: int = 0) -> list[Message]:
        """The last `k` messages it remembers, all for 0."""
        return self.rc.memory.get(k)

    def publish_message(self, message: Message | None) -> None:
        """Publish to its environment; without one nothing is sent. None is nothing."""
        if message is None:
            return
        if MESSAGE_ROUTE_TO_SELF in message._send_to:
            message.send_to = (message._send_to - {MESSAGE_ROUTE_TO_SELF}) | {topic_of(type(self))}
        if not message._sent_from:
            message.sent_from = self.key
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
