"""What a call of an agent carries, and the messages that its start and its end are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import EffectFinished
from antiphon.values.agent import RequestOptions
from antiphon.values.fields import unchecked
from antiphon.values.limits import Limits
from antiphon.values.message import Attachment, Message, ToolCall
from antiphon.values.model import ChatMessage

CALL_AGENT = "call_agent"
FINISH = "finish"
GET_RESULT = "get_result"
SEND_MESSAGE = "send_message"


INCOMPLETE: Mapping[str, str] = {
    "length": "the text was cut at the agent's max_output_tokens",
    "refusal": "the model refused",
}
"""What is said of an answer that its model did not end by itself."""


_FOR_OPERATORS = "that is for whoever runs the team to settle, so calling it again does not help"
_AWAY = "its model cannot be reached now; go on without it, or call it again later"
MODEL_FAILED: Mapping[str, str] = {
    "auth": f"its model may not be used: {_FOR_OPERATORS}",
    "permission": f"its model may not be used: {_FOR_OPERATORS}",
    "quota": f"its model may not be used any more: {_FOR_OPERATORS}",
    **dict.fromkeys(("network", "timeout", "disconnected", "overloaded", "rate_limit"), _AWAY),
}
"""What a caller is told of an agent whose model cannot be asked, by the kind of the failure."""
_OPERATORS_WORD = re.compile(
    r"://|\b\d+\.\d+\.\d+\.\d+\b|\b[A-Za-z][\w.-]*:\d{2,5}\b|\bsk-\w|\b[A-Z]+_[A-Z_]+\b|\bbase_url\b|\bapi_key\b"
)
"""An address, a key or a setting: words for whoever runs the team."""


def reason_shown(event: EffectFinished) -> str:
    """Why a call ended as it did, as another agent is told.

    Addresses, keys and advice for operators stay in the failure itself, which the journal holds.
    """
    failure = event.failure
    if failure is None:
        return event.reason
    known = MODEL_FAILED.get(failure.kind)
    if known is None and not _OPERATORS_WORD.search(event.reason):
        return event.reason
    return f"the agent could not go on: {known or 'its model failed at the request, ' + _FOR_OPERATORS}"


class AgentCall(Struct, frozen=True, omit_defaults=True):
    """The arguments of `call_agent`. All but the first four are for users and plans, not for models."""

    agent_name: str
    message: str = ""
    background: bool = False
    """Do not wait for the result."""
    handoff: bool = False
    """The callee's result is the caller's own, and ends it."""
    intent: str = ""
    task_id: str = ""
    data: Any = None
    calls: tuple[ToolCall, ...] = ()
    """With `intent`, `task_id` and `data` the message's."""
    history: tuple[ChatMessage, ...] = ()
    """Of a request: what was said before, as the agent's conversation begins with it."""
    inbox: tuple[Message, ...] = ()
    """Messages that the callee finds in its inbox."""
    forward: tuple[int, ...] = ()
    """The same of those that the caller's turn took, by position."""
    deadline: float | None = None
    """Unix seconds when it must be done."""
    deliver_only: bool = False
    """Leave the messages to the callee, which is dormant, without calling it."""
    limits: Limits | None = None
    """Of the callee and all below it, beside its own."""
    options: tuple[str, ...] = ()
    """Of a call of the user: one of these is the answer."""
    schema: dict[str, Any] | None = None
    """Of a call of the user: the JSON Schema that the answer must fit."""
    request: RequestOptions | None = None
    """Of a request: what holds for it alone."""


read_call = msgspec.json.Decoder(AgentCall).decode
"""AgentCall from its JSON."""


_message = unchecked(Message)


def opening(
    caller: Activation, callee: Activation, asked: AgentCall, attachments: tuple[Attachment, ...]
) -> Message | None:
    """The message that a call carries, made from the call alone; None for one that only hands messages on."""
    silent = not asked.message and not attachments and asked.data is None and not asked.calls
    if silent and (asked.forward or asked.inbox or callee.mailbox.inbox):
        return None
    call = callee.call
    return _message(
        "forward",
        caller.agent,
        callee.agent,
        asked.message,
        call,
        ids.opening_id(call),
        callee.task_id,
        intent=asked.intent,
        attachments=attachments,
        calls=asked.calls,
        data=asked.data,
    )


def returned(sender: str, receiver: str, call: str, content: str, task_id: str) -> Message:
    """The message that the end of a call is."""
    return _message(
        "return", sender, receiver, content, call, ids.return_id(call), task_id, ids.opening_id(call)
    )
