"""The summary of a run: one line of the list, from the fold alone."""

import pytest

from antiphon import Usage
from antiphon.errors import JournalCorrupt
from antiphon.journal.port import Row
from antiphon.kernel.facts.events import (
    ActionEffect,
    ApprovalEffect,
    CallEffect,
    EffectFinished,
    EffectStarted,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    QuestionEffect,
    RunClosed,
    RunStarted,
    StateChanged,
    TurnStarted,
)
from antiphon.kernel.facts.events import encode as encode_events
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.facts.summary import RunSummary, decode, encode, summary_of
from antiphon.kernel.run.commands import AskAgent, request
from antiphon.kernel.run.rows import fold_next
from antiphon.values.message import Message
from antiphon.values.model import Reply
from antiphon.view.export_file import fold_rows


def summary(*events):
    run = RunState()
    for event in events:
        apply(run, event)
    return summary_of(run, len(events))


def asked(text="go"):
    return (
        RunStarted("r"),
        MessagePosted(request(AskAgent("a", text))),
        TurnStarted(0, 1),
        EffectStarted(
            "0/1.c1", CallEffect("a", "", f'{{"agent_name":"a","message":"{text}"}}', background=True)
        ),
        TurnStarted(1, 1),
        EffectStarted("1/1.m1", ModelEffect("m", "", 10)),
    )


ACTS = EffectStarted("1/1.x", ActionEffect("a"))


def test_a_run_that_nobody_asked_anything_is_idle():
    assert summary(RunStarted("r")) == RunSummary(1, command=0)


def test_a_run_at_work_is_open_and_says_who_was_asked_what():
    assert summary(*asked()) == RunSummary(6, "a", "go", "open", command=0)


def test_a_run_in_which_a_person_must_answer_is_waiting():
    for asks in (ApprovalEffect("t", "{}", ""), QuestionEffect("?"), LimitEffect("more?")):
        assert summary(*asked(), ACTS, EffectStarted("1/1.x:q:00", asks)).state == "waiting"


def test_what_was_used_is_input_and_output_and_what_has_no_price_is_counted():
    replied = EffectFinished("1/1.m1", reply=Reply("hi", usage=Usage(30, 4)))
    found = summary(*asked(), replied)
    assert (found.tokens, found.nano_usd, found.unpriced) == (34, 0, 1)
    priced = EffectFinished("1/1.m1", reply=Reply("hi", usage=Usage(30, 4)), cost_nano_usd=70)
    found = summary(*asked(), priced)
    assert (found.tokens, found.nano_usd, found.unpriced) == (34, 70, 0)
    assert found.models == ("m",)


def test_after_the_answer_it_is_idle_and_keeps_the_newest_outcome():
    ended = EffectFinished("0/1.c1", "limit", "as far as it came", reason="turns")
    found = summary(*asked(), EffectFinished("1/1.m1", reply=Reply("hi")), ended)
    assert (found.state, found.outcome) == ("idle", "limit")


def test_a_closed_run_is_closed_whatever_was_open():
    assert summary(RunStarted("r"), RunClosed()).state == "closed"


def test_a_later_word_of_the_user_is_no_title():
    told = MessagePosted(Message("forward", "user", "a", "hurry", call_id="0/1.c1", id="i"), 1)
    assert summary(*asked(), told).title == "go"


def test_a_title_has_120_characters():
    assert summary(*asked("x" * 200)).title == "x" * 120


def test_a_summary_is_read_as_it_was_written():
    found = summary(*asked())
    assert decode(encode(found)) == found


def counted(*times):
    """The activity of a run with a row of ten records at each of these times."""
    state = RunState()
    for number, at in enumerate(times):
        events = [RunStarted("r")] if not number else []
        events += [StateChanged(0)] * (10 - len(events))
        fold_next("r", state, Row(10, 10, 1, at, b"", (), b""), events)
    return summary_of(state, 10)


def test_activity_says_how_many_records_there_were_in_each_span_of_the_run():
    found = counted(100.0, 100.5, 101.0, 103.9)
    assert (found.activity, found.activity_span) == ((20, 10, 0, 10), 1.0)


def test_spans_become_longer_and_never_more_than_24():
    found = counted(*(100.0 + n for n in range(24)))
    assert (found.activity, found.activity_span) == ((10,) * 24, 1.0)
    found = counted(*(100.0 + n for n in range(25)))
    assert (found.activity, found.activity_span) == ((20,) * 12 + (10,), 2.0)
    found = counted(*(100.0 + 3_600 * n for n in range(1_000)))
    assert len(found.activity) <= 24
    assert sum(found.activity) == 10_000
    assert found.activity_span * 24 >= 3_600 * 999


def test_a_clock_that_went_back_counts_where_it_was():
    assert counted(100.0, 50.0, -1.0).activity == (30,)


def test_a_time_that_never_comes_is_refused():
    with pytest.raises(JournalCorrupt):
        fold_rows("r", [Row(1, 1, 1, float("inf"), encode_events([RunStarted("r")]), (), b"")], {})


def test_the_oldest_questions_are_told_and_of_more_the_number():
    asks = [EffectStarted(f"1/1.x:q:{n}", QuestionEffect(f"{n}? " + "x" * 200)) for n in range(1, 6)]
    found = summary(*asked(), ACTS, *asks)
    assert (found.asked, [each.id for each in found.questions]) == (
        5,
        ["1/1.x:q:1", "1/1.x:q:2", "1/1.x:q:3"],
    )
    assert {(each.kind, each.agent, len(each.text)) for each in found.questions} == {("question", "a", 120)}


def test_an_approval_names_its_tool_and_a_limit_is_told_apart():
    for asks, kind, tool in (
        (ApprovalEffect("book", "{}", "", "it spends"), "approval", "book"),
        (LimitEffect("more?"), "limit", ""),
    ):
        (question,) = summary(*asked(), EffectStarted("1/1.l1", asks)).questions
        assert (question.kind, question.tool, bool(question.text)) == (kind, tool, True)
