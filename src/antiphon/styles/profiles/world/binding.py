"""seat: a profile in its team, with all that its rules need to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from antiphon.styles.profiles.conditions.expression import Expression
from antiphon.styles.profiles.files.profile import InboxStrategy, Observer, Profile, Segment
from antiphon.styles.profiles.files.protocol import Protocol, ReadFrom
from antiphon.styles.profiles.files.template import Template
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.profiles.turns.ingestors import Ingestor
from antiphon.styles.profiles.world.transcript_data import TranscriptData
from antiphon.values.tool.toolset import Toolset


class ProfileBinding(Struct, frozen=True, eq=False):
    """Where a profile stands.

    segments: those that are made anew in every turn. finishing: its tools that end it.
    associates: who may be given work, by name; config: what is known of them. principal: whom it launches;
    broker: who dispatches for it. monitored: somebody watches what it does; shown: a rule of somebody else
    reads its state. protocols: of its tools, by their names.
    tools: a line on each of its own tools; provided: the toolsets whose tools come and go.
    reads_messages, reads_start: some rule of it reads the conversation, or when it began; recalled: the
    conversations that were read.
    """

    profile: Profile
    segments: tuple[Segment, ...] = ()
    strategies: Mapping[str, InboxStrategy] = {}
    ingestors: Mapping[str, Ingestor] = {}
    bounds: ProfileLimits = ProfileLimits()
    finishing: tuple[str, ...] = ()
    associates: Mapping[str, Profile] = {}
    config: Mapping[str, Any] = {}
    principal: str = ""
    broker: str = ""
    monitored: bool = False
    shown: bool = False
    protocols: Mapping[str, Protocol] = {}
    reads_messages: bool = False
    reads_start: bool = False
    recalled: TranscriptData = field(default_factory=TranscriptData)
    tools: tuple[str, ...] = ()
    provided: tuple[Toolset, ...] = ()


def reads(profile: Profile, key: str) -> bool:
    """Whether a rule, a text or a segment of the profile looks at that key of the state."""
    return any(key in text for text in _written(profile))


def hands_over_messages(protocol: Protocol) -> bool:
    """Whether a protocol looks at the conversation of the one who hands over."""
    sources = [rule.from_source for rule in protocol.inheritance]
    paths = [each.path if isinstance(each, ReadFrom) else each.path_to_iterate for each in sources]
    return any("messages" in path.text for path in paths)


def _written(profile: Profile) -> list[str]:
    """Every text of a profile in which a path can stand."""
    observers: tuple[Observer, ...] = (*profile.pre_turn_observers, *profile.post_turn_observers)
    conditions: list[Expression | None] = [
        *(each.condition for each in observers),
        *(each.condition for each in profile.flow_decider),
        *(each.condition for each in profile.segments),
    ]
    payloads = [getattr(each.action, "inbox_item", None) for each in observers]
    templates = [
        *profile.text_definitions.values(),
        *(each.content for each in profile.segments if each.content is not None),
        *(each.payload for each in payloads if each is not None and isinstance(each.payload, Template)),
    ]
    return [
        *(each.text for each in conditions if each is not None),
        *(each.text for each in templates),
        *(each.source_state_path for each in profile.segments),
    ]
