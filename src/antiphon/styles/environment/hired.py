"""hired: who reacts in an environment: the agents of a role, and agents that are none, as it takes them."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from antiphon import Agent, Topics, UserError
from antiphon.styles.environment.message import Message, to_kernel
from antiphon.styles.environment.roles.role import Role
from antiphon.values.actions import Act, ActionContext
from antiphon.values.fields import fit
from antiphon.values.hooks import Continue, EndTurn, Return, TurnContext
from antiphon.values.message import Message as KernelMessage
from antiphon.values.model import Model


def hired(agent: Agent, model: str | Model | None, environment: str) -> Agent:
    """An agent that does what it always does for each message that it watches, and publishes its result.

    Its coroutine (`Hooks.act`) is its own; one without asks its model. What its plans (`Hooks.plan_turn`)
    come to is what its `end_turn` returns.
    """
    ends = agent.hooks.end_turn
    if agent.hooks.plan_turn is not None and ends is not None:
        ends = partial(_end, environment, ends)
    act = partial(_perform, environment, agent.hooks.act or _answer)
    return replace(
        agent,
        context="continue",
        model=agent.model or model,
        loop=replace(agent.loop, batch="one"),
        hooks=replace(agent.hooks, act=act, end_turn=ends),
        topics=Topics(agent.topics.watch, (*agent.topics.publishes, agent.name)),
    )


def members_of(role: Role | Agent) -> tuple[str, ...]:
    """The agents that react in somebody's name. Raises UserError for options that make no sense."""
    if isinstance(role, Agent):
        return (role.name,)
    for option in ("join", "pool"):
        if fit(getattr(role, option), int, f"Role({option}=...)") < 1:
            raise UserError(f"{role.key}: Role({option}=...) is at least 1; got {getattr(role, option)}")
    if role.join > 1 and role.pool > 1:
        raise UserError(f"{role.key} either waits for {role.join} messages or is a pool of {role.pool}")
    return role.members


async def _perform(environment: str, act: Act, ctx: ActionContext) -> Any:
    """Do what the agent does, and publish what it returns on the topic of its name; nothing for None."""
    found = await act(ctx)
    if not ctx.can_publish:
        return found
    if isinstance(found, str):
        ctx.publish(KernelMessage("forward", ctx.agent, environment, found, topic=ctx.agent))
    elif found is not None:
        said = Message(role="assistant", cause_by=ctx.agent, instruct_content=found)
        ctx.publish(to_kernel(said, environment, ctx.agent))
    return None


def _end(environment: str, own: EndTurn, context: TurnContext) -> Continue | Return | None:
    """What follows a turn of a plan; the output of its return is published."""
    found = own(context)
    if not isinstance(found, Return) or found.outcome != "completed" or not found.output:
        return found
    # A hook that is asked again for the same turn, as in a replay, says the same.
    heard = context.new_messages[-1].id if context.new_messages else ""
    said = KernelMessage(
        "forward",
        context.agent,
        environment,
        found.output,
        id=f"{context.agent}:{context.at}:{context.turn}:{heard}",
        topic=context.agent,
    )
    return replace(found, publish=(*found.publish, said))


async def _answer(ctx: ActionContext) -> str:
    """What an agent with a model does with what it watches."""
    return await ctx.ask_model("\n\n".join(message.content for message in ctx.new_messages))
