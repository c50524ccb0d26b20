"""Environment: where roles publish, and who reacts to what; its rounds are turns of one agent."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from antiphon import UNLIMITED, Agent, Hooks, Limits, Result, Run, Topics, Usage, UserError, open_run
from antiphon.errors import DuplicateName
from antiphon.styles.environment.api import ExtEnv
from antiphon.styles.environment.context import Context
from antiphon.styles.environment.hired import hired, members_of
from antiphon.styles.environment.message import Message, from_kernel, to_kernel
from antiphon.styles.environment.metagpt.cost import NoMoneyException
from antiphon.styles.environment.metagpt.serialize import (
    SavedEnvironment,
    fill,
    read,
    saved_environment,
    write,
)
from antiphon.styles.environment.models import Models
from antiphon.styles.environment.roles.action import Action
from antiphon.styles.environment.roles.alone import Cast, agent_of, models_of_actions, twin_of
from antiphon.styles.environment.roles.memory import Memory
from antiphon.styles.environment.roles.role import Role
from antiphon.styles.environment.roles.setup import RoleSetup
from antiphon.styles.environment.rounds import EVERYONE, MOVED, ROUNDS, Rounds, Routes, Subscriber, given
from antiphon.styles.environment.topic import USER_REQUIREMENT
from antiphon.values.actions import Act, ActionContext
from antiphon.values.fields import fit
from antiphon.values.message import Message as KernelMessage
from antiphon.values.message import new_id
from antiphon.values.model import Model
from antiphon.values.result import ActivationInfo
from antiphon.view import RunTree
from antiphon.view.changes import MessageArrival, TurnStart
from antiphon.view.graph import Graph, graph_of

LOG = logging.getLogger(__name__)
TOLD = 3
"""Findings about its graph that an environment logs when it starts; `graph` has all."""
InputHandler = Callable[[KernelMessage], Awaitable[Any]]
LIMITS = Limits(inbox=100_000)
"""Limits of a run of rounds: those of any run, with room for messages."""


class Receipt(Struct, frozen=True):
    """Who will get a message. False when nobody will. unknown: what it is addressed to and is nobody's."""

    message: str
    recipients: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.recipients)


class Environment(ExtEnv):
    """Roles, and the messages between them.

    desc, name: what other agents are told of it when it is part of a team. context: settings and values
    the roles share. roles: as for `add_roles`. agents: that roles may call, and who watch nothing.
    laps: how often one role may react in one chain of messages when no number of rounds is given, None for
    any number. journal, run_id: where the run is kept, and which one to go on with. model: of roles
    without one. limits: of each `run`. on_input: an async function that is shown what human roles and
    approvals ask, and returns the answer;
    interactive: somebody answers without it, through `open`; else nobody is asked. Other options are those of
    `open_run` (policy, deps, …).
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
        on_input: InputHandler | None = None,
        **options: Any,
    ) -> None:
        self.desc, self.name = desc, fit(name, str, "Environment(name=...)")
        self.laps: int | None = fit(laps, int | None, "Environment(laps=...)")
        self.context = context if context is not None else Context()
        self.roles: dict[str, Role | Agent] = {}
        self.limits: Limits = fit(limits, Limits | None, "Environment(limits=...)") or LIMITS
        self.run_id = run_id or new_id()
        self._journal, self._model, self._options = journal, model, options
        self._on_input = on_input
        self._options.setdefault("interactive", on_input is not None)
        self._others = tuple(agents)
        self._casts: dict[str, Cast] = {}
        self._routes = Routes(())
        self._outbox: list[KernelMessage] = []
        self._history = Memory()
        self._distributed: list[KernelMessage] = []
        self._facades: dict[str, Message] = {}
        self._open: Run | None = None
        self._used, self._spent = Usage(), 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = AsyncExitStack()
        self._rounds = Rounds(self._routes, lambda: self.laps, self._distribute)
        self.add_roles(roles)

    # -- who is there --------------------------------------------------------------------------

    def add_role(self, role: Role | Agent) -> None:
        """Add a role, or an agent with topics to watch. Raises DuplicateName; UserError once it has run."""
        if self._open is not None:
            raise UserError("Roles are added before the first run; close the environment first")
        name = role.key if isinstance(role, Role) else role.name
        for each in members_of(role):
            if each in self._routes.members or each == self.name:
                raise DuplicateName("role", each)
        self.roles[name] = role
        if isinstance(role, Role):
            self._cast(role)
        self._seat(name)

    def _cast(self, role: Role) -> None:
        """Have a role act here, and the others of its pool."""
        role.context = self.context
        for number, name in enumerate(role.members):
            one = twin_of(role) if number else role
            one.rc.env = RoleEnvironment(self, one)
            self._casts[name] = Cast(one, self._read)

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
        self._routes.put(self._seat_of(self.roles[name]))

    def _seat_of(self, role: RoleSetup | Agent) -> Subscriber:
        """Where a role stands, as itself or as one of its pool says."""
        name = role.name if isinstance(role, Agent) else role.key
        known = self._routes.seats.get(name)
        place = known.place if known is not None else len(self._routes.seats)
        if isinstance(role, Agent):
            return Subscriber(name, place, frozenset(role.topics.watch), frozenset({name}), members=(name,))
        return Subscriber(
            name,
            place,
            frozenset(role.rc.watch),
            frozenset(role.addresses | {name}),
            role.observe_all_msg_from_buffer,
            role.members,
            role.join,
        )

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
        send_to = message._send_to
        unknown = self._routes.unknown(send_to) if send_to != EVERYONE else ()
        if unknown:
            known = ", ".join(self.roles) or "(none)"
            LOG.warning("%s: nobody has the address %s. Known: %s", self.name, ", ".join(unknown), known)
        return Receipt(message.id, tuple(self._routes.of(message._cause_by, send_to)), tuple(unknown))

    def waits_for(self, role: Role) -> bool:
        """Whether a message waits for a role."""
        posted = any(role.key in self._routes.concern(each) for each in self._outbox)
        return posted or any(name in self._unread() for name in role.members)

    @property
    def is_idle(self) -> bool:
        """Whether nobody has anything to do."""
        if any(self._routes.concern(each) for each in self._outbox):
            return False
        unread = self._unread()
        return not any(self._routes.ready(*each) for each in unread.items()) and not self._waiting()

    @property
    def history(self) -> Memory:
        """All that was published, oldest first; not to be changed."""
        self._history.add_batch(map(from_kernel, self._distributed))
        self._distributed.clear()
        coming = self.coming()
        return Memory([*self._history.storage, *map(from_kernel, coming)]) if coming else self._history

    def coming(self) -> list[KernelMessage]:
        """What was published and is not distributed yet, in the order in which it will be."""
        own, _ = self.views()
        inbox = own.inbox if own is not None else ()
        return [*self._rounds.in_order(self._routes, inbox), *self._outbox]

    def recall(self, history: Iterable[Message], coming: Iterable[KernelMessage]) -> None:
        """Before the first run: what was published earlier, and what is to be distributed first."""
        self._history.add_batch(history)
        self._outbox.extend(coming)

    def archive(self) -> list[Message]:
        """All that was published so far, as a list of its own."""
        return self.history.get()

    def _unread(self) -> Mapping[str, int]:
        own, _ = self.views()
        return own.unread if own is not None else {}

    def _waiting(self) -> bool:
        own, _ = self.views()
        return own is not None and any(self._routes.concern(each) for each in own.inbox)

    def role_of(self, agent: str) -> str:
        """The name of the role that an agent of its pool reacts for."""
        return self._routes.members.get(agent, agent)

    def views(self) -> tuple[ActivationInfo | None, list[ActivationInfo]]:
        """A look at the environment's own activation, None before it ran, and at those of its roles."""
        found = self._open.activations() if self._open is not None else ()
        own = next((each for each in found if each.agent == self.name and not each.caller), None)
        return own, [each for each in found if own is not None and each.caller == own.activation]

    # -- rounds --------------------------------------------------------------------------------

    async def run(
        self, k: int | None = None, *, until_idle: bool = False, usd: float | None = None
    ) -> Result:
        """Do `k` rounds, fewer when nobody has anything to do any more; they may cost so many US dollars.

        Without `k` it is one round, or with `until_idle` as many as there is something to do; then `laps`
        ends messages that go round in circles, and the log says which. The result's outcome is
        `completed` when all is quiet, `limit` when the rounds are over before. Raises RunFailed when a role
        failed, which it names, after the others have done their part; NoMoneyException when the
        budget is used up; UserError for `k` together with `until_idle`.
        """
        if k is not None and until_idle:
            raise UserError(f"run(k={k}, until_idle=True): give a number of rounds or until_idle, not both")
        opened = await self.open()
        unfinished = await opened.open_requests()
        if unfinished:
            return await self._result(opened, unfinished[0])
        mail, self._outbox[:] = list(self._outbox), []
        limits = replace(UNLIMITED, usd=usd) if usd is not None else None
        rounds = 1 if k is None and not until_idle else k
        data = {"rounds": rounds, "laps": self.laps if k is None else None}
        asked = await opened.post(self.name, intent=ROUNDS, data=data, inbox=mail, limits=limits)
        return await self._result(opened, asked)

    async def _result(self, opened: Run, asked: str) -> Result:
        try:
            result = await opened.result(asked)
        finally:
            self._count(opened)
        if result.outcome == "budget":
            raise NoMoneyException(opened.cost_usd, self.limits.usd, result.reason, result)
        return result

    def _count(self, opened: Run) -> None:
        """Have the context know what the run has cost since it was told last."""
        used, spent = sum(opened.usage.values(), Usage()), opened.cost_usd
        # A run without a journal begins anew when it is opened again.
        before, known = (self._used, self._spent) if opened.usage else (Usage(), 0.0)
        self._used, self._spent = used, spent
        self.context.cost_manager.add(
            used.input_tokens - before.input_tokens, used.output_tokens - before.output_tokens, spent, known
        )

    async def spent(self) -> float:
        """US dollars that all rounds have cost so far."""
        return (await self.open()).cost_usd

    async def open(self) -> Run:
        """The run that all rounds are part of: to watch it, answer questions, cancel.

        Raises UserError in another event loop than the first one: close it there before.
        """
        loop = asyncio.get_running_loop()
        if self._open is None:
            self._warn()
            self._loop = loop
            opened = await self._stack.enter_async_context(
                open_run(
                    self.agents(),
                    journal=self._journal,
                    run_id=self.run_id,
                    create=True,
                    limits=self.limits,
                    **self._options,
                )
            )
            if self._on_input is not None:
                opened.on_input(self._on_input)
            await self._recall(opened)
            self._open = opened
            self._count(opened)
        if self._loop is not loop:
            raise UserError(
                f"{self.name} was run in another event loop; close it there before it is run here"
            )
        return self._open

    def graph(self) -> Graph:
        """Who reaches whom, and what looks wrong about it."""
        return graph_of(self.agents(), self.name, limited=self.laps is not None)

    def _warn(self) -> None:
        """Say what looks wrong before the first round; what nobody watches may well be the result."""
        findings = [each for each in self.graph().findings if not each.startswith("nobody watches")]
        if findings:
            more = f" (and {len(findings) - TOLD:,} more)" if len(findings) > TOLD else ""
            LOG.warning("%s: %s%s", self.name, "; ".join(findings[:TOLD]), more)

    async def _recall(self, opened: Run) -> None:
        """Make the roles what the run says, when it is gone on with."""
        views = opened.activations()
        own = next((each for each in views if each.agent == self.name and not each.caller), None)
        if own is None:
            return
        for view in views:
            cast = self._casts.get(view.agent)
            # One that already reacts again has done so by itself.
            if view.caller == own.activation and cast is not None and not cast.record.begun:
                cast.record.restore(view.data, view.message_log)
                self._routes.put(self._seat_of(cast.role))
        known: list[KernelMessage] = []
        inbox: list[KernelMessage] = []
        tree = RunTree(recent=True)
        for record in await opened.records():
            for change in tree.add(record):
                match change:
                    case MessageArrival(activation, message) if activation.id == own.activation:
                        inbox.append(message)
                    case MessageArrival(activation, message) if not activation.id:
                        inbox += given(message)
                    case TurnStart(activation) if activation.id == own.activation:
                        known += self._rounds.in_order(self._routes, inbox)
                        inbox.clear()
        self._distributed[:0] = known

    # -- as a file -------------------------------------------------------------------------------

    def serialize(self, path: str | os.PathLike[str]) -> None:
        """Write roles, messages, costs and the context's values as one JSON file, between two runs.

        What JSON cannot hold of roles and actions is left to their classes. Raises UserError while it runs.
        """
        write(saved_environment(self), path)

    @classmethod
    def deserialize(
        cls, path: str | os.PathLike[str], roles: Iterable[type[Role] | Agent] = (Role,),
        actions: Iterable[type[Action]] = (), **options: Any,
    ) -> Self:  # fmt: skip
        """The environment of a file, in a run of its own.

        roles, actions: the classes that the file may name, and agents that were among the roles; options:
        those of the constructor. Raises FileNotFoundError, UnknownName for others, UserError.
        """
        saved = read(path, SavedEnvironment)
        env = cls(**{"desc": saved.desc, "name": saved.name, "laps": saved.laps, **options})
        fill(env, saved, roles, actions)
        return env

    async def close(self) -> None:
        """Let go of the run; with a durable journal it can be gone on with, by its `run_id`."""
        self._history, self._open = self.history, None
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
            standalone=True,
            context="continue",
            limits=replace(UNLIMITED, inbox=self.limits.inbox),
            topics=Topics(publishes=(USER_REQUIREMENT,)),
            hooks=Hooks(plan_turn=self._rounds.plan, end_turn=self._rounds.decide),
        )
        models = Models(self.context, self._model)
        found = [broker]
        for role in self.roles.values():
            if isinstance(role, Role):
                found += [agent_of(role, self._act_of(each), models.of(role), each) for each in role.members]
                found += models_of_actions(role, models.named)
            else:
                found.append(hired(role, models.any, self.name))
        return [*found, *(replace(each, model=each.model or models.any) for each in self._others)]

    def _act_of(self, name: str) -> Act:
        cast = self._casts[name]

        async def act(ctx: ActionContext) -> str:
            said = await cast.act(ctx)
            if ctx.can_publish and cast.moved():
                # It is reached otherwise from the next round on, also by who goes on with the run.
                seat = self._seat_of(cast.role)
                moved = {"watch": sorted(seat.watch), "addresses": sorted(seat.addresses)}
                ctx.publish(KernelMessage("forward", seat.name, self.name, "", intent=MOVED, data=moved))
            return said

        return act


class RoleEnvironment:
    """The environment as one role sees it: what it publishes in a reaction is part of that."""

    def __init__(self, environment: Environment, role: Role) -> None:
        self._environment, self._role = environment, role

    def publish_message(self, message: Message | None, peekable: bool = True) -> Receipt:
        """See `Environment.publish_message`."""
        ctx = self._role._ctx
        if ctx is None or message is None:
            return self._environment.publish_message(message)
        if not message._sent_from:
            message.sent_from = self._role.key
        if ctx.can_publish:
            ctx.publish(to_kernel(message, self._environment.name, ctx.agent))
        return self._environment._receipt(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)
