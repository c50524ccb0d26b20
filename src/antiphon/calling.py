"""calling: what a call of an agent carries, and which call of its turn an effect is."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from antiphon.activation import Activation
from antiphon.message import Attachment, Message


class CallAgent(Struct, frozen=True, omit_defaults=True):
    """The arguments of `call_agent`. background: do not wait for the result. intent: the message's."""

    agent_name: str
    message: str
    background: bool = False
    intent: str = ""


_call_agent = msgspec.json.Decoder(CallAgent)


def forward(caller: str, callee: Activation, arguments: str, attachments: tuple[Attachment, ...]) -> Message:
    """The message that a call carries, made from the call alone."""
    call, asked = callee.call, _call_agent.decode(arguments)
    return Message(
        "forward",
        caller,
        callee.agent,
        asked.message,
        call,
        call + ">",
        intent=asked.intent,
        attachments=attachments,
    )


def returned(sender: str, receiver: str, call: str, content: str) -> Message:
    """The message that the end of a call is."""
    return Message("return", sender, receiver, content, call, call + "<", in_reply_to=call + ">")


def index_of(effect_id: str) -> int:
    """Which call of its turn an effect is: `3/2.c1` is 0."""
    number = effect_id[effect_id.rindex(".") + 2 :]
    return int(number[:-1] if number[-1] == "?" else number) - 1
