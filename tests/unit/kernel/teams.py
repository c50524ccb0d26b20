"""Agents with rules and actions of their own, as the tests of the kernel need them again and again."""

import asyncio
import re

from antiphon import Agent, Hooks, Message
from antiphon.kernel.facts.events import EffectStarted
from antiphon.models.script import Script
from antiphon.testing.clock import VirtualClock
from antiphon.values.hooks import Continue, Return, TurnPlan
from tests.transcript import effects, recorded

B = Agent("b")


def actor(act, **options):
    """The agent `a` that acts so."""
    return Agent("a", hooks=Hooks(act=act), **options)


def acted(act, lines=(), agents=(B,), **options):
    """What asking `a`, which acts so, comes to, and the records; its model and `b`'s say the lines."""
    agent = act if isinstance(act, Agent) else actor(act)
    return recorded(
        agent, "go", agents=[agent, *agents], model=Script(lines), clock=VirtualClock(), **options
    )


def inside(records):
    """The lines of actions and what they began, without the digests of what was asked."""
    return [re.sub(":[0-9a-f]{12}", "", each) for each in effects(records, "x")]


def never(request=None):
    """What does not end: a step, or a reply of a model."""
    return asyncio.Event().wait()


def says(*replies):
    """A model of its own for an agent."""
    return Script(replies, by="turn")


async def opened(run, kind):
    """The start of the first effect whose detail is of that kind."""
    events = run.events(deltas=False)
    async for item in events:
        if type(item.event) is EffectStarted and type(item.event.detail) is kind:
            events.close()
            return item.event


def broker(plan, decide=None, **options):
    """An agent that does what its plan says and thinks nothing itself."""
    return Agent("broker", hooks=Hooks(plan_turn=plan, end_turn=decide), **options)


def rounds(*turns, value=lambda context: "over", seen=None):
    """A broker that does these calls turn by turn, keeps what it saw in `seen`, and returns a value."""

    def plan(context):
        if seen is not None:
            seen.append(context)
        return TurnPlan(turns[context.turn - 1] if context.turn <= len(turns) else ())

    def decide(context):
        if seen is not None:
            seen.append(context)
        return Continue() if context.turn < len(turns) else Return(output=value(context))

    return broker(plan, decide)


def contents(messages):
    """What they say."""
    return [each.content for each in messages]


def ended(context):
    """How the calls of a turn ended: who, the outcome, and the result or the reason."""
    return [(each.agent, each.outcome, each.content or each.reason) for each in context.results]


def player(name, *texts):
    """An agent that publishes these whenever it is called, under its own name as the topic."""

    async def act(ctx):
        for text in texts:
            ctx.publish(Message("forward", name, "", text, topic=name))

    return Agent(name, hooks=Hooks(act=act), context="continue")
