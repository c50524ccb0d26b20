"""Records: events with their number, time and activation, and the pieces of replies beside them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct, field

from antiphon.kernel.facts.events import (
    CallEffect,
    EffectFinished,
    EffectStarted,
    Event,
    HumanInput,
    MessagePosted,
    PermissionDecided,
    RunResumed,
    StateChanged,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.ids import activation_of
from antiphon.values.message import USER
from antiphon.values.progress import FileDiff, FileLocation


class Record(Struct, frozen=True):
    """One event where it stands: its number, its time (Unix seconds), whose it is.

    activation, agent: who did it; 0 and `user` for the user. parent: the caller's activation. callee: of a
    call's start, the activation that the call is. last_of_row: nothing else came of what came from outside
    with it, so that what stands in the records up to here is whole: two approvals that are asked at once are
    two records, and only the second is the last of its row.
    """

    seq: int
    at: float
    run_id: str
    activation: int
    agent: str
    parent: int
    event: Event
    callee: int = 0
    last_of_row: bool = True

    @property
    def type(self) -> str:
        """The name of the event, `EffectStarted` for one."""
        return type(self.event).__name__

    @property
    def asks(self) -> HumanInput | None:
        """What a person is asked with this event, see `Conversation.answer`; None for any other."""
        detail = self.event.detail if isinstance(self.event, EffectStarted) else None
        return detail if isinstance(detail, HumanInput) else None


class ReplyDelta(Struct, frozen=True, gc=False):
    """A piece of a reply that is being written; the record of its effect's end holds all of it.

    Whoever comes in the middle of a reply is given what it says so far as one piece, and whoever reads slowly
    what came meanwhile; of each effect its last 65,536 characters, at least, are kept for that.
    """

    effect_id: str
    """Names the attempt too: a later attempt of the turn replaces what this one said."""
    activation: int
    agent: str
    kind: str
    """Those of `Delta`, and `void`: the attempt ended without a reply, so nothing counts of what it said.
    That is told to those who have read some of it; nobody is given it any more. With `progress` it is a
    tool's word on how far it has come, and with `queued` a request's place in the line before its model: no
    record holds these, and only the latest is handed out."""
    text: str
    index: int = 0
    """Tells the calls of one reply apart."""
    offset: int = 0
    """Characters that this text (of this effect, kind and index) had before, as far as they were counted."""
    cut: bool = False
    """Text right before it is missing: this reader came too late for it, or was too slow."""
    locations: tuple[FileLocation, ...] = ()
    """Of `progress`: where the tool works."""
    diffs: tuple[FileDiff, ...] = ()
    """Of `progress`: what it changes in files."""


class ActivationIndex(Struct):
    """Who is who: activation numbers to names and callers, learned from the events in order.

    What was learned of later events does no harm: a record of earlier ones is made as it was then.
    """

    names: list[tuple[str, int]] = field(default_factory=lambda: [(USER, 0)])
    """Of each activation the name and the caller."""
    born: list[int] = field(default_factory=lambda: [0])
    """Of each activation the record that it began with, or the first one of that row."""
    before: list[tuple[int, list[tuple[str, int]]]] = field(default_factory=list)
    """Names as they were before a record that gave agents other ones, by its number."""

    def learn(self, event: Event, seq: int) -> None:
        """Take note of an event, record `seq` or a later one of its row; each call must be, in order."""
        if type(event) is EffectStarted:
            detail = event.detail
            if type(detail) is CallEffect and not detail.reactivates:
                self.names.append((detail.agent, activation_of(event.id)))
                self.born.append(seq)
        elif type(event) is RunResumed and event.renamed:
            self.before.append((seq, self.names))
            self.names = [(event.renamed.get(name, name), caller) for name, caller in self.names]

    def agent(self, activation: int) -> str:
        """The name of an activation's agent, as it is now."""
        return self.names[activation][0]

    def records(self, last: int, at: float, run_id: str, events: Sequence[Event]) -> list[Record]:
        """The records of a row, numbered up to `last`, whose events were learned."""
        found, first = [], last - len(events) + 1
        created = bisect_left(self.born, first)
        names = self.names
        if self.before:
            names = next((earlier for until, earlier in self.before if last < until), names)
        for seq, event in enumerate(events, first):
            number, callee = whose(event), 0
            if type(event) is EffectStarted and type(event.detail) is CallEffect:
                callee = event.detail.reactivates or created
                created += not event.detail.reactivates
            agent, parent = names[number]
            found.append(Record(seq, at, run_id, number, agent, parent, event, callee, seq == last))
        return found


def whose(event: Event) -> int:
    """The activation an event belongs to; 0 for those of the run."""
    if isinstance(event, EffectStarted | EffectFinished | PermissionDecided):
        return activation_of(event.id)
    if isinstance(event, TurnStarted | TurnFinished | TranscriptCompacted | StateChanged):
        return event.activation
    return event.to if isinstance(event, MessagePosted) else 0
