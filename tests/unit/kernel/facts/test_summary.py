"""The summary of a run: one line of the list, from the fold alone."""

from antiphon import Usage
from antiphon.kernel.facts.events import (
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
    TurnStarted,
)
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.facts.summary import RunSummary, decode, encode, summary_of
from antiphon.kernel.run.commands import AskAgent, request
from antiphon.values.message import Message
from antiphon.values.model import Reply


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


def test_a_run_that_nobody_asked_anything_is_idle():
    assert summary(RunStarted("r")) == RunSummary(1)


def test_a_run_at_work_is_open_and_says_who_was_asked_what():
    assert summary(*asked()) == RunSummary(6, "a", "go", "open")


def test_a_run_in_which_a_person_must_answer_is_waiting():
    for asks in (ApprovalEffect("t", "{}", ""), QuestionEffect("?"), LimitEffect("more?")):
        assert summary(*asked(), EffectStarted("1/1.l1", asks)).state == "waiting"


def test_what_was_used_is_input_and_output_and_what_has_no_price_is_counted():
    replied = EffectFinished("1/1.m1", reply=Reply("hi", usage=Usage(30, 4)))
    found = summary(*asked(), replied)
    assert (found.tokens, found.nano_usd, found.unpriced) == (34, 0, 1)
    priced = EffectFinished("1/1.m1", reply=Reply("hi", usage=Usage(30, 4)), cost_nano_usd=70)
    found = summary(*asked(), priced)
    assert (found.tokens, found.nano_usd, found.unpriced) == (34, 70, 0)


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
