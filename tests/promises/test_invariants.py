"""Every invariant is broken by a journal that is otherwise in order; the audit names it and the record."""

import asyncio

import pytest

from antiphon import Limits
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.row_writer import RowWriter, put
from antiphon.kernel.facts.events import (
    ActionEffect,
    ApprovalEffect,
    CallEffect,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    Fork,
    InstructionsEffect,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    QuestionEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    StepEffect,
    TimerEffect,
    ToolEffect,
    ToolsetOffered,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
    encode,
)
from antiphon.kernel.facts.options import Options
from antiphon.kernel.run.commands import AskAgent, request
from antiphon.testing.audit.forks import branched
from antiphon.testing.invariants import INVARIANTS, InvariantBroken, check_journal, check_run
from antiphon.values.limits import RunLimits
from antiphon.values.message import Message, ToolCall
from antiphon.values.model import Reply, Usage
from antiphon.values.result import Failure
from antiphon.values.tool.offer import ToolOffer
from antiphon.values.tool.offered import tool_of


def model(effect_id, held=0):
    return EffectStarted(effect_id, ModelEffect("m", "", held))


def tool(effect_id, name, arguments="", allowed=False):
    return EffectStarted(effect_id, ToolEffect(name, "", arguments, allowed))


def call(effect_id, agent, background=False):
    return EffectStarted(effect_id, CallEffect(agent, "", background=background))


OTHERWISE = tool_of(ToolOffer("act", "Act otherwise.", {})).digest
ACT, LOOK = ToolCall("1", "act", '{"n":1}'), ToolCall("2", "look")
CALL = ToolCall("1", "call_agent", '{"agent_name":"b"}')
START = [
    RunStarted("r", Options(limits=Limits(tokens=1_000, calls=4, activations=2))),
    MessagePosted(request(AskAgent("a", "hi")), command=1),
    TurnStarted(0, 1),
    call("0/1.c1", "a", background=True),
    TurnFinished(0),
    TurnStarted(1, 1),
    model("1/1.m1", 600),
]
ASKED = [*START, EffectFinished("1/1.m1", reply=Reply("", (ACT, LOOK), "calls", Usage(100, 50)))]
RULED = [
    *ASKED,
    EffectStarted("1/1.c1?", ApprovalEffect("act", '{"n":1}', "")),
    EffectFinished("1/1.c1?", content="yes", decided_by="user", command=2),
    PermissionDecided("1/1.c1", True, "user", arguments='{"n":1}'),
    tool("1/1.c1", "act"),
    tool("1/1.c2", "look"),
    EffectFinished("1/1.c2", content="seen"),
    EffectFinished("1/1.c1", content="done"),
]
WHOLE = [
    *RULED,
    TurnFinished(1, another_turn=True),
    TurnStarted(1),
    model("1/2.m1", 700),
    EffectFinished("1/2.m1", reply=Reply("bye", usage=Usage(100, 50))),
    TurnFinished(1),
    EffectFinished("0/1.c1", content="bye"),
    RunClosed(),
]


def check(events, *, reading=("look",), spoil=None):
    """Write events one a row, let `spoil` change the rows, and check the run."""

    async def checking():
        journal = MemoryJournal()
        pen = RowWriter(journal, await journal.claim("r", create=True))
        for event in events:
            await put(journal, pen.lease, pen.row(encode([event])))
        if spoil:
            spoil(journal._runs["r"].rows)
        await check_run(journal, "r", reading=reading)
        return await check_journal(journal, reading=reading)

    return asyncio.run(checking())


def without(events, gone):
    return [event for place, event in enumerate(events, 1) if place != gone]


def billed(events, usage):
    """The same with another bill of the first model call."""
    reply = Reply("", (ACT, LOOK), "calls", usage)
    return [
        EffectFinished("1/1.m1", reply=reply) if getattr(each, "reply", None) is not None else each
        for each in events
    ]


def unsaid(events):
    return billed(events, None)


def overrun(events, tokens):
    return billed(events, Usage(tokens))


def ruled_by_command(number):
    return EffectFinished("1/1.c1?", content="yes", command=number)


def changed(events, place, event):
    return [*events[: place - 1], event, *events[place:]]


def test_a_journal_in_order_passes():
    assert check(WHOLE) == 1
    assert check(WHOLE[:-1]) == 1
    for length in range(1, len(WHOLE)):
        check(WHOLE[:length])


def test_a_model_call_may_begin_the_next_turn():
    assert check([*RULED, *WHOLE[17:]]) == 1


MODEL_MORE = model("1/1.m2", 10)
BROKEN = {
    "no start": ("started", 1, WHOLE[1:]),
    "two starts": ("started", 2, [START[0], *START]),
    "something after the end": ("closed", len(WHOLE) + 1, [*WHOLE, RunClosed()]),
    "closed with an effect in flight": ("closed", 8, [*START, RunClosed()]),
    "started twice": ("ends", 13, [*RULED[:12], RULED[11]]),
    "ended twice": ("ends", 16, [*RULED, RULED[-1]]),
    "a model that ended but never started": ("ends", 7, without(ASKED, 7)),
    "a tool that completed but never started": ("ends", 9, [*ASKED, EffectFinished("1/1.c2", content="x")]),
    "an activation nobody started": ("parents", 6, [*START[:5], TurnStarted(2, 0)]),
    "mail to an activation nobody started": (
        "parents", 6, [*START[:5], MessagePosted(Message("forward", "user", "b", "x"), 7)],
    ),
    "a call that ends before what is under it": (
        "parents", 8, [*START, EffectFinished("0/1.c1", content="early")],
    ),
    "a turn inside a turn": ("turns", 7, [*START[:6], TurnStarted(1)]),
    "an end of no turn": ("turns", 6, [*START[:5], TurnFinished(1)]),
    "an id of another turn": (
        "turns", 7, [*START[:6], model("1/2.m1", 1)],
    ),
    "an effect between turns": (
        "turns", 7, [*START[:5], TurnStarted(1, 1), tool("0/1.c2", "x")],
    ),
    "a turn that a model call begins while a message waits": (
        "inbox", 17,
        [*RULED, MessagePosted(Message("forward", "user", "a", "more"), 1), model("1/2.m1", 10)],
    ),
    "a question that detaches a call of nobody's plan": (
        "results", 9, [*ASKED, EffectStarted("1/1.c2", QuestionEffect("?", ("0/1.c1",)))],
    ),
    "an attempt left out": ("turns", 7, [*START[:6], MODEL_MORE]),
    "an id that is no place": ("turns", 7, [*START[:6], model("somewhere")]),
    "a call without a result": ("results", 15, [*without(RULED, 14), TurnFinished(1)]),
    "more taken than there is": ("inbox", 6, [*START[:5], TurnStarted(1, 2)]),
    "an unread message at the end": (
        "inbox", 21,
        [*WHOLE[:19], MessagePosted(Message("forward", "user", "a", "more"), 1), *WHOLE[20:]],
    ),
    "a command left out": ("command", 10, changed(RULED, 10, ruled_by_command(3))),
    "a command applied twice": ("command", 10, changed(RULED, 10, ruled_by_command(1))),
    "no ruling": ("permission", 9, [*ASKED, tool("1/1.c1", "act")]),
    "asked outside with others": (
        "permission", 12,
        changed(RULED, 12, EffectStarted("1/1.c1", QuestionEffect("Do it", tool="act", arguments='{"n":2}'))),
    ),
    "an act of one that was shown both": (
        "labels", 11,
        [
            *ASKED,
            EffectStarted("1/1.c2", ToolEffect("look", labels=("private",))),
            EffectFinished("1/1.c2", content="seen", labels=("untrusted",)),
            tool("1/1.c1", "act", allowed=True),
        ],
    ),
    "what is published without its labels": (
        "labels", 9,
        [
            *START[:5], MessagePosted(Message("forward", "user", "a", "x", labels=("private",)), 1),
            TurnStarted(1, 2, act=True), EffectStarted("1/1.x", ActionEffect("a")),
            MessagePosted(Message("forward", "a", "", "x"), 0, by=1),
        ],
    ),
    "denied": ("permission", 12, changed(RULED, 11, PermissionDecided("1/1.c1", False, "user"))),
    "other arguments": (
        "permission", 12, changed(RULED, 12, tool("1/1.c1", "act", '{"n":2}')),
    ),
    "a ruling on another call": (
        "permission", 12, changed(RULED, 11, PermissionDecided("1/1.c2", True, arguments='{"n":1}')),
    ),
    "ruled twice": ("permission", 12, [*RULED[:11], RULED[10]]),
    "more tokens held than there are": (
        "limits", 7, [*START[:6], model("1/1.m1", 1_001)],
    ),
    "spent and held together": (
        "limits", 18, [*WHOLE[:17], model("1/2.m1", 900)],
    ),
    "a call after a bill that nobody said, which counts as held": (
        "limits", 18, [*unsaid(WHOLE[:17]), model("1/2.m1", 500)],
    ),
    "a model call after a bill beyond its hold": (
        "limits", 18, [*overrun(WHOLE[:17], 900), model("1/2.m1", 200)],
    ),
    "a tool after a bill beyond the limit": (
        "limits", 9, [*overrun(ASKED, 1_001), tool("1/1.c2", "look")],
    ),
    "more for all requests together than the run may use": (
        "limits", 7,
        [RunStarted("r", Options(run_limits=RunLimits(tokens=500))), *START[1:7]],
    ),
    "more calls than allowed": (
        "limits", 13,
        [
            *START,
            EffectFinished("1/1.m1", reply=Reply("", (LOOK,) * 5, "calls", Usage(1, 1))),
            *(tool(f"1/1.c{n}", "look") for n in range(1, 6)),
        ],
    ),
    "a view shortened between two turns": (
        "view", 10,
        [
            *START,
            EffectFinished("1/1.m1", reply=Reply("x", (), "stop", Usage(1, 1))),
            TurnFinished(1, another_turn=True),
            TranscriptCompacted(1, trimmed=1),
        ],
    ),
    "instructions that come after the model": (
        "instructions", 10,
        [
            *START, EffectFinished("1/1.m1", "failed", failure=Failure("network", "down")),
            EffectStarted("1/1.w1", TimerEffect("retry", 1.0)),
            EffectStarted("1/1.i", InstructionsEffect("a")),
        ],
    ),
    "a fork after another record": ("forked", 8, [*START, RunResumed(run_id="f", fork=Fork("o", 3, "00"))]),
    "an effect that starts in a run that is drained": (
        "drained", 10,
        [
            *START, EffectFinished("1/1.m1", reply=Reply("", (ACT, LOOK), "calls", Usage(100, 50))),
            DrainStarted(), tool("1/1.c2", "look"),
        ],
    ),
    "a drain that leaves what is not in flight": ("drained", 8, [*START, DrainStarted(("1/1.c1",))]),
    "an action in a turn of a model": ("action", 8, [*START, EffectStarted("1/1.x", ActionEffect("a"))]),
    "a step outside of an action": (
        "action", 7, [*START[:5], TurnStarted(1, 1, act=True), EffectStarted("1/1.x:s:0", StepEffect("s"))],
    ),
    "an action that ends before its step": (
        "action", 9,
        [
            *START[:5], TurnStarted(1, 1, act=True), EffectStarted("1/1.x", ActionEffect("a")),
            EffectStarted("1/1.x:s:0", StepEffect("s")), EffectFinished("1/1.x"),
        ],
    ),
    "an answer that does not fit": (
        "answers", 10,
        [
            *ASKED,
            EffectStarted("1/1.c1", QuestionEffect("Which?", options=("red", "blue"))),
            EffectFinished("1/1.c1", content="green", command=2),
        ],
    ),
    "a joined limit that was raised before there was an answer": (
        "answers", 13,
        [
            *START,
            EffectFinished("1/1.m1", reply=Reply("", (CALL,), "calls", Usage(1, 1))),
            EffectStarted("1/1.l1", LimitEffect("more?")),
            call("1/1.c1", "b"),
            TurnStarted(2, 1),
            EffectStarted("2/1.l1", LimitEffect("more?", joins="1/1.l1")),
            EffectFinished("2/1.l1", content="yes"),
        ],
    ),
    "no more time while there was some": (
        "answers", 10,
        [
            *ASKED,
            EffectStarted("1/1.c1?", ApprovalEffect("act", '{"n":1}', "", deadline=5e9)),
            EffectFinished("1/1.c1?", "limit", reason="nobody answered"),
        ],
    ),
    "an end that no hook of that name decides": (
        "decided", 9, [*ASKED, TurnFinished(1, by="plan_turn")],
    ),
    "rules of nobody": ("decided", 9, [*ASKED, TurnFinished(1, rules=("r (a.yaml:1)",))]),
    "a message of a hook that posts none": (
        "decided", 8, [*START, MessagePosted(Message("forward", "a", "", "x"), 1, hook="plan_turn")],
    ),
    "a call that no hook put there": (
        "decided", 9, [*ASKED, EffectStarted("1/1.c1", CallEffect("b", "", by="end_turn"))],
    ),
    "a rule that is not in force decides": (
        "permission", 9, [*ASKED, PermissionDecided("1/1.c1", True, arguments='{"n":1}', rule="r1")],
    ),
    "a tool that no toolset offered when the turn began": (
        "offered", 11,
        [
            START[0],
            ToolsetOffered("web", (ToolOffer("act", "Act.", {}),)),
            *START[1:],
            ToolsetOffered("web", (ToolOffer("act", "Act otherwise.", {}),)),
            EffectFinished("1/1.m1", reply=Reply("", (ACT,), "calls", Usage(1, 1))),
            EffectStarted("1/1.c1", ToolEffect("act", OTHERWISE, allowed=True)),
        ],
    ),
    "publishing without an action": (
        "action", 8, [*START, MessagePosted(Message("forward", "a", "", "x"), 1, by=1)],
    ),
    "more activations than allowed": (
        "limits", 10,
        [
            *START,
            EffectFinished("1/1.m1", reply=Reply("", (CALL,) * 2, "calls", Usage(1, 1))),
            call("1/1.c1", "b"),
            call("1/1.c2", "b"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_must_not_be_is_named(name):
    invariant, seq, events = BROKEN[name]
    with pytest.raises(InvariantBroken) as caught:
        check(events)
    assert (caught.value.invariant, caught.value.seq) == (invariant, seq)
    assert f"record {seq}" in str(caught.value)


def test_a_fork_that_begins_while_something_is_performed():
    here, asked = (3, "00"), EffectStarted("1/1.c1:q", QuestionEffect("Which?", deadline=10.0))
    acting = tool("1/1.c1", "act")
    for busy in (model("1/1.m1"), acting):
        assert f"{busy.id} is performed" in branched(Fork("o", *here), here, {busy.id: busy})
    # A tool that waits for a person is not; and who is asked has as long as was left.
    opened = {acting.id: acting, asked.id: asked}
    assert branched(Fork("o", *here, shift=60.0), here, opened) == ""
    assert opened[asked.id].detail.deadline == 70.0


def test_a_gap_and_a_changed_byte(monkeypatch):
    import msgspec

    def gap(rows):
        rows[4] = msgspec.structs.replace(rows[4], seq=6)

    def other(rows):
        rows[4] = msgspec.structs.replace(rows[4], body=encode([TurnFinished(0, reminder="?")]))

    async def unverified(self, run_id, after=0):
        return self._runs[run_id].rows

    # The journal would find both itself: here it is one that does not look.
    monkeypatch.setattr(MemoryJournal, "read", unverified)
    for spoil, invariant, seq in ((gap, "gapless", 6), (other, "chain", 5)):
        with pytest.raises(InvariantBroken) as caught:
            check(WHOLE, spoil=spoil)
        assert (caught.value.invariant, caught.value.seq) == (invariant, seq)


def test_what_acts_is_derived_when_nobody_says_it():
    allowed = tool("1/1.c1", "act", allowed=True)
    silent = tool("1/1.c2", "act")
    twice = [*START, EffectFinished("1/1.m1", reply=Reply("", (ACT, ACT), "calls", Usage(1, 1)))]
    check([*twice, allowed], reading=None)
    check([*twice, silent], reading=None)
    for events in ([*twice, allowed, silent], [*twice, silent, allowed]):
        with pytest.raises(InvariantBroken) as caught:
            check(events, reading=None)
        assert caught.value.invariant == "permission"


def test_every_invariant_is_broken_somewhere():
    broken = {invariant for invariant, _, _ in BROKEN.values()} | {"gapless", "chain"}
    assert broken == set(INVARIANTS)
