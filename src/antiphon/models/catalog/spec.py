"""What is known of a model, and what a call of it costs."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from antiphon.values.model import Usage


class Tier(Struct, frozen=True, omit_defaults=True):
    """The prices of a whole request that has more than `above` input tokens; None: as below it."""

    above: int
    input: Decimal | None = None
    output: Decimal | None = None
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None
    reasoning: Decimal | None = None


class Prices(Struct, frozen=True, omit_defaults=True):
    """USD per million tokens, exact; None is a price that is not known, which is never zero.

    cached_input: of input tokens read from the provider's cache. cache_write: of those written to it.
    reasoning: of output tokens spent on reasoning. tiers: by rising `above`.
    """

    input: Decimal | None = None
    output: Decimal | None = None
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None
    reasoning: Decimal | None = None
    tiers: tuple[Tier, ...] = ()


class ModelSpec(Struct, frozen=True, omit_defaults=True):
    """What the catalog knows of one model at one provider; None, or an empty tuple, is not known.

    context_window, max_input, max_output: tokens.
    tools, reasoning, structured_output: whether the model can do it.
    modalities, output_modalities: of "text", "image", "audio", "video", "pdf".
    """

    id: str
    provider: str
    aliases: tuple[str, ...] = ()
    context_window: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    structured_output: bool | None = None
    modalities: tuple[str, ...] = ()
    output_modalities: tuple[str, ...] = ()
    prices: Prices = Prices()

    @property
    def input_limit(self) -> int | None:
        """Tokens a request may hold: `max_input` where there is one, else the whole window."""
        return self.context_window if self.max_input is None else self.max_input


def cost(usage: Usage, spec: ModelSpec | None) -> Decimal | None:
    """USD for **one** call, exact; None when a price it needs is not known.

    One call, because a tier is chosen by the input of a request: add the costs, not the usages.

    Cached input without a price of its own costs as much as input, reasoning as much as output, and a
    cache write as much as input.
    """
    if spec is None:
        return None
    prices = spec.prices
    price_in, price_out = prices.input, prices.output
    cached, written, thought = prices.cached_input, prices.cache_write, prices.reasoning
    for tier in prices.tiers:
        if usage.input_tokens > tier.above:
            price_in, price_out = _or(tier.input, price_in), _or(tier.output, price_out)
            cached, written = _or(tier.cached_input, cached), _or(tier.cache_write, written)
            thought = _or(tier.reasoning, thought)
    reused = min(usage.cache_read_tokens, usage.input_tokens)
    stored = min(usage.cache_write_tokens, usage.input_tokens - reused)
    thinking = min(usage.reasoning_tokens, usage.output_tokens)
    total = Decimal()
    for tokens, price in (
        (usage.input_tokens - reused - stored, price_in),
        (reused, _or(cached, price_in)),
        (stored, _or(written, price_in)),
        (usage.output_tokens - thinking, price_out),
        (thinking, _or(thought, price_out)),
    ):
        if not tokens:
            continue
        if price is None:
            return None
        total += tokens * price
    return total.scaleb(-6)


def _or(price: Decimal | None, otherwise: Decimal | None) -> Decimal | None:
    return otherwise if price is None else price
