"""Every invariant is broken by a journal that is otherwise in order; the audit names it and the record."""

import asyncio

import pytest

from antiphon import Limits
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.row_writer import Pen, put
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    HistoryCompacted,
    MessagePosted,
    Options,
    PermissionDecided,
    RunClosed,
    RunStarted,
    TurnFinished,
    TurnStarted,
    encode,
)
from antiphon.kernel.run.commands import Ask, request
from antiphon.testing.invariants import INVARIANTS, InvariantBroken, check_journal, check_run
from antiphon.values.message import Message, ToolCall
from antiphon.values.model import Reply, Usage

ACT, LOOK = ToolCall("1", "act", '{"n":1}'), ToolCall("2", "look")
CALL = ToolCall("1", "call_agent", '{"agent_name":"b"}')
START = [
    RunStarted("r", Options(limits=Limits(tokens=1_000, calls=4, activations=2))),
    MessagePosted(request(Ask("a", "hi")), mail=1),
    TurnStarted(0, 1),
    EffectStarted("0/1.c1", "call", "a", background=True),
    TurnFinished(0),
    TurnStarted(1, 1),
    EffectStarted("1/1.m1", "model", "m", hold=600),
]
ASKED = [*START, EffectFinished("1/1.m1", reply=Reply("", (ACT, LOOK), "calls", Usage(100, 50)))]
RULED = [
    *ASKED,
    EffectStarted("1/1.c1?", "wait", "act", purpose="approval", arguments='{"n":1}'),
    EffectFinished("1/1.c1?", content="yes", by="user", mail=2),
    PermissionDecided("1/1.c1", True, "user", arguments='{"n":1}'),
    EffectStarted("1/1.c1", "tool", "act"),
    EffectStarted("1/1.c2", "tool", "look"),
    EffectFinished("1/1.c2", content="seen"),
    EffectFinished("1/1.c1", content="done"),
]
WHOLE = [
    *RULED,
    TurnFinished(1, more=True),
    TurnStarted(1),
    EffectStarted("1/2.m1", "model", "m", hold=700),
    EffectFinished("1/2.m1", reply=Reply("bye", usage=Usage(100, 50))),
    TurnFinished(1),
    EffectFinished("0/1.c1", content="bye"),
    RunClosed(),
]


def check(events, *, reading=("look",), spoil=None):
    """Write events one a row, let `spoil` change the rows, and check the run."""

    async def checking():
        journal = MemoryJournal()
        pen = Pen(journal, await journal.claim("r", create=True))
        for event in events:
            await put(journal, pen.lease, pen.row(encode([event])))
        if spoil:
            spoil(journal._runs["r"].rows)
        await check_run(journal, "r", reading=reading)
        return await check_journal(journal, reading=reading)

    return asyncio.run(checking())


def without(events, gone):
    return [event for place, event in enumerate(events, 1) if place != gone]


def changed(events, place, event):
    return [*events[: place - 1], event, *events[place:]]


def test_a_journal_in_order_passes():
    assert check(WHOLE) == 1
    assert check(WHOLE[:-1]) == 1
    for length in range(1, len(WHOLE)):
        check(WHOLE[:length])


MODEL_MORE = EffectStarted("1/1.m2", "model", "m", hold=10)
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
        "turns", 7, [*START[:6], EffectStarted("1/2.m1", "model", "m", hold=1)],
    ),
    "an effect between turns": (
        "turns", 7, [*START[:5], TurnStarted(1, 1), EffectStarted("0/1.c2", "tool", "x")],
    ),
    "an attempt left out": ("turns", 7, [*START[:6], MODEL_MORE]),
    "an id that is no place": ("turns", 7, [*START[:6], EffectStarted("somewhere", "model", "m")]),
    "a call without a result": ("results", 15, [*without(RULED, 14), TurnFinished(1)]),
    "more taken than there is": ("inbox", 6, [*START[:5], TurnStarted(1, 2)]),
    "an unread message at the end": (
        "inbox", 21,
        [*WHOLE[:19], MessagePosted(Message("forward", "user", "a", "more"), 1), *WHOLE[20:]],
    ),
    "mail left out": ("mail", 10, changed(RULED, 10, EffectFinished("1/1.c1?", content="yes", mail=3))),
    "mail taken twice": ("mail", 10, changed(RULED, 10, EffectFinished("1/1.c1?", content="yes", mail=1))),
    "no ruling": ("permission", 9, [*ASKED, EffectStarted("1/1.c1", "tool", "act")]),
    "denied": ("permission", 12, changed(RULED, 11, PermissionDecided("1/1.c1", False, "user"))),
    "other arguments": (
        "permission", 12, changed(RULED, 12, EffectStarted("1/1.c1", "tool", "act", arguments='{"n":2}')),
    ),
    "a ruling on another call": (
        "permission", 12, changed(RULED, 11, PermissionDecided("1/1.c2", True, arguments='{"n":1}')),
    ),
    "ruled twice": ("permission", 12, [*RULED[:11], RULED[10]]),
    "more tokens held than there are": (
        "limits", 7, [*START[:6], EffectStarted("1/1.m1", "model", "m", hold=1_001)],
    ),
    "spent and held together": (
        "limits", 18, [*WHOLE[:17], EffectStarted("1/2.m1", "model", "m", hold=900)],
    ),
    "more calls than allowed": (
        "limits", 13,
        [
            *START,
            EffectFinished("1/1.m1", reply=Reply("", (LOOK,) * 5, "calls", Usage(1, 1))),
            *(EffectStarted(f"1/1.c{n}", "tool", "look") for n in range(1, 6)),
        ],
    ),
    "a view shortened between two turns": (
        "view", 10,
        [
            *START,
            EffectFinished("1/1.m1", reply=Reply("x", (), "stop", Usage(1, 1))),
            TurnFinished(1, more=True),
            HistoryCompacted(1, trimmed=1),
        ],
    ),
    "an action in a turn of a model": ("action", 8, [*START, EffectStarted("1/1.x", "action", "a")]),
    "a step outside of an action": (
        "action", 7, [*START[:5], TurnStarted(1, 1, act=True), EffectStarted("1/1.x:s:0", "step", "s")],
    ),
    "an action that ends before its step": (
        "action", 9,
        [
            *START[:5], TurnStarted(1, 1, act=True), EffectStarted("1/1.x", "action", "a"),
            EffectStarted("1/1.x:s:0", "step", "s"), EffectFinished("1/1.x"),
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
            EffectStarted("1/1.c1", "call", "b"),
            EffectStarted("1/1.c2", "call", "b"),
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


def test_a_gap_and_a_changed_byte(monkeypatch):
    import msgspec

    def gap(rows):
        rows[4] = msgspec.structs.replace(rows[4], seq=6)

    def other(rows):
        rows[4] = msgspec.structs.replace(rows[4], body=encode([TurnFinished(0, nudge="?")]))

    async def unverified(self, run_id, after=0):
        return self._runs[run_id].rows

    # The journal would find both itself: here it is one that does not look.
    monkeypatch.setattr(MemoryJournal, "read", unverified)
    for spoil, invariant, seq in ((gap, "gapless", 6), (other, "chain", 5)):
        with pytest.raises(InvariantBroken) as caught:
            check(WHOLE, spoil=spoil)
        assert (caught.value.invariant, caught.value.seq) == (invariant, seq)


def test_what_acts_is_derived_when_nobody_says_it():
    allowed = EffectStarted("1/1.c1", "tool", "act", allowed=True)
    silent = EffectStarted("1/1.c2", "tool", "act")
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
