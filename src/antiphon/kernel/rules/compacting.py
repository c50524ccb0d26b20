"""When a conversation is shortened before its model is asked, and by what."""

from __future__ import annotations

from typing import Literal

from antiphon.kernel.context.compaction import CompactionSummary, read_summary, threshold, to_compact
from antiphon.kernel.context.transcript import tokens_of
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import TranscriptCompacted
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam
from antiphon.values.agent import Agent, Compaction
from antiphon.values.codec import clean_text

MIN_TOOL_OUTPUT_TOKENS = 20_000
"""Tokens of tool results that a model is shown, however small its window is said to be."""


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
    window = options[activation.turn.attempts.fallback].window
    total = run.options.outputs.total
    if total is not None and window is not None:
        # A quarter of the window, if that is less, but not too little.
        total = min(total, max(window // 4, MIN_TOOL_OUTPUT_TOKENS))
    if total is not None and conversation.shown_tokens > total:
        return TranscriptCompacted(activation.id, trimmed=_to_trim(activation, total))
    compaction = member.agent.asking.compaction
    if compaction is None or conversation.compaction == "done":
        return None
    full = (
        window is not None and compaction.auto and conversation.window_tokens >= threshold(compaction, window)
    )
    if not full and not conversation.compaction:
        return None
    return "compact" if _worth_it(activation) else None


def can_compact(agent: Agent, activation: Activation) -> bool:
    """Whether a provider's word that the conversation is too long can be followed: once in a turn."""
    return agent.asking.compaction is not None and not activation.turn.compacted and _worth_it(activation)


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
