"""calling: what a call of an agent carries, and which call of its turn an effect is."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from antiphon.kernel.facts.activation import Activation
from antiphon.values.limits import Limits
from antiphon.values.message import Attachment, Message, ToolCall

CALL_AGENT = "call_agent"
FINISH = "finish"
GET_RESULT = "get_result"
SEND_MESSAGE = "send_message"


class CallAgent(Struct, frozen=True, omit_defaults=True):
    """The arguments of `call_agent`.

    background: do not wait for the result. hand_over: the callee's result is the caller's own, and ends it.

    What follows is for users and plans, not for models. intent, task_id, data, calls: the message's.
    mail: messages that the callee finds in its inbox; take: the same of those that the caller's turn
    took, by position. until: Unix seconds when it must be done.
    hold: leave the mail to the callee, which rests, without calling it. limits: of it and all below it,
    beside its own.
    """

    agent_name: str
    message: str = ""
    background: bool = False
    hand_over: bool = False
    intent: str = ""
    task_id: str = ""
    data: Any = None
    calls: tuple[ToolCall, ...] = ()
    mail: tuple[Message, ...] = ()
    take: tuple[int, ...] = ()
    until: float | None = None
    hold: bool = False
    limits: Limits | None = None


read_call = msgspec.json.Decoder(CallAgent).decode
"""CallAgent from its JSON."""


def opening(
    caller: Activation, callee: Activation, asked: CallAgent, attachments: tuple[Attachment, ...]
) -> Message | None:
    """The message that a call carries, made from the call alone; None for one that only hands mail on."""
    silent = not asked.message and not attachments and asked.data is None and not asked.calls
    if silent and (asked.take or asked.mail or callee.inbox):
        return None
    call = callee.call
    return Message(
        "forward",
        caller.agent,
        callee.agent,
        asked.message,
        call,
        call + ">",
        callee.task_id,
        intent=asked.intent,
        attachments=attachments,
        calls=asked.calls,
        data=asked.data,
    )


def returned(sender: str, receiver: str, call: str, content: str, task_id: str) -> Message:
    """The message that the end of a call is."""
    return Message("return", sender, receiver, content, call, call + "<", task_id, call + ">")


def index_of(effect_id: str) -> int:
    """Which call of its turn an effect is: `3/2.c1` is 0."""
    number = effect_id[effect_id.rindex(".") + 2 :]
    return int(number[:-1] if number[-1] == "?" else number) - 1
