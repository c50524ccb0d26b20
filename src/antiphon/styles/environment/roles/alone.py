"""alone: a role as an agent, and a reaction of its own without an environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon import Agent, Hooks, LoopOptions, RunFailed, Topics, open_run
from antiphon.errors import UserError
from antiphon.styles.environment.context import Context
from antiphon.styles.environment.message import Message, from_kernel, message_of, to_kernel
from antiphon.styles.environment.metagpt.planner import Planner
from antiphon.styles.environment.models import Models
from antiphon.styles.environment.roles.rc import RoleContext
from antiphon.styles.environment.roles.record import RoleSnapshot
from antiphon.styles.environment.roles.setup import RoleSetup, own_model_of
from antiphon.styles.environment.topic import topic_of
from antiphon.values.actions import Act, ActionContext
from antiphon.values.message import Message as KernelMessage

if TYPE_CHECKING:
    from antiphon.values.model import Model

T = TypeVar("T")
R = TypeVar("R", bound=RoleSetup)


class Cast:
    """A role as an actor. read: the façade of a message. response: what its last reaction came to."""

    def __init__(self, role: RoleSetup, read: Callable[[KernelMessage], Message] = from_kernel) -> None:
        self.role, self._read = role, read
        self.record = RoleSnapshot(role)
        self.response: Message | None = None
        self._place: tuple[frozenset[str], frozenset[str] | set[str] | None] = (frozenset(), None)
        self.moved()

    def moved(self) -> bool:
        """Whether the role watches or is reached by something else than when this was asked last."""
        role, place = self.role, self._place
        self._place = frozenset(role.rc.watch), role._addresses and frozenset(role._addresses)
        return self._place != place

    async def act(self, ctx: ActionContext) -> str:
        """One reaction of the role."""
        role, record = self.role, self.record
        if role._ctx is not None:
            raise UserError(f"{role.key} is reacting to something else now; it cannot be called meanwhile")
        record.begin(ctx)
        role._ctx = ctx
        done = False
        try:
            for each in ctx.new_messages:
                found = self._read(each) if not each.call_id else _called(each, role)
                role.rc.msg_buffer.push(found.read_as(role.instruct_types))
            self.response = response = await role.run()
            done = True
        except Exception:
            done = True
            role.rc.msg_buffer.pop_all()
            ctx.published.clear()  # nobody gets it, so nothing on record may point at it
            raise
        finally:
            role._ctx = None
            if done:
                record.end(ctx)
            else:
                role.rc.msg_buffer.pop_all()
                record.lost()
        return "" if ctx.can_publish or response is None else response.content


def _called(message: KernelMessage, role: RoleSetup) -> Message:
    """What somebody said who called the role by its name."""
    found = from_kernel(message)
    found.send_to = {role.key}
    return found


def twin_of(role: R) -> R:
    """Another one that does the same, with memory, fields and actions of its own that begin as the role's."""
    twin = copy(role)
    twin.rc, twin.planner, twin._ctx = RoleContext(), Planner(twin), None
    twin.set_actions(role.actions)
    RoleSnapshot(twin).restore(RoleSnapshot(role).dump(), ())
    return twin


def agent_of(role: RoleSetup, act: Act, model: str | Model | None, name: str = "") -> Agent:
    """The role as its team sees it. name: of another one of its pool, which is reached through the first."""
    first = name in ("", role.key)
    return Agent(
        name or role.key,
        role._get_prefix(),
        model=model,
        tools=tuple(role.tools),
        description=role.profile,
        standalone=True,
        context="continue",
        loop=LoopOptions(batch="all" if role.join > 1 else role.consume),
        limits=role.limits,
        topics=Topics(
            tuple(sorted(role.rc.watch)) if first else (), tuple(topic_of(action) for action in role.actions)
        ),
        hooks=Hooks(act=act),
    )


def models_of_actions(role: RoleSetup, model: Any) -> list[Agent]:
    """The agents that actions with models of their own ask; `model` finds one by name."""
    return [
        Agent(
            own_model_of(role, action),
            role._get_prefix(),
            model=model(action.llm_name_or_type),
            standalone=True,
        )
        for action in role.actions
        if action.llm_name_or_type
    ]


async def run_alone(role: RoleSetup, said: str | Message | list[str] | None) -> Message | None:
    """One reaction to what is in the role's buffer and to what is said; in a run of its own."""
    if said is not None:
        role.rc.msg_buffer.push(message_of(said))
    waiting = role.rc.msg_buffer.pop_all()
    if not waiting:
        return None
    cast = Cast(role)
    async with open_run(_agents(role, cast.act), interactive=False) as run:
        mail = [to_kernel(each, role.key) for each in waiting]
        try:
            await run.result(await run.post(role.key, inbox=mail))
        except BaseException:
            for message in waiting:
                role.rc.msg_buffer.push(message)
            raise
    return cast.response


async def work_alone(role: RoleSetup, work: Callable[[], Awaitable[T]]) -> T:
    """Work of a role that needs a reaction around it, in a run of its own. Raises RunFailed."""
    done: list[T] = []

    async def act(ctx: ActionContext) -> None:
        role._ctx = ctx
        try:
            done.append(await work())
        finally:
            role._ctx = None

    async with open_run(_agents(role, act), interactive=False) as run:
        result = await run.result(await run.post(role.key, "by hand"))
    if not done:
        raise RunFailed(result)
    return done[0]


def _agents(role: RoleSetup, act: Act) -> list[Agent]:
    """The role in a run of its own, and what its actions ask; with the models of its settings."""
    models = Models(role.context if role.context is not None else Context(), None)
    return [agent_of(role, act, models.of(role)), *models_of_actions(role, models.named)]
