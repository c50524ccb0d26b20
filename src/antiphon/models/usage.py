"""What models were asked and what it cost, by model; how much of a context window is left.

A design document calls this the usage service.
"""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from antiphon.models.catalog import Catalog, ModelSpec, cost
from antiphon.values.model import Usage

UNKNOWN = "unknown"
"""The name calls are counted under whose model nobody named."""


class ModelCalls(Struct):
    """The calls of one model. `unpriced`: those whose cost is not known and so not in `cost`, in USD."""

    calls: int = 0
    usage: Usage = Usage()
    cost: Decimal = Decimal()
    unpriced: int = 0

    def add(self, usage: Usage, price: Decimal | None) -> None:
        """Count one call."""
        self.calls += 1
        self.usage += usage
        if price is None:
            self.unpriced += 1
        else:
            self.cost += price


class UsageLedger:
    """Counts calls, tokens and USD by model.

    catalog: where prices and windows are looked up; without one every call is unpriced.
    """

    def __init__(self, catalog: Catalog | None = None) -> None:
        self._catalog = catalog
        self.by_model: dict[str, ModelCalls] = {}
        self.last: Usage | None = None
        self.last_model = ""

    def record(self, model: str | None, usage: Usage | None) -> None:
        """Count one call of `model`. Usage that nobody reported (None) is not counted and clears `last`."""
        self.last, self.last_model = usage, model or UNKNOWN
        if usage is not None:
            price = cost(usage, self._spec(self.last_model))
            self.by_model.setdefault(self.last_model, ModelCalls()).add(usage, price)

    @property
    def total_calls(self) -> int:
        """All calls counted."""
        return sum(one.calls for one in self.by_model.values())

    @property
    def total(self) -> Usage:
        """The tokens of all calls; `total.total` is input and output together."""
        return sum((one.usage for one in self.by_model.values()), Usage())

    @property
    def cost(self) -> Decimal | None:
        """USD of all calls; None when one of them has no known price. `known_cost` is the rest then."""
        return None if any(one.unpriced for one in self.by_model.values()) else self.known_cost

    @property
    def known_cost(self) -> Decimal:
        """USD of the calls whose price is known: no more than a lower bound when `cost` is None."""
        return sum((one.cost for one in self.by_model.values()), Decimal())

    def context_left(self) -> int | None:
        """Percent of the window of the last call's model that its usage leaves; None when not known."""
        return context_left(self.last, self._spec(self.last_model))

    def _spec(self, model: str) -> ModelSpec | None:
        return None if self._catalog is None else self._catalog.find(model)


def context_left(usage: Usage | None, spec: ModelSpec | None) -> int | None:
    """Whole percent of the window left after `usage`, 0 to 100, halves rounded up.

    The window is the spec's `max_input`, else its `context_window`. None without usage or window.
    """
    limit = spec.input_limit if spec is not None else None
    if usage is None or not limit:
        return None
    # round() would round halves to even, and floats would miss some of them.
    left = (200 * (limit - usage.total) + limit) // (2 * limit)
    return max(0, min(100, left))
