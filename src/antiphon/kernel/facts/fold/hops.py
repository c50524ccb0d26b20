"""Hops: how often each agent handled the chain of messages that led to one of them.

A chain is a path, not a tree: of ten messages that an agent publishes at once, each has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.fold.inbox import deliver
from antiphon.values.message import Message

NONE: Mapping[str, int] = MappingProxyType({})
"""Nobody has handled the chain yet."""


def of(activation: Activation, message: Message) -> Mapping[str, int]:
    """How often each agent handled the chain of a message in the inbox, or taken."""
    hops = activation.mailbox.hops
    return hops.get(message.id, NONE) if hops else NONE


def hand_on(giver: Activation, receiver: Activation, position: int) -> None:
    """Give a message that one activation has taken to another."""
    message = giver.turn.messages[position]
    deliver(receiver, message)
    _note(receiver, message, of(giver, message))


def published(publisher: Activation, receiver: Activation, message: Message) -> None:
    """Note a message that was published for what its publisher had taken, or one of these handed on."""
    taken = publisher.turn.messages
    for cause in taken:
        if cause.id == message.id:
            _note(receiver, message, of(publisher, message))
            return
    first, *others = taken or (message,)
    counts = dict(of(publisher, first))
    for cause in others:
        for agent, count in of(publisher, cause).items():
            if count > counts.get(agent, 0):
                counts[agent] = count
    counts[publisher.agent] = counts.get(publisher.agent, 0) + 1
    _note(receiver, message, counts)


def forget(activation: Activation) -> None:
    """Drop what was known of the messages of a turn that is over."""
    if activation.mailbox.hops:
        for message in activation.turn.messages:
            activation.mailbox.hops.pop(message.id, None)


def _note(activation: Activation, message: Message, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    if activation.mailbox.hops is None:
        activation.mailbox.hops = {}
    activation.mailbox.hops[message.id] = counts
