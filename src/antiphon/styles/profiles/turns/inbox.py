"""inbox: what a turn takes from the inbox, and how the model is shown it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from antiphon.styles.profiles.files.diagnostics import SourceLocation
from antiphon.styles.profiles.files.profile import InboxStrategy
from antiphon.styles.profiles.turns.item import TOOL_RESULT, TRANSIENT, Item, in_order
from antiphon.styles.profiles.world.transcript_data import BRIEFING
from antiphon.styles.profiles.world.world import RuleContext
from antiphon.values.model import ChatMessage

_BUILT_IN: Mapping[str, str] = {
    "TOOL_RESULT": "tool_result",
    "OBSERVER_FAILURE": "observer_failure",
    "AGENT_STARTUP_BRIEFING": "protocol_aware",
    "PARTNER_DIRECTIVE": "generic_message",
    "PRINCIPAL_COMPLETED": "generic_message",
    "INTERNAL_DIRECTIVE": "templated_content",
    "SELF_REFLECTION_PROMPT": "templated_content",
    "WORK_MODULES_STATUS_UPDATE": "work_modules",
    "PRINCIPAL_ACTIVITY_UPDATE": "principal_history_summary",
    "JSON_HISTORY_FOR_LLM": "json_history",
    "ORIGINAL_QUESTION": "generic_message",
    "USER_PROMPT": "user_prompt",
}
"""The ingestors of items for which a profile has no strategy; `markdown_formatter` for all others."""
_SYSTEM = frozenset({"OBSERVER_FAILURE", "INTERNAL_DIRECTIVE", "SELF_REFLECTION_PROMPT"})
"""Sources that speak for the system, unless a strategy says so."""
SYSTEM = "[system] "
"""What a message of role `system` begins with: providers take those only before a conversation."""


RECORDED = 4_096
"""Bytes of a payload that is kept with the record of a turn."""


class Reading(Struct):
    """What came of the items of a turn.

    messages: for the conversation. transient: for this turn only. left: items that stay. read: for each
    item its record, with `shown`: the number of its message, -1 for none.
    """

    messages: list[ChatMessage] = field(default_factory=list)
    transient: list[str] = field(default_factory=list)
    left: list[Item] = field(default_factory=list)
    read: list[dict[str, Any]] = field(default_factory=list)


def read_inbox(items: Iterable[Item], view: RuleContext) -> Reading:
    """Write every item, in order of priority. One that cannot be formatted is reported, and is gone."""
    reading = Reading()
    for item in in_order(items):
        strategy = _strategy(item.source, view)
        ingestor = view.seat.ingestors[strategy.ingestor]
        shown = -1
        try:
            text = ingestor.write(item.payload, strategy.params, view)
        except Exception as error:  # noqa: BLE001 - a formatter is the user's own; the agent goes on
            said = f"[error] An item of {item.source} could not be shown: {type(error).__name__}: {error}"
            reading.messages.append(ChatMessage("user", SYSTEM + said, name=item.source))
            shown = len(reading.messages) - 1
        else:
            if text.strip() or item.attachments:
                shown = _inject(item, text, strategy, reading)
            reading.left += _stays(item, view)
        reading.read.append(_record(item, shown))
    return reading


def _strategy(source: str, view: RuleContext) -> InboxStrategy:
    found = view.seat.strategies.get(source)
    if found is not None:
        return found
    params = {"role": "system"} if source in _SYSTEM else {}
    return InboxStrategy(
        source, SourceLocation(""), _BUILT_IN.get(source, "markdown_formatter"), params=params
    )


def _inject(item: Item, text: str, strategy: InboxStrategy, reading: Reading) -> int:
    """Show a text; the number of its message, -1 when it is for this turn only."""
    lasting = strategy.params.get("is_persistent_in_memory", item.source not in TRANSIENT)
    if not lasting or item.consumption_policy == "persistent_until_consumed":
        reading.transient.append(text)
        return -1
    role = strategy.params.get("role", "user")
    text = SYSTEM + text if role == "system" else text
    written = ChatMessage(
        "assistant" if role == "assistant" else "user", text, name=item.source, attachments=item.attachments
    )
    before = [index for index, each in enumerate(reading.messages) if each.role == written.role]
    if strategy.injection_mode == "prepend_to_role" and before and item.source != BRIEFING:
        last = reading.messages[before[-1]]
        files = (*item.attachments, *last.attachments)
        reading.messages[before[-1]] = replace(last, content=f"{text}\n\n{last.content}", attachments=files)
        return before[-1]
    reading.messages.append(written)
    return len(reading.messages) - 1


def _stays(item: Item, view: RuleContext) -> list[Item]:
    """The item for the next turn, if it is to be shown again."""
    if item.consumption_policy == "consume_on_read":
        return []
    count, most = item.metadata.turn_count_in_inbox + 1, item.metadata.max_turns_in_inbox
    if count > (view.seat.bounds.item_turns if most is None else most):
        return []
    return [replace(item, metadata=replace(item.metadata, turn_count_in_inbox=count))]


def _record(item: Item, shown: int) -> dict[str, Any]:
    """What is kept of an item that was read.

    Mail and results are on record already, a large payload as it was shown.
    """
    found = {"item_id": item.item_id, "source": item.source, "shown": shown}
    if item.consumption_policy != "consume_on_read":
        found["consumption_policy"] = item.consumption_policy
    if item.metadata.triggering_observer_id:
        found["triggering_observer_id"] = item.metadata.triggering_observer_id
    if item.message_id:
        found["message_id"] = item.message_id
    elif item.source != TOOL_RESULT and len(msgspec.json.encode(item.payload)) <= RECORDED:
        found["payload"] = item.payload
    return found
