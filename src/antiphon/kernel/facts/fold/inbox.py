"""inbox: messages that wait for an activation, by priority, then arrival; and how many may."""

from __future__ import annotations

from bisect import insort
from operator import attrgetter

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


def full(receiver: Activation, limits: Limits) -> str:
    """Why an inbox takes no more, or an empty string. limits: the run's, for those on no ledger scope."""
    limit = (receiver.scopes[0].limits if receiver.scopes else limits).inbox
    if limit is None or len(receiver.mailbox.inbox) < limit:
        return ""
    return f"the inbox of {receiver.agent} is full ({limit:,} unread messages)"
