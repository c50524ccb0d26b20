"""taking: how a turn begins. Observers, then the inbox, then what is said after the conversation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from antiphon.styles.profiles.turns.allowance import allowance
from antiphon.styles.profiles.turns.inbox import read_inbox
from antiphon.styles.profiles.turns.item import (
    TOOL_RESULT,
    Item,
    briefing_of,
    from_mail,
    kept,
    recorded,
    results_of,
)
from antiphon.styles.profiles.turns.observers import add, observe
from antiphon.styles.profiles.turns.prompt import dynamic_text
from antiphon.styles.profiles.work.dispatch import broker_name, left_behind
from antiphon.styles.profiles.work.launch import ANSWERED, returned
from antiphon.styles.profiles.world.binding import ProfileBinding
from antiphon.styles.profiles.world.transcript_data import BRIEFING
from antiphon.styles.profiles.world.world import RuleContext
from antiphon.values.hooks import ModelInput, TurnContext

DELIVERED = "initial_briefing_delivered"
"""The flag that is set when the briefing has been read."""
START = "agent_start_utc_timestamp"
"""Where it stands when the agent took its first turn, for texts that say so."""


def take(seat: ProfileBinding, context: TurnContext) -> ModelInput:
    """What the model is shown of the messages and the state, and what is recorded with it."""
    view = RuleContext(seat, context)
    _briefed(view)
    _directed(view)
    left_behind(view, seat.broker)
    if seat.principal and seat.principal not in context.background_agents:
        left_behind(view, broker_name(seat.principal))
    returned(view)
    mail = [item for item in map(from_mail, context.new_messages) if item is not None]
    if mail:
        view.private.put("inbox", recorded([*kept(view.private.values.get("inbox")), *mail]))
    if seat.reads_start and START not in context.data:
        view.private.put(START, datetime.fromtimestamp(context.at, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    results = results_of(context.messages, context.at)
    view.receive(recorded(results))
    observe(seat.profile.pre_turn_observers, view)
    view.receive([])
    items = _with_files(kept(view.private.values.get("inbox")), mail)
    if any(item.source == BRIEFING for item in items):
        view.private.set(f"flags.{DELIVERED}", True)
    _questioned(view, items)
    reading = read_inbox([*items, *(results if TOOL_RESULT in seat.strategies else ())], view)
    if items:
        view.private.put("inbox", recorded(reading.left))
    if reading.read or context.data.get("_processed"):
        view.private.put("_processed", reading.read)
    allowed = allowance(seat, context)
    tail = "\n\n".join([*dynamic_text(view), *reading.transient, *allowed.notes])
    return ModelInput(
        reading.messages, tail, allowed.only,
        activation_data=view.private.changed, run_data=view.team.changed, rules=tuple(view.fired),
    )  # fmt: skip


def _questioned(view: RuleContext, items: list[Item]) -> None:
    """The team has the question that the user asked first, or first after its principal had ended."""
    prompts = [each for each in items if each.source == "USER_PROMPT" and isinstance(each.payload, dict)]
    if prompts and (not view.team.values.get("question") or view.context.run_data.get(ANSWERED)):
        view.team.put("question", str(prompts[0].payload.get("prompt", "")))
        view.team.put(ANSWERED, False)


def _with_files(items: list[Item], mail: list[Item]) -> list[Item]:
    """Items as read back from the state, those that came by mail with their files."""
    own = {each.item_id: each for each in mail}
    return [own.get(each.item_id, each) for each in items]


def _briefed(view: RuleContext) -> None:
    """The parameters that an agent was started with become part of its state."""
    for message in view.context.new_messages:
        briefing = briefing_of(message)
        if briefing is not None:
            for key in ("module_id", "assigned_role_name"):
                if key in message.data:
                    view.private.put(key, message.data[key])
            view.private.put("initial_parameters", briefing["payload"].get("data", {}))


def _directed(view: RuleContext) -> None:
    """A principal finds what its partner has sent in its inbox."""
    queue: list[Any] = view.team.values.get("partner_directives_queue", [])
    if view.seat.profile.type == "principal" and queue:
        for directive in queue:
            add(view, "PARTNER_DIRECTIVE", directive)
        view.team.put("partner_directives_queue", [])
