"""inbox: messages that wait for an activation, by priority, then arrival; and how many may."""

from __future__ import annotations

from bisect import insort
from operator import attrgetter

from msgspec.structs import replace

from antiphon.kernel.facts.activation import Activation
from antiphon.values.limits import Limits
from antiphon.values.message import Message


def deliver(activation: Activation, message: Message) -> None:
    """Put a message into an inbox: behind those of its priority, before those that can wait longer."""
    inbox = activation.mailbox.inbox
    if not inbox or inbox[-1].priority <= message.priority:
        inbox.append(message)
    else:
        insort(inbox, message, key=attrgetter("priority"))


def carry(activation: Activation, labels: tuple[str, ...]) -> None:
    """Something with these labels becomes a part of an agent's conversation; the user is no agent."""
    if activation.id:
        conversation = activation.conversation
        conversation.labels = _joined(conversation.labels, labels)


def labelled(message: Message, sender: Activation) -> Message:
    """A message with the labels of all that its sender was shown, which it may repeat."""
    labels = sender.conversation.labels
    return replace(message, labels=_joined(message.labels, labels)) if labels else message


def _joined(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))


def full(receiver: Activation, limits: Limits) -> str:
    """Why an inbox takes no more, or an empty string. limits: the run's, for those on no ledger scope."""
    limit = (receiver.scopes[0].limits if receiver.scopes else limits).inbox
    if limit is None or len(receiver.mailbox.inbox) < limit:
        return ""
    return f"the inbox of {receiver.agent} is full ({limit:,} unread messages)"
