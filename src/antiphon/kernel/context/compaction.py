"""Memory: what stays of a conversation that grew too long. Pure text work, no state.

A compaction asks the model for two things: `<retain>`, facts to keep word for word, and
`<summary>`, what happened. The view of the conversation then begins with both and goes on with the
last turns; the journal keeps everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from antiphon.values.agent import Compaction
from antiphon.values.model import ChatMessage

RETAINED = "[memory: retained]"
SUMMARY = "[memory: summary]"
_MARKS = (RETAINED, SUMMARY)
COMPACT = "compact"
"""The intent of a user's message that asks for a compaction and says nothing."""
HISTORY = "history"
"""The intent of a user's message that holds, as JSON, what the conversation is from now on."""
GO_ON = "[system] The conversation was shortened. Go on with the task."
MAX_KEPT_TEXTS = 4
"""Texts of the agent that stay of one turn: the newest; more of them would outgrow any window."""


class CompactionSummary(Struct, frozen=True, gc=False):
    """What a model answered when asked to compact. `next`: the steps it would take now."""

    retain: str = ""
    summary: str = ""
    next: str = ""


def threshold(compaction: Compaction, window: int) -> int:
    """Tokens of one model call from which on the conversation is compacted."""
    return int(window * compaction.ratio)


def question(compaction: Compaction) -> str:
    """What the model is asked to write."""
    parts = [
        "The conversation is about to be shortened. Write what must be known to go on without it.",
        "Answer with <summary>...</summary>: what was asked, what was done, what came out, what is open.",
    ]
    if compaction.retain:
        parts.insert(
            1,
            "First answer with <retain>...</retain>: names, figures, decisions, wishes to keep as they are.",
        )
    return "\n".join([*parts, *compaction.directives])


def to_compact(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """What is summarised: all but earlier memory and what a user has just said, which both stay."""
    told = [message for message in messages if not is_memory(message)]
    answered = told[: _unanswered(told)]
    return answered or told


def has_answered(messages: Sequence[ChatMessage]) -> bool:
    """Whether there is more than earlier memory and what a user has just said."""
    told = [message for message in messages if not is_memory(message)]
    return _unanswered(told) > 0


def _unanswered(messages: Sequence[ChatMessage]) -> int:
    """Where the messages of users begin that nobody has answered yet."""
    end = len(messages)
    while end and messages[end - 1].role == "user":
        end -= 1
    return end


def is_memory(message: ChatMessage) -> bool:
    """Whether a message is the memory of an earlier compaction."""
    return message.role == "user" and message.content.startswith(_MARKS)


_TAG = {
    name: re.compile(rf"<{name}>(.*?)(?:</{name}>|\Z)", re.IGNORECASE | re.DOTALL)
    for name in ("retain", "summary", "next_steps")
}
_NOTHING = frozenset({"", "none", "n/a", "none.", "nothing", "-"})


def read_summary(text: str) -> CompactionSummary | None:
    """The parts of an answer; without a `<summary>` tag all that is left of it is the summary."""
    retain, summary, steps = (
        "\n".join(part.strip() for part in tag.findall(text)).strip() for tag in _TAG.values()
    )
    if not summary:
        rest = text
        for tag in _TAG.values():
            rest = tag.sub("", rest)
        summary = rest.strip()
    steps = "" if steps.lower() in _NOTHING else steps
    return CompactionSummary(retain, summary, steps) if retain or summary else None


def oldest_piece(messages: Sequence[ChatMessage], sizes: Sequence[int], room: int) -> int:
    """How many of the oldest messages of these sizes fit into the room; 0 when what agents did is not
    among them. No result is ever parted from its call.
    """
    last = _unanswered(messages)
    found = total = 0
    for count in range(1, last + 1):
        total += sizes[count - 1]
        if total > room:
            break
        if count == last or messages[count].role != "tool":
            found = count
    return found if any(each.role != "user" for each in messages[:found]) else 0


def remember(
    messages: Sequence[ChatMessage], summary: CompactionSummary, last_turns: int, oldest: int = 0
) -> list[tuple[ChatMessage, int]]:
    """The conversation after a compaction: retained facts, the newest summary, the last turns.

    Each message comes with the position of the one that it was, -1 for a new one. Facts of earlier
    compactions stay, each once. Of the last turns only what was said stays: no calls, results or
    reasoning, so no result is ever without its call. oldest: the summary stands for so many of the oldest
    messages; what a user said in the last turns and all others stay as they are.
    """
    facts: list[str] = []
    for message in messages:
        if message.content.startswith(RETAINED) and is_memory(message):
            facts += message.content.split("\n")[1:]
    facts += summary.retain.split("\n") if summary.retain else []
    kept = list(dict.fromkeys(fact for fact in facts if fact.strip()))
    memory = [ChatMessage("user", "\n".join([RETAINED, *kept]))] if kept else []
    if summary.summary:
        steps = f"\nNext steps: {summary.next}" if summary.next else ""
        memory.append(ChatMessage("user", f"{SUMMARY}\n{summary.summary}{steps}"))
    said = _last_said(messages, last_turns)
    if oldest:
        said = [(each, place) for each, place in said if place < oldest and each.role == "user"]
        said += [(each, place) for place, each in enumerate(messages) if place >= oldest]
    elif messages and messages[-1].role == "tool" and not (said and said[-1][0].role == "user"):
        said.append((ChatMessage("user", GO_ON), -1))
    return [*((each, -1) for each in memory), *said]


def _last_said(messages: Sequence[ChatMessage], last_turns: int) -> list[tuple[ChatMessage, int]]:
    """User and assistant texts of the last turns; a turn begins with what a user said.

    What was not answered yet is no turn of its own and always stays.
    """
    told = [(each, place) for place, each in enumerate(messages) if not is_memory(each)]
    answered = _unanswered([each for each, _ in told])
    starts = [index for index, (each, _) in enumerate(told[:answered]) if each.role == "user"]
    first = answered
    if starts and last_turns > 0:
        first = starts[-last_turns] if len(starts) >= last_turns else starts[0]
    texts = [
        (each, place)
        for each, place in told[first:]
        if each.role in ("user", "assistant") and (each.content or each.attachments)
    ]
    spoken = [index for index, (each, _) in enumerate(texts) if each.role == "assistant"]
    gone = set(spoken[: -MAX_KEPT_TEXTS * max(last_turns, 1)])
    return [
        (ChatMessage(each.role, each.content, attachments=each.attachments), place)
        for index, (each, place) in enumerate(texts)
        if index not in gone
    ]
