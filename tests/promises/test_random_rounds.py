"""Rounds against a model of them: whatever roles do, and whenever they await, the same happens.

A play is drawn: roles with topics, and for each of their reactions what it publishes, how often it lets
others go first, whether it fails or is cancelled. The model below knows rounds, inboxes and laps, and
nothing else.
"""

import asyncio
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import RunFailed
from antiphon.journal.memory import MemoryJournal
from antiphon.styles.environment import Action, Environment, Message, Role
from antiphon.testing.invariants import check_run

NAMES = ("A", "B", "C", "D")
TOPICS = ("t0", "t1", "t2")


@dataclass(frozen=True)
class Said:
    """What is published: on a topic to all who watch it, or to one role, or to nobody."""

    topic: str
    to: str = "<all>"


@dataclass(frozen=True)
class Deed:
    """One reaction. pauses: laps of the event loop before each publication, and before the end."""

    says: tuple[Said, ...] = ()
    pauses: int = 0
    ends: str = "completed"


@dataclass(frozen=True)
class Part:
    """A role. deeds: its reactions in order; one that has none left does nothing."""

    watch: frozenset[str]
    consume: str
    deeds: tuple[Deed, ...]


@dataclass(frozen=True)
class Play:
    """laps: of runs without a number of rounds. runs: what the user publishes before each, how many rounds
    it has, None for as many as there is something to do, and whether it is opened anew."""

    parts: tuple[Part, ...]
    laps: int | None
    runs: tuple[tuple[tuple[Said, ...], int | None, bool], ...]


@dataclass
class Seen:
    """What both must agree on: the reactions of each role, the outcomes of the runs, all publications."""

    heard: dict[str, list[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(list))
    outcomes: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


# -- the model ---------------------------------------------------------------------------------------------


@dataclass
class Letter:
    text: str
    said: Said
    sender: int
    laps: dict[int, int]


class Model:
    """Rounds, as plainly as they can be written."""

    def __init__(self, play: Play) -> None:
        self.play, self.seen = play, Seen()
        self.inbox: list[list[Letter]] = [[] for _ in play.parts]
        self.coming: list[Letter] = []
        self.count = [0] * len(play.parts)

    def all_runs(self) -> Seen:
        for number, (says, rounds, _) in enumerate(self.play.runs):
            fresh = [Letter(f"u{number}.{index}", each, -1, {}) for index, each in enumerate(says)]
            self.coming = fresh + self.coming
            self.seen.outcomes.append(self.run(rounds))
        self.seen.said += [letter.text for letter in self.coming]
        return self.seen

    def run(self, rounds: int | None) -> str:
        failed: set[int] = set()
        laps = self.play.laps if rounds is None else None
        for _ in itertools.count() if rounds is None else range(rounds):
            for letter in self.coming:
                self.seen.said.append(letter.text)
                for place in self.readers(letter.said):
                    if laps is None or letter.laps.get(place, 0) < laps:
                        self.inbox[place].append(letter)
            self.coming = []
            cancelled = False
            for place in range(len(self.play.parts)):
                if self.inbox[place] and place not in failed:
                    ended = self.react(place)
                    cancelled = cancelled or ended == "cancelled"
                    if ended == "failed":
                        failed.add(place)
            if cancelled:
                return "cancelled"
            if not self.coming and not self.unread(failed):
                break
        if failed:
            return "failed"
        return "limit" if self.busy(failed) else "completed"

    def unread(self, failed: set[int]) -> bool:
        return any(self.inbox[place] for place in range(len(self.inbox)) if place not in failed)

    def busy(self, failed: set[int]) -> bool:
        return self.unread(failed) or any(self.readers(letter.said) for letter in self.coming)

    def readers(self, said: Said) -> list[int]:
        places = range(len(self.play.parts))
        if said.to == "<all>":
            return [place for place in places if said.topic in self.play.parts[place].watch]
        return [place for place in places if NAMES[place] == said.to]

    def react(self, place: int) -> str:
        part = self.play.parts[place]
        size = 1 if part.consume == "one" else len(self.inbox[place])
        taken = self.inbox[place][:size]
        self.seen.heard[NAMES[place]].append(tuple(letter.text for letter in taken))
        deed, number = deed_of(part, self.count[place]), self.count[place]
        self.count[place] += 1
        if deed.ends != "completed":
            return deed.ends
        del self.inbox[place][:size]
        laps: dict[int, int] = {}
        for letter in taken:
            for who, count in letter.laps.items():
                laps[who] = max(count, laps.get(who, 0))
        laps[place] = laps.get(place, 0) + 1
        for index, said in enumerate((*deed.says, Said("quiet", "<none>"))):
            self.coming.append(Letter(f"{NAMES[place]}{number}.{index}", said, place, laps))
        return "completed"


def deed_of(part: Part, number: int) -> Deed:
    return part.deeds[number] if number < len(part.deeds) else Deed()


# -- the real thing ------------------------------------------------------------------------------------------


class Do(Action):
    """Does the next deed of its part."""

    part: Part
    seen: Seen
    env: Any

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
        name = self.role.key
        number = len(self.seen.heard[name])
        self.seen.heard[name].append(tuple(each.content for each in self.role.rc.news))
        deed = deed_of(self.part, number)
        for index, said in enumerate(deed.says):
            await pause(deed.pauses)
            self.role.rc.env.publish_message(message(f"{name}{number}.{index}", said))
        await pause(deed.pauses)
        if deed.ends == "failed":
            raise ValueError("as drawn")
        if deed.ends == "cancelled":
            await (await self.env.open()).cancel(self.ctx.effect_id)
            await asyncio.Event().wait()
        return message(f"{name}{number}.{len(deed.says)}", Said("quiet", "<none>"))


async def pause(laps: int) -> None:
    for _ in range(laps):
        await asyncio.sleep(0)


def message(text: str, said: Said) -> Message:
    return Message(text, cause_by=said.topic, send_to=said.to)


async def perform(play: Play) -> Seen:
    seen, journal = Seen(), MemoryJournal()
    env = stage(play, seen, journal=journal)
    for number, (says, rounds, anew) in enumerate(play.runs):
        if anew:
            run_id = env.run_id
            await env.close()
            env = stage(play, seen, journal=journal, run_id=run_id)
            await env.open()
        for index, said in enumerate(says):
            env.publish_message(message(f"u{number}.{index}", said))
        try:
            seen.outcomes.append((await env.run(rounds, until_idle=rounds is None)).outcome)
        except RunFailed:
            seen.outcomes.append("failed")
    seen.said += [each.content for each in env.archive()]
    await env.close()
    await check_run(journal, env.run_id)
    return seen


def stage(play: Play, seen: Seen, **options: Any) -> Environment:
    env = Environment(laps=play.laps, **options)
    for name, part in zip(NAMES, play.parts, strict=False):
        action = Do(part=part, seen=seen, env=env)
        env.add_role(Role(name=name, actions=[action], watch=sorted(part.watch), consume=part.consume))
    return env


# -- what is drawn -------------------------------------------------------------------------------------------

addresses = st.sampled_from(("<all>", "<all>", "<all>", "<none>", *NAMES))
said = st.builds(Said, st.sampled_from(TOPICS), addresses)
ends = st.sampled_from(("completed",) * 8 + ("failed", "cancelled"))
deeds = st.builds(Deed, st.lists(said, max_size=3).map(tuple), st.integers(0, 4), ends)
parts = st.builds(
    Part,
    st.frozensets(st.sampled_from(TOPICS), max_size=2),
    st.sampled_from(("one", "all")),
    st.lists(deeds, max_size=4).map(tuple),
)
runs = st.tuples(
    st.lists(said, max_size=3).map(tuple), st.one_of(st.none(), st.integers(1, 6)), st.booleans()
)
plays = st.builds(
    Play,
    st.lists(parts, min_size=1, max_size=4).map(tuple),
    st.sampled_from((None, 1, 2, 3)),
    st.lists(runs, min_size=1, max_size=4).map(tuple),
)


def compare(play: Play) -> None:
    expected, found = Model(play).all_runs(), asyncio.run(perform(play))
    assert dict(found.heard) == dict(expected.heard)
    assert found.outcomes == expected.outcomes
    assert found.said == expected.said


@pytest.mark.slow
@settings(max_examples=150)
@given(plays)
def test_rounds_are_what_the_model_says(play: Play) -> None:
    compare(play)
