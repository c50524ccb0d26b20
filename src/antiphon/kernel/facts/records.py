"""Records: events with their number, time and activation, and the pieces of replies beside them."""

from __future__ import annotations

from msgspec import Struct

from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    Event,
    HistoryCompacted,
    MessagePosted,
    PermissionDecided,
    StateChanged,
    TurnFinished,
    TurnStarted,
    place,
)
from antiphon.values.message import USER


class Record(Struct, frozen=True):
    """One event where it stands: its number, its time (Unix seconds), whose it is.

    activation, agent: who did it; 0 and `user` for the user. parent: the caller's activation.
    """

    seq: int
    at: float
    run_id: str
    activation: int
    agent: str
    parent: int
    event: Event

    @property
    def type(self) -> str:
        """The name of the event, `EffectStarted` for one."""
        return type(self.event).__name__


class Piece(Struct, frozen=True, gc=False):
    """A piece of a reply that is being written; the record of its effect's end holds all of it.

    effect_id: names the attempt too; a later attempt of the turn replaces what this one said.
    """

    effect_id: str
    activation: int
    agent: str
    kind: str
    text: str
    index: int = 0


class ActivationIndex:
    """Names and callers by activation number, learned from the events in order."""

    def __init__(self) -> None:
        self._names: list[tuple[str, int]] = [(USER, 0)]

    def learn(self, event: Event) -> None:
        """Take note of an event; every call must be learned, in order."""
        if isinstance(event, EffectStarted) and event.kind == "call" and not event.continues:
            self._names.append((event.name, place(event.id)))

    def record(self, seq: int, at: float, run_id: str, event: Event) -> Record:
        """The record of an event that was learned."""
        number = whose(event)
        agent, parent = self._names[number]
        return Record(seq, at, run_id, number, agent, parent, event)


def whose(event: Event) -> int:
    """The activation an event belongs to; 0 for those of the run."""
    if isinstance(event, EffectStarted | EffectFinished | PermissionDecided):
        return place(event.id)
    if isinstance(event, TurnStarted | TurnFinished | HistoryCompacted | StateChanged):
        return event.activation
    return event.to if isinstance(event, MessagePosted) else 0
