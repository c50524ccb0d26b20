"""Whatever agents read, ask and are allowed: one that was shown something untrusted and something private
acts only after a person allowed that very call."""

import asyncio
import random

import pytest

from antiphon import Agent, Hooks, Limits, Policy, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import ApprovalEffect, EffectStarted, ToolEffect
from antiphon.kernel.rules import calls
from antiphon.models.script import Script, call
from antiphon.testing.invariants import InvariantBroken, check_run
from antiphon.values.policy import StandingRule

READING = {"fetch", "read", "look"}
NAMES = ("a", "b", "c")


@tool(effect="read", labels=["untrusted"])
def fetch() -> str:
    """Fetch."""
    return "a page"


@tool(effect="read", labels=["private"])
def read() -> str:
    """Read."""
    return "a mail"


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


@tool
def send() -> str:
    """Send."""
    return "sent"


@tool(effect="idempotent", labels=["private"])
def note() -> str:
    """Note something, and see what else is noted."""
    return "noted"


def history(chance):
    """A team, what its models say, and what it is allowed: drawn."""

    def turn(name):
        others = [each for each in NAMES if each > name]
        one = [call(chance.choice(("fetch", "read", "look", "send", "send", "note")))]
        if others and chance.random() < 0.3:
            one = [call("call_agent", agent_name=chance.choice(others), message="m")]
        return one * chance.choice((1, 1, 2)) if chance.random() < 0.3 else one

    lines = {name: [*(turn(name) for _ in range(chance.randint(1, 6))), "end"] * 4 for name in NAMES}
    hooks = chance.choice((None, None, Hooks(authorize=lambda tool, arguments: "allow")))
    context = chance.choice(("fresh", "continue"))
    tools = [fetch, read, look, send, note]
    team = [
        Agent(name, tools=tools, context=context, **({"hooks": hooks} if hooks else {})) for name in NAMES
    ]
    policy = chance.choice(
        (Policy(), Policy("guarded"), Policy("guarded", allow=("send",)), Policy(ask=("send",)))
    )
    rules = chance.choice(([], [], [StandingRule("r", "project", "p", "*", "allow")]))
    return team, Script(lines), {"policy": policy, "rules": rules, "interactive": chance.random() < 0.8}


async def play(chance):
    """Play one; how often a person was asked because of labels, and what acted after that."""
    team, model, options = history(chance)
    journal = MemoryJournal()
    limits = Limits(calls=60, activations=12)
    async with open_run(team, model=model, journal=journal, limits=limits, env={}, **options) as run:
        asked = 0
        for _ in range(2):
            request = await run.post("a", "go")
            events = run.events(run.seq, deltas=False)
            while request in await run.open_requests():
                item = await anext(events)
                event = getattr(item, "event", None)
                if isinstance(event, EffectStarted) and isinstance(event.detail, ApprovalEffect):
                    asked += event.detail.by == "labels"
                    await run.answer(event.id, chance.choice(("yes", "no", "always")))
            events.close()
        acted = [
            each.event for each in await run.records()
            if isinstance(each.event, EffectStarted) and isinstance(each.event.detail, ToolEffect)
        ]  # fmt: skip
    await check_run(journal, run.run_id, reading=READING)
    return asked, len(acted)


def play_all(seeds):
    async def all_of_them():
        found = [await play(random.Random(seed)) for seed in seeds]
        return sum(asked for asked, _ in found), sum(acted for _, acted in found)

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(
    "seeds",
    [
        range(60),
        pytest.param(range(1_000, 3_500), marks=pytest.mark.deep),
        pytest.param(range(4_000, 6_500), marks=pytest.mark.deep),
        pytest.param(range(7_000, 9_500), marks=pytest.mark.deep),
        pytest.param(range(10_000, 12_500), marks=pytest.mark.deep),
    ],
)
def test_two_labels_and_an_act_are_a_person_s_to_allow(seeds):
    asked, acted = play_all(seeds)
    assert asked > len(seeds) / 20, "it does come to that"
    assert acted > len(seeds)


@pytest.mark.unwatched
def test_control_a_kernel_that_forgets_it_is_found(monkeypatch):
    monkeypatch.setattr(calls, "_is_exposed", lambda caller: False)
    with pytest.raises(InvariantBroken) as found:
        play_all(range(60))
    assert found.value.invariant == "labels"
