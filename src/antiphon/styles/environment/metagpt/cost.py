"""CostManager: what a team's model calls cost so far, and whether the investment is used up."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from antiphon import Result
from antiphon.errors import AntiphonError, UserError

Price = Mapping[str, float | Decimal]
"""USD per 1000 tokens, under `prompt` and `completion`."""
_PER = 1000


class NoMoneyException(AntiphonError):
    """The budget is used up: `amount` USD are spent of `budget`. Invest more, then run again.

    why: what ran out, when it was not the investment. result: of the run, None outside of one.
    """

    def __init__(
        self, amount: float, budget: float | None, why: str = "", result: Result | None = None
    ) -> None:
        super().__init__(
            why or f"Insufficient funds: {amount} USD are spent of {budget} USD; invest more to go on"
        )
        self.amount, self.budget, self.result = amount, budget, result


class Costs(NamedTuple):
    """Totals so far: tokens, and USD."""

    total_prompt_tokens: int
    total_completion_tokens: int
    total_cost: float
    total_budget: float


class CostManager:
    """Adds up tokens and USD. Sums are exact: prices are taken as they are written.

    max_budget: USD that may be spent, None for no limit. total_budget: USD invested so far.
    token_costs: the price of each model. Tokens of a model without one are counted and cost
    nothing; `unpriced` says how many there were of which model, so the true cost is then unknown.
    """

    def __init__(
        self,
        max_budget: float | None = 10.0,
        token_costs: Mapping[str, Price] | None = None,
        *,
        total_budget: float = 0.0,
        total_prompt_tokens: int = 0,
        total_completion_tokens: int = 0,
        total_cost: float = 0.0,
    ) -> None:
        self.max_budget = max_budget
        self.total_budget = total_budget
        self.token_costs = dict(token_costs or {})
        self.total_prompt_tokens = total_prompt_tokens
        self.total_completion_tokens = total_completion_tokens
        self.unpriced: dict[str, int] = {}
        self._spent = _exact(total_cost)

    @property
    def total_cost(self) -> float:
        """USD spent so far."""
        return float(self._spent)

    def update_cost(self, prompt_tokens: int, completion_tokens: int, model: str) -> None:
        """Add one model call. Raises UserError for tokens below zero, or a price without both parts."""
        if prompt_tokens < 0 or completion_tokens < 0:
            raise UserError(f"{model} cannot have used {prompt_tokens} + {completion_tokens} tokens")
        price = self.token_costs.get(model)
        if price is None:
            used = prompt_tokens + completion_tokens
            self.unpriced[model] = self.unpriced.get(model, 0) + used
        elif price.keys() >= {"prompt", "completion"}:
            self._spent += prompt_tokens * _exact(price["prompt"]) / _PER
            self._spent += completion_tokens * _exact(price["completion"]) / _PER
        else:
            given = ", ".join(price) or "(none)"
            raise UserError(f"The price of {model} has {given}; it needs prompt and completion")
        self.total_prompt_tokens += prompt_tokens
        self.total_completion_tokens += completion_tokens

    def add(self, prompt_tokens: int, completion_tokens: int, spent: float, before: float = 0.0) -> None:
        """Add what a run used: tokens, and the USD that it has `spent` beyond those it had `before`."""
        self.total_prompt_tokens += prompt_tokens
        self.total_completion_tokens += completion_tokens
        self._spent += _exact(spent) - _exact(before)

    def check_balance(self) -> None:
        """Raises NoMoneyException once `total_cost` has reached `max_budget`."""
        if self.max_budget is not None and self._spent >= _exact(self.max_budget):
            raise NoMoneyException(self.total_cost, self.max_budget)

    def get_costs(self) -> Costs:
        """All totals at once."""
        return Costs(
            self.total_prompt_tokens, self.total_completion_tokens, self.total_cost, self.total_budget
        )


def _exact(amount: float | Decimal) -> Decimal:
    return amount if isinstance(amount, Decimal) else Decimal(str(amount))
