"""recalled: a conversation as the data that conditions and protocols read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon.values.model import ChatMessage

BRIEFING = "AGENT_STARTUP_BRIEFING"
"""The name of the message that an agent was briefed with."""
KEPT = 8
"""Conversations that are remembered as data, of agents with one profile; of more the oldest is forgotten."""


class TranscriptData:
    """Conversations as data, each message made once: a rule that looks at one does so in every turn.

    What is given out is shared and must not be changed.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Sequence[ChatMessage], list[dict[str, Any]]]] = {}

    def of(self, conversation: Sequence[ChatMessage], most: int) -> list[dict[str, Any]]:
        """The last messages of a conversation as data, at most so many."""
        # By identity: the conversation is held here, so no other one can have its number meanwhile. One only
        # grows; what is shortened or rewritten is another one.
        known = self._known.get(id(conversation))
        if known is None or len(known[1]) > len(conversation):
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[id(conversation)] = conversation, []
        data = known[1]
        for index in range(len(data), len(conversation)):
            data.append(message_data(conversation[index]))
        return data[-most:]


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
