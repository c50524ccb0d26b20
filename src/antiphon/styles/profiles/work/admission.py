"""admission: whether work may be given to somebody, and with how much to begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.kernel.context.transcript import tokens_of
from antiphon.styles.profiles.files.profile import Profile

INHERITED = "inherited_messages"


class Delegation(Struct, frozen=True):
    """Whom an agent may give work to; both must let a profile pass.

    tags: a profile needs one of them; none at all lets nobody pass, None everybody. names: the same of names.
    """

    tags: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None

    def admits(self, name: str, tags: tuple[str, ...]) -> bool:
        """Whether a profile of that name, with these tags, passes."""
        tagged = self.tags is None or not set(self.tags).isdisjoint(tags)
        return tagged and (self.names is None or name in self.names)


def staff(
    profiles: Mapping[str, Profile], delegation: Delegation | None, tags: Mapping[str, tuple[str, ...]]
) -> dict[str, Profile]:
    """The associates that an agent may give work to: those that are available, as far as its policy goes."""
    return {
        name: each
        for name, each in profiles.items()
        if each.type == "associate"
        and each.available_for_staffing
        and (delegation is None or delegation.admits(name, tags.get(name, ())))
    }


def admit(payload: Mapping[str, Any], most: int | None) -> dict[str, Any]:
    """A briefing of at most so many tokens (UTF-8 bytes / 4).

    What gives way are the conversations in archives, then the oldest of the messages that are inherited.
    Raises UserError when even without them it is too large.
    """
    found = dict(payload)
    data = dict(found.get("data", {}))
    if most is None or _tokens(found) <= most:
        return found
    inherited = list(data.pop(INHERITED, ()))
    data = without_messages(data)
    room = most - _tokens({**found, "data": data})
    if room < 0:
        raise UserError(f"its briefing takes {most - room:,} tokens, and at most {most:,} are allowed")
    while inherited and _tokens(inherited) > room:
        del inherited[: max(len(inherited) // 8, 1)]
    found["data"] = {**data, INHERITED: inherited} if inherited else data
    return found


def without_messages(value: Any) -> Any:
    """Data without the conversations in the archives of modules."""
    if isinstance(value, list):
        return [without_messages(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: [_lean(entry) for entry in each] if key == "context_archive" else without_messages(each)
        for key, each in value.items()
    }


def _lean(entry: Any) -> Any:
    return (
        {key: each for key, each in entry.items() if key != "messages"} if isinstance(entry, dict) else entry
    )


def _tokens(value: Any) -> int:
    return tokens_of(msgspec.json.encode(value).decode())
