"""Limits: what a request may use, held before it is spent.

Limits are kept for one request, or one agent's part of it, over the whole call tree below. Before an
effect starts its worst case is held in every scope that it stands on; when it ends the hold is given back
and what was used is settled. So `spent + held <= limit` is true whenever something starts, however many
effects run at once.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from antiphon.errors import UserError
from antiphon.values.fields import AtLeastZero


class Limits(AtLeastZero, frozen=True, gc=False, omit_defaults=True):
    """What one request may use, its whole call tree included. None lifts a limit, 0 allows nothing.

    Raises UserError for a limit that is no finite number, or below 0.
    """

    depth: int | None = 256
    """Nested agent calls."""
    activations: int | None = 1_000
    """Agents started."""
    turns: int | None = 200
    """Turns of one activation."""
    calls: int | None = 5_000
    """Tool and agent calls."""
    tokens: int | None = 2_000_000
    """Input and output tokens, as billed."""
    inbox: int | None = 100
    """Unread messages of one activation; the newest is refused beyond it."""
    usd: float | None = None
    """What the tokens cost, in US dollars; a model whose price is unknown is then refused."""
    timeout_seconds: float | None = None
    """From the request's start, without the time that people were waited for."""
    on_breach: Literal["stop", "ask", "degrade", "handoff"] = "stop"
    """What happens when turns, tokens or USD do not suffice for the next model request: `stop` ends the
    activation; `ask` asks the user for as much again; `degrade` goes on with the cheaper model, `handoff`
    with the agent that `breach_target` names. What cannot be done becomes `stop`; the other limits always
    stop."""
    breach_target: str = ""
    """Name of that model or agent."""
    cached_share: float | None = None
    """What part of a token one counts for `tokens` that was read from the provider's cache, 0 to 1. None: the
    part of the input's price that it costs, and 1 where no price is known. Of limits that stand within one
    another the largest part binds."""
    answer_seconds: float | None = None
    """How long people have for one answer: to a question, an approval, or a limit to be raised. Without one
    by then it ends with `limit`: the agent is told, the tool is not run, the limit stays."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cached_share is not None and self.cached_share > 1:
            raise UserError(
                f"Limits(cached_share=...) is a part of a token, 0 to 1; got {self.cached_share:g}"
            )


NUMBERS = (
    "depth",
    "activations",
    "turns",
    "calls",
    "tokens",
    "inbox",
    "usd",
    "timeout_seconds",
    "answer_seconds",
)
DEFAULTS = Limits()
UNLIMITED = Limits(None, None, None, None, None, None)


class RunLimits(AtLeastZero, frozen=True, gc=False, omit_defaults=True):
    """What all requests of a run may use together, beside what `Limits` say of each. None: no such limit.

    Raises UserError as Limits do.
    """

    tokens: int | None = None
    usd: float | None = None
    calls: int | None = None
    activations: int | None = None
    """As in `Limits`. A request that comes when `calls` or `activations` are used up ends with `limit`."""
    on_breach: Literal["stop", "ask"] = "stop"
    """As in `Limits`."""


def tightest(one: Limits | None, other: Limits | None) -> Limits | None:
    """Of each limit the lower one, which for `cached_share` is the larger part."""
    if one is None or other is None:
        return one or other
    least = {
        name: min(
            filter(lambda each: each is not None, (getattr(one, name), getattr(other, name))), default=None
        )
        for name in NUMBERS
    }
    shares = [each.cached_share for each in (one, other) if each.cached_share is not None]
    least["cached_share"] = max(shares, default=None)
    return msgspec.structs.replace(one, **least)


class OutputLimits(AtLeastZero, frozen=True, gc=False, omit_defaults=True):
    """How much of tool results a model is shown. None lifts a limit. Raises UserError as Limits do."""

    message: int | None = 51_200
    """Bytes of one result; more is cut at a line end and can be read by its handle."""
    total: int | None = 100_000
    """Tokens (UTF-8 bytes / 4) of all results of a conversation; the oldest go first."""
    kept: int = 64_000_000
    """Bytes of cut results that a run keeps for reading; the oldest go first."""


OUTPUTS = OutputLimits()
