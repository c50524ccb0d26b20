"""Format 2 of the journal, kind by kind: what it said, and what it is read as today."""

import json

import pytest

from antiphon import Limits, Usage
from antiphon.errors import JournalTooNew
from antiphon.kernel.facts import events, format2
from antiphon.kernel.facts.events import (
    ActionEffect,
    ApprovalEffect,
    CallEffect,
    CancelRequested,
    EffectFinished,
    EffectStarted,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    QuestionEffect,
    ResultEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    StepEffect,
    TimerEffect,
    ToolEffect,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.options import Options
from antiphon.values.message import Message, ToolCall
from antiphon.values.model import ChatMessage, Reply
from antiphon.values.result import Failure

OLD_LIMITS = {"seconds": 9.0, "breach": "hand_over", "to": "b", "turns": 7}
LIMITS = Limits(timeout_seconds=9.0, on_breach="handoff", breach_target="b", turns=7)
OLD_USAGE = {"input": 1, "output": 2, "cached": 3, "reasoning": 4, "cache_write": 5}
USAGE = Usage(1, 2, 3, 4, 5)


def old_call(arguments):
    return {"id": "x", "name": "call_agent", "arguments": arguments}


def new_call(arguments):
    return ToolCall("x", "call_agent", arguments)


OLD_ARGUMENTS = json.dumps(
    {
        "agent_name": "b",
        "hand_over": True,
        "mail": [{"type": "forward", "sender": "a", "receiver": "b", "content": "", "id": "i",
                  "calls": [old_call('{"hold":true}')]}],
        "take": [0],
        "until": 5.5,
        "hold": True,
        "calls": [old_call('{"take":[1]}')],
        "limits": OLD_LIMITS,
    },
    separators=(",", ":"),
)  # fmt: skip
ARGUMENTS = json.dumps(
    {
        "agent_name": "b",
        "handoff": True,
        "inbox": [{"type": "forward", "sender": "a", "receiver": "b", "content": "", "id": "i",
                   "calls": [old_call('{"deliver_only":true}')]}],
        "forward": [0],
        "deadline": 5.5,
        "deliver_only": True,
        "calls": [old_call('{"forward":[1]}')],
        "limits": {"timeout_seconds": 9.0, "on_breach": "handoff", "breach_target": "b", "turns": 7},
    },
    separators=(",", ":"),
)  # fmt: skip


def old(**fields):
    return {"type": "EffectStarted", "id": "1/1.c1"} | fields


def new(detail):
    return EffectStarted("1/1.c1", detail)


EFFECTS = {
    "a tool, by default": (old(name="t"), ToolEffect("t")),
    "a tool": (
        old(kind="tool", name="t", digest="d", arguments="{}", allowed=True, ends=True),
        ToolEffect("t", "d", "{}", allowed=True, finishes=True),
    ),
    "a model": (
        old(kind="model", name="m", digest="d", hold=7, head="p", cost=8, fallback=1, text="why"),
        ModelEffect("m", "d", 7, prefix="p", held_nano_usd=8, fallback=1, reason="why"),
    ),
    "a model, with nothing said": (old(kind="model", name="m"), ModelEffect("m", "", 0)),
    "a summary": (old(kind="model", name="m", purpose="compact"), ModelEffect("m", "", 0, "compact")),
    "a call": (
        old(kind="call", name="b", digest="d", arguments=OLD_ARGUMENTS, limits=OLD_LIMITS, background=True,
            ends=True, keep=True, scope=2, text="Started"),
        CallEffect("b", "d", ARGUMENTS, LIMITS, background=True, shown="Started", finishes=True,
                   stays_dormant=True, outside=2),
    ),
    "a call that goes on": (old(kind="call", name="b", continues=3), CallEffect("b", "", reactivates=3)),
    "a handoff at a limit": (
        old(kind="call", name="b", purpose="limit", text="turns"),
        CallEffect("b", "", breach="turns"),
    ),
    "a handoff without a text": (old(kind="call", name="b", purpose="limit"), CallEffect("b", "")),
    "an action's own model": (
        old(kind="call", name="b", purpose="ask"),
        CallEffect("b", "", own_model=True),
    ),
    "arguments that are no JSON": (
        old(kind="call", name="b", arguments="{"),
        CallEffect("b", "", "{"),
    ),
    "arguments that are no object": (
        old(kind="call", name="b", arguments="[1]"),
        CallEffect("b", "", "[1]"),
    ),
    "an approval": (
        old(kind="wait", purpose="approval", name="t", arguments="{}", digest="d", text="why"),
        ApprovalEffect("t", "{}", "d", "why", detaches=None),
    ),
    "an approval, with little said": (
        old(kind="wait", purpose="approval", name="t"),
        ApprovalEffect("t", "", "", detaches=None),
    ),
    "a question": (old(kind="wait", purpose="question", text="?"), QuestionEffect("?", None)),
    "a question without a text": (old(kind="wait", purpose="question"), QuestionEffect("", None)),
    "a limit": (old(kind="wait", purpose="limit", text="more?", scope=1), LimitEffect("more?", 1, None)),
    "a limit without a text": (old(kind="wait", purpose="limit"), LimitEffect("", 0, None)),
    "a retry": (old(kind="wait", purpose="retry", until=5.5, text="2"), TimerEffect("retry", 5.5, "2")),
    "a deadline": (old(kind="wait", purpose="deadline"), TimerEffect("deadline", 0.0)),
    "a result": (old(kind="wait", purpose="result", name="1/1.c9"), ResultEffect("1/1.c9")),
    "an action": (old(kind="action", name="a"), ActionEffect("a")),
    "a step": (old(kind="step", name="s"), StepEffect("s")),
    "a step without a name": (old(kind="step"), StepEffect("")),
}  # fmt: skip


@pytest.mark.parametrize("case", EFFECTS)
def test_an_effect_is_read_by_its_kind(case):
    then, now = EFFECTS[case]
    assert read(then) == [new(now)]


def read(*fields):
    return events.decode(json.dumps(fields, separators=(",", ":")).encode())


EVENTS = {
    "a run started": (
        {"type": "RunStarted", "run_id": "r", "data": 1,
         "options": {"attended": True, "limits": OLD_LIMITS}},
        RunStarted("r", Options(limits=LIMITS, interactive=True), data=1),
    ),
    "a run started without options": ({"type": "RunStarted", "run_id": "r"}, RunStarted("r")),
    "a run resumed": ({"type": "RunResumed", "attended": True}, RunResumed(interactive=True)),
    "a message": (
        {"type": "MessagePosted", "to": 1, "mail": 4, "dead": "late", "by": 2,
         "message": {"type": "forward", "sender": "a", "receiver": "b", "content": "c", "id": "i",
                     "calls": [old_call(OLD_ARGUMENTS)]}},
        MessagePosted(
            Message("forward", "a", "b", "c", id="i", calls=(new_call(ARGUMENTS),)), 1, 4, "late", 2
        ),
    ),
    "a turn": (
        {"type": "TurnStarted", "activation": 1, "taken": 2, "calls": [old_call(OLD_ARGUMENTS)], "act": True,
         "shown": [{"role": "user", "content": "x"}], "tail": "t", "only": ["a"], "by": "plan"},
        TurnStarted(1, 2, (new_call(ARGUMENTS),), True, (ChatMessage("user", "x"),), "t", ("a",), "plan"),
    ),
    "a call of another tool keeps its arguments": (
        {"type": "TurnStarted", "activation": 1,
         "calls": [{"id": "x", "name": "look", "arguments": '{"take":1}'},
                   {"id": "y", "name": "call_agent"}]},
        TurnStarted(1, calls=(ToolCall("x", "look", '{"take":1}'), ToolCall("y", "call_agent"))),
    ),
    "a result": (
        {"type": "EffectFinished", "id": "1/1.c1", "content": "x", "ends": True, "by": "hook", "mail": 3,
         "cost": 9, "usage": OLD_USAGE},
        EffectFinished("1/1.c1", content="x", finishes=True, decided_by="hook", command=3, cost_nano_usd=9,
                       usage=USAGE),
    ),
    "a result of nothing known": (
        {"type": "EffectFinished", "id": "1/1.c1", "outcome": "missing", "why": "no such tool"},
        EffectFinished("1/1.c1", "not_found", reason="no such tool"),
    ),
    "a result of wrong arguments": (
        {"type": "EffectFinished", "id": "1/1.c1", "outcome": "invalid"},
        EffectFinished("1/1.c1", "invalid_arguments"),
    ),
    "a reply": (
        {"type": "EffectFinished", "id": "1/1.m1",
         "reply": {"content": "x", "calls": [old_call(OLD_ARGUMENTS)], "usage": OLD_USAGE}},
        EffectFinished("1/1.m1", reply=Reply("x", calls=(new_call(ARGUMENTS),), usage=USAGE)),
    ),
    "a model's failure": (
        {"type": "EffectFinished", "id": "1/1.m1", "outcome": "failed", "why": "cut: it broke: off",
         "status": 500, "retry_after": 2.5},
        EffectFinished("1/1.m1", "failed", failure=Failure("disconnected", "it broke: off", 500, 2.5)),
    ),
    "another failure of a model": (
        {"type": "EffectFinished", "id": "1/1.m1", "outcome": "failed", "why": "timeout: late"},
        EffectFinished("1/1.m1", "failed", failure=Failure("timeout", "late")),
    ),
    "a conversation too long": (
        {"type": "EffectFinished", "id": "1/1.m1", "outcome": "failed", "why": "context: too long"},
        EffectFinished("1/1.m1", "failed", failure=Failure("context_length", "too long")),
    ),
    "a refusal": (
        {"type": "EffectFinished", "id": "1/1.m1", "outcome": "failed", "why": "refused: no"},
        EffectFinished("1/1.m1", "failed", failure=Failure("refusal", "no")),
    ),
    "a failure of a tool": (
        {"type": "EffectFinished", "id": "1/1.c1", "outcome": "failed", "why": "cut: x"},
        EffectFinished("1/1.c1", "failed", reason="cut: x"),
    ),
    "a model call that was cancelled": (
        {"type": "EffectFinished", "id": "1/1.m1", "outcome": "cancelled", "why": "enough: now"},
        EffectFinished("1/1.m1", "cancelled", reason="enough: now"),
    ),
    "a decision": (
        {"type": "PermissionDecided", "id": "1/1.c1", "allowed": True, "by": "user", "why": "said so"},
        PermissionDecided("1/1.c1", True, "user", "said so"),
    ),
    "data": ({"type": "StateChanged", "activation": 1, "set": {"a": 1}}, StateChanged(1, {"a": 1})),
    "a compaction": (
        {"type": "HistoryCompacted", "activation": 1, "summary": "s"},
        TranscriptCompacted(1, summary="s"),
    ),
    "a turn's end": (
        {"type": "TurnFinished", "activation": 1, "more": True, "nudge": "go on", "by": "decide"},
        TurnFinished(1, True, "go on", "decide"),
    ),
    "a cancellation": (
        {"type": "CancelRequested", "target": "1/1.c1", "why": "enough", "mail": 2},
        CancelRequested("1/1.c1", "enough", 2),
    ),
    "a run closed": ({"type": "RunClosed", "why": "done"}, RunClosed("done")),
}  # fmt: skip


@pytest.mark.parametrize("case", EVENTS)
def test_an_event_is_read_under_todays_names(case):
    then, now = EVENTS[case]
    assert read(then) == [now]


def test_the_events_of_a_row_are_read_in_their_order():
    assert read({"type": "RunClosed"}, {"type": "RunResumed"}) == [RunClosed(), RunResumed()]


def test_a_breach_that_stops_stays_one():
    (found,) = read({"type": "RunStarted", "run_id": "r", "options": {"limits": {"breach": "ask"}}})
    assert found.options.limits == Limits(on_breach="ask")


@pytest.mark.parametrize(
    ("body", "is_old"),
    [
        (b'[{"type":"RunClosed"}]', True),
        (b'[{"type":"Aaa"}]', True),
        (b'[{"type":"Zzz"}]', True),
        (b'[{"type":"run_closed"}]', False),
        (b'[{"type":"@x"}]', False),
        (b'[{"type":"[x"}]', False),
        (b"[]", False),
    ],
)
def test_a_row_of_format_2_is_known_by_its_capital(body, is_old):
    assert format2.is_format2(body) is is_old


@pytest.mark.parametrize("fields", [{"type": "Nothing"}, {"type": "EffectStarted", "id": "x", "kind": "odd"}])
def test_what_format_2_never_held_is_refused(fields):
    with pytest.raises(JournalTooNew, match="upgrade Antiphon"):
        read(fields)
