"""Ledger: what a request, or an agent's part of it, may use and has used.

A `LedgerScope` counts for the whole call tree below. Before an effect starts its worst case is held in
every scope that it stands on; when it ends the hold is given back and what was used is settled. So
`settled + held <= limit` is true whenever something starts, however many effects run at once. Only a
provider that bills more than was held can bring a scope beyond its limit, by that overrun.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from antiphon.kernel.facts.events import EffectFinished, ModelEffect
from antiphon.values.limits import UNLIMITED, Limits, RunLimits
from antiphon.values.model import NO_USAGE, Usage

NANO = 1_000_000_000
"""Nano-USD in a US dollar: money is counted in whole ones of these."""


class Overrun(Struct, frozen=True, gc=False):
    """A model call that was billed beyond its hold."""

    tokens: int
    held_tokens: int
    nano_usd: int
    held_nano_usd: int


class LedgerScope(Struct):
    """The accounts of one scope."""

    limits: Limits
    tokens: int = 0
    """Settled: all that was billed, and what was held where nobody said."""
    held_tokens: int = 0
    overrun_tokens: int = 0
    """What of `tokens` was billed beyond what was held."""
    nano_usd: int = 0
    """Settled, as `tokens`."""
    held_nano_usd: int = 0
    overrun: Overrun | None = None
    """The last call that was billed beyond its hold."""
    unpriced: int = 0
    """Model calls whose price is unknown."""
    calls: int = 0
    """Tool and agent calls."""
    activations: int = 0
    usage: Usage = NO_USAGE
    """What the providers billed, in all."""
    first_limits: Limits | None = None
    """What it began with, once the limits were raised."""
    human_wait_seconds: float = 0.0
    """How long people were waited for; counts for no limit."""
    open_questions: int = 0
    asked_at: float = 0.0
    """Since when there are any, Unix seconds."""


Fit = Literal["yes", "later", "never"]


def fits(scope: LedgerScope, tokens: int, nano_usd: int = 0) -> Fit:
    """Whether a hold fits now, may fit once others settle, or never will."""
    limits = scope.limits
    limit = limits.tokens
    fit: Fit = "yes"
    if limit is not None and scope.tokens + scope.held_tokens + tokens > limit:
        if scope.tokens + tokens > limit:
            return "never"
        fit = "later"
    if limits.usd is not None:
        money = round(limits.usd * NANO)
        if scope.nano_usd + nano_usd > money:
            return "never"
        if scope.nano_usd + scope.held_nano_usd + nano_usd > money:
            fit = "later"
    return fit


def hold(scopes: Iterable[LedgerScope], tokens: int, nano_usd: int) -> None:
    """Reserve the worst case of a model call."""
    for scope in scopes:
        scope.held_tokens += tokens
        scope.held_nano_usd += nano_usd


class Charge(Struct, frozen=True, gc=False):
    """What a model call came to."""

    tokens: int
    """As they count: input that was read from the provider's cache at its share."""
    nano_usd: int
    priced: bool
    """Its price is known."""
    usage: Usage
    """What is known of it."""
    exceeds_hold: bool = False
    """A provider billed more than was held for it."""


MAY_HAVE_RUN = frozenset({"disconnected", "timeout"})
"""Failures after which the provider may bill all the same."""


def charge_of(detail: ModelEffect, event: EffectFinished) -> Charge:
    """What is settled for a model call: its bill; without one the hold, if it may have run.

    The one rule, for the ledger and for every reader.
    """
    reply = event.reply
    usage = reply.usage if reply is not None else event.usage
    if usage is not None:
        tokens = usage.input_tokens + usage.output_tokens
        if usage.cache_read_tokens and detail.cached_share != 1.0:
            cached = min(usage.cache_read_tokens, usage.input_tokens)
            tokens -= cached - round(cached * detail.cached_share)
    else:
        ran = reply is not None or event.outcome in ("interrupted", "cancelled")
        may_have_run = ran or (event.failure is not None and event.failure.kind in MAY_HAVE_RUN)
        tokens = detail.held_tokens if may_have_run else 0
    cost, held = event.cost_nano_usd, detail.held_nano_usd
    if cost is not None:
        exceeds = cost > held or tokens > detail.held_tokens
        return Charge(tokens, cost, True, usage or NO_USAGE, exceeds)
    priced = not tokens or held > 0
    return Charge(tokens, held if tokens else 0, priced, usage or NO_USAGE, tokens > detail.held_tokens)


def settle(scopes: Collection[LedgerScope], detail: ModelEffect, event: EffectFinished) -> Charge:
    """Replace a hold by what was used, all of it; what exceeds the hold is also noted as overrun."""
    charged = charge_of(detail, event)
    tokens, held = charged.tokens, detail.held_tokens
    for scope in scopes:
        scope.held_tokens -= held
        scope.held_nano_usd -= detail.held_nano_usd
        scope.nano_usd += charged.nano_usd
        if tokens or charged.usage.input_tokens:
            scope.tokens += tokens
            scope.usage = scope.usage + charged.usage
            scope.unpriced += not charged.priced
    if charged.exceeds_hold:
        overrun = Overrun(tokens, held, charged.nano_usd, detail.held_nano_usd)
        for scope in scopes:
            scope.overrun, scope.overrun_tokens = overrun, scope.overrun_tokens + max(tokens - held, 0)
    return charged


def overspent(scopes: Iterable[LedgerScope]) -> str:
    """Why nothing more may start on these scopes: a call was billed beyond its hold, and so a scope that
    stops at its limits is beyond one. Empty when something may."""
    for scope in scopes:
        bill, limits = scope.overrun, scope.limits
        if bill is None or limits.on_breach != "stop":
            continue
        if limits.tokens is not None and scope.tokens > limits.tokens:
            return (
                f"the budget is used up: {scope.tokens:,} of {limits.tokens:,} tokens are spent; "
                f"a call for which {bill.held_tokens:,} were held was billed {bill.tokens:,}"
            )
        if limits.usd is not None and scope.nano_usd > round(limits.usd * NANO):
            return (
                f"the budget is used up: ${scope.nano_usd / NANO:.4f} of ${limits.usd:.4f} are spent; "
                f"a call for which ${bill.held_nano_usd / NANO:.4f} were held was billed "
                f"${bill.nano_usd / NANO:.4f}"
            )
    return ""


def no_more_calls(scopes: Iterable[LedgerScope], *, of_agents: bool = True) -> str:
    """Why nothing further may be called on these scopes, or no further agent; empty when it may."""
    for scope in scopes:
        limits = scope.limits
        if limits.calls is not None and scope.calls >= limits.calls:
            return f"the limit of {limits.calls:,} calls is used up"
        if of_agents and limits.activations is not None and scope.activations >= limits.activations:
            return f"the limit of {limits.activations:,} agent calls is reached"
    return ""


def call_scopes(
    own: Limits | None, outer: tuple[LedgerScope, ...], request: Limits, run: tuple[LedgerScope, ...]
) -> tuple[LedgerScope, ...]:
    """The scopes of a callee, innermost first: its own if it has limits; its caller's, or for a request of
    the user a new one within the run's."""
    around = outer or (LedgerScope(request), *run)
    return (LedgerScope(own), *around) if own is not None else around


def run_scope(limits: RunLimits) -> LedgerScope:
    """The outermost scope, on which all requests of a run stand."""
    return LedgerScope(
        msgspec.structs.replace(
            UNLIMITED, calls=limits.calls, tokens=limits.tokens, activations=limits.activations,
            usd=limits.usd, on_breach=limits.on_breach,
        )
    )  # fmt: skip


def limit_run(scopes: tuple[LedgerScope, ...], limits: RunLimits) -> None:
    """From now on the scope of a run has these limits. Raises ValueError for a run that has no such scope."""
    (scope,) = scopes
    scope.limits, scope.first_limits = run_scope(limits).limits, None


def raised(limits: Limits, first: Limits) -> Limits:
    """Limits raised by as much as they were at first: turns, calls, tokens, USD and seconds."""
    return msgspec.structs.replace(
        limits,
        turns=_sum(limits.turns, first.turns),
        calls=_sum(limits.calls, first.calls),
        tokens=_sum(limits.tokens, first.tokens),
        usd=_sum(limits.usd, first.usd),
        timeout_seconds=_sum(limits.timeout_seconds, first.timeout_seconds),
    )


_Amount = TypeVar("_Amount", int, float)


def _sum(limit: _Amount | None, first: _Amount | None) -> _Amount | None:
    return None if limit is None or first is None else limit + first


def raise_limits(scope: LedgerScope) -> None:
    """Somebody allowed as much again."""
    scope.first_limits = scope.first_limits or scope.limits
    scope.limits = raised(scope.limits, scope.first_limits)


def asked(scopes: Iterable[LedgerScope], at: float) -> None:
    """A person is waited for from now on."""
    for scope in scopes:
        scope.asked_at = scope.asked_at if scope.open_questions else at
        scope.open_questions += 1


def answered(scopes: Iterable[LedgerScope], at: float) -> None:
    """One question is closed; time in which any was open is counted once."""
    for scope in scopes:
        scope.open_questions -= 1
        if not scope.open_questions:
            scope.human_wait_seconds += max(at - scope.asked_at, 0.0)


def waited(scope: LedgerScope, at: float) -> float:
    """Seconds that people were waited for so far."""
    return scope.human_wait_seconds + (at - scope.asked_at if scope.open_questions else 0.0)
