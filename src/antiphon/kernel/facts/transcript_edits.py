"""view: the conversation as a model is shown it, and how it is cut, trimmed, replaced and healed.

Every function works on one activation and gives back the texts that were taken out of its view, each
with the handle it can be read by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from antiphon.kernel.context import output_store
from antiphon.kernel.context.compaction import Gist, remember
from antiphon.kernel.context.transcript import Transcript
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import EffectFinished, HistoryCompacted
from antiphon.values.message import ToolResult
from antiphon.values.model import ChatMessage, Reply

Removed = Sequence[tuple[str, str]]
"""What is no longer shown: handle and whole text."""
_read_history = msgspec.json.Decoder(list[ChatMessage]).decode


def read_history(text: str) -> list[ChatMessage]:
    """The messages of a replaced conversation. Raises ValueError for what no provider would take."""
    messages = _read_history(text)
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
    return messages


def result(event: EffectFinished) -> ToolResult:
    """A call's end as the model is shown it."""
    if event.outcome == "completed":
        return ToolResult(event.content, event.attachments)
    partial = f"\nPartial output: {event.content}" if event.content else ""
    return ToolResult(f"Error: {event.why}{partial}", event.attachments, is_error=True)


def conclude(activation: Activation, limit: int | None) -> Removed:
    """Add the results of a turn to the conversation in call order; one over `limit` bytes is cut.

    A result with files, and what the reading tools gave, is never cut.
    """
    removed = []
    for index, call in enumerate(activation.calls):
        found = activation.results[index]
        if found is None:
            continue
        content, ref = found.content, f"{activation.id}/{activation.turn}.c{index + 1}"
        may_cut = limit is not None and call.name not in output_store.READERS and not found.attachments
        if limit is not None and may_cut and len(content) * 4 > limit:
            content = output_store.cut(content, limit, ref)
            if content is not found.content:
                removed.append((ref, found.content))
        activation.shown += output_store.tokens_of(content)
        activation.transcript.append(
            ChatMessage("tool", content, (), call.id, call.name, found.is_error, ref, found.attachments)
        )
    return removed


def abandon(activation: Activation, why: str, limit: int | None) -> Removed:
    """End a turn that was left in the middle: what has no result gets one that says why."""
    if activation.phase != "calls":
        return ()
    if activation.planned:
        activation.calls, activation.results, activation.waiting = (), [], 0
        activation.pending.clear()
        return ()
    lost = ToolResult(f"Error: {why}", is_error=True)
    activation.results = [lost if found is None else found for found in activation.results]
    activation.pending.clear()
    removed = conclude(activation, limit)
    activation.calls, activation.results, activation.waiting = (), [], 0
    return removed


def rewrite(activation: Activation, event: HistoryCompacted) -> Removed:
    """Trim the oldest results, or put the memory in place of what was said."""
    messages = activation.transcript.messages
    gist = Gist(event.retain, event.summary, event.next)
    removed = []
    if event.trimmed:
        left, kept = event.trimmed, []
        for message in messages:
            if left and message.role == "tool" and message.ref:
                left -= 1
                removed.append((message.ref, message.content))
                message = msgspec.structs.replace(message, content=output_store.trimmed(message.ref), ref="")
            kept.append(message)
    elif gist.retain or gist.summary:
        kept = remember(messages, gist, event.last_turns)
    else:
        return ()
    show(activation, kept)
    return removed


def show(activation: Activation, messages: Iterable[ChatMessage]) -> None:
    """From now on the conversation is `messages`."""
    activation.transcript = Transcript(messages)
    activation.shown = sum(
        output_store.tokens_of(each.content)
        for each in activation.transcript.messages
        if each.role == "tool" and each.ref
    )


def spoken(reply: Reply) -> ChatMessage:
    """A reply as it stands in the conversation."""
    return ChatMessage(
        "assistant", reply.content, reply.calls, reasoning=reply.reasoning, opaque=reply.opaque
    )


def awake(callee: Activation, born: Activation) -> None:
    """Take a resting activation up again for another call, on that call's books."""
    callee.call, callee.request, callee.scopes = born.call, born.request, born.scopes
    callee.finish, callee.exhausted, callee.said, callee.failure = None, "", "", None
    callee.forced, callee.overdue, callee.nudges, callee.before = "", False, 0, callee.turn
    callee.declined, callee.depth = False, born.depth
