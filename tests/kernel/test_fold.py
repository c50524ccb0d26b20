"""The fold alone: events in, state out, and what cannot follow is refused."""

import copy

import msgspec
import pytest
from msgspec import structs

from antiphon.errors import Corrupt, NewerFormat
from antiphon.kernel.facts import fold_finished
from antiphon.kernel.facts import state as state_of_runs
from antiphon.kernel.facts.activation import NONE, Activation
from antiphon.kernel.facts.events import (
    CancelRequested,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    Options,
    PermissionDecided,
    RunStarted,
    StateChanged,
    TurnFinished,
    TurnStarted,
    decode,
    encode,
)
from antiphon.kernel.facts.fold import apply, apply_all
from antiphon.kernel.facts.state import State
from antiphon.kernel.run.commands import Ask, request
from antiphon.values.limits import Limits
from antiphon.values.message import Message, ToolCall
from antiphon.values.model import ChatMessage, Reply
from antiphon.values.policy import Grant

CALL = "0/1.c1"


def folded(*events):
    """The state after the events, from the bytes that a journal would hold."""
    state = State()
    for event in decode(encode(list(events))):
        apply(state, event)
    return state


def asked(agent="a"):
    """A run in which the user asked an agent: activation 1, with its mail unread."""
    return (
        RunStarted("r"),
        MessagePosted(request(Ask(agent, "go"))),
        TurnStarted(0, 1),
        EffectStarted(CALL, "call", agent, background=True),
    )


def test_a_call_is_in_flight_until_it_ends():
    state = folded(RunStarted("r"))
    assert state.open == {}
    state = folded(*asked())
    assert state.find(CALL) is state.open[CALL]


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([EffectStarted(CALL, "call", "a", background=True)], "started twice"),
        ([EffectFinished("1/1.m1")], "ended but never started"),
        ([TurnStarted(7, 1)], "7"),
        ([TurnStarted(1, 1), EffectStarted("1/1.m1", "model"), EffectFinished(CALL)], "effects in flight"),
    ],
)
@pytest.mark.parametrize("how", ["one by one", "all at once"])
def test_what_cannot_follow_is_refused(events, why, how):
    state = folded(*asked())
    together, alone = (events, ()) if how == "all at once" else ((), events)
    with pytest.raises(Corrupt, match=why):
        apply_all(state, together), [apply(state, event) for event in alone]


def test_mail_may_carry_calls_and_the_turn_does_them_before_it_asks_a_model():
    call = ToolCall("x", "add", '{"a":1}')
    message = Message("forward", "user", "a", "", calls=(call,))
    state = folded(*asked(), MessagePosted(message, 1), TurnStarted(1, 2))
    activation = state.activations[1]
    assert activation.phase == "calls"
    assert activation.calls == (call,)
    assert activation.transcript.messages == [
        ChatMessage("user", "go"),
        ChatMessage("assistant", "", (call,), given=True),
    ]


def test_a_turn_can_be_given_other_calls_than_its_mail_has():
    call = ToolCall("x", "add")
    state = folded(*asked(), TurnStarted(1, 1, (call,)))
    assert state.activations[1].calls == (call,)


def test_the_log_forgets_its_older_half(monkeypatch):
    monkeypatch.setattr(state_of_runs, "LOGGED", 4)
    mail = [MessagePosted(Message("forward", "user", "a", str(number)), 1) for number in range(4)]
    state = folded(*asked(), *mail)
    assert [each.message.content for each in state.log] == ["1", "2", "3"]


def test_the_oldest_ends_of_background_calls_are_forgotten(monkeypatch):
    monkeypatch.setattr(fold_finished, "KEPT", 1)
    events = []
    for turn in (1, 2):
        events += [
            MessagePosted(request(Ask("a", "go"))),
            TurnStarted(0, 1),
            EffectStarted(f"0/{turn}.c1", "call", "a", background=True),
            TurnFinished(0),
            EffectFinished(f"0/{turn}.c1", content=str(turn)),
        ]
    state = folded(RunStarted("r"), *events)
    assert list(state.activations[0].done) == ["0/2.c1"]


def test_what_is_not_in_flight_cannot_be_cancelled():
    state = folded(*asked(), CancelRequested("9/9.c9"))
    assert state.cancelling == {}
    apply(state, CancelRequested(why="enough"))
    assert state.cancelling == {CALL: "enough"}


def test_two_folds_of_the_same_bytes_are_equal():
    events = (
        *asked(),
        TurnStarted(1, 1),
        EffectStarted("1/1.m1", "model", "m"),
        EffectFinished("1/1.m1", reply=Reply("x")),
    )
    assert folded(*events) == folded(*events)
    assert folded(*events) != folded(*events[:-1])


def test_an_event_of_an_earlier_format_is_read_as_todays(monkeypatch):
    import antiphon.kernel.facts.events as events

    monkeypatch.setattr(events, "UPCASTERS", {TurnStarted: lambda old: TurnFinished(old.activation)})
    assert decode(encode([TurnStarted(1), TurnFinished(2)])) == [TurnFinished(1), TurnFinished(2)]


def test_an_event_of_a_later_format_says_so():
    with pytest.raises(NewerFormat, match="upgrade"):
        decode(msgspec.json.encode([{"type": "Unheard", "id": "1"}]))


def test_an_activation_is_data_only():
    assert Activation(1, "a") == Activation(1, "a")
    assert Activation(1, "a") != Activation(1, "b")


# -- what an agent's own rules and action leave -------------------------------------------------

STEP = "1/1.x:fetch:00"


def acting(*events):
    """A run in which activation 1 acts for the mail it took."""
    return folded(
        *asked(), TurnStarted(1, 1, act=True), EffectStarted("1/1.x", "action", "a"), *events
    ).activations[1]


def test_what_an_action_began_is_remembered_until_it_ends():
    ended = EffectFinished(STEP, content="1")
    refused = EffectFinished("1/1.x:call:00", "missing", why="nobody")
    begun = (EffectStarted(STEP, "step", "fetch"), ended, refused)
    assert acting(*begun).memo == {ended.id: ended, refused.id: refused}
    over = acting(*begun, EffectFinished("1/1.x", content="done"))
    assert (over.memo, over.phase, over.acted.content) == ({}, "settled", "done")
    assert [each.content for each in over.past] == ["go"]


@pytest.mark.parametrize(
    ("outcome", "unread"), [("completed", []), ("failed", ["go"]), ("cancelled", ["go"])]
)
def test_what_an_action_was_for_is_unread_again_unless_it_completed(outcome, unread):
    activation = acting(EffectFinished("1/1.x", outcome))
    assert [each.content for each in activation.inbox] == unread


def test_data_is_replaced_and_lengthened_and_the_event_stays_as_it_was():
    first = StateChanged(1, {"list": [1], "text": "x"})
    state = State()
    for event in (*asked(), first, StateChanged(1, {"text": "y"}, {"list": [2], "new": [3]})):
        apply(state, event)
    assert state.activations[1].data == {"list": [1, 2], "text": "y", "new": [3]}
    assert first.set["list"] == [1]


def test_mail_for_one_at_rest_is_owed_to_it():
    rests = (
        RunStarted("r"),
        MessagePosted(request(Ask("a", "go"))),
        TurnStarted(0, 1),
        EffectStarted(CALL, "call", "a", background=True, keep=True),
        TurnStarted(1, 1),
        EffectFinished(CALL),
    )
    mail = MessagePosted(Message("forward", "x", "a", "news"), 1)
    assert folded(*rests).activations[0].unread == {}
    assert folded(*rests, mail, mail).activations[0].unread == {"a": 2}


def test_a_publication_is_of_the_chain_of_what_its_publisher_took():
    news = Message("forward", "a", "", "news")
    state = folded(
        *asked(), TurnStarted(1, 1, act=True), EffectStarted("1/1.x", "action", "a"),
        EffectStarted("1/1.x:call:00", "call", "b", arguments='{"agent_name":"b"}'),
        MessagePosted(news, 2, by=1), MessagePosted(news, 2, dead="full", by=1),
    )  # fmt: skip
    assert state.activations[2].laps == {news.id: {"a": 1}}
    assert [each.content for each in state.activations[1].past] == ["go", "news", "news"]
    assert [each.content for each in state.activations[2].inbox] == ["", "news"]


def test_grants_add_up():
    call, grant = ToolCall("x", "pay"), Grant((("to", "shop"),))
    state = folded(
        *asked(),
        TurnStarted(1, 1),
        EffectStarted("1/1.m1", "model", "m"),
        EffectFinished("1/1.m1", reply=Reply(calls=(call, call, call))),
        PermissionDecided("1/1.c1", True, remember="tool", grant=grant),
        PermissionDecided("1/1.c2", True, remember="tool"),
        PermissionDecided("1/1.c3", True),
    )
    assert state.remembered == {"tool": (grant, Grant())}


@pytest.mark.parametrize(
    ("outcome", "content", "turns", "declined"),
    [
        ("completed", "yes", 4, False),
        ("completed", "always", 4, False),
        ("completed", "no", 2, True),
        ("cancelled", "yes", 2, True),
    ],
)
def test_an_answer_about_a_limit_raises_it_or_does_not(outcome, content, turns, declined):
    options = Options(limits=Limits(turns=2, breach="ask"))
    question = EffectStarted("1/1.l1", "wait", "user", purpose="limit")
    state = folded(
        RunStarted("r", options), *asked()[1:], TurnStarted(1, 1), question,
        EffectFinished("1/1.l1", outcome, content),
    )  # fmt: skip
    activation = state.activations[1]
    assert (activation.scopes[0].limits.turns, activation.declined) == (turns, declined)
    assert (activation.phase, activation.raised, activation.scopes[0].asking) == ("plan", 1, 0)


def test_limits_are_raised_by_what_they_were_at_first():
    options = Options(limits=Limits(turns=2, calls=3, tokens=5, usd=0.5, seconds=None))
    events = [RunStarted("r", options), *asked()[1:], TurnStarted(1, 1)]
    for number in (1, 2):
        place = f"1/1.l{number}"
        events += [
            EffectStarted(place, "wait", "user", purpose="limit"),
            EffectFinished(place, content="yes"),
        ]
    limits = folded(*events).activations[1].scopes[0].limits
    assert limits == Limits(turns=6, calls=9, tokens=15, usd=1.5, seconds=None)


def test_a_call_under_which_somebody_is_asked_is_no_longer_waited_for():
    planned = ToolCall("1", "call_agent", '{"agent_name":"b","message":"x"}')
    events = (
        *asked(),
        TurnStarted(1, 1, (planned, planned)),
        EffectStarted("1/1.c1", "call", "b"),
        EffectStarted("1/1.c2", "call", "b"),
        EffectFinished("1/1.c2"),
        TurnStarted(2, 1, act=True),
        EffectStarted("2/1.x", "action", "b"),
    )
    assert (folded(*events).activations[1].phase, folded(*events).activations[1].waiting) == ("calls", 1)
    question = EffectStarted("2/1.x:question:00", "wait", "user", purpose="question", text="?")
    state = folded(*events, question)
    assert (state.activations[1].phase, state.activations[1].waiting) == ("settled", 0)
    assert state.open["1/1.c1"].detached
    again = structs.replace(question, id="2/1.x:question:01")
    assert folded(*events, question, again).activations[1].waiting == 0


def test_nothing_is_put_into_nothing():
    assert copy.deepcopy(NONE) is NONE
    with pytest.raises(TypeError, match="replace it by a dictionary first"):
        NONE["x"] = 1
