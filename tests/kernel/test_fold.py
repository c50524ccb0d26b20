"""The fold alone: events in, state out, and what cannot follow is refused."""

import msgspec
import pytest

from antiphon import finished
from antiphon import state as state_of_runs
from antiphon.activation import Activation
from antiphon.apply import apply, apply_all
from antiphon.errors import Corrupt, NewerFormat
from antiphon.event import (
    CancelRequested,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    RunStarted,
    TurnFinished,
    TurnStarted,
    decode,
    encode,
)
from antiphon.letter import Ask, request
from antiphon.message import Message, ToolCall
from antiphon.model import ChatMessage, Reply
from antiphon.state import State

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
    monkeypatch.setattr(finished, "KEPT", 1)
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
    import antiphon.event as events

    monkeypatch.setattr(events, "UPCASTERS", {TurnStarted: lambda old: TurnFinished(old.activation)})
    assert decode(encode([TurnStarted(1), TurnFinished(2)])) == [TurnFinished(1), TurnFinished(2)]


def test_an_event_of_a_later_format_says_so():
    with pytest.raises(NewerFormat, match="upgrade"):
        decode(msgspec.json.encode([{"type": "Unheard", "id": "1"}]))


def test_an_activation_is_data_only():
    assert Activation(1, "a") == Activation(1, "a")
    assert Activation(1, "a") != Activation(1, "b")
