"""Whatever agents read, ask and are allowed: one that was shown something untrusted and something private
acts only after a person allowed that very call.

Histories are drawn for the rules alone: what models say, how tools end and what people answer is given
to them in any order, and nothing is performed.
"""

import random
from functools import cache
from itertools import count

import pytest

from antiphon import Agent, Hooks, Limits, Policy, tool
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    ModelEffect,
    RunStarted,
    ToolEffect,
)
from antiphon.kernel.facts.fold.apply import Folding
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules import calls
from antiphon.kernel.rules.step import step
from antiphon.kernel.rules.team.compile import make_team
from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.kernel.run.commands import AskAgent, request
from antiphon.models.script import Script
from antiphon.testing.invariants import Audit, InvariantBroken
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply
from antiphon.values.policy import StandingRule

READING = {"fetch", "read", "look"}
NAMES = ("a", "b", "c")
STEPS = 24
"""Things that come from outside in one history, at most."""


@tool(effect="read", labels=["untrusted"])
def fetch() -> str:
    """Fetch."""


@tool(effect="read", labels=["private"])
def read() -> str:
    """Read."""


@tool(effect="read")
def look() -> str:
    """Look."""


@tool
def send() -> str:
    """Send."""


@tool(effect="idempotent", labels=["private"])
def note() -> str:
    """Note something, and see what else is noted."""


POLICIES = (Policy(), Policy("guarded"), Policy("guarded", allow=("send",)), Policy(ask=("send",)))
RULES = ((), (StandingRule("r", "project", "p", "*", "allow"),))
SAID = [*("fetch", "read", "look", "send", "send", "note") * 2, "call", "call", "end"]


@cache
def team_of(policy, context, allows, interactive):
    hooks = {"hooks": Hooks(authorize=lambda tool, arguments: "allow")} if allows else {}
    tools = [fetch, read, look, send, note]
    agents = tuple(Agent(name, tools=tools, context=context, **hooks) for name in NAMES)
    options = Options(Limits(calls=60, activations=12), policy=policy, interactive=interactive)
    return options, make_team(agents, options, lambda agent: (ModelOption(Script([], name="script")),))


def said(chance, agent, number):
    """What a model says: calls of tools and of agents after it, or an end."""
    others = [each for each in NAMES if each > agent]
    found = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        name = chance.choice(SAID)
        if name == "end" or (name == "call" and not others):
            return Reply("end")
        arguments = f'{{"agent_name":"{chance.choice(others)}","message":"m"}}' if name == "call" else "{}"
        found.append(ToolCall(f"c{next(number)}", "call_agent" if name == "call" else name, arguments))
    return Reply("", tuple(found), "calls")


def ended(chance, event, agent, number):
    """How something that began ends."""
    detail = event.detail
    if isinstance(detail, ModelEffect):
        return EffectFinished(event.id, reply=said(chance, agent, number))
    if isinstance(detail, ApprovalEffect):
        return EffectFinished(event.id, content=chance.choice(("yes", "no", "always")), decided_by="ann")
    failed = chance.random() < 0.1
    labels = ("untrusted",) if chance.random() < 0.1 else ()
    return EffectFinished(event.id, "failed" if failed else "completed", "x", labels=labels)


def play(chance):
    """One history, audited; how often a person was asked because of labels, and how many tools acted."""
    context, interactive = chance.choice(("fresh", "continue")), chance.random() < 0.8
    options, team = team_of(chance.choice(POLICIES), context, chance.random() < 0.3, interactive)
    run, audit = RunState(), Audit("r", lambda agent, tool: tool not in READING)
    folding, number, waiting, asked, acted = Folding(run), count(), list[EffectStarted](), 0, 0
    started = RunStarted("r", options, rules=chance.choice(RULES))
    given = [started, MessagePosted(request(AskAgent("a", "go")))]
    for _ in range(STEPS):
        folding.batch = []
        if given:
            folding.emit(given.pop(0))
        elif waiting:
            event = waiting.pop(chance.randrange(len(waiting)))
            agent = run.activations[run.open[event.id].activation].agent
            folding.emit(ended(chance, event, agent, number))
        step(folding.emit, run, team)
        for event in folding.batch:
            audit.event(event)
            if isinstance(event, EffectStarted) and isinstance(
                event.detail, ModelEffect | ToolEffect | ApprovalEffect
            ):
                waiting.append(event)
                asked += isinstance(event.detail, ApprovalEffect) and event.detail.by == "labels"
                acted += isinstance(event.detail, ToolEffect) and event.detail.name in ("send", "note")
    return asked, acted


def play_all(seeds):
    found = [play(random.Random(seed)) for seed in seeds]
    return sum(asked for asked, _ in found), sum(acted for _, acted in found)


@pytest.mark.parametrize(
    "seeds", [range(300), pytest.param(range(1_000, 11_000), marks=pytest.mark.deep)], ids=len
)
def test_two_labels_and_an_act_are_a_person_s_to_allow(seeds):
    asked, acted = play_all(seeds)
    assert asked > len(seeds) / 5, "it does come to that"
    assert acted > len(seeds)


def test_control_rules_that_forget_it_are_found(monkeypatch):
    monkeypatch.setattr(calls, "_is_exposed", lambda caller: False)
    with pytest.raises(InvariantBroken) as found:
        play_all(range(300))
    assert found.value.invariant == "labels"
