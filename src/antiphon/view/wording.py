"""Words for what a run is made of, the same in a terminal and in a notebook: amounts, names, cut texts."""

from __future__ import annotations

import re

import msgspec

from antiphon.kernel.facts.ledger import NANO
from antiphon.kernel.facts.records import ReplyDelta
from antiphon.values.codec import visible
from antiphon.values.model import Usage
from antiphon.view.nodes import Cost, EffectNode, UsageTotals

_SPACES = re.compile(r"\s+")
CUT = "…"


def line(text: str, width: int = 0) -> str:
    """The text as one clean line, cut to `width` characters (0: as long as it is)."""
    # Cut before the work too: only what can be shown is worth cleaning.
    start = text[: width * 4] if width else text
    found = _SPACES.sub(" ", visible(_SPACES.sub(" ", start))).strip()
    if width and (len(found) > width or len(start) < len(text)):
        return found[: max(width - 1, 0)].rstrip() + CUT
    return found


def seconds(span: float) -> str:
    """A span of time as people say it."""
    if span < 10:
        return f"{max(span, 0):.1f} s"
    if span < 120:
        return f"{span:.0f} s"
    minutes = int(span // 60)
    return f"{minutes} min {span % 60:.0f} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def told(piece: ReplyDelta) -> str:
    """What a tool says of how far it has come; where it works, when it says no more."""
    if piece.text or not piece.locations:
        return piece.text
    place = piece.locations[0]
    return place.path if place.line is None else f"{place.path}:{place.line}"


def spent(totals: UsageTotals) -> str:
    """Tokens and cost."""
    if not totals.usage.total:
        return "0 tokens" if not totals.cost.unpriced else "tokens and cost unknown"
    return f"{totals.usage.total:,} tokens ({parts(totals.usage)}), {cost_text(totals.cost)}"


def cost_text(cost: Cost) -> str:
    """Money as people read it: `$0.0123`, `$0`, `cost unknown`, or what is known of it."""
    if not cost.unpriced:
        return dollars(cost.nano_usd)
    if not cost.nano_usd:
        return "cost unknown"
    return f"more than {dollars(cost.nano_usd)}, {cost.unpriced:,} calls of unknown price"


def dollars(nano: int) -> str:
    """Nano-USD in dollars, with as many digits as tell something."""
    if not nano:
        return "$0"
    found = nano / NANO
    if found >= 1:
        return f"${found:,.2f}"
    return f"${found:.4f}" if nano >= 100_000 else "under $0.0001"


def parts(usage: Usage) -> str:
    """What tokens were spent on: `10 in, 2 out`, and what of it was cached or reasoned, where any was."""
    inner = (
        (usage.cache_read_tokens, "cached"),
        (usage.cache_write_tokens, "to the cache"),
        (usage.reasoning_tokens, "reasoning"),
    )
    said = [f"{usage.input_tokens:,} in", f"{usage.output_tokens:,} out"]
    return ", ".join([*said, *(f"{count:,} {word}" for count, word in inner if count)])


def name_of(effect: EffectNode) -> str:
    """What an effect is called: of a retry what had failed, `?` of what is no call of its turn."""
    if effect.is_retry:
        return effect.failure.kind.replace("_", " ") if effect.failure is not None else ""
    return effect.name or ("?" if effect.started_at is None else "")


def text_of(effect: EffectNode) -> str:
    """Its result, or why there is none; while it goes on, what a person is asked."""
    if effect.ended_at is not None:
        return effect.content if effect.outcome == "completed" else effect.reason
    return effect.text if not effect.is_retry else ""


def outcome_of(effect: EffectNode) -> str:
    """How it ended, empty while it goes on; of an approval also what was decided meanwhile."""
    if effect.outcome or not effect.is_approval or effect.decision is None:
        return effect.outcome
    return "completed" if effect.decision.allowed else "denied"


def _decoded(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments


def short_arguments(arguments: str, width: int = 60) -> str:
    """A call's arguments as one clean line of at most `width` characters: `path="a", count=2`."""
    found = _decoded(arguments)
    if isinstance(found, dict):
        parts = [f"{key}={_short(value)}" for key, value in found.items()]
        return line(", ".join(parts), width)
    return line(arguments, width)


def _short(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:200] + CUT
