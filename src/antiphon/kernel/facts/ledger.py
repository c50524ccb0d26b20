"""Ledger: the accounts of one request, or of one agent's part of it, over the whole call tree below.

Before an effect starts its worst case is held in every scope it stands in; when it ends the
hold is given back and what was used is spent. So `spent + held <= limit` is true at every prefix
of every journal, however many effects run at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from antiphon.values.limits import Limits
from antiphon.values.model import Usage

NANO = 1_000_000_000
"""Nano-USD in a US dollar: money is counted in whole ones of these."""


class Scope(Struct):
    """The books of one scope.

    first: the limits that it began with, once they were raised.
    spent, reserved: nano-USD, as tokens and held are tokens. unpriced: model calls of unknown price.
    people: seconds that people were waited for; asking: questions now open, since `asked`.
    overrun: tokens that a provider billed beyond what was held; outside the invariant.
    usage: what the providers billed, in all.
    """

    limits: Limits
    tokens: int = 0
    held: int = 0
    calls: int = 0
    activations: int = 0
    overrun: int = 0
    spent: int = 0
    reserved: int = 0
    unpriced: int = 0
    people: float = 0.0
    asking: int = 0
    asked: float = 0.0
    usage: Usage = Usage()
    first: Limits | None = None


Fit = Literal["yes", "later", "never"]


def fits(scope: Scope, tokens: int, cost: int = 0) -> Fit:
    """Whether a hold of `tokens` and `cost` fits now, may fit once others settle, or never will."""
    limits = scope.limits
    limit = limits.tokens
    fit: Fit = "yes"
    if limit is not None and scope.tokens + scope.held + tokens > limit:
        if scope.tokens + tokens > limit:
            return "never"
        fit = "later"
    if limits.usd is not None:
        money = int(limits.usd * NANO)
        if scope.spent + cost > money:
            return "never"
        if scope.spent + scope.reserved + cost > money:
            fit = "later"
    return fit


def no_more_calls(scopes: Iterable[Scope]) -> str:
    """Why no further agent may be started on these books; empty when one may."""
    for scope in scopes:
        limits = scope.limits
        if limits.calls is not None and scope.calls >= limits.calls:
            return f"the limit of {limits.calls:,} calls is used up"
        if limits.activations is not None and scope.activations >= limits.activations:
            return f"the limit of {limits.activations:,} agent calls is reached"
    return ""


def settle(scope: Scope, held: int, used: int) -> None:
    """Give a hold back and book what was used; what exceeds the hold is overrun."""
    scope.held -= held
    scope.tokens += min(used, held)
    scope.overrun += max(used - held, 0)


def pay(scope: Scope, reserved: int, cost: int) -> None:
    """Give back what was reserved and book what it cost, both in nano-USD."""
    scope.reserved -= reserved
    scope.spent += cost


def books(own: Limits | None, outer: tuple[Scope, ...], request: Limits) -> tuple[Scope, ...]:
    """The books of a callee, innermost first: its own if it has limits, its caller's or the request's."""
    around = outer or (Scope(request),)
    return (Scope(own), *around) if own is not None else around


def more(limits: Limits, first: Limits) -> Limits:
    """Limits raised by as much as they were at first: turns, calls, tokens, USD and seconds."""
    return msgspec.structs.replace(
        limits,
        turns=_sum(limits.turns, first.turns),
        calls=_sum(limits.calls, first.calls),
        tokens=_sum(limits.tokens, first.tokens),
        usd=_sum(limits.usd, first.usd),
        seconds=_sum(limits.seconds, first.seconds),
    )


_Amount = TypeVar("_Amount", int, float)


def _sum(limit: _Amount | None, first: _Amount | None) -> _Amount | None:
    return None if limit is None or first is None else limit + first


def raise_limits(scope: Scope) -> None:
    """Somebody allowed as much again."""
    scope.first = scope.first or scope.limits
    scope.limits = more(scope.limits, scope.first)


def asked(scope: Scope, at: float) -> None:
    """A person is waited for from now on."""
    scope.asked = scope.asked if scope.asking else at
    scope.asking += 1


def answered(scope: Scope, at: float) -> None:
    """One question is closed; time in which any was open is counted once."""
    scope.asking -= 1
    if not scope.asking:
        scope.people += max(at - scope.asked, 0.0)


def waited(scope: Scope, at: float) -> float:
    """Seconds that people were waited for so far."""
    return scope.people + (at - scope.asked if scope.asking else 0.0)
