"""Environment: where roles publish, and who reacts to what; its rounds are turns of one agent."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon import UNLIMITED, Agent, Conversation, Limits, Result, UserError, open_run
from antiphon.action import Act, ActionContext
from antiphon.errors import DuplicateName
from antiphon.event import MessagePosted
from antiphon.graph import Graph, graph_of
from antiphon.message import Message as KernelMessage
from antiphon.message import new_id
from antiphon.model import Model
from antiphon.styles.environment.alone import Cast, agent_of, models_of_actions
from antiphon.styles.environment.api import ExtEnv
from antiphon.styles.environment.context import Context
from antiphon.styles.environment.cost import NoMoneyException
from antiphon.styles.environment.memory import Memory
from antiphon.styles.environment.message import Message, from_kernel, to_kernel
from antiphon.styles.environment.models import Models
from antiphon.styles.environment.role import Role
from antiphon.styles.environment.rounds import ROUNDS, Rounds, Routes, Seat
from antiphon.styles.environment.topic import USER_REQUIREMENT

LOG = logging.getLogger(__name__)
TOLD = 3
"""Findings about its graph that an environment logs when it starts; `graph` has all."""
LIMITS = Limits(inbox=100_000)
"""Limits of a run of rounds: those of any run, with room for messages."""


class Receipt(Struct, frozen=True):
    """Who will get a message. False when nobody will."""

    message: str
    recipients: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.recipients)


class Environment(ExtEnv):
    """Roles, and the messages between them.

    desc, name: what other agents are told of it when it is part of a team. context: settings and values
    the roles share. roles: as for `add_roles`. agents: that roles may call, and who watch nothing.
    laps: how often one role may react in one chain of messages, None for any number. journal, run_id: where
    the run is kept, and which one to go on with. model: of roles without one. limits: of each `run`. Other
    options are those of `open_run` (policy, deps, attended, …).
    """

    def __init__(
        self,
        desc: str = "",
        context: Context | None = None,
        roles: Iterable[Role | Agent] = (),
        *,
        name: str = "environment",
        agents: Iterable[Agent] = (),
        laps: int | None = 3,
        journal: Any = None,
        run_id: str | None = None,
        model: str | Model | None = None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        self.desc, self.name, self.laps = desc, name, laps
        self.context = context if context is not None else Context()
        self.roles: dict[str, Role | Agent] = {}
        self.limits = limits or LIMITS
        self.run_id = run_id or new_id()
        self._journal, self._model, self._options = journal, model, options
        self._others = tuple(agents)
        self._casts: dict[str, Cast] = {}
        self._routes = Routes(())
        self._outbox: list[KernelMessage] = []
        self._history = Memory()
        self._distributed: list[KernelMessage] = []
        self._facades: dict[str, Message] = {}
        self._open: Conversation | None = None
        self._stack = AsyncExitStack()
        self._rounds = Rounds(lambda: self._routes, lambda: self.laps, self._distribute)
        self.add_roles(roles)

    # -- who is there --------------------------------------------------------------------------

    def add_role(self, role: Role | Agent) -> None:
        """Add a role, or an agent with topics to watch. Raises DuplicateName; UserError once it has run."""
        if self._open is not None:
            raise UserError("Roles are added before the first run; close the environment first")
        name = role.key if isinstance(role, Role) else role.name
        if name in self.roles or name == self.name:
            raise DuplicateName("role", name)
        self.roles[name] = role
        if isinstance(role, Role):
            role.rc.env, role.context = Place(self, role), self.context
            self._casts[name] = Cast(role, self._read)
        self._seat(name)

    def add_roles(self, roles: Iterable[Role | Agent]) -> None:
        """Add several, in this order."""
        for role in roles:
            self.add_role(role)

    def get_role(self, name: str) -> Role | Agent | None:
        """The role of that name; None when there is none."""
        return self.roles.get(name)

    def get_roles(self) -> dict[str, Role | Agent]:
        """All roles by name."""
        return dict(self.roles)

    def role_names(self) -> list[str]:
        """The names of all roles, in order."""
        return list(self.roles)

    def get_addresses(self, role: Role) -> set[str]:
        """Where messages reach a role."""
        return role.addresses

    def set_addresses(self, role: Role, addresses: Iterable[Any]) -> None:
        """From now on messages reach the role under these addresses only."""
        role.set_addresses(addresses)
        self._seat(role.key)

    @property
    def member_addrs(self) -> dict[Role, set[str]]:
        """The addresses of every role."""
        return {role: role.addresses for role in self.roles.values() if isinstance(role, Role)}

    def _seat(self, name: str) -> None:
        role, known = self.roles[name], self._routes.seats.get(name)
        place = known.place if known is not None else len(self._routes.seats)
        if isinstance(role, Role):
            addresses = frozenset(role.addresses | {role.key})
            seat = Seat(name, place, frozenset(role.rc.watch), addresses, role.observe_all_msg_from_buffer)
        else:
            seat = Seat(name, place, frozenset(role.watch), frozenset({name}))
        self._routes.put(seat)

    # -- messages ------------------------------------------------------------------------------

    def publish_message(self, message: Message | None, peekable: bool = True) -> Receipt:
        """Give a message to those it concerns, in the next round; the receipt says who they are.

        Nobody gets one to `<none>`, or that nobody watches; it is on record all the same.
        """
        if message is None:
            return Receipt("", ())
        posted = to_kernel(message, self.name)
        self._outbox.append(posted)
        return self._receipt(message)

    def _read(self, message: KernelMessage) -> Message:
        """The façade of a message that was distributed, one for all who get it in this round."""
        found = self._facades.get(message.id)
        if found is None:
            found = self._facades[message.id] = from_kernel(message)
        return found

    def _distribute(self, message: KernelMessage, first: bool) -> None:
        if first:
            self._facades.clear()
        self._distributed.append(message)

    def _receipt(self, message: Message) -> Receipt:
        return Receipt(message.id, tuple(self._routes.of(message.cause_by, message.send_to)))

    def waits_for(self, role: Role) -> bool:
        """Whether a message waits for a role."""
        posted = any(
            role.key in self._routes.of(each.topic, from_kernel(each).send_to) for each in self._outbox
        )
        return posted or role.key in self._unread()

    @property
    def is_idle(self) -> bool:
        """Whether nobody has anything to do."""
        if any(self._receipt(from_kernel(each)) for each in self._outbox):
            return False
        return not self._unread() and not self._waiting()

    @property
    def history(self) -> Memory:
        """All that was published, oldest first."""
        self._history.add_batch(map(from_kernel, self._distributed))
        self._distributed.clear()
        return self._history

    def archive(self) -> list[Message]:
        """All that was published so far, as a list of its own."""
        return self.history.get()

    def _unread(self) -> Mapping[str, int]:
        view = self._view()
        return view.unread if view is not None else {}

    def _waiting(self) -> bool:
        view = self._view()
        return view is not None and bool(view.inbox)

    def _view(self) -> Any:
        if self._open is None:
            return None
        return next(
            (each for each in self._open.views() if each.agent == self.name and not each.caller), None
        )

    # -- rounds --------------------------------------------------------------------------------

    async def run(self, k: int = 1, *, usd: float | None = None) -> Result:
        """Do `k` rounds, fewer when nobody has anything to do any more; they may cost so many US dollars.

        The result's outcome is `completed` when all is quiet, `limit` when rounds or laps are used up, and
        says why. Raises RunFailed when a role failed, which it names, after the others have done
        their part; NoMoneyException when the budget is used up.
        """
        conversation = await self._opened()
        unfinished = await conversation.requests()
        if unfinished:
            return await self._result(conversation, unfinished[0])
        mail, self._outbox[:] = list(self._outbox), []
        limits = replace(UNLIMITED, usd=usd) if usd is not None else None
        asked = await conversation.post(
            self.name, intent=ROUNDS, data={"rounds": k}, mail=mail, limits=limits
        )
        return await self._result(conversation, asked)

    async def _result(self, conversation: Conversation, asked: str) -> Result:
        result = await conversation.result(asked)
        if result.outcome == "budget":
            raise NoMoneyException(conversation.spent, self.limits.usd, result.why, result)
        return result

    async def spent(self) -> float:
        """US dollars that all rounds have cost so far."""
        return (await self._opened()).spent

    async def _opened(self) -> Conversation:
        if self._open is None:
            self._warn()
            conversation = await self._stack.enter_async_context(
                open_run(
                    self.agents(),
                    journal=self._journal,
                    run_id=self.run_id,
                    create=True,
                    limits=self.limits,
                    **self._options,
                )
            )
            await self._recall(conversation)
            self._open = conversation
        return self._open

    def graph(self) -> Graph:
        """Who reaches whom, and what looks wrong about it."""
        return graph_of(self.agents(), [USER_REQUIREMENT], limited=self.laps is not None)

    def _warn(self) -> None:
        """Say what looks wrong before the first round; what nobody watches may well be the result."""
        findings = [each for each in self.graph().findings if not each.startswith("nobody watches")]
        if findings:
            more = f" (and {len(findings) - TOLD:,} more)" if len(findings) > TOLD else ""
            LOG.warning("%s: %s%s", self.name, "; ".join(findings[:TOLD]), more)

    async def _recall(self, conversation: Conversation) -> None:
        """Make the roles what the run says, when it is gone on with."""
        views = conversation.views()
        own = next((each for each in views if each.agent == self.name and not each.caller), None)
        if own is None:
            return
        for view in views:
            cast = self._casts.get(view.agent)
            # One that already reacts again has done so by itself.
            if view.caller == own.activation and cast is not None and not cast.record.begun:
                cast.record.restore(view.data, view.past)
                self._seat(view.agent)
        known: list[KernelMessage] = []
        for record in await conversation.records():
            event = record.event
            if isinstance(event, MessagePosted) and event.to == own.activation and event.by:
                known.append(event.message)
            elif isinstance(event, MessagePosted) and not event.to:
                known += given(event.message)
        self._distributed[:0] = known

    async def close(self) -> None:
        """Let go of the run; with a durable journal it can be gone on with, by its `run_id`."""
        self._open = None
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # -- as agents -------------------------------------------------------------------------------

    def agents(self) -> list[Agent]:
        """The environment as a team takes it: itself, its roles, and whom they may call."""
        broker = Agent(
            self.name,
            self.desc,
            description=self.desc,
            solo=True,
            context="continue",
            limits=replace(UNLIMITED, inbox=self.limits.inbox),
            plan=self._rounds.plan,
            decide=self._rounds.decide,
        )
        models = Models(self.context, self._model)
        found = [broker]
        for name, role in self.roles.items():
            if isinstance(role, Role):
                found.append(agent_of(role, self._act_of(name), models.of(role)))
                found += models_of_actions(role, models.named)
            else:
                found.append(_speaker(role, models.any))
        return [*found, *self._others]

    def _act_of(self, name: str) -> Act:
        cast = self._casts[name]

        async def act(ctx: ActionContext) -> str:
            try:
                return await cast.act(ctx)
            finally:
                if cast.moved():
                    self._seat(name)

        return act


class Place:
    """The environment as one role sees it: what it publishes in a reaction is part of that."""

    def __init__(self, environment: Environment, role: Role) -> None:
        self._environment, self._role = environment, role

    def publish_message(self, message: Message | None, peekable: bool = True) -> Receipt:
        """See `Environment.publish_message`."""
        ctx = self._role._ctx
        if ctx is None or message is None:
            return self._environment.publish_message(message)
        message.sent_from = message.sent_from or self._role.key
        if ctx.distributes:
            ctx.publish(to_kernel(message, self._environment.name, self._role.key))
        return self._environment._receipt(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


def _speaker(agent: Agent, model: str | Model | None) -> Agent:
    """An agent of the user's own that reacts to what it watches."""
    return replace(
        agent,
        act=_speak,
        consume="one",
        context="continue",
        model=agent.model or model,
        publishes=(*agent.publishes, agent.name),
    )


async def _speak(ctx: ActionContext) -> str:
    """What an agent with a model does with what it watches: answer, and publish the answer under its name."""
    said = await ctx.ask("\n\n".join(message.content for message in ctx.taken))
    if not ctx.distributes:
        return said
    ctx.publish(KernelMessage("forward", ctx.agent, "", said, topic=ctx.agent))
    return ""


def given(request: KernelMessage) -> Iterable[KernelMessage]:
    """The messages that a request for rounds brought with it."""
    for call in request.calls:
        asked = msgspec.json.decode(call.arguments, type=_Request)
        if asked.intent == ROUNDS:
            yield from asked.mail


class _Request(Struct):
    intent: str = ""
    mail: tuple[KernelMessage, ...] = ()
