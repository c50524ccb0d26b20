"""The fold alone: events in, state out, and what cannot follow is refused."""

from functools import partial

import msgspec
import pytest
from msgspec import structs

from antiphon.errors import JournalCorrupt, JournalTooNew
from antiphon.journal.port import Row
from antiphon.kernel.facts import state as state_of_runs
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import (
    ActionEffect,
    CallEffect,
    CancelRequested,
    EffectFinished,
    EffectStarted,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    QuestionEffect,
    RoomEffect,
    RunResumed,
    RunStarted,
    StateChanged,
    StepEffect,
    TimerEffect,
    ToolEffect,
    TurnFinished,
    TurnStarted,
    decode,
    encode,
)
from antiphon.kernel.facts.fold import calls, hops
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.run.commands import AskAgent, request
from antiphon.kernel.run.rows import fold_next
from antiphon.values.limits import Limits
from antiphon.values.message import Message, ToolCall
from antiphon.values.model import ChatMessage, Reply
from antiphon.values.policy import Grant
from antiphon.values.result import Failure

CALL = "0/1.c1"
ASKS_MODEL = EffectStarted("1/1.m1", ModelEffect("m", "", 10))
LOOKS = [
    TurnStarted(1, 1),
    ASKS_MODEL,
    EffectFinished("1/1.m1", reply=Reply("", (ToolCall("1", "look"),), "calls")),
]


def called(place, agent, **fields):
    """The start of a call of an agent."""
    return EffectStarted(place, CallEffect(agent, "", **fields))


def folded(*events):
    """The run after the events, from the bytes that a journal would hold."""
    run = RunState()
    for event in decode(encode(list(events))):
        apply(run, event)
    return run


def asked(agent="a"):
    """A run in which the user asked an agent: activation 1, with its mail unread."""
    return (
        RunStarted("r"),
        MessagePosted(request(AskAgent(agent, "go"))),
        TurnStarted(0, 1),
        called(CALL, agent, background=True),
    )


def test_a_call_is_in_flight_until_it_ends():
    assert folded(RunStarted("r")).open == {}
    run = folded(*asked())
    assert run.open[CALL] is run.activations[0].open[CALL]
    assert list(folded(*asked(), EffectFinished(CALL)).open) == []


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([called(CALL, "a", background=True)], "started twice"),
        ([EffectFinished("1/1.m1")], "ended but never started"),
        ([TurnStarted(7, 1)], "7"),
        ([TurnStarted(1, 1), ASKS_MODEL, EffectFinished(CALL)], "effects in flight"),
        # The turn has one call, `look`.
        ([*LOOKS, EffectStarted("1/1.c2", ToolEffect("look"))], "1/1.c2 is no call of its turn"),
        ([MessagePosted(request(AskAgent("a", "go")), 1, begins=CALL)], "0/1.c1 is not queued"),
        (
            [TurnStarted(1, 1), EffectStarted("1/1.c7:send:a", StepEffect("send"))],
            "began outside of an action",
        ),
    ],
)
@pytest.mark.parametrize("how", ["one by one", "all at once"])
def test_what_cannot_follow_is_refused(events, why, how):
    run = folded(*asked())

    def one_by_one():
        for event in events:
            apply(run, event)

    together = partial(fold_next, "r", run, Row(9, 9, 1, 0.0, b"", (), b""), events)
    with pytest.raises(JournalCorrupt, match=why):
        (together if how == "all at once" else one_by_one)()


def test_mail_may_carry_calls_and_the_turn_does_them_before_it_asks_a_model():
    call = ToolCall("x", "add", '{"a":1}')
    message = Message("forward", "user", "a", "", calls=(call,))
    run = folded(*asked(), MessagePosted(message, 1), TurnStarted(1, 2))
    activation = run.activations[1]
    assert activation.phase == "calling"
    assert activation.turn.calls == (call,)
    assert activation.conversation.transcript.messages == [
        ChatMessage("user", "go"),
        ChatMessage("assistant", "", (call,), given=True),
    ]


def test_a_turn_can_be_given_other_calls_than_its_mail_has():
    call = ToolCall("x", "add")
    run = folded(*asked(), TurnStarted(1, 1, (call,)))
    assert run.activations[1].turn.calls == (call,)


def test_the_log_forgets_its_older_half(monkeypatch):
    monkeypatch.setattr(state_of_runs, "LOGGED", 4)
    mail = [MessagePosted(Message("forward", "user", "a", str(number)), 1) for number in range(4)]
    run = folded(*asked(), *mail)
    assert [each.message.content for each in run.log] == ["1", "2", "3"]


def test_the_oldest_ends_of_background_calls_are_forgotten(monkeypatch):
    monkeypatch.setattr(calls, "KEPT", 1)
    events = []
    for turn in (1, 2):
        events += [
            MessagePosted(request(AskAgent("a", "go"))),
            TurnStarted(0, 1),
            called(f"0/{turn}.c1", "a", background=True),
            TurnFinished(0),
            EffectFinished(f"0/{turn}.c1", content=str(turn)),
        ]
    run = folded(RunStarted("r"), *events)
    assert list(run.activations[0].done) == ["0/2.c1"]


def test_what_is_not_in_flight_cannot_be_cancelled():
    run = folded(*asked(), CancelRequested("9/9.c9"))
    assert run.cancelling == {}
    apply(run, CancelRequested(reason="enough"))
    assert run.cancelling == {CALL: "enough"}


def test_two_folds_of_the_same_bytes_are_equal():
    events = (
        *asked(),
        TurnStarted(1, 1),
        ASKS_MODEL,
        EffectFinished("1/1.m1", reply=Reply("x")),
    )
    assert folded(*events) == folded(*events)
    assert folded(*events) != folded(*events[:-1])


def test_an_event_of_an_earlier_format_is_read_as_todays():
    old = [
        {"type": "TurnStarted", "activation": 1, "taken": 2, "tail": "now", "only": ["look"]},
        {"type": "EffectStarted", "id": "1/1.m1", "kind": "model", "name": "m", "hold": 10, "cost": 3},
        {"type": "EffectFinished", "id": "1/1.m1", "outcome": "failed", "why": "cut: gone", "status": 502},
        {"type": "EffectStarted", "id": "1/1.w1", "kind": "wait", "purpose": "retry", "until": 2.5},
        {"type": "TurnFinished", "activation": 1, "more": True, "nudge": "go on"},
    ]
    assert decode(msgspec.json.encode(old)) == [
        TurnStarted(1, 2, suffix="now", offered_tools=("look",)),
        EffectStarted("1/1.m1", ModelEffect("m", "", 10, held_nano_usd=3)),
        EffectFinished("1/1.m1", "failed", failure=Failure("disconnected", "gone", 502)),
        EffectStarted("1/1.w1", TimerEffect("retry", 2.5)),
        TurnFinished(1, another_turn=True, reminder="go on"),
    ]


def test_limits_of_an_earlier_format_are_read_as_todays():
    old = {"turns": 2, "seconds": 9.0, "breach": "hand_over", "to": "heir"}
    found = decode(msgspec.json.encode([{"type": "RunStarted", "run_id": "r", "options": {"limits": old}}]))
    limits = Limits(turns=2, timeout_seconds=9.0, on_breach="handoff", breach_target="heir")
    assert found == [RunStarted("r", Options(limits=limits))]


@pytest.mark.parametrize("tag", ["unheard", "Unheard"])
def test_an_event_of_a_later_format_says_so(tag):
    with pytest.raises(JournalTooNew, match="upgrade"):
        decode(msgspec.json.encode([{"type": tag, "id": "1"}]))


def test_an_activation_is_data_only():
    assert Activation(1, "a") == Activation(1, "a")
    assert Activation(1, "a") != Activation(1, "b")


# -- what an agent's own rules and action leave -------------------------------------------------

STEP = "1/1.x:fetch:00"


def acting(*events):
    """A run in which activation 1 acts for the mail it took."""
    return folded(
        *asked(), TurnStarted(1, 1, act=True), EffectStarted("1/1.x", ActionEffect("a")), *events
    ).activations[1]


def test_what_an_action_began_is_remembered_until_it_ends():
    ended = EffectFinished(STEP, content="1")
    refused = EffectFinished("1/1.x:call:00", "not_found", reason="nobody")
    begun = (EffectStarted(STEP, StepEffect("fetch")), ended, refused)
    assert acting(*begun).open["1/1.x"].operations == {ended.id: ended, refused.id: refused}
    over = acting(*begun, EffectFinished("1/1.x", content="done"))
    assert (list(over.open), over.phase) == ([], "settled")
    assert over.turn.action_end.content == "done"
    assert [each.content for each in over.message_log] == ["go"]


@pytest.mark.parametrize(
    ("outcome", "unread"), [("completed", []), ("failed", ["go"]), ("cancelled", ["go"])]
)
def test_what_an_action_was_for_is_unread_again_unless_it_completed(outcome, unread):
    activation = acting(EffectFinished("1/1.x", outcome))
    assert [each.content for each in activation.mailbox.inbox] == unread


def test_data_is_replaced_and_lengthened_and_the_event_stays_as_it_was():
    first = StateChanged(1, {"list": [1], "text": "x"})
    run = RunState()
    for event in (*asked(), first, StateChanged(1, {"text": "y"}, {"list": [2], "new": [3]})):
        apply(run, event)
    assert run.activations[1].data == {"list": [1, 2], "text": "y", "new": [3]}
    assert first.set["list"] == [1]


def test_mail_for_a_dormant_callee_is_owed_to_it():
    rests = (
        RunStarted("r"),
        MessagePosted(request(AskAgent("a", "go"))),
        TurnStarted(0, 1),
        called(CALL, "a", background=True, stays_dormant=True),
        TurnStarted(1, 1),
        EffectFinished(CALL),
    )
    mail = MessagePosted(Message("forward", "x", "a", "news"), 1)
    assert folded(*rests).activations[0].mailbox.unread is None
    assert folded(*rests, mail, mail).activations[0].mailbox.unread == {"a": 2}


def test_what_an_agent_ended_before_it_read_is_in_no_inbox_any_more():
    news, later = (Message("forward", "x", "a", text) for text in ("news", "later"))
    run = folded(
        *asked(), TurnStarted(1, 1), MessagePosted(news, 1), MessagePosted(later, 1),
        MessagePosted(news, 1, dead_letter="a ended before it read this"),
    )  # fmt: skip
    assert [each.content for each in run.activations[1].mailbox.inbox] == ["later"]


def test_a_publication_is_of_the_chain_of_what_its_publisher_took():
    news = Message("forward", "a", "", "news")
    run = folded(
        *asked(), TurnStarted(1, 1, act=True), EffectStarted("1/1.x", ActionEffect("a")),
        called("1/1.x:call:00", "b", arguments='{"agent_name":"b"}'),
        MessagePosted(news, 2, by=1), MessagePosted(news, 2, dead_letter="full", by=1),
    )  # fmt: skip
    assert run.activations[2].mailbox.hops == {news.id: {"a": 1}}
    assert [each.content for each in run.activations[1].message_log] == ["go", "news", "news"]
    assert [each.content for each in run.activations[2].mailbox.inbox] == ["", "news"]


def test_grants_add_up():
    call, grant = ToolCall("x", "pay"), Grant((("to", "shop"),))
    run = folded(
        *asked(),
        TurnStarted(1, 1),
        ASKS_MODEL,
        EffectFinished("1/1.m1", reply=Reply(calls=(call, call, call))),
        PermissionDecided("1/1.c1", True, remember="tool", grant=grant),
        PermissionDecided("1/1.c2", True, remember="tool"),
        PermissionDecided("1/1.c3", True),
    )
    assert run.grants == {"tool": (grant, Grant())}


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
    options = Options(limits=Limits(turns=2, on_breach="ask"))
    question = EffectStarted("1/1.l1", LimitEffect("more?"))
    run = folded(
        RunStarted("r", options), *asked()[1:], TurnStarted(1, 1), question,
        EffectFinished("1/1.l1", outcome, content),
    )  # fmt: skip
    activation = run.activations[1]
    scope, progress = activation.scopes[0], activation.progress
    assert (scope.limits.turns, progress.raise_declined) == (turns, declined)
    assert (activation.phase, progress.raises, scope.open_questions) == ("asking", 1, 0)


def test_limits_are_raised_by_what_they_were_at_first():
    options = Options(limits=Limits(turns=2, calls=3, tokens=5, usd=0.5, timeout_seconds=None))
    events = [RunStarted("r", options), *asked()[1:], TurnStarted(1, 1)]
    for number in (1, 2):
        place = f"1/1.l{number}"
        events += [
            EffectStarted(place, LimitEffect("more?")),
            EffectFinished(place, content="yes"),
        ]
    limits = folded(*events).activations[1].scopes[0].limits
    assert limits == Limits(turns=6, calls=9, tokens=15, usd=1.5, timeout_seconds=None)


@pytest.mark.parametrize(("detaches", "again"), [(("1/1.c1",), ()), (None, None)], ids=["named", "format 2"])
def test_a_call_under_which_somebody_is_asked_is_no_longer_waited_for(detaches, again):
    planned = ToolCall("1", "call_agent", '{"agent_name":"b","message":"x"}')
    events = (
        *asked(),
        TurnStarted(1, 1, (planned, planned)),
        called("1/1.c1", "b"),
        called("1/1.c2", "b"),
        EffectFinished("1/1.c2"),
        TurnStarted(2, 1, act=True),
        EffectStarted("2/1.x", ActionEffect("b")),
    )
    caller = folded(*events).activations[1]
    assert (caller.phase, caller.turn.waiting) == ("calling", 1)
    question = EffectStarted("2/1.x:question:00", QuestionEffect("?", detaches))
    run = folded(*events, question)
    caller = run.activations[1]
    assert (caller.phase, caller.turn.waiting) == ("settled", 0)
    assert run.open["1/1.c1"].detached == planned
    second = EffectStarted("2/1.x:question:01", QuestionEffect("?", again))
    assert folded(*events, question, second).activations[1].turn.waiting == 0


def test_what_everybody_shares_nobody_can_write_into():
    message = Message("forward", "user", "a", "go")
    nobody_yet = hops.of(Activation(1, "a"), message)
    assert nobody_yet is hops.of(Activation(2, "b"), message)
    with pytest.raises(TypeError):
        nobody_yet["x"] = 1


# -- what the ids of effects say, and room in a budget ---------------------------------------------


def test_a_model_call_whose_id_names_the_next_turn_ends_the_last_one_and_begins_it():
    calls = Reply(calls=(ToolCall("x", "look"),))
    events = (
        *asked(),
        TurnStarted(1, 1, suffix="once", offered_tools=("look",)),
        ASKS_MODEL,
        EffectFinished("1/1.m1", reply=calls),
        EffectFinished("1/1.c1", "not_found", reason="no such tool"),
    )
    before = folded(*events).activations[1]
    assert (before.phase, before.turn.number, before.turn.suffix) == ("settled", 1, "once")
    turn = folded(*events, structs.replace(ASKS_MODEL, id="1/2.m1")).activations[1].turn
    assert (turn.number, turn.calls, turn.suffix, turn.offered_tools) == (2, (), "", None)


def test_who_waits_for_room_stands_in_line_until_it_is_over():
    both = tuple(ToolCall(name, "call_agent", f'{{"agent_name":"{name}","message":"x"}}') for name in "bc")
    lined_up = (
        *asked(),
        TurnStarted(1, 1, both),
        called("1/1.c1", "b"),
        called("1/1.c2", "c"),
        TurnStarted(2, 1),
        EffectStarted("2/1.r1", RoomEffect(10, after_failure=True)),
        TurnStarted(3, 1),
        EffectStarted("3/1.r1", RoomEffect(10)),
    )
    run = folded(*lined_up)
    assert [each.id for each in run.waiting[CALL]] == ["2/1.r1", "3/1.r1"]
    assert ([run.activations[number].phase for number in (2, 3)], run.freed) == (["waiting"] * 2, {})
    apply(run, EffectFinished("2/1.r1"))
    resumed = folded(*lined_up)
    apply(resumed, RunResumed())
    assert list(resumed.freed) == [CALL], "who takes a run up does not know what there is room for"
    # There may be room for the next one too.
    assert (run.activations[2].phase, [each.id for each in run.waiting[CALL]]) == ("failed", ["3/1.r1"])
    assert list(run.freed) == [CALL]
    apply(run, EffectFinished("3/1.r1", "cancelled"))
    assert (run.activations[3].phase, run.waiting) == ("asking", {})


def test_who_ends_takes_along_what_lay_dormant_under_it():
    """A called b, which called c; both lie dormant until a, which began anew, has returned."""

    def reply(place):
        return EffectFinished(place, reply=Reply(calls=(ToolCall("x", "call_agent", '{"agent_name":"b"}'),)))

    run = folded(
        *asked(), TurnStarted(1, 1), ASKS_MODEL, reply("1/1.m1"),
        called("1/1.c1", "b", stays_dormant=True), TurnStarted(2, 1),
        EffectStarted("2/1.m1", ModelEffect("m", "", 10)), reply("2/1.m1"),
        called("2/1.c1", "c", stays_dormant=True), EffectFinished("2/1.c1"), EffectFinished("1/1.c1"),
    )  # fmt: skip
    assert run.dormant == {(2, "c"): 3, (1, "b"): 2}
    apply(run, EffectFinished(CALL))
    assert run.dormant == {}
    assert list(run.activations) == [0]


def test_an_activation_stands_in_line_once_however_much_happens_to_it():
    look = (ToolCall("x", "look"), ToolCall("y", "look"))
    run = folded(
        *asked(), TurnStarted(1, 1), ASKS_MODEL, EffectFinished("1/1.m1", reply=Reply(calls=look)),
        EffectStarted("1/1.c1", ToolEffect("look")), EffectStarted("1/1.c2", ToolEffect("look")),
    )  # fmt: skip
    for each in run.ready:
        each.queued = False
    run.ready.clear()
    apply(run, EffectFinished("1/1.c1"))
    apply(run, EffectFinished("1/1.c2"))
    assert [each.id for each in run.ready] == [1]
    assert run.activations[1].queued
