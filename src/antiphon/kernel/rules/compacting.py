"""When a conversation is shortened before its model is asked, and by what."""

from __future__ import annotations

from typing import Literal

from antiphon.kernel.context.compaction import (
    CompactionSummary,
    has_answered,
    oldest_piece,
    read_summary,
    threshold,
    to_compact,
)
from antiphon.kernel.context.transcript import tokens_of
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import TranscriptCompacted
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam, prefix_of
from antiphon.values.agent import Agent, Compaction
from antiphon.values.codec import clean_text, encode_value

MIN_TOOL_OUTPUT_TOKENS = 20_000
"""Tokens of tool results that a model is shown, however small its window is said to be."""
MIN_PIECE = 4_000
"""Bytes of messages below which a summary would hardly be shorter than they are."""
MAX_COMPACTIONS = 12
"""Summaries asked for in one turn; each piece is at most half of what did not fit."""


def due(
    run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> TranscriptCompacted | Literal["compact"] | None:
    """How the conversation is to be shortened now; `compact`: by asking the model for a summary."""
    conversation = activation.conversation
    if conversation.summary is not None:
        return _compacted(member.agent, activation, conversation.summary)
    options = team.models[activation.agent]
    if not options:
        return None
    option = options[min(activation.turn.attempts.fallback, len(options) - 1)]
    window = option.window
    total = run.options.outputs.total
    if total is not None and window is not None:
        # A quarter of the window, if that is less, but not too little.
        total = min(total, max(window // 4, MIN_TOOL_OUTPUT_TOKENS))
    if total is not None and conversation.shown_tokens > total:
        return TranscriptCompacted(activation.id, trimmed=_to_trim(activation, total))
    compaction = member.agent.asking.compaction
    if run.models.too_long and _outgrown(run, member, activation, option.model.name):
        return "compact" if can_compact(member.agent, activation) else None
    if compaction is None or conversation.compaction in ("tried", "compacted", "replaced"):
        return None
    full = (
        window is not None and compaction.auto and conversation.window_tokens >= threshold(compaction, window)
    )
    if not full and not conversation.compaction:
        return None
    return "compact" if _worth_it(activation) else None


def can_compact(agent: Agent, activation: Activation) -> bool:
    """Whether a provider's word that the conversation is too long can be followed.

    Again in the same turn as long as there is more to sum up than memory and what nobody has answered.
    """
    if agent.asking.compaction is None or activation.turn.compactions >= MAX_COMPACTIONS:
        return False
    if not activation.turn.compactions:
        return _worth_it(activation)
    return has_answered(activation.conversation.transcript.messages)


def piece(run: RunState, member: CompiledAgent, activation: Activation, model: str) -> int:
    """How many of the oldest messages to sum up in one question, 0 for all.

    When the model's window is learned and the question about everything would not fit: those that take
    half of the room, so that a few attempts find what fits, wherever the limit is.
    """
    known = run.models.too_long.get(model)
    if known is None:
        return 0
    half = (known - _fixed(member, activation)) // 2
    if half < MIN_PIECE:
        return 0
    return oldest_piece(activation.conversation.transcript.messages, sizes(activation), half)


def sizes(activation: Activation) -> list[int]:
    """Bytes of each message as JSON, as `Transcript.measure` adds them up."""
    return [len(encode_value(each)) for each in activation.conversation.transcript.messages]


def _outgrown(run: RunState, member: CompiledAgent, activation: Activation, model: str) -> bool:
    """Whether the model has found a request of that size too long; its prompt alone says nothing."""
    known, fixed = run.models.too_long.get(model), _fixed(member, activation)
    if known is None or known <= fixed:
        return False
    return fixed + activation.conversation.transcript.measure()[0] >= known


def _fixed(member: CompiledAgent, activation: Activation) -> int:
    """What is held for a request beside its conversation."""
    return prefix_of(member, activation).size + member.agent.asking.max_output_tokens


def _worth_it(activation: Activation) -> bool:
    messages = activation.conversation.transcript.messages
    if not to_compact(messages):
        return False
    # A conversation that has only begun has nothing to say about itself.
    return len(messages) > 2 or bool(activation.conversation.compaction)


def _compacted(agent: Agent, activation: Activation, text: str) -> TranscriptCompacted:
    summary = read_summary(text) or CompactionSummary()
    compaction = agent.asking.compaction or Compaction()
    if compaction.revise is not None and summary.summary:
        try:
            replaced = compaction.revise(summary.summary)
        except Exception:  # noqa: BLE001 - a listener may not spoil what the model wrote
            replaced = None
        if isinstance(replaced, str):
            summary = CompactionSummary(summary.retain, clean_text(replaced), summary.next)
    return TranscriptCompacted(
        activation.id, summary.retain, summary.summary, summary.next, compaction.last_turns,
        effect=activation.conversation.summary_effect,
        oldest=activation.conversation.summary_oldest,
    )  # fmt: skip


def _to_trim(activation: Activation, total: int) -> int:
    """How many of the oldest results go so that three quarters of the total are left."""
    excess, count = activation.conversation.shown_tokens - total * 3 // 4, 0
    for message in activation.conversation.transcript.messages:
        if excess <= 0:
            break
        if message.role == "tool" and message.ref:
            excess -= tokens_of(message.content)
            count += 1
    return count
