"""The audit's own books: what a scope may use, has used, and may still have to pay."""

from __future__ import annotations

from msgspec import Struct

from antiphon.kernel.facts.events import EffectFinished, EffectStarted
from antiphon.kernel.facts.ledger import NANO, more
from antiphon.values.limits import Limits


class Books(Struct):
    limits: Limits
    parent: int = 0
    spent: int = 0
    held: int = 0
    paid: int = 0
    reserved: int = 0
    calls: int = 0
    activations: int = 0
    first: Limits | None = None

    def hold(self, started: EffectStarted) -> None:
        """A model call began."""
        self.held += started.hold
        self.reserved += started.cost

    def settle(self, started: EffectStarted, event: EffectFinished) -> None:
        """A model call ended."""
        used = _used(started, event)
        self.held -= started.hold
        self.spent += min(used, started.hold)
        self.reserved -= started.cost
        self.paid += _paid(started, event, used)

    def raised(self) -> None:
        """Somebody allowed as much again."""
        self.first = self.first or self.limits
        self.limits = more(self.limits, self.first)

    def excess(self) -> str:
        """What is beyond the limits, if anything."""
        usd = None if self.limits.usd is None else int(self.limits.usd * NANO)
        for what, used, limit in (
            ("nano-USD", self.paid + self.reserved, usd),
            ("tokens", self.spent + self.held, self.limits.tokens),
            ("calls", self.calls, self.limits.calls),
            ("activations", self.activations, self.limits.activations),
        ):
            if limit is not None and used > limit:
                return f"{used:,} {what} spent and held, {limit:,} allowed"
        if self.held < 0 or self.reserved < 0:
            return f"{self.held:,} tokens and {self.reserved:,} nano-USD held"
        return ""


def _paid(started: EffectStarted, event: EffectFinished, used: int) -> int:
    """Nano-USD of a model call, without what was billed beyond the hold."""
    return min(event.cost, started.cost) if event.cost is not None else started.cost if used else 0


def _used(started: EffectStarted, event: EffectFinished) -> int:
    """Tokens of a model call: as billed; all that was held where a bill may come that nobody saw."""
    usage = event.reply.usage if event.reply is not None else event.usage
    if usage is not None:
        return usage.input + usage.output
    unseen = event.outcome in ("interrupted", "cancelled") or event.why.startswith(("cut", "timeout"))
    return started.hold if unseen else 0
