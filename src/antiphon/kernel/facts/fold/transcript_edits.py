"""Edits of a conversation: how it grows by results, and how it is trimmed, replaced and healed.

Every function works on one activation and gives back the texts that its model is no longer shown, each
with the handle that it can be read by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from antiphon.kernel.context import output_store
from antiphon.kernel.context.compaction import CompactionSummary, remember
from antiphon.kernel.context.transcript import Transcript, tokens_of
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import TranscriptCompacted
from antiphon.values.message import ToolResult
from antiphon.values.model import ChatMessage

Removed = Sequence[tuple[str, str]]
"""What is no longer shown: handle and whole text."""
_read_history = msgspec.json.Decoder(list[ChatMessage]).decode


def read_history(text: str) -> list[ChatMessage]:
    """The messages of a replaced conversation. Raises ValueError for what no provider would take."""
    messages = _read_history(text)
    check_history(messages)
    return messages


def check_history(messages: Iterable[ChatMessage]) -> None:
    """Raise ValueError for messages that no provider would take as what was said before."""
    owed: list[str] = []
    for each in messages:
        if each.role == "system":
            raise ValueError(
                "a system message has no place in a conversation; the agent's prompt is shown first"
            )
        if (each.role == "tool") != bool(owed) or (owed and each.call_id != owed.pop(0)):
            raise ValueError("every call needs exactly one result, right after it and in order")
        owed = [call.id for call in each.calls] if each.role == "assistant" else owed
    if owed:
        raise ValueError("the last call has no result")


def begin_with(activation: Activation, messages: Iterable[ChatMessage], origin: str) -> None:
    """What was said before its first request. Handles in it are another run's, and read nothing here."""
    known = [msgspec.structs.replace(each, ref="") if each.ref else each for each in messages]
    replace_transcript(activation, known, [origin] * len(known))


def append_results(activation: Activation, limit: int | None) -> Removed:
    """Add the results of a turn to the conversation in call order; one over `limit` bytes is cut.

    A result whose files are shown, and what the reading tools gave, is never cut. Files that are not shown
    are named in the text.
    """
    removed: list[tuple[str, str]] = []
    turn, conversation = activation.turn, activation.conversation
    for index, call in enumerate(turn.calls):
        found = turn.results[index]
        if found is None:
            continue
        content, ref, files = found.content, ids.call_id(activation.id, turn.number, index), found.attachments
        if files:
            content, files, apart = output_store.files_apart(content, files, ref)
            removed += apart
        may_cut = limit is not None and call.name not in output_store.READERS and not files
        if limit is not None and may_cut and len(content) * 4 > limit:
            whole, content = content, output_store.cut(content, limit, ref)
            if content is not whole:
                removed.append((ref, whole))
        conversation.shown_tokens += tokens_of(content)
        conversation.transcript.append(
            ChatMessage("tool", content, (), call.id, call.name, found.is_error, ref, files), ref
        )
    conversation.cut = conversation.cut or bool(removed)
    return removed


def abandon(activation: Activation, reason: str, limit: int | None) -> Removed:
    """End a turn that was left in the middle: what has no result gets one that says why."""
    turn = activation.turn
    if activation.phase != "calling":
        return ()
    removed: Removed = ()
    if not turn.planned:
        lost = ToolResult(f"Error: {reason}", is_error=True)
        turn.results = [lost if found is None else found for found in turn.results]
        removed = append_results(activation, limit)
    turn.calls, turn.results, turn.waiting, turn.pending = (), [], 0, None
    return removed


def compact(activation: Activation, event: TranscriptCompacted) -> Removed:
    """Trim the oldest results, or put a summary in place of what was said."""
    transcript = activation.conversation.transcript
    summary = CompactionSummary(event.retain, event.summary, event.next)
    removed = []
    if event.trimmed:
        left, kept = event.trimmed, []
        for message in transcript.messages:
            if left and message.role == "tool" and message.ref:
                left -= 1
                removed.append((message.ref, message.content))
                message = msgspec.structs.replace(message, content=output_store.trimmed(message.ref), ref="")
            kept.append(message)
        replace_transcript(activation, kept, transcript.origins)
        activation.conversation.cut = activation.conversation.cut or bool(removed)
        return removed
    if summary.retain or summary.summary:
        pairs = remember(transcript.messages, summary, event.last_turns, event.oldest)
        origins = [transcript.origins[place] if place >= 0 else event.effect for _, place in pairs]
        replace_transcript(activation, [each for each, _ in pairs], origins)
    return ()


def replace_transcript(
    activation: Activation, messages: Sequence[ChatMessage], origins: Iterable[str]
) -> None:
    """From now on the conversation is `messages`; each has an origin."""
    conversation = activation.conversation
    conversation.transcript = Transcript(messages, origins)
    conversation.shown_tokens = sum(
        tokens_of(each.content) for each in messages if each.role == "tool" and each.ref
    )
