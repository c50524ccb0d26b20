"""graph: who reaches whom in a team, by topics and by calls; and what looks wrong about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from antiphon.values.agent import ALL, Agent
from antiphon.values.message import USER


class Edge(Struct, frozen=True):
    """A way from one member to another: a topic, or (without one) a call."""

    source: str
    target: str
    topic: str = ""


class Graph(Struct, frozen=True):
    """The members of a team in order, the ways between them, and what looks wrong, a sentence each."""

    members: tuple[str, ...]
    edges: tuple[Edge, ...]
    findings: tuple[str, ...]


def graph_of(agents: Iterable[Agent], entry: str = "", *, limited: bool = True) -> Graph:
    """The graph of a team.

    entry: whom the user asks. limited: whether a chain of messages that goes
    round in circles is stopped some time; if not, every circle is a finding.
    """
    team = tuple(agents)
    names = tuple(agent.name for agent in team)
    topics = [*_by_topic(team)]
    asked = [Edge(USER, entry)] if entry else []
    edges = (*asked, *topics, *_by_call(team, set(names)))
    findings = [
        *_unwatched(team),
        *_unreached(team, edges),
        *([] if limited else _circles(names, topics)),
    ]
    return Graph((USER, *names), edges, tuple(findings))


def short(topic: str) -> str:
    """A topic without the path that leads to it."""
    return topic.rpartition(".")[2]


def _by_topic(team: Sequence[Agent]) -> Iterable[Edge]:
    for writer in team:
        for topic in writer.topics.publishes:
            for reader in team:
                if topic in reader.topics.watch:
                    yield Edge(writer.name, reader.name, topic)


def _by_call(team: Sequence[Agent], names: set[str]) -> Iterable[Edge]:
    for caller in team:
        # Whoever may call everyone says nothing about the team; who works alone calls by rules or not at all.
        calls = (
            not caller.standalone
            or caller.hooks.plan_turn is not None
            or caller.hooks.intercept_call is not None
        )
        if tuple(caller.can_call) != ALL and calls:
            for name in caller.can_call:
                if name in names:
                    yield Edge(caller.name, name)


def _unwatched(team: Sequence[Agent]) -> Iterable[str]:
    watched = {topic for agent in team for topic in agent.topics.watch}
    for agent in team:
        for topic in agent.topics.publishes:
            if topic not in watched:
                yield f"nobody watches {short(topic)}, which {agent.name} publishes"


def _unreached(team: Sequence[Agent], edges: Iterable[Edge]) -> Iterable[str]:
    reached = {edge.target for edge in edges}
    for agent in team:
        if agent.topics.watch and agent.name not in reached:
            topics = ", ".join(map(short, agent.topics.watch))
            yield f"nothing reaches {agent.name}: it watches {topics}, which nobody publishes"


def _circles(names: Iterable[str], edges: Iterable[Edge]) -> Iterable[str]:
    """One circle through each member that is on one and not on one found before."""
    following: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        following[edge.source].append(edge.target)
    told: set[str] = set()
    for name in following:
        if name not in told and (circle := _back_to(name, following)):
            told.update(circle)
            yield f"{' -> '.join([*circle, name])} goes round without a limit of laps"


def _back_to(start: str, following: Mapping[str, list[str]]) -> list[str]:
    """The shortest way from a member back to itself; empty when there is none."""
    ways: dict[str, list[str]] = {start: [start]}
    queue = [start]
    while queue:
        name = queue.pop(0)
        for other in following[name]:
            if other == start:
                return ways[name]
            if other not in ways:
                ways[other] = [*ways[name], other]
                queue.append(other)
    return []
