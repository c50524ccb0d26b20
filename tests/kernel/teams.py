"""Agents with rules and actions of their own, as the tests of the kernel need them again and again."""

import asyncio
import re

from antiphon import Agent, Message
from antiphon.kernel.facts.events import EffectStarted
from antiphon.models.script import Script
from antiphon.testing.clock import VirtualClock
from antiphon.values.hooks import Continue, Do, Return
from tests.transcript import effects, recorded

B = Agent("b")


def actor(act, **options):
    """The agent `a` that acts so."""
    return Agent("a", act=act, **options)


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


async def opened(conversation, what):
    """The start of the first effect of that kind or purpose."""
    events = conversation.events(pieces=False)
    async for item in events:
        if type(item.event) is EffectStarted and what in (item.event.kind, item.event.purpose):
            events.close()
            return item.event


def broker(plan, decide=None, **options):
    """An agent that does what its plan says and thinks nothing itself."""
    return Agent("broker", plan=plan, decide=decide, **options)


def rounds(*turns, value=lambda moment: "over", seen=None):
    """A broker that does these calls turn by turn, keeps what it saw in `seen`, and returns a value."""

    def plan(moment):
        if seen is not None:
            seen.append(moment)
        return Do(turns[moment.turn - 1] if moment.turn <= len(turns) else ())

    def decide(moment):
        if seen is not None:
            seen.append(moment)
        return Continue() if moment.turn < len(turns) else Return(value=value(moment))

    return broker(plan, decide)


def contents(messages):
    """What they say."""
    return [each.content for each in messages]


def ended(moment):
    """How the calls of a turn ended: who, the outcome, and the result or the reason."""
    return [(each.agent, each.outcome, each.content or each.why) for each in moment.ended]


def player(name, *texts):
    """An agent that publishes these whenever it is called, under its own name as the topic."""

    async def act(ctx):
        for text in texts:
            ctx.publish(Message("forward", name, "", text, topic=name))

    return Agent(name, act=act, context="continue")
