"""The prompt prefix: what a model is told before the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.values.agent import Agent
from antiphon.values.message import USER
from antiphon.values.model import Example, ToolSpec

REMINDER = "[system] You did not finish. Continue the task; call finish with the result when it is done."

ASK_USER = (
    "The person you work for. Call them to ask what only they know or may decide; they answer in words."
)
"""What agents are told of the user, where somebody is there to answer."""


class PromptPrefix(Struct, frozen=True):
    """What a model is told before the conversation."""

    system: str
    specs: tuple[ToolSpec, ...]
    digest: str
    """The name of the blob that `data` is: 64 hex characters."""
    data: bytes
    """Its canonical JSON."""
    seed: bytes
    """The 32 bytes of the digest."""
    size: int
    """Bytes of `data`, an upper bound of its tokens."""


class StoredPrefix(Struct, frozen=True):
    """A prompt prefix as its blob has it: all that a request holds beside the conversation."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    max_output: int = 0
    """Tokens; 0 where it was not stored, as in format 2."""
    settings: dict[str, Any] = {}
    tool_choice: str = "auto"
    output_schema: dict[str, Any] | None = None
    examples: tuple[Example, ...] = ()


read_prefix = msgspec.json.Decoder(StoredPrefix).decode
"""What the blob of a prefix says. Raises msgspec.MsgspecError for what is none."""


def make_prefix(
    system: str,
    specs: tuple[ToolSpec, ...],
    agent: Agent,
    examples: Sequence[Example],
    schema: dict[str, Any] | None,
) -> PromptPrefix:
    """The prefix of an agent: all that its requests hold beside the conversation."""
    asking = agent.asking
    told: dict[str, Any] = {
        "system": system, "tools": specs, "max_output": asking.max_output_tokens,
        "settings": dict(asking.settings),
    }  # fmt: skip
    if asking.tool_choice != "auto":
        told["tool_choice"] = asking.tool_choice
    if schema is not None:
        told["output_schema"] = schema
    if examples:
        told["examples"] = examples
    data = msgspec.json.encode(told)
    digest = blake2b(data, digest_size=32)
    return PromptPrefix(system, specs, digest.hexdigest(), data, digest.digest(), len(data))


def write_prompt(
    name: str, instructions: str, colleagues: Iterable[str], listed: bool, rules: Sequence[str],
    user: bool = False,
) -> str:  # fmt: skip
    """The system prompt: who the agent is, whom it may call, and how it ends.

    colleagues: what it is told of each, a line each. listed: it can call them. rules: what is said of
    the built-in calls that it has. user: it may call the user, and somebody is there to answer.
    """
    others = [*colleagues]
    if user:
        others.append(f"- {USER}: {ASK_USER}")
    parts = [f'You are "{name}". {instructions}'.rstrip()]
    if others and listed:
        parts.append("Available agents:\n" + "\n".join(others))
    return "\n\n".join([*parts, "\n".join(rules)]).rstrip()
