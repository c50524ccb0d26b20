"""checks: what can only be seen of a whole profile, with its bases merged in."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.config.yaml import meant
from antiphon.styles.profiles.conditions.expression import constant
from antiphon.styles.profiles.files.diagnostics import Diagnostic, SourceLocation
from antiphon.styles.profiles.files.profile import AddToInbox, LoopWithInboxItem, Profile, Rule


def check(profile: Profile) -> Iterator[Diagnostic]:
    """The errors of a whole profile."""
    yield from _unreachable(profile)
    if profile.type != "base":
        yield from _undefined(profile)


def _unreachable(profile: Profile) -> Iterator[Diagnostic]:
    """Rules that can never count, because of one before them or of themselves."""
    always: Rule | None = None
    before: dict[str, Rule] = {}
    for rule in profile.flow_decider:
        fixed = constant(rule.condition)
        same = before.setdefault(" ".join(rule.condition.text.split()), rule)
        if always is not None:
            said = f"rule {always.id!r} before it always holds; a rule with that id would replace it"
        elif fixed is False:
            said = "its condition never holds"
        elif same is not rule:
            said = f"rule {same.id!r} before it has the same condition"
        else:
            always = rule if fixed else None
            continue
        yield Diagnostic(rule.place, f"rule {rule.id!r} can never count: {said}")


def _undefined(profile: Profile) -> Iterator[Diagnostic]:
    """Uses of text definitions that there are not."""
    known = profile.text_definitions
    for key, place in _content_keys(profile):
        if key not in known:
            said = meant(key, sorted(known)) if known else "; there are none"
            yield Diagnostic(place, f"there is no text definition {key!r}{said}")


def _content_keys(profile: Profile) -> Iterator[tuple[str, SourceLocation]]:
    for segment in profile.segments:
        if segment.content_key and segment.content is None:
            yield segment.content_key, segment.place
    for observer in (*profile.pre_turn_observers, *profile.post_turn_observers):
        action = observer.action
        if isinstance(action, AddToInbox) and isinstance(action.inbox_item.payload, dict):
            key = action.inbox_item.payload.get("content_key")
            if key is not None:
                yield key, action.inbox_item.place
    for rule in profile.flow_decider:
        if isinstance(rule.action, LoopWithInboxItem):
            yield rule.action.content_key, rule.action.place
