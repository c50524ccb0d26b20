"""rounds: who gets what, and when it is over. What is published in one round is seen in the next.

An environment is an agent whose turns are rounds: its plan hands the messages of the last round to
those they concern, its decision says whether another round follows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.styles.environment.topic import (
    MESSAGE_ROUTE_TO_ALL,
    MESSAGE_ROUTE_TO_NONE,
    MESSAGE_ROUTE_TO_SELF,
    USER_REQUIREMENT,
)
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnContext, TurnPlan
from antiphon.values.message import Message

ROUNDS = "rounds"
"""The intent of the request that has an environment do rounds; its data say how many, and the laps."""
MOVED = "moved"
"""The intent of a message in which a role tells its environment of new topics and addresses."""
EVERYONE = frozenset({MESSAGE_ROUTE_TO_ALL})
"""The addresses of a message that names none."""
ROUTES = (MESSAGE_ROUTE_TO_ALL, MESSAGE_ROUTE_TO_NONE, MESSAGE_ROUTE_TO_SELF)
"""Addresses that mean something to everyone."""
STOPPED = 20
"""Pairs of roles, of which the outcome tells that messages between them met the limit of laps."""
LOG = logging.getLogger(__name__)


class Subscriber(Struct):
    """Where a role stands: its place among the others, what it watches, where it is reached.

    members: the agents that react in its name. join: how many messages must wait before one does.
    """

    name: str
    place: int
    watch: frozenset[str]
    addresses: frozenset[str]
    everything: bool = False
    members: tuple[str, ...] = ()
    join: int = 1


class Routes:
    """Who gets a message, found without looking at everyone."""

    def __init__(self, seats: Iterable[Subscriber]) -> None:
        self.seats: dict[str, Subscriber] = {}
        self._topics: dict[str, dict[str, None]] = {}
        self._addresses: dict[str, dict[str, None]] = {}
        self._everything: dict[str, None] = {}
        self._places: dict[str, int] = {}
        self.members: dict[str, str] = {}
        for seat in seats:
            self.put(seat)

    def put(self, seat: Subscriber) -> None:
        """Add a seat, or change one."""
        old = self.seats.get(seat.name)
        if old == seat:
            return
        if old is not None:
            for index, keys in ((self._topics, old.watch), (self._addresses, old.addresses)):
                for key in keys:
                    index[key].pop(old.name, None)
            self._everything.pop(old.name, None)
        self.seats[seat.name] = seat
        self._places[seat.name] = seat.place
        self.members.update(dict.fromkeys(seat.members, seat.name))
        for index, keys in ((self._topics, seat.watch), (self._addresses, seat.addresses)):
            for key in keys:
                index.setdefault(key, {})[seat.name] = None
        if seat.everything:
            self._everything[seat.name] = None

    def move(self, name: str, watch: Iterable[str], addresses: Iterable[str]) -> None:
        """Give somebody other topics and addresses; nobody, if there is none of that name any more."""
        seat = self.seats.get(name)
        if seat is not None:
            self.put(replace(seat, watch=frozenset(watch), addresses=frozenset(addresses)))

    def of(self, topic: str, send_to: Iterable[str]) -> list[str]:
        """The names of those a message concerns, in their order."""
        found: dict[str, None] = {}
        for address in send_to:
            if address == MESSAGE_ROUTE_TO_ALL:
                found.update(self._topics.get(topic, ()))
                found.update(self._everything)
            else:
                found.update(self._addresses.get(address, ()))
        return sorted(found, key=self._places.__getitem__) if len(found) > 1 else list(found)

    def concern(self, message: Message) -> list[str]:
        """The names of those a published message concerns."""
        if message.intent in (ROUNDS, MOVED):
            return []
        return self.of(message.topic or USER_REQUIREMENT, _send_to(message))

    def unknown(self, addresses: Iterable[str]) -> list[str]:
        """Those of the addresses that are nobody's."""
        return sorted(each for each in addresses if each not in ROUTES and not self._addresses.get(each))

    def owner(self, member: str) -> Subscriber | None:
        """In whose name an agent reacts; None for one that is no member any more."""
        return self.seats.get(self.members.get(member, ""))

    def order(self, member: str) -> tuple[int, int]:
        """Where an agent stands among the others; before all of them for anyone else."""
        owner = self.owner(member)
        return (-1, 0) if owner is None else (owner.place, owner.members.index(member))

    def ready(self, member: str, waiting: int) -> bool:
        """Whether so many messages are enough for a member to react to them."""
        owner = self.owner(member)
        return owner is None or waiting >= owner.join


class Rounds:
    """The rules of one environment, whose `routes` are changed as its roles move.

    laps: how often one role may react in one chain of messages where the request says nothing about it,
    None for any number. seen: told of every message that is distributed, and whether the round begins
    with it.
    """

    def __init__(
        self,
        routes: Routes,
        laps: Callable[[], int | None],
        seen: Callable[[Message, bool], None],
    ) -> None:
        self._routes, self._laps, self._seen = routes, laps, seen
        self._begun = False

    def plan(self, context: TurnContext) -> TurnPlan:
        """One round: everyone whom a message concerns reacts, and so do those with unread ones."""
        routes = self._routes
        changes: dict[str, Any] = {}
        if context.turn == 1:
            changes = {**self._asked(context.new_messages), "failed": {}, "stopped": {}}
        known = changes or context.data
        most = known["laps"] if "laps" in known else self._laps()
        failed = changes.get("failed", context.data.get("failed", {}))
        news = context.new_messages
        moved = {each.sender: each.data for each in news if each.intent == MOVED and _moves(each)}
        known = context.data.get("moved", {})
        if moved:
            changes["moved"] = {**known, **moved}
        for name, seat in (moved if self._begun else {**known, **moved}).items():
            routes.move(name, seat["watch"], seat["addresses"])
        self._begun = True
        given: dict[str, list[int]] = {}
        stopped: dict[str, int] = {}
        for position in self._positions(routes, news):
            message = news[position]
            self._seen(message, not given)
            counts = context.hops[position]
            for name in routes.concern(message):
                members = routes.seats[name].members
                if most is not None and counts and sum([counts.get(each, 0) for each in members]) >= most:
                    met = f"{name} from {routes.members.get(message.sender, message.sender) or 'the user'}"
                    stopped[met] = stopped.get(met, 0) + 1
                    continue
                one = members[0] if len(members) == 1 else _freest(members, context.unread, given, failed)
                given.setdefault(one, []).append(position)
        if stopped:
            known = changes.get("stopped", context.data.get("stopped", {}))
            more = {met: known.get(met, 0) + count for met, count in stopped.items()}
            changes["stopped"] = dict(list({**known, **more}.items())[:STOPPED])
        return TurnPlan(_calls(routes, given, context.unread, failed), changes)

    def decide(self, context: TurnContext) -> Continue | Return:
        """Another round while somebody has something to read, and rounds are left."""
        following = self._following(context)
        if isinstance(following, Return):
            quiet = following.outcome == "completed"
            for note in _notes(context, self._routes if quiet else None):
                LOG.warning("%s: %s", context.agent, note)
        return following

    def _following(self, context: TurnContext) -> Continue | Return:
        data, most = context.data, context.data.get("most")
        # Whoever asked with a text, and not for rounds, is answered with what was said last.
        value = context.new_messages[-1].content if context.new_messages and most is None else ""
        # A role that the team has lost since is asked no more, like one that failed.
        lost = ("failed", "not_found")
        failed = {each.agent: each.reason for each in context.results if each.outcome in lost}
        changes = {"failed": {**data.get("failed", {}), **failed}} if failed else {}
        everyone = changes.get("failed", data.get("failed", {}))
        routes = self._routes
        for each in context.results:
            if each.outcome in ("budget", "limit", "cancelled", "no_progress"):
                return Return(each.outcome, reason=f"{each.agent}: {each.reason}", activation_data=changes)
        unread = bool(context.unread) and any(
            name not in everyone and routes.ready(name, count) for name, count in context.unread.items()
        )
        if (unread or context.inbox) and (most is None or context.turn < most):
            return Continue(activation_data=changes)
        if everyone:
            return Return(
                "failed",
                reason="; ".join(f"{name}: {why}" for name, why in everyone.items()),
                activation_data=changes,
            )
        if unread or any(routes.concern(each) for each in context.inbox):
            rounds = "1 round is" if most == 1 else f"{most} rounds are"
            return Return("limit", reason=f"{rounds} over, and messages are unread", activation_data=changes)
        # Nobody has anything left to do; what went round often enough was not handed on.
        return Return("completed", value, "; ".join(_notes(context, routes)), changes)

    def _asked(self, taken: Iterable[Message]) -> dict[str, Any]:
        """How many rounds are asked for, None for as many as there is something to do, and the laps."""
        for message in taken:
            if message.intent == ROUNDS and isinstance(message.data, Mapping):
                return {"most": message.data.get("rounds"), "laps": message.data.get("laps")}
        return {"most": None, "laps": self._laps()}

    def in_order(self, routes: Routes, messages: Sequence[Message]) -> list[Message]:
        """What is distributed: the user's messages, then each publisher's in the order of their places."""
        return [messages[position] for position in self._positions(routes, messages)]

    def _positions(self, routes: Routes, taken: Sequence[Message]) -> list[int]:
        if len(taken) == 1:
            return [0] if taken[0].intent not in (ROUNDS, MOVED) else []
        places = [
            (routes.order(message.sender), position)
            for position, message in enumerate(taken)
            if message.intent not in (ROUNDS, MOVED)
        ]
        return [position for _, position in sorted(places)]


def _moves(message: Message) -> bool:
    """Whether a role tells of new topics and addresses."""
    data = message.data
    return message.intent == MOVED and isinstance(data, Mapping) and data.keys() >= {"watch", "addresses"}


def _calls(
    routes: Routes, given: Mapping[str, Sequence[int]], unread: Mapping[str, int], failed: Collection[str]
) -> list[PlannedCall]:
    """Who reacts now, and who finds it in its inbox: it failed, or waits for more."""
    names = list(given)
    if unread:
        names += [
            name
            for name, count in unread.items()
            if name not in failed and name not in given and routes.ready(name, count)
        ]
    names = [each for each in names if routes.owner(each)]
    if len(names) > 1:
        names.sort(key=routes.order)
    calls = []
    for name in names:
        forward = tuple(given.get(name, ()))
        enough = routes.ready(name, unread.get(name, 0) + len(forward))
        calls.append(PlannedCall(name, forward=forward, deliver_only=name in failed or not enough))
    return calls


def _freest(
    members: Sequence[str],
    unread: Mapping[str, int],
    given: Mapping[str, Sequence[int]],
    failed: Collection[str],
) -> str:
    """The member with least to do; one that failed is asked no more in this run."""
    return min(members, key=lambda each: (each in failed, unread.get(each, 0) + len(given.get(each, ()))))


def _notes(context: TurnContext, routes: Routes | None) -> list[str]:
    """What was not handled: what the limit of laps stopped, and (`routes`) what waits for more to come."""
    notes = []
    stopped = context.data.get("stopped")
    if stopped:
        met = ", ".join(f"{count:,} for {pair}" for pair, count in stopped.items())
        notes.append(f"the limit of {context.data.get('laps')} laps stopped messages: {met}")
    if routes is None:
        return notes
    for name, count in context.unread.items():
        owner = routes.owner(name)
        if owner is not None and count < owner.join:
            notes.append(f"{name} has {count:,} of the {owner.join:,} messages that it waits for")
    return notes


_NAMED_NOBODY = [MESSAGE_ROUTE_TO_ALL]


def _send_to(message: Message) -> Iterable[str]:
    data = message.data
    found = data.get("send_to") if isinstance(data, Mapping) else None
    # Data of another style may have a field of that name too.
    if isinstance(found, list) and (found == _NAMED_NOBODY or all(isinstance(each, str) for each in found)):
        return found
    return (MESSAGE_ROUTE_TO_ALL,)


def given(request: Message) -> Iterable[Message]:
    """The messages that a request for rounds brought with it."""
    for call in request.calls:
        asked = msgspec.json.decode(call.arguments, type=_RoundsRequest)
        if asked.intent == ROUNDS:
            yield from asked.inbox


class _RoundsRequest(Struct):
    intent: str = ""
    inbox: tuple[Message, ...] = ()
