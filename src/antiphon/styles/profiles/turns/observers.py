"""observers: the rules before and after a turn. One that fails becomes an inbox item; the agent goes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.styles.profiles.conditions.expression import holds
from antiphon.styles.profiles.conditions.grammar import ExpressionError
from antiphon.styles.profiles.files.profile import AddToInbox, Observer, Rule, UpdateState
from antiphon.styles.profiles.files.template import Template
from antiphon.styles.profiles.turns.item import Item, Metadata, kept, recorded
from antiphon.styles.profiles.work.admission import without_messages
from antiphon.styles.profiles.world.world import RuleContext


def observe(observers: Iterable[Observer], view: RuleContext) -> None:
    """Ask each observer in order; a later one sees what an earlier one changed."""
    for observer in observers:
        try:
            if observer.condition is None or holds(observer.condition, view.world):
                view.fired.append(named(observer))
                _act(observer, view)
        except (ExpressionError, KeyError) as error:
            said = str(error.args[0] if error.args else error)
            failure = {"observer_id": observer.id, "place": str(observer.place), "error": said}
            add(view, "OBSERVER_FAILURE", failure, observer.id)


def named(rule: Observer | Rule) -> str:
    """An observer or a rule as the records name it: its id, and where it stands."""
    where = f"{rule.place.file}:{rule.place.line}" if rule.place.line else rule.place.file
    return f"{rule.id} ({where})"


def add(view: RuleContext, source: str, payload: Any, by: str = "", *, persistent: bool = False) -> None:
    """Put an item into the agent's own inbox. by: the rule that does."""
    number = int(view.private.values.get("_items", 0)) + 1
    item = Item(
        f"{by or source}-{number}",
        source,
        payload,
        "persistent_until_consumed" if persistent else "consume_on_read",
        Metadata(view.context.at, by),
    )
    view.private.put("_items", number)
    view.private.put("inbox", recorded([*kept(view.private.values.get("inbox")), item]))


def _act(observer: Observer, view: RuleContext) -> None:
    action = observer.action
    if isinstance(action, UpdateState):
        for update in action.updates:
            if update.operation == "increment":
                view.private.increment(update.path)
            else:
                view.private.set(update.path, update.value)
    elif isinstance(action, AddToInbox):
        item = action.inbox_item
        payload = item.payload
        if isinstance(payload, Template):
            payload = without_messages(view.at(payload.whole))
        if isinstance(payload, dict) and "content_key" in payload:
            payload = {**payload, "content": view.text(payload["content_key"])}
        persistent = item.consumption_policy == "persistent_until_consumed"
        add(view, item.source, payload, observer.id, persistent=persistent)
