"""The call tree, folded from events made by hand: what is drawn, and what is told of each event."""

import time

import pytest

from antiphon import Message, Record, ReplyDelta, ToolCall, Usage
from antiphon.cli.display.draw import FOLDED, Drawing, tokens
from antiphon.cli.display.record_line import progress, spoken, told
from antiphon.cli.display.tree import CallTree, Remark
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CallEffect,
    CancelRequested,
    EffectFinished,
    EffectStarted,
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
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.values.model import Reply
from antiphon.values.result import Failure
from antiphon.view.wording import seconds


class Story:
    """Events one by one, a second apart, with the tree they make and what is told of each."""

    def __init__(self):
        self.tree, self.index, self.seq = CallTree(), ActivationIndex(), 0
        self.told, self.progress = [], []

    def add(self, *events):
        for event in events:
            if isinstance(event, ReplyDelta):
                self.tree.take(event)
                continue
            self.seq += 1
            self.index.learn(event, self.seq)
            record = self.index.records(self.seq, float(self.seq), "r", [event])[0]
            assert isinstance(record, Record)
            self.tree.take(record)
            self.told.append(told(record, self.tree))
            self.progress.append(progress(record, self.tree))
        return self

    def drawn(self, width=0, now=100.0, **options):
        return [line.plain.rstrip() for line in Drawing(self.tree, width, **options).lines(now)]


def ask(agent="lead", text="go"):
    call = ToolCall("request", "call_agent", f'{{"agent_name":"{agent}","message":"{text}"}}')
    return (
        RunStarted("r"),
        MessagePosted(Message("forward", "user", "user", "", calls=(call,))),
        TurnStarted(0, 1),
        EffectStarted("0/1.c1", CallEffect(agent, "", background=True)),
        TurnFinished(0),
        TurnStarted(1, 1),
        EffectStarted("1/1.m1", ModelEffect("m", "", 0)),
    )


def reply(*calls, text="", effect="1/1.m1", usage=Usage(10, 2)):  # noqa: B008 - a frozen value
    return EffectFinished(effect, reply=Reply(text, tuple(calls), usage=usage))


@pytest.fixture
def story():
    return Story().add(*ask())


def test_how_far_a_tool_has_come_is_shown_while_it_works(story):
    story.add(
        reply(ToolCall("1", "look", '{"page":3}')), EffectStarted("1/1.c1", ToolEffect("look", '{"page":3}'))
    )
    before = story.drawn()[-1]
    story.add(ReplyDelta("1/1.c1", 1, "lead", "progress", "half\x1b way\nthere"))
    assert story.drawn()[-1] == f"{before}  half␛ way there"
    story.add(EffectFinished("1/1.c1", content="page 3"))
    assert "half" not in story.drawn()[-1]
    assert not story.tree.progress


def queued(text, count):
    return ReplyDelta("1/1.m1", 1, "lead", "queued", text, count)


def test_what_is_waited_for(story, monkeypatch):
    def seen(now):
        return Drawing(story.tree, 0).screen(now, 20)[-1].plain.rstrip()

    # The model was asked in second 7, as its record says.
    assert seen(9.9) == "└─ asking…"
    assert seen(10.0) == "└─ waiting for the model, 3 s"
    assert seen(47.0) == "└─ waiting for the model, 40 s"
    assert seen(207.0) == "└─ waiting for the model, 3 min 20 s"
    # Who looks at a run later sees no time pass: perhaps nobody drives it.
    assert story.drawn(now=47.0)[-1] == "└─ asking…"
    story.add(queued("13", 1))
    assert seen(8.0) == "└─ waiting for its turn, 12 before it"
    story.add(queued("1", 2))
    assert seen(8.0) == "└─ waiting for its turn, it is next"
    monkeypatch.setattr(time, "time", lambda: 50.0)
    story.add(queued("0", 3))
    assert seen(52.0) == "└─ asking…"
    assert seen(54.0) == "└─ waiting for the model, 4 s"
    story.add(ReplyDelta("1/1.m1", 1, "lead", "text", "Hel"))
    assert seen(99.0) == "└─ writing… Hel"


def test_what_is_being_written(story):
    assert story.drawn() == ["● lead  go  96 s", "└─ asking…"]
    story.add(ReplyDelta("1/1.m1", 1, "lead", "reasoning", "let me"))
    assert story.drawn()[-1] == "└─ thinking… let me"
    story.add(
        ReplyDelta("1/1.m1", 1, "lead", "text", "Hel"), ReplyDelta("1/1.m1", 1, "lead", "text", "lo\x1b")
    )
    assert story.drawn()[-1] == "└─ writing… Hello␛"
    story.add(ReplyDelta("1/1.m1", 1, "lead", "call_name", "add"))
    assert story.drawn()[-1] == "└─ calling… add"
    story.add(ReplyDelta("1/1.m1", 1, "lead", "call_arguments", "{}"))
    story.add(
        ReplyDelta("1/9.m1", 1, "lead", "text", "of no call"),
        ReplyDelta("7/1.m1", 7, "x", "text", "of nobody"),
    )
    assert story.drawn()[-1] == "└─ calling… add"
    story.add(reply(text="Hello"))
    assert story.drawn() == ["● lead  go  96 s, 12 tokens"]
    assert tokens(story.tree) == "12 tokens (10 in, 2 out), cost unknown"
    assert story.tree.run.models["m"].usage == Usage(10, 2)


def test_agents_of_one_name_that_work_at_the_same_time_are_told_apart(story):
    """And their deadlines are a bound, which nobody needs to be told of while nothing comes of it."""
    calls = [ToolCall(f"{number}", "call_agent", '{"agent_name":"reader"}') for number in range(3)]
    story.add(
        reply(*calls),
        EffectStarted("1/1.c1", CallEffect("reader", "")),
        EffectStarted("1/1.c2", CallEffect("reader", "")),
        TurnStarted(3, 1),
        EffectStarted("3/1.d1", TimerEffect("deadline", 61.0)),
        EffectFinished("3/1.d1", "cancelled", reason="the caller ended"),
        EffectFinished("1/1.c1", content="one"),
        EffectStarted("1/1.c3", CallEffect("reader", "")),
        EffectFinished("1/1.c2", content="two"),
    )
    assert [line for line in story.progress if "reader" in line] == [
        "lead calls reader",
        "lead calls reader#2",
        "lead gets reader: one",
        "lead calls reader",
        "lead gets reader#2: two",
    ]
    assert [line.split(":")[0] for line in story.told[-5:-3]] == [
        f"reader#2 has until {time.strftime('%H', time.localtime(61.0))}",
        "reader#2 needs its deadline no more",
    ]
    assert [line.split("  ")[0] for line in story.drawn()[1:4]] == [
        "├─ ✓ reader", "├─ ✓ reader#2", "└─ ● reader",
    ]  # fmt: skip


def test_what_is_said_on_the_way_is_shown_when_the_next_call_of_the_model_begins_the_turn(story):
    story.add(reply(text="I am looking into it."))
    assert spoken(story.tree) == ""
    story.add(EffectStarted("1/2.m1", ModelEffect("m", "", 0)))
    assert spoken(story.tree) == "lead says: I am looking into it."


def test_what_is_said_on_the_way_is_shown_and_the_answer_is_not_said_twice(story):
    story.add(reply(text="I am looking into it."), StateChanged(1), TurnFinished(1))
    assert story.tree.spoken is None
    story.add(TurnStarted(1, 0))
    assert spoken(story.tree) == "lead says: I am looking into it."
    story.add(
        EffectStarted("1/2.m1", ModelEffect("m", "", 0)),
        reply(text="Here it is.", effect="1/2.m1"),
        TurnFinished(1),
        EffectFinished("1/1.d1", "cancelled", reason="the caller ended"),
        EffectFinished("0/1.c1", content="Here it is."),
        TurnStarted(0, 1),
    )
    assert spoken(story.tree) == ""
    assert [row.text for row in story.tree.branches[1].rows if isinstance(row, Remark)] == [
        "I am looking into it."
    ]


def test_the_tail_of_a_text_fits_its_line(story):
    story.add(ReplyDelta("1/1.m1", 1, "lead", "text", "word " * 1000))
    assert max(map(len, story.drawn(width=40))) <= 40
    assert story.drawn(width=40)[-1].endswith("word word word")


def test_a_refused_tool(story):
    story.add(
        reply(ToolCall("c", "send", '{"to":"ann"}')),
        EffectStarted("1/1.c1?", ApprovalEffect("send", '{"to":"ann"}', "", "send acts")),
    )
    assert story.drawn()[-1] == '└─ ● waits for permission: send(to="ann")  91 s'
    story.add(
        EffectFinished("1/1.c1?", content="no", decided_by="eve"),
        PermissionDecided("1/1.c1", False, "eve", "refused", remember="digest"),
        EffectFinished("1/1.c1", "denied", reason="permission denied by eve: refused"),
    )
    assert story.drawn()[1:] == [
        '├─ ✓ asked to allow send(to="ann")',
        '└─ ✗ send(to="ann")  denied  → permission denied by eve: refused',
    ]
    assert story.told[-4:] == [
        'lead asks to allow send(to="ann")',
        "lead gets approval: no",
        "lead is not allowed 1/1.c1 by eve from now on",
        "lead gets send: denied (permission denied by eve: refused)",
    ]


def test_a_ruling_without_a_question(story):
    story.add(
        reply(ToolCall("c", "send", "{}")),
        EffectStarted("1/1.c1?", ApprovalEffect("send", "{}", "")),
        PermissionDecided("1/1.c1", True),
    )
    assert story.drawn()[-1] == "└─ ✓ asked to allow send()"
    assert story.told[-1] == "lead is allowed 1/1.c1"


def test_waits_messages_and_failures(story):
    story.add(
        EffectFinished("1/1.m1", "failed", failure=Failure("network", "nobody answers")),
        EffectStarted("1/1.w1", TimerEffect("retry", 50.0)),
        EffectFinished("1/1.w1"),
        EffectStarted("1/1.m2", ModelEffect("m", "", 0)),
        reply(
            ToolCall("a", "call_agent", '{"agent_name":"user","message":"Which?"}'),
            ToolCall("b", "get_result", '{"call_id":"1/0.c9"}'),
            text="One context.",
            effect="1/1.m2",
        ),
        EffectStarted("1/1.c1", QuestionEffect("Which?")),
        EffectStarted("1/1.c2", ResultEffect("1/0.c9")),
        MessagePosted(Message("forward", "user", "lead", "and hurry", "0/1.c1"), 1),
        MessagePosted(Message("forward", "x", "gone", "lost"), 0, dead_letter="gone has ended"),
        CancelRequested("", "enough"),
        RunResumed(),
    )
    assert story.drawn()[1:] == [
        "├─ ✗ m: network: nobody answers",
        "├─ ✓ waited 41 s: network",
        "├─ One context.",
        "├─ ● asks you: Which?  87 s",
        "├─ ● waits for 1/0.c9  86 s",
        "└─ user adds: and hurry",
    ]
    assert [(each.message.content, each.reason) for each in story.tree.run.dead_letters] == [
        ("lost", "gone has ended")
    ]
    assert story.told[-11:] == [
        "lead gets no reply: failed (network: nobody answers)",
        "lead waits 41 s: network",
        "lead has waited",
        "lead asks m",
        "lead gets a reply (12 tokens): calls call_agent, get_result",
        "lead asks the user: Which?",
        "lead waits (result)",
        "user tells lead: and hurry",
        "not delivered to gone: gone has ended",
        "cancel every request (enough)",
        "run resumed",
    ]
    assert [line for line in story.progress[-6:] if line] == story.told[-6:]
    story.add(
        EffectFinished("1/1.c1", content="blue"),
        EffectFinished("0/1.c1", "cancelled", reason="enough"),
        RunClosed("enough"),
    )
    assert story.drawn()[0] == "✗ lead  go  cancelled, 16 s, 12 tokens  → enough"
    assert "├─ ✓ asked you  → blue" in story.drawn()
    assert story.told[-1] == "run closed (enough)"
    assert story.tree.run.closed
    assert story.progress[-1] == ""


def many(count):
    """A request whose agent calls `count` others, one after the other, the last of which still works."""
    story = Story().add(*ask())
    for number in range(1, count + 1):
        arguments = f'{{"agent_name":"w","message":"part {number}"}}'
        story.add(
            reply(ToolCall("c", "call_agent", arguments), effect=f"1/{number}.m1"),
            EffectStarted(f"1/{number}.c1", CallEffect("w", "")),
            EffectStarted(f"{number + 1}/1.m1", ModelEffect("m", "", 0)),
        )
        if number < count:
            story.add(
                EffectFinished(f"{number + 1}/1.m1", reply=Reply("x", (ToolCall("d", "calculate", "{}"),))),
                EffectStarted(f"{number + 1}/1.c1", ToolEffect("calculate", "")),
                EffectFinished(f"{number + 1}/1.c1", content="1"),
                EffectFinished(f"1/{number}.c1", content="done"),
                EffectStarted(f"1/{number + 1}.m1", ModelEffect("m", "", 0)),
            )
    return story


def test_a_screen_folds_what_has_ended_and_keeps_what_lives():
    tree = many(8).tree
    drawing = Drawing(tree, 80)
    assert len(drawing.screen(100.0, 100)) == len(drawing.lines(100.0)) == 8 * 2 + 1 + 7
    folded = [line.plain for line in drawing.screen(100.0, 12)]
    assert len(folded) == 9
    assert folded[1] == "… 2 earlier"
    assert not [line for line in folded if "calculate" in line]
    assert folded[-1].strip().endswith("waiting for the model, 34 s")
    few = [line.plain for line in drawing.screen(100.0, 4)]
    assert few[0] == "… more above"
    assert few[-1].strip().endswith("waiting for the model, 34 s")
    assert len(few) == 4


def test_of_a_long_turn_its_end_and_what_still_works_is_drawn(story):
    calls = [ToolCall(str(n), "t", "{}") for n in range(1, 2001)]
    story.add(reply(*calls), *(EffectStarted(f"1/1.c{n}", ToolEffect("t", "")) for n in range(1, 2001)))
    story.add(*(EffectFinished(f"1/1.c{n}", content=str(n)) for n in range(2, 2000)))
    drawing = Drawing(story.tree, 80)
    shown = [line.plain for line in drawing.screen(100.0, 10)]
    assert shown[:3] == ["● lead  go  96 s, 12 tokens", "… 1,994 earlier", "├─ ● t()  91 s"]
    assert shown[3] == "├─ ✓ t()  → 1996"
    assert shown[-1].startswith("└─ ● t()")
    assert len(shown) == 8
    assert len(drawing.lines(100.0)) == 2001


def test_a_large_tree_is_folded_from_the_start():
    story = many(FOLDED + 1)
    assert not [line for line in story.drawn(width=80) if "calculate" in line]
    assert [line for line in story.drawn(width=80, whole=True) if "calculate" in line]


def test_without_unicode_and_without_room(story):
    story.add(
        reply(ToolCall("c", "send", '{"to":"a long name of somebody"}')),
        EffectStarted("1/1.c1", ToolEffect("send", "")),
    )
    story.add(EffectFinished("1/1.c1", "failed", reason="a long reason that has to be cut somewhere"))
    for line in story.drawn(width=30, ascii_only=True):
        assert len(line) <= 30
    assert story.drawn(ascii_only=True)[-1].startswith("`- x send(")


@pytest.mark.parametrize(
    ("span", "text"),
    [(-1, "0.0 s"), (9.94, "9.9 s"), (10, "10 s"), (119, "119 s"), (150, "2 min 30 s"), (7200, "2 h 0 min")],
)
def test_spans_of_time(span, text):
    assert seconds(span) == text


def test_events_of_what_nobody_has_seen_begin():
    story = Story().add(
        EffectFinished("0/1.c1", "not_found", reason="x"), EffectStarted("0/2.c1", ToolEffect("t", ""))
    )
    assert story.drawn()[0] == "✗ ?()  not_found  → x"
    assert story.told[1] == "user uses t()"


def test_calls_nested_deeper_than_python_calls_are_drawn_to_the_last():
    story = Story().add(*(EffectStarted(f"{number}/1.c1", CallEffect("mole", "")) for number in range(1_100)))
    story.add(EffectStarted("1100/1.x:dig:0", StepEffect("dig")))
    drawn = Drawing(story.tree, 0).lines(story.seq + 1.0)
    assert len(drawn) == 1_101
    assert drawn[-1].plain == "   " * 1_099 + "└─ ● step dig  1.0 s"
