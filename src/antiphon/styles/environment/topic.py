"""Topics: what a message is about, as text. A class stands for its path, an instance for its class."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

MESSAGE_ROUTE_TO_ALL = "<all>"
MESSAGE_ROUTE_TO_NONE = "<none>"
MESSAGE_ROUTE_TO_SELF = "<self>"

USER_REQUIREMENT = "antiphon.styles.environment.roles.action.UserRequirement"
"""The topic of a message that names none: what a user wants."""


class OwnTopic:
    """What knows by itself what its messages are about."""

    @property
    def topic(self) -> str:
        """The path of its class."""
        return f"{type(self).__module__}.{type(self).__name__}"


def topic_of(value: Any, default: str = USER_REQUIREMENT) -> str:
    """A text as it is, a class as `module.ClassName`, an instance as its class; `default` for nothing.

    Actions without a class of their own are told apart by their names, see `Action.topic`.
    """
    if value is None or value == "":
        return default
    if isinstance(value, str):
        return value
    if isinstance(value, OwnTopic):
        return value.topic
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__name__}"


def addresses_of(value: Any) -> set[str]:
    """One address or several, each a text, a class or an instance, as texts."""
    if isinstance(value, str):
        return {value} if value else set()
    several = value if isinstance(value, Collection) else (value,)
    return {topic for each in several if (topic := topic_of(each, ""))}
