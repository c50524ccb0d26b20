"""context: what a model is shown. A projection of the state, always valid for a provider."""

from __future__ import annotations

from msgspec import structs

from antiphon.kernel.context.compaction import question, to_compact
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import EffectStarted
from antiphon.kernel.rules.team import Member
from antiphon.values.agent import Compaction
from antiphon.values.model import ChatMessage, Request

LAST_WORD = (
    "You have used all your turns. Sum up for the user what was done, what came out and what is open. "
    "Do not call tools."
)


def request(
    member: Member, model: str, activation: Activation, effect: EffectStarted, session: str = ""
) -> Request:
    """The request of a model call that has just been started; `session` is the run's id.

    The prefix only ever grows: the same head, then the conversation so far. A compaction and the
    last word are asked beside the conversation, without tools, and leave no trace in it.
    """
    agent = member.agent
    head = member.head if activation.caller else member.entry_head
    messages = activation.transcript.upto_now()
    asked = Request(
        model,
        head.system,
        messages,
        head.specs,
        tool_choice=agent.tool_choice,
        max_output=agent.max_output,
        output_schema=member.answer.schema if member.answer is not None else None,
        settings=agent.settings,
        examples=member.examples,
        effect_id=effect.id,
        session=session,
    )
    if effect.purpose == "compact":
        wish = ChatMessage("user", question(agent.compaction or Compaction()))
        return _beside(asked, [*to_compact(messages), wish])
    if effect.purpose == "final":
        return _beside(asked, [*messages, ChatMessage("user", LAST_WORD)])
    if activation.only is not None:
        offered = tuple([each for each in head.specs if each.name in activation.only])
        asked = structs.replace(asked, tools=offered)
    if activation.tail:
        asked = structs.replace(asked, messages=[*messages, ChatMessage("user", activation.tail)])
    return asked


def _beside(asked: Request, messages: list[ChatMessage]) -> Request:
    return Request(
        asked.model,
        asked.system,
        messages,
        tool_choice="none",
        max_output=asked.max_output,
        settings=asked.settings,
        effect_id=asked.effect_id,
        session=asked.session,
    )
