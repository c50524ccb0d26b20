"""The request of a model call: a projection of the conversation, always valid for a provider."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal

from antiphon.kernel.context.compaction import to_compact
from antiphon.kernel.context.prompt import PromptPrefix
from antiphon.kernel.context.tool_search import shown_in_turn
from antiphon.kernel.context.transcript import Transcript
from antiphon.values.agent import Agent
from antiphon.values.codec import encode_value
from antiphon.values.model import ChatMessage, Example, ModelRequest

Purpose = Literal["reply", "compact", "final"]


def model_request(
    model: str, agent: Agent, prefix: PromptPrefix, transcript: Transcript, *, effect_id: str, session: str,
    examples: tuple[Example, ...] = (), schema: dict[str, Any] | None = None,
    suffix: str = "", offered: Sequence[str] | None = None,
) -> ModelRequest:  # fmt: skip
    """What a model is asked for a reply; `session` is the run's id.

    The prefix only ever grows: the same prompt, then the conversation so far. suffix: text for this turn
    only, the request's tail. offered: the tools of this turn, None for all.
    """
    tools = prefix.specs
    if offered is not None:
        tools = shown_in_turn(tools, offered)
    return ModelRequest(
        model,
        prefix.system,
        transcript.upto_now(),
        tools,
        tool_choice=agent.asking.tool_choice,
        tail=suffix,
        max_output=agent.asking.max_output_tokens,
        output_schema=schema,
        settings=agent.asking.settings,
        examples=examples,
        effect_id=effect_id,
        session=session,
    )


def side_request(
    model: str, agent: Agent, prefix: PromptPrefix, transcript: Transcript, *, effect_id: str, session: str,
    purpose: Literal["compact", "final"], question: str, oldest: int = 0,
) -> ModelRequest:  # fmt: skip
    """What a model is asked beside the conversation, without tools; it leaves no trace in it.

    oldest: about so many of the oldest messages, the memory of earlier compactions included; 0: about all.
    """
    return ModelRequest(
        model,
        prefix.system,
        side_messages(transcript.upto_now(), purpose, question, oldest),
        tool_choice="none",
        max_output=agent.asking.max_output_tokens,
        settings=agent.asking.settings,
        effect_id=effect_id,
        session=session,
    )


def side_messages(
    messages: Sequence[ChatMessage], purpose: Purpose, question: str, oldest: int
) -> list[ChatMessage]:
    """The messages of such a request: as much of the conversation as it is about, and what is asked of it."""
    if oldest:
        messages = messages[:oldest]
    elif purpose == "compact":
        messages = to_compact(messages)
    return [*messages, ChatMessage("user", question)]


def request_digest(
    model: bytes,
    prefix: bytes,
    conversation: bytes,
    purpose: Purpose,
    suffix: str,
    offered: tuple[str, ...] | None,
    oldest: int = 0,
) -> str:
    """The digest of exactly what a model is asked; every part before the last has a fixed length.

    model: see `ModelOption.seed`. prefix: 32 bytes, its digest. conversation: the 16 of `Transcript.measure`.
    suffix: the tail, or what is asked beside the conversation.
    """
    asked = model + prefix + conversation
    if oldest:
        asked += encode_value((purpose, suffix, offered, oldest))
    elif suffix or offered is not None or purpose != "reply":
        asked += encode_value((purpose, suffix, offered))
    return b2a_base64(blake2b(asked, digest_size=16).digest(), newline=False)[:22].decode()
