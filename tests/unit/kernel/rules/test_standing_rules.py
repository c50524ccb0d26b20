"""Rules that are kept beside the runs: what they allow, deny and ask for, and the record that names them."""

import asyncio

import pytest

from antiphon import Agent, Hooks, Policy, UserError, open_run, run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import PermissionDecided, RunResumed, RunStarted
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.values.policy import Grant, StandingRule
from tests.transcript import until

ALLOW = StandingRule("allows", "project", "shop", "se*", "allow", author="ann")
DENY = StandingRule("denies", "owner", "ann", "send", "deny", author="bob")
ASK = StandingRule("asks", "owner", "ann", "send", "ask")


@tool
def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


def sender(to="x", **options):
    return Agent("a", tools=[send], model=Script([call("send", to=to), "end"]), **options)


def said(agent, rules, **options):
    """What the model was told of its call, and the ruling that was recorded: (allowed, who, rule)."""

    async def talk():
        journal = MemoryJournal()
        async with open_run([agent], journal=journal, rules=rules, interactive=False, **options) as opened:
            await opened.result(await opened.post("a", "go"))
            events = [each.event for each in await opened.records()]
        await check_journal(journal)
        ruled = [each for each in events if isinstance(each, PermissionDecided)]
        return [(each.allowed, each.decided_by, each.rule) for each in ruled]

    ruled = asyncio.run(talk())
    return agent.model.requests[-1].messages[-1].content, ruled


SENT = "sent to x"
DENIED = "Error: permission denied: "
ASKED = f"{DENIED}the rule asks asks for send, and nobody is there to ask"


@pytest.mark.parametrize(
    ("rules", "policy", "told", "ruled"),
    [
        ([ALLOW], "strict", SENT, [(True, "ann", "allows")]),
        ([ALLOW], Policy(ask=("send",)), SENT, [(True, "ann", "allows")]),
        ([ALLOW], Policy(deny=("send",)), f"{DENIED}the policy denies send", []),
        ([DENY], "open", f"{DENIED}the rule denies denies send", [(False, "bob", "denies")]),
        ([DENY], Policy(allow=("send",)), f"{DENIED}the rule denies denies send", [(False, "bob", "denies")]),
        ([ASK], "open", ASKED, []),
        ([ASK], Policy(allow=("send",)), SENT, []),
        ([ASK], Policy(deny=("send",)), f"{DENIED}the policy denies send", []),
        ([ASK, ALLOW], "strict", SENT, [(True, "ann", "allows")]),
        ([ALLOW, DENY, ASK], "open", f"{DENIED}the rule denies denies send", [(False, "bob", "denies")]),
        ([], "strict", f"{DENIED}send was not granted", []),
    ],
)
def test_deny_beats_allow_beats_ask_beats_the_preset(rules, policy, told, ruled):
    assert said(sender(), rules, policy=policy) == (told, ruled)


@pytest.mark.parametrize(
    ("grant", "reaches"),
    [
        (Grant((("to", "x"),)), True),
        (Grant((("to", "y*"),)), False),
        (Grant(agent="a"), True),
        (Grant(agent="b"), False),
        (Grant(until=4e9), True),
        (Grant(until=1.0), False),
    ],
)
def test_a_rule_reaches_as_far_as_its_grant(grant, reaches):
    rule = StandingRule("r", "project", "shop", "send", "allow", grant)
    told, ruled = said(sender(), [rule], policy="strict")
    assert (told == SENT, bool(ruled)) == (reaches, reaches)


@pytest.mark.parametrize(
    ("verdict", "rules", "told"),
    [
        ("deny", [ALLOW], f"{DENIED}its own"),
        ("ask", [ALLOW], SENT),
        ("allow", [DENY], f"{DENIED}the rule denies denies send"),
        ("allow", [ASK], ASKED),
        ("stop", [ALLOW], None),
    ],
)
def test_an_agents_own_hook_beside_a_rule(verdict, rules, told):
    agent = sender(hooks=Hooks(authorize=lambda tool, arguments: (verdict, "its own")))
    found, _ = said(agent, rules, policy="open")
    assert found == (told or "go")


def test_who_is_asked_because_of_a_rule_decides():
    async def on_input(message):
        asked.append(message.content)
        return "yes"

    asked = []
    agent = sender()
    asyncio.run(run(agent, "go", rules=[ASK], on_input=on_input))
    assert asked == ["the rule asks asks for send"]
    assert agent.model.requests[-1].messages[-1].content == SENT


def test_those_that_hold_when_it_is_opened_again_are_in_force():
    journal = MemoryJournal()

    async def talk():
        first = Agent("a", tools=[send], model=Script([call("send", to="x"), "end"]))
        async with open_run([first], journal=journal, rules=[ALLOW], policy="strict") as opened:
            await opened.result(await opened.post("a", "go"))
        second = Agent("a", tools=[send], model=Script([call("send", to="y"), "end"]))
        async with open_run([second], journal=journal, run_id=opened.run_id) as again:
            await again.result(await again.post("a", "go"))
            events = [each.event for each in await again.records()]
        starts = [each.rules for each in events if isinstance(each, RunStarted | RunResumed)]
        return starts, second.model.requests[-1].messages[-1].content

    starts, told = asyncio.run(talk())
    assert starts == [(ALLOW,), ()]
    assert told == f"{DENIED}send was not granted"


def test_what_a_crash_cut_off_is_not_done_again_when_a_rule_denies_it_now():
    journal, begun = MemoryJournal(), []

    @tool(effect="idempotent")
    async def put(to: str) -> str:
        """Put."""
        begun.append(to)
        await asyncio.Event().wait()
        return ""

    def agent():
        return Agent("a", tools=[put], model=Script([call("put", to="x"), "end"], by="turn"))

    async def talk():
        async with open_run([agent()], journal=journal) as opened:
            await opened.post("a", "go")
            await until(opened, "1/1.c1 tool put started")
        deny = StandingRule("r", "run", opened.run_id, "put", "deny")
        async with open_run([agent()], journal=journal, run_id=opened.run_id, rules=[deny]) as again:
            await again.result("0/1.c1")
            return [each.event for each in await again.records() if getattr(each.event, "id", "") == "1/1.c1"]

    _, ended = asyncio.run(talk())
    assert (ended.outcome, begun) == ("unknown", ["x"])
    assert "it is not run again: the rule r denies put" in ended.reason


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"id": ""}, "StandingRule(id=...)"),
        ({"key": " "}, "StandingRule(key=...)"),
        ({"tool": ""}, "StandingRule(tool=...)"),
        ({"scope": "world"}, "StandingRule(scope=...)"),
        ({"verdict": "maybe"}, "StandingRule(verdict=...)"),
        ({"grant": "all"}, "StandingRule(grant=...)"),
        ({"author": 3}, "StandingRule(author=...)"),
    ],
)
def test_what_is_no_rule_is_refused_where_it_is_made(change, wrong):
    whole = {"id": "r", "scope": "project", "key": "shop", "tool": "*", "verdict": "allow"}
    with pytest.raises(UserError) as refused:
        StandingRule(**whole | change)
    assert wrong in str(refused.value)


@pytest.mark.parametrize("rules", ["allow", [3], [Policy()], ALLOW])
def test_what_are_no_rules_is_refused_where_it_is_given(rules):
    async def talk():
        async with open_run([sender()], rules=rules):
            pass

    with pytest.raises(UserError, match=r"open_run\(rules=\.\.\.\)"):
        asyncio.run(talk())
