"""How much of a prompt a provider's cache can serve: the bytes that begin it as they began the last one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from antiphon import Usage, tool
from antiphon.styles.loop import LoopAgent
from antiphon.values.model import Emit, ModelRequest, Reply
from bench.fake import call

WINDOW = 16_000
"""Tokens that the model takes: so few that a conversation of 200 turns is compacted several times."""

_encode = msgspec.json.Encoder().encode


def prompt_of(request: ModelRequest) -> bytes:
    """What a model is sent, in the order in which providers keep it: tools, system prompt, messages."""
    return b"".join((_encode(request.tools), request.system.encode(), *map(_encode, request.messages)))


def prefix_shares(prompts: Sequence[bytes]) -> list[float]:
    """Of each prompt but the last: which share of it the next one begins with, 0 to 1."""
    return [_shared(before, after) / len(before) for before, after in pairwise(prompts)]


def _shared(before: bytes, after: bytes) -> int:
    """How many bytes two prompts have in common before they first differ."""
    if after.startswith(before):
        return len(before)
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), len(after))


class Listener:
    """A Model port that takes a look before each answer, and keeps what it was sent.

    prompts: in order, but those of compactions. breaks: places in `prompts` that follow a compaction.
    """

    name, window = "listener", WINDOW

    def __init__(self) -> None:
        self.prompts: list[bytes] = []
        self.breaks: set[int] = set()

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `antiphon.values.model.Model`."""
        prompt = prompt_of(request)
        usage = Usage(len(prompt) // 4, 50)
        if request.tool_choice == "none":
            self.breaks.add(len(self.prompts))
            return Reply(f"<summary>{'so far ' * 40}</summary>", usage=usage)
        self.prompts.append(prompt)
        if request.messages[-1].role == "user":
            return Reply("", call("look", f'{{"n":{len(self.prompts)}}}'), "calls", usage)
        return Reply("It is done. " + "word " * 40, usage=usage)

    def calm(self) -> list[float]:
        """The shares between prompts with no compaction between them."""
        shares = prefix_shares(self.prompts)
        return [share for place, share in enumerate(shares, 1) if place not in self.breaks]


@tool(effect="read")
async def look(n: int) -> str:
    """Look at something of about a thousand characters."""
    return f"seen {n}: " + "detail " * 140


async def conversation(turns: int) -> Listener:
    """A session of a LoopAgent with so many turns, two to a request."""
    model = Listener()
    async with LoopAgent(llm=model, tools=[look], system_prompt="You look.", max_output=500) as agent:
        for number in range(turns // 2):
            await agent.run(f"question {number}?")
    return model
