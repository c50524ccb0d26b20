"""step alone: a state in, events out; nothing is performed."""

from antiphon import Agent, Limits, tool
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CallEffect,
    CancelRequested,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    RoomEffect,
    RunStarted,
    TurnStarted,
)
from antiphon.kernel.facts.fold.apply import Folding, apply
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.step import step
from antiphon.kernel.rules.team.compile import make_team
from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.kernel.run.commands import AskAgent, request
from antiphon.models.script import Script, call
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply
from antiphon.values.result import Failure


@tool
def pay(to: str) -> str:
    """Pay."""
    return to


TEAM = make_team(
    (Agent("a", tools=[pay]), Agent("b")), Options(), lambda agent: (ModelOption(Script([], name="script")),)
)


def consequences(run, team=TEAM):
    """What `step` says next, each event folded as it is said."""
    folding = Folding(run)
    step(folding.emit, run, team)
    return folding.batch


def after(*events):
    """The state after the events, and what `step` says next."""
    run = RunState()
    for event in events:
        apply(run, event)
    return run, consequences(run)


ASKED = (RunStarted("r"), MessagePosted(request(AskAgent("a", "go"))))


def test_a_request_leads_to_the_model_in_one_go():
    _, said = after(*ASKED)
    assert [type(each).__name__ for each in said] == [
        "TurnStarted", "EffectStarted", "TurnFinished", "TurnStarted", "EffectStarted",
    ]  # fmt: skip
    assert said[-1].id == "1/1.m1"


def test_nothing_follows_while_everyone_waits():
    run, _ = after(*ASKED)
    run.ready.append(run.activations[1])
    assert consequences(run) == []


def test_an_agent_that_waits_to_be_continued_does_nothing():
    resting = EffectStarted("0/1.c1", CallEffect("a", "", background=True, stays_dormant=True))
    run, _ = after(*ASKED, TurnStarted(0, 1), resting, EffectFinished("0/1.c1", content="so far"))
    assert run.dormant == {(0, "a"): 1}
    run.ready.append(run.activations[1])
    assert consequences(run) == []


def test_a_ruling_that_was_recorded_is_carried_out_when_the_run_is_taken_up_again():
    run, _ = after(*ASKED)
    asks = Reply(calls=(ToolCall("x", "pay", '{"to":"ann"}'),))
    for event in (
        EffectFinished("1/1.m1", reply=asks),
        EffectStarted("1/1.c1?", ApprovalEffect("pay", '{"to":"ann"}', "")),
        EffectFinished("1/1.c1?", content="yes"),
        PermissionDecided("1/1.c1", True, "user", arguments='{"to":"ann"}'),
    ):
        apply(run, event)
    assert [(each.id, each.detail.name) for each in consequences(run)] == [("1/1.c1", "pay")]


def test_cancelling_a_call_and_one_inside_it_ends_each_once():
    run, _ = after(*ASKED)
    apply(
        run,
        EffectFinished("1/1.m1", reply=Reply(calls=(call("call_agent", agent_name="b", message="help"),))),
    )
    consequences(run)
    apply(run, CancelRequested("0/1.c1"))
    apply(run, CancelRequested("1/1.c1"))
    ended = [each.id for each in consequences(run) if isinstance(each, EffectFinished)]
    assert sorted(ended) == ["0/1.c1", "1/1.c1", "2/1.m1"]
    assert len(ended) == len(set(ended))
    assert run.cancelling == {}


def test_a_fallback_waits_for_room_like_any_other_call():
    """Four callees, room for two calls: who has waited longest comes first, the one that failed last."""
    choices = (ModelOption(Script([], name="first")), ModelOption(Script([], name="second")))
    team = make_team(tuple(Agent(name) for name in "eabcd"), Options(), lambda agent: choices)
    options = Options(limits=Limits(tokens=12_000))
    run = RunState()

    def told(*events):
        for event in events:
            apply(run, event)
        started = [each for each in consequences(run, team) if isinstance(each, EffectStarted)]
        return [
            (each.id, each.detail.model if isinstance(each.detail, ModelEffect) else "room")
            for each in started
            if isinstance(each.detail, ModelEffect | RoomEffect)
        ]

    told(RunStarted("r", options), MessagePosted(request(AskAgent("e", "go"))))
    calls = tuple(call("call_agent", agent_name=name, message="go") for name in "abcd")
    assert told(EffectFinished("1/1.m1", reply=Reply(calls=calls))) == [
        ("2/1.m1", "first"),
        ("3/1.m1", "first"),
        ("4/1.r1", "room"),
        ("5/1.r1", "room"),
    ]
    assert told(EffectFinished("2/1.m1", "failed", failure=Failure("quota", "none left"))) == [
        ("4/1.m1", "first"),
        ("2/1.r1", "room"),
    ]
    assert told(EffectFinished("3/1.m1", reply=Reply("done"))) == [("5/1.m1", "first")]
    assert told(EffectFinished("4/1.m1", reply=Reply("done"))) == [("2/1.m2", "second")]
