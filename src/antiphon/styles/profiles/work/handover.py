"""handover: what a protocol makes of the world of an agent that starts another one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.styles.profiles.conditions.expression import holds
from antiphon.styles.profiles.conditions.path import lookup
from antiphon.styles.profiles.files.protocol import Inheritance, Protocol, ReadFrom
from antiphon.styles.profiles.files.template import MISSING, Template, render

_ACTION = "state.current_action"


def hand_over(protocol: Protocol, world: Mapping[str, Any]) -> dict[str, Any]:
    """The inbox item for who is started: `source`, and a payload of `data` and `schema_for_rendering`.

    What the model said is taken from the current action's parameters, as far as the protocol declares it. A
    rule whose condition does not hold, or whose path is not all there, hands over nothing. Messages that are
    flagged `_no_handover` stay behind. Raises ExpressionError when a condition fails.
    """
    said = lookup(world, f"{_ACTION}.parameters", lookup(world, _ACTION))
    declared = protocol.context_parameters.get("properties", {})
    data = {name: said[name] for name in declared if isinstance(said, dict) and name in said}
    properties = dict(declared)
    for rule in protocol.inheritance:
        if rule.condition is not None and not holds(rule.condition, world):
            continue
        value = _inherited(rule, world)
        if value is not None:
            data[rule.as_payload_key] = value
            properties[rule.as_payload_key] = {
                "x-handover-title": rule.title or rule.as_payload_key,
                **rule.schema,
            }
    schema = {"type": "object", "properties": properties}
    return {"source": protocol.source, "payload": {"data": data, "schema_for_rendering": schema}}


def _inherited(rule: Inheritance, world: Mapping[str, Any]) -> Any:
    source = rule.from_source
    if isinstance(source, ReadFrom):
        values = {name: lookup(world, path) for name, path in source.replace.items()}
        return _handed(_read(source.path, values, world))
    gathered: list[Any] = []
    for name, path in source.iterate_on.items():
        listed = lookup(world, path)
        for value in listed if isinstance(listed, list) else ():
            found = _handed(_read(source.path_to_iterate, {name: value}, world))
            gathered += found if isinstance(found, list) else [] if found is None else [found]
    return gathered or None


def _read(path: Template, values: Mapping[str, Any], world: Mapping[str, Any]) -> Any:
    """The value at a path whose names are replaced; None when one of them has no value."""
    if any(values.get(slot.path) is None for slot in path.slots):
        return None
    return lookup(world, render(path, lambda name: values.get(name, MISSING)))


def _handed(value: Any) -> Any:
    """A value without the messages that stay behind."""
    return [each for each in value if not _kept(each)] if isinstance(value, list) else value


def _kept(message: Any) -> bool:
    internal = message.get("_internal") if isinstance(message, dict) else None
    return isinstance(internal, dict) and bool(internal.get("_no_handover"))
