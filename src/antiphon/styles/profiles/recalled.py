"""recalled: a conversation as the data that conditions and protocols read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon.model import ChatMessage

BRIEFING = "AGENT_STARTUP_BRIEFING"
"""The name of the message that an agent was briefed with."""
KEPT = 4_096
"""Messages that are remembered as data; when there are more, all are forgotten."""


class Recalled:
    """Messages as data, each made once: a rule that looks at a conversation looks at it in every turn.

    What is given out is shared and must not be changed.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[ChatMessage, dict[str, Any]]] = {}

    def of(self, conversation: Sequence[ChatMessage]) -> list[dict[str, Any]]:
        """A conversation as data."""
        return [self._data(each) for each in conversation]

    def _data(self, message: ChatMessage) -> dict[str, Any]:
        # By identity: the message is held here, so no other one can have its number meanwhile.
        known = self._known.get(id(message))
        if known is not None:
            return known[1]
        if len(self._known) >= KEPT:
            self._known.clear()
        data = message_data(message)
        self._known[id(message)] = message, data
        return data


def messages(conversation: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """A conversation as data. What an agent was briefed with is flagged: it is not handed over again."""
    return [message_data(each) for each in conversation]


def message_data(message: ChatMessage) -> dict[str, Any]:
    """One message as data."""
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        found["tool_calls"] = [
            {"id": each.id, "function": {"name": each.name, "arguments": each.arguments}}
            for each in message.calls
        ]
    if message.role == "tool":
        found |= {"tool_call_id": message.call_id, "name": message.name}
    elif message.name == BRIEFING:
        found["_internal"] = {"_no_handover": True}
    return found
