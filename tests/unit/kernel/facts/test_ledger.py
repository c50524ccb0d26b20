"""The ledger alone: what is held, settled, refused and raised."""

import msgspec
import pytest

from antiphon import UNLIMITED, Limits, Usage
from antiphon.kernel.facts import ledger
from antiphon.kernel.facts.events import EffectFinished, ModelEffect
from antiphon.kernel.facts.ledger import NANO, Charge, LedgerScope, charge_of, fits
from antiphon.values.limits import RunLimits
from antiphon.values.model import Reply
from antiphon.values.result import Failure

HELD = ModelEffect("m", "", 100, held_nano_usd=700)
UNPRICED = ModelEffect("m", "", 100)
USAGE = Usage(30, 4, cache_read_tokens=20, reasoning_tokens=3)


def ended(outcome="completed", kind="", **fields):
    failure = Failure(kind, "") if kind else None
    return EffectFinished("1/1.m1", outcome, failure=failure, **fields)


# -- what a call comes to -------------------------------------------------------------------------


def test_a_reply_is_charged_as_billed():
    replied = ended(reply=Reply("hi", usage=USAGE), cost_nano_usd=90)
    assert charge_of(HELD, replied) == Charge(34, 90, True, USAGE)


def test_a_reply_of_unknown_usage_is_charged_its_hold():
    assert charge_of(HELD, ended(reply=Reply("hi", usage=None))) == Charge(100, 700, True, Usage())
    assert charge_of(UNPRICED, ended(reply=Reply("hi", usage=None))) == Charge(100, 0, False, Usage())


def test_a_stored_reply_that_says_nothing_of_usage_was_billed_nothing():
    stored = msgspec.json.decode(b'{"content":"hi"}', type=Reply)
    assert charge_of(HELD, ended(reply=stored)).tokens == 0


def test_tokens_that_were_billed_without_a_reply_are_charged():
    assert charge_of(HELD, ended("failed", "server", usage=USAGE, cost_nano_usd=5)) == Charge(
        34, 5, True, USAGE
    )


@pytest.mark.parametrize("kind", ["disconnected", "timeout"])
def test_a_call_that_may_have_run_is_charged_its_hold(kind):
    assert charge_of(HELD, ended("failed", kind)) == Charge(100, 700, True, Usage())


@pytest.mark.parametrize("outcome", ["interrupted", "cancelled"])
def test_a_call_that_was_cut_off_is_charged_its_hold(outcome):
    assert charge_of(HELD, ended(outcome)) == Charge(100, 700, True, Usage())


@pytest.mark.parametrize("kind", ["quota", "overloaded", "invalid", "auth", "context_length"])
def test_a_call_that_was_refused_is_charged_nothing(kind):
    assert charge_of(HELD, ended("failed", kind)) == Charge(0, 0, True, Usage())


def test_the_smallest_hold_of_money_is_a_price():
    cheap = ModelEffect("m", "", 100, held_nano_usd=1)
    assert charge_of(cheap, ended("interrupted")) == Charge(100, 1, True, Usage())


def test_of_an_unknown_price_the_charge_is_unpriced():
    assert charge_of(UNPRICED, ended(reply=Reply("hi", usage=USAGE))) == Charge(34, 0, False, USAGE)
    assert charge_of(UNPRICED, ended("interrupted")) == Charge(100, 0, False, Usage())
    assert charge_of(UNPRICED, ended("failed", "quota")) == Charge(0, 0, True, Usage())


def test_a_hold_is_replaced_by_what_was_used():
    scopes = LedgerScope(UNLIMITED), LedgerScope(UNLIMITED, tokens=1)
    ledger.hold(scopes, 100, 700)
    assert [(each.held_tokens, each.held_nano_usd) for each in scopes] == [(100, 700)] * 2
    charged = ledger.settle(scopes, HELD, ended(reply=Reply("hi", usage=USAGE), cost_nano_usd=90))
    assert charged.tokens == 34
    for scope, before in zip(scopes, (0, 1), strict=True):
        assert (scope.tokens, scope.held_tokens, scope.overrun_tokens) == (before + 34, 0, 0)
        assert (scope.nano_usd, scope.held_nano_usd, scope.unpriced) == (90, 0, 0)
        assert scope.usage == USAGE


def test_what_is_billed_beyond_the_hold_is_overrun():
    scope = LedgerScope(UNLIMITED, held_tokens=100)
    ledger.settle([scope], UNPRICED, ended(reply=Reply("hi", usage=Usage(100, 1))))
    assert (scope.tokens, scope.overrun_tokens, scope.unpriced) == (101, 1, 1)
    ledger.settle([scope], UNPRICED, ended(reply=Reply("hi", usage=Usage(100))))
    assert (scope.tokens, scope.overrun_tokens, scope.unpriced) == (201, 1, 2)


@pytest.mark.parametrize(
    ("limits", "spent", "stops"),
    [
        (Limits(tokens=200), "201 of 200 tokens", True),
        (Limits(tokens=201), "", False),
        (Limits(tokens=None, usd=1000 / NANO), "$0.0000 of $0.0000", True),
        (Limits(tokens=None, usd=1001 / NANO), "", False),
        (Limits(tokens=200, on_breach="ask"), "", False),
    ],
)
def test_a_bill_beyond_its_hold_that_exceeds_a_limit_lets_nothing_more_start(limits, spent, stops):
    scope = LedgerScope(limits, tokens=50, nano_usd=1, held_tokens=100, held_nano_usd=700)
    ledger.settle([scope], HELD, ended(reply=Reply("hi", usage=Usage(151)), cost_nano_usd=1000))
    reason = ledger.overspent([LedgerScope(UNLIMITED), scope])
    assert bool(reason) is stops
    assert spent in reason
    ledger.raise_limits(scope)
    assert ledger.overspent([scope]) == ""


def test_a_bill_within_its_hold_is_no_overrun():
    scope = LedgerScope(Limits(tokens=10), tokens=50, held_tokens=100, held_nano_usd=700)
    ledger.settle([scope], HELD, ended(reply=Reply("hi", usage=Usage(100)), cost_nano_usd=700))
    assert (scope.overrun_tokens, ledger.overspent([scope])) == (0, "")


def test_a_call_of_no_tokens_leaves_no_trace_but_its_cost():
    scope = LedgerScope(UNLIMITED, held_tokens=100)
    ledger.settle([scope], UNPRICED, ended("failed", "quota"))
    assert scope == LedgerScope(UNLIMITED)


# -- whether there is room ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settled", "held", "asked", "fit"),
    [
        (0, 0, 100, "yes"),
        (0, 0, 101, "never"),
        (40, 20, 40, "yes"),
        (40, 20, 41, "later"),
        (40, 20, 60, "later"),
        (40, 20, 61, "never"),
    ],
)
def test_room_in_tokens_and_in_money(settled, held, asked, fit):
    assert fits(LedgerScope(Limits(tokens=100), settled, held), asked) == fit
    money = Limits(tokens=None, usd=100 / NANO)
    assert fits(LedgerScope(money, nano_usd=settled, held_nano_usd=held), 9_999, asked) == fit


def test_what_has_no_limit_always_fits():
    assert fits(LedgerScope(UNLIMITED, 10**12, 10**12), 10**12, 10**18) == "yes"


def test_the_tighter_of_tokens_and_money_decides():
    limits = Limits(tokens=100, usd=100 / NANO)
    assert fits(LedgerScope(limits, held_tokens=1), 100, 1) == "later"
    assert fits(LedgerScope(limits, held_nano_usd=1), 1, 100) == "later"
    assert fits(LedgerScope(limits, held_tokens=1), 100, 101) == "never"


@pytest.mark.parametrize("usd", [0.57, 0.29, 1.15, 4.35])
def test_a_limit_in_usd_is_not_a_nano_less(usd):
    assert fits(LedgerScope(Limits(usd=usd)), 1, round(usd * NANO)) == "yes"
    assert fits(LedgerScope(Limits(usd=usd)), 1, round(usd * NANO) + 1) == "never"


def test_calls_and_activations_end():
    room = LedgerScope(Limits(calls=2, activations=2), calls=1, activations=1)
    assert ledger.no_more_calls([room]) == ""
    calls = LedgerScope(Limits(calls=1_000), calls=1_000)
    assert ledger.no_more_calls([room, calls]) == "the limit of 1,000 calls is used up"
    born = LedgerScope(Limits(activations=2_000), activations=2_000)
    assert ledger.no_more_calls([born]) == "the limit of 2,000 agent calls is reached"
    assert ledger.no_more_calls([LedgerScope(UNLIMITED, calls=10**9, activations=10**9)]) == ""


def test_the_scopes_of_a_callee():
    outer, own, request = (LedgerScope(Limits(turns=3)),), Limits(turns=1), Limits(turns=9)
    run = (ledger.run_scope(RunLimits(calls=5)),)
    assert ledger.call_scopes(None, outer, request, run) == outer
    assert ledger.call_scopes(own, outer, request, run) == (LedgerScope(own), *outer)
    assert ledger.call_scopes(None, (), request, ()) == (LedgerScope(request),)
    assert ledger.call_scopes(None, (), request, run) == (LedgerScope(request), *run)


# -- raising, and waiting for people --------------------------------------------------------------


def test_a_limit_is_raised_by_what_it_was_at_first():
    first = Limits(turns=3, calls=4, tokens=5, usd=0.5, timeout_seconds=2.0, depth=7, inbox=8)
    scope = LedgerScope(first)
    ledger.raise_limits(scope)
    ledger.raise_limits(scope)
    assert scope.limits == Limits(
        turns=9, calls=12, tokens=15, usd=1.5, timeout_seconds=6.0, depth=7, inbox=8
    )
    assert scope.first_limits == first


def test_what_has_no_limit_keeps_none():
    scope = LedgerScope(UNLIMITED)
    ledger.raise_limits(scope)
    assert scope.limits == UNLIMITED


def test_people_are_waited_for_once_however_many_questions_are_open():
    scope = LedgerScope(UNLIMITED)
    assert ledger.waited(scope, 5.0) == 0.0
    ledger.asked([scope], 10.0)
    ledger.asked([scope], 12.0)
    assert ledger.waited(scope, 15.0) == 5.0
    ledger.answered([scope], 16.0)
    assert ledger.waited(scope, 18.0) == 8.0
    ledger.answered([scope], 20.0)
    assert (ledger.waited(scope, 99.0), scope.human_wait_seconds, scope.open_questions) == (10.0, 10.0, 0)
    ledger.asked([scope], 30.0)
    ledger.answered([scope], 31.5)
    assert ledger.waited(scope, 99.0) == 11.5


def test_a_clock_that_went_back_waits_for_no_time():
    scope = LedgerScope(UNLIMITED)
    ledger.asked([scope], 10.0)
    ledger.answered([scope], 9.0)
    assert scope.human_wait_seconds == 0.0
