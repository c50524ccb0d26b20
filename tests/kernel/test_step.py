"""step alone: a state in, events out; nothing is performed."""

from antiphon import Agent, Limits, tool
from antiphon.kernel.facts.events import (
    CancelRequested,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    Options,
    PermissionDecided,
    RunStarted,
    TurnStarted,
)
from antiphon.kernel.facts.fold import apply
from antiphon.kernel.facts.state import State
from antiphon.kernel.rules.step import step
from antiphon.kernel.rules.team import Choice, make_team
from antiphon.kernel.run.commands import Ask, request
from antiphon.models.script import Script, call
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply


@tool
def pay(to: str) -> str:
    """Pay."""
    return to


TEAM = make_team(
    (Agent("a", tools=[pay]), Agent("b")), Options(), lambda agent: (Choice(Script([], name="script")),)
)


def after(*events):
    """The state after the events, and what `step` says next."""
    state = State()
    for event in events:
        apply(state, event)
    return state, following(state)


def following(state):
    """What `step` says, each event applied before the next is asked for."""
    said = []
    for event in step(state, TEAM):
        apply(state, event)
        said.append(event)
    return said


ASKED = (RunStarted("r"), MessagePosted(request(Ask("a", "go"))))


def test_a_request_leads_to_the_model_in_one_go():
    _, said = after(*ASKED)
    assert [type(each).__name__ for each in said] == [
        "TurnStarted", "EffectStarted", "TurnFinished", "TurnStarted", "EffectStarted",
    ]  # fmt: skip
    assert said[-1].id == "1/1.m1"


def test_nothing_follows_while_everyone_waits():
    state, _ = after(*ASKED)
    state.ready.append(state.activations[1])
    assert following(state) == []


def test_an_agent_that_waits_to_be_continued_does_nothing():
    resting = EffectStarted("0/1.c1", "call", "a", background=True, keep=True)
    state, _ = after(*ASKED, TurnStarted(0, 1), resting, EffectFinished("0/1.c1", content="so far"))
    assert state.resting == {(0, "a"): 1}
    state.ready.append(state.activations[1])
    assert following(state) == []


def test_a_ruling_that_was_recorded_is_carried_out_when_the_run_is_taken_up_again():
    state, _ = after(*ASKED)
    asks = Reply(calls=(ToolCall("x", "pay", '{"to":"ann"}'),))
    for event in (
        EffectFinished("1/1.m1", reply=asks),
        EffectStarted("1/1.c1?", "wait", "pay", purpose="approval", arguments='{"to":"ann"}'),
        EffectFinished("1/1.c1?", content="yes"),
        PermissionDecided("1/1.c1", True, "user", arguments='{"to":"ann"}'),
    ):
        apply(state, event)
    assert [(each.id, each.name) for each in following(state)] == [("1/1.c1", "pay")]


def test_cancelling_a_call_and_one_inside_it_ends_each_once():
    state, _ = after(*ASKED)
    apply(
        state,
        EffectFinished("1/1.m1", reply=Reply(calls=(call("call_agent", agent_name="b", message="help"),))),
    )
    following(state)
    apply(state, CancelRequested("0/1.c1"))
    apply(state, CancelRequested("1/1.c1"))
    ended = [each.id for each in following(state) if isinstance(each, EffectFinished)]
    assert sorted(ended) == ["0/1.c1", "1/1.c1", "2/1.m1"]
    assert len(ended) == len(set(ended))
    assert state.cancelling == {}


def test_a_fallback_waits_for_room_like_any_other_call():
    """Three callees, room for two calls at once: the third has waited longer than the one that failed."""
    choices = (Choice(Script([], name="first")), Choice(Script([], name="second")))
    team = make_team(tuple(Agent(name) for name in "eabc"), Options(), lambda agent: choices)
    options = Options(limits=Limits(tokens=12_000))
    state = State()

    def told(*events):
        for event in events:
            apply(state, event)
        said = []
        for event in step(state, team):
            apply(state, event)
            said.append(event)
        return [
            (each.id, each.name) for each in said if isinstance(each, EffectStarted) and each.kind == "model"
        ]

    told(RunStarted("r", options), MessagePosted(request(Ask("e", "go"))))
    calls = tuple(call("call_agent", agent_name=name, message="go") for name in "abc")
    assert told(EffectFinished("1/1.m1", reply=Reply(calls=calls))) == [
        ("2/1.m1", "first"),
        ("3/1.m1", "first"),
    ]
    assert told(EffectFinished("2/1.m1", "failed", why="quota: none left")) == [("4/1.m1", "first")]
    assert told(EffectFinished("3/1.m1", reply=Reply("done"))) == [("2/1.m2", "second")]
