"""item: what waits in an agent's inbox, and what mail becomes there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from antiphon.styles.profiles.files.vocabulary import OTHER_SOURCE, SOURCES
from antiphon.values.message import USER, Attachment, Message
from antiphon.values.model import ChatMessage

TOOL_RESULT = "TOOL_RESULT"
"""The source of tool results."""
Consumption = Literal["consume_on_read", "persistent_until_consumed"]
TRANSIENT = frozenset({"WORK_MODULES_STATUS_UPDATE", "PRINCIPAL_ACTIVITY_UPDATE"})
"""Sources of items that are shown in one turn and leave no trace, unless a strategy says so."""


class Metadata(Struct, frozen=True, omit_defaults=True):
    """created_at: Unix seconds. max_turns_in_inbox: None for the bounds' own."""

    created_at: float = 0.0
    triggering_observer_id: str = ""
    max_turns_in_inbox: int | None = None
    turn_count_in_inbox: int = 0


class Item(Struct, frozen=True, omit_defaults=True):
    """An inbox item. message_id: of the mail it came by, empty for one that a rule made."""

    item_id: str
    source: str
    payload: Any = None
    consumption_policy: Consumption = "consume_on_read"
    metadata: Metadata = Metadata()
    message_id: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def priority(self) -> int:
        """The lowest is read first."""
        return SOURCES.get(self.source, OTHER_SOURCE)


def in_order(items: Iterable[Item]) -> list[Item]:
    """Items as they are read: by priority, of equal ones the older first."""
    return sorted(items, key=lambda item: item.priority)


def results_of(conversation: Sequence[ChatMessage], at: float) -> list[Item]:
    """The tool results that the model is about to see now: those that a conversation ends with.

    They stand in the conversation with their calls; as items, rules and strategies see them too.
    """
    found: list[Item] = []
    for message in reversed(conversation):
        if message.role != "tool":
            break
        payload = {
            "tool_name": message.name,
            "tool_call_id": message.call_id,
            "is_error": message.is_error,
            "content": message.content,
        }
        found.append(Item(message.ref or message.call_id, TOOL_RESULT, payload, metadata=Metadata(at)))
    return found[::-1]


def from_mail(message: Message) -> Item | None:
    """The item that a message is; None for one that says nothing.

    A message with a `source` is what it says it is. Another one is a prompt when the user sent it, and a
    briefing when a colleague did.
    """
    source, payload = message.source, message.data
    briefing = briefing_of(message)
    if briefing is not None:
        source, payload = briefing["source"], briefing["payload"]
    elif not source:
        source = "USER_PROMPT" if message.sender == USER else "AGENT_STARTUP_BRIEFING"
        payload = {"prompt" if message.sender == USER else "content": message.content}
    elif payload is None:
        payload = {"content": message.content}
    silent = payload in (None, "", {"prompt": ""}, {"content": ""})
    if source == "USER_PROMPT" and silent and not message.attachments:
        return None
    return Item(message.id, source, payload, message_id=message.id, attachments=message.attachments)


def briefing_of(message: Message) -> dict[str, Any] | None:
    """What the message starts its receiver with, if it does: `source`, and a payload with `data`."""
    data = message.data if not message.source else None
    found = data.get("briefing") if isinstance(data, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("payload"), dict):
        return None
    return found if isinstance(found.get("source"), str) else None


def kept(data: Any) -> list[Item]:
    """The items that an agent's state holds."""
    return msgspec.convert(data or [], list[Item])


def recorded(items: Iterable[Item]) -> list[Any]:
    """Items as an agent's state holds them."""
    found: list[Any] = msgspec.to_builtins(list(items))
    return found
