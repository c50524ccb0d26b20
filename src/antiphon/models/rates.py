"""What a model costs and holds, as the ledger needs it: whole nano-USD, and tokens.

A model may say it itself (`window`, `prices`); else the catalog is asked, with the file that
ANTIPHON_MODELS names on top. Each name is looked up once per process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from antiphon.models.catalog import Catalog, ModelSpec, Prices, cost, load_catalog
from antiphon.values.model import Model, Usage

_NANO_PER_TOKEN = 1_000
"""A dollar per million tokens is a thousand nano-USD per token."""
_FREE = ("script", "local")
"""Models that run in this process, by name or prefix: nobody bills, and no catalog need be read."""


class Rates(Struct, frozen=True, eq=False):
    """window: tokens of one call, None when unknown. max_input_price, max_output_price: of a token, at most,
    in nano-USD; bill: what some usage costs, in whole nano-USD. None when the price is unknown.
    cached_share: the part of an input token's price, at most, that one costs that is read from the provider's
    cache; 1 when it is unknown.
    """

    window: int | None = None
    max_input_price: float | None = None
    max_output_price: float | None = None
    bill: Callable[[Usage], int | None] | None = None
    cached_share: float = 1.0

    @property
    def dearest_token(self) -> float | None:
        """What any token costs at most, in USD; None when a price is unknown."""
        if self.max_input_price is None or self.max_output_price is None:
            return None
        return max(self.max_input_price, self.max_output_price) / 1e9


def rates_of(model: Model, env: Mapping[str, str]) -> Rates:
    """What is known of a model: its own word on `window` and `prices` first, then the catalog's.

    Raises `ConfigError` when the file that ANTIPHON_MODELS names is wrong.
    """
    known = _known(model.name, env.get("ANTIPHON_MODELS", "").strip())
    prices: Any = getattr(model, "prices", None)
    if isinstance(prices, Prices):
        known = _rates(ModelSpec(model.name, "", context_window=known.window, prices=prices))
    window = getattr(model, "window", None)
    return replace(known, window=window) if window is not None else known


def named_rates(name: str, env: Mapping[str, str]) -> Rates:
    """What the catalog knows of a model string. Raises as `rates_of`."""
    return _known(name.strip(), env.get("ANTIPHON_MODELS", "").strip())


@functools.lru_cache(maxsize=1024)
def _known(name: str, path: str) -> Rates:
    prefix = name.partition(":")[0]
    if not path and prefix in _FREE:
        return _NOTHING
    spec = _catalog(path).find(name)
    return _rates(spec) if spec is not None else Rates()


@functools.lru_cache(maxsize=8)
def _catalog(path: str) -> Catalog:
    return load_catalog(path or None, {})


def _rates(spec: ModelSpec) -> Rates:
    prices = spec.prices
    of_input = [prices.input, prices.cached_input, prices.cache_write]
    of_output = [prices.output, prices.reasoning]
    for tier in prices.tiers:
        of_input += [tier.input, tier.cached_input, tier.cache_write]
        of_output += [tier.output, tier.reasoning]
    return Rates(
        spec.input_limit,
        _dearest(of_input) if prices.input is not None else None,
        _dearest(of_output) if prices.output is not None else None,
        functools.partial(_bill, spec),
        _cached_share(prices),
    )


def _cached_share(prices: Prices) -> float:
    shares = []
    for whole, cached in [(prices.input, prices.cached_input)] + [
        (tier.input, tier.cached_input) for tier in prices.tiers
    ]:
        whole, cached = whole or prices.input, prices.cached_input if cached is None else cached
        shares.append(cached / whole if whole and cached is not None else Decimal(1))
    return float(min(max(shares), Decimal(1)))


def _dearest(prices: list[Decimal | None]) -> float:
    return float(max(price for price in prices if price is not None) * _NANO_PER_TOKEN)


def _bill(spec: ModelSpec, usage: Usage) -> int | None:
    found = cost(usage, spec)
    return None if found is None else int(found.scaleb(9).to_integral_value(ROUND_HALF_UP))


def _nothing(usage: Usage) -> int:
    return 0


_NOTHING = Rates(None, 0.0, 0.0, _nothing)
