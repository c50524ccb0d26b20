"""context: what a model is shown. A projection of the state, always valid for a provider."""

from __future__ import annotations

from antiphon.activation import Activation
from antiphon.model import Request
from antiphon.team import Member


def request(member: Member, model: str, activation: Activation, effect_id: str) -> Request:
    """The request of a model call that has just been started.

    The prefix only ever grows: the same head, then the conversation so far.
    """
    agent = member.agent
    head = member.head if activation.caller else member.entry_head
    return Request(
        model,
        head.system,
        activation.transcript.upto_now(),
        head.specs,
        max_output=agent.max_output,
        settings=agent.settings,
        examples=member.examples,
        effect_id=effect_id,
    )
