"""A compiled team: agents with names resolved, prompts written, schemas made, models known. Data only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import force_setattr

from antiphon.kernel.context.prompt import REMINDER, PromptPrefix
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import FINISH
from antiphon.kernel.facts.events import CallEffect, ModelEffect
from antiphon.kernel.facts.ids import activation_of
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.facts.toolsets import OfferedToolset
from antiphon.values.agent import Agent, RetryPolicy
from antiphon.values.model import Example, Model, Usage
from antiphon.values.policy import Policy
from antiphon.values.schema.output_type import OutputSchema
from antiphon.values.tool import Tool
from antiphon.values.tool.toolset import Toolset

_RETRY = RetryPolicy()
"""Of an agent that does not say it."""


class CompiledAgent(Struct, frozen=True, eq=False):
    """One agent in its team."""

    agent: Agent
    tools: Mapping[str, Tool]
    builtins: frozenset[str]
    """Of the kernel's own calls, those it has."""
    disabled: frozenset[str]
    callable: frozenset[str]
    """Whom it may call."""
    finishing: frozenset[str]
    """Names of calls that end the activation."""
    prefix: PromptPrefix
    entry_prefix: PromptPrefix
    """The same when the user called it."""
    examples: tuple[Example, ...]
    answer: OutputSchema | None = None
    """Of what type its result is."""
    begins: bool = False
    """It has hooks for how a turn begins."""
    policy: Policy | None = None
    write_prefixes: Callable[[str], tuple[PromptPrefix, PromptPrefix]] | None = None
    """Of an agent whose instructions a function writes: both prefixes with the instructions that are given;
    `prefix` and `entry_prefix` have none."""
    declared: bytes = b"{}"
    """Its part of the manifest, JSON."""
    toolsets: tuple[str, ...] = ()
    """Their names."""
    sources: Mapping[str, str] = {}
    """Of its tools that a toolset offers, the toolset's name."""
    hidden: frozenset[str] = frozenset()
    """Those of them whose definitions are found by `search_tools`, and do not stand in the prompt."""
    offered: Callable[[bool, tuple[OfferedToolset, ...], bytes], CompiledAgent] | None = None
    """The same agent with what it is offered beside its own, after all of that: the tools that read what was
    cut, if the flag is set, and what toolsets offer; and as a request wants it, whose RequestOptions are
    given as JSON. None: of one that has them."""


def model_seed(name: str) -> bytes:
    """What stands for a model's name in the digest of a request."""
    return blake2b(name.encode(), digest_size=16).digest()


class ModelOption(Struct, frozen=True, eq=False):
    """A model that an agent may ask, and what is known of it."""

    model: Model
    window: int | None = None
    """Tokens of one call, None when unknown."""
    max_input_price: float | None = None
    max_output_price: float | None = None
    """The most that one token costs, in nano-USD; None when unknown."""
    bill: Callable[[Usage], int | None] | None = None
    """What some usage costs, in nano-USD."""
    cached_share: float = 1.0
    """What part of a token's price one costs that is read from the provider's cache."""
    spare: str = ""
    """Only asked in place of another that a limit has no room for; by this name it was asked for."""
    name: str = ""
    """The model's, as it was when the run was opened: what the journal knows it by."""
    seed: bytes = b""
    """16 bytes that stand for the model's name in the digest of a request."""
    free: bool = False
    """Its price is known, and is nothing."""
    retry: RetryPolicy | None = None
    """When a failed request is tried again, for agents that do not say it. None: as they say."""
    adapter: Model | None = None
    """What answers, where `model` only passes on to it."""

    def retry_of(self, agent: Agent) -> RetryPolicy:
        """When a failed request of an agent is tried again."""
        own = agent.asking.retry
        return self.retry if self.retry is not None and own == _RETRY else own

    def __post_init__(self) -> None:
        force_setattr(self, "free", self.max_input_price == self.max_output_price == 0)
        if not self.name:
            force_setattr(self, "name", self.model.name)
        if not self.seed:
            force_setattr(self, "seed", model_seed(self.name))

    def most(self, tokens_in: int, tokens_out: int) -> int | None:
        """The most that a call may cost, in nano-USD; None when the price is unknown."""
        if self.max_input_price is None or self.max_output_price is None:
            return None
        return math.ceil(tokens_in * self.max_input_price + tokens_out * self.max_output_price)


class CompiledTeam(Struct, frozen=True, eq=False):
    """All agents by name, and the models that each may ask, the first one first."""

    members: Mapping[str, CompiledAgent]
    models: Mapping[str, tuple[ModelOption, ...]]
    policies: bool
    """An agent brings rules of its own."""
    toolsets: Mapping[str, Toolset] = {}
    """By name."""


def at_work(
    member: CompiledAgent, activation: Activation, toolsets: Mapping[str, OfferedToolset] | None = None
) -> CompiledAgent:
    """The agent with the tools that it is offered beside its own, as far as its conversation has come.

    toolsets: what they offer, if not what they offered when the turn began.
    """
    conversation, request = activation.conversation, activation.progress.request
    known = conversation.toolsets if toolsets is None else toolsets
    found = tuple([known[name] for name in member.toolsets if name in known])
    if (found or conversation.cut or request) and member.offered is not None:
        return member.offered(conversation.cut, found, request)
    return member


def answer_for(member: CompiledAgent, request: bytes) -> OutputSchema | None:
    """Of what type the result of a request is; request: its RequestOptions as JSON, empty without."""
    if request and member.offered is not None:
        return member.offered(False, (), request).answer
    return member.answer


def prefix_of(member: CompiledAgent, activation: Activation) -> PromptPrefix:
    """What the agent's model is told before the conversation, in this call of it."""
    write, written = member.write_prefixes, activation.progress.instructions
    if write is None or written is None:
        return member.prefix if activation.caller else member.entry_prefix
    prefix, entry_prefix = write(written)
    return prefix if activation.caller else entry_prefix


def named_prefix(
    team: CompiledTeam, run: RunState, effect_id: str, detail: CallEffect | ModelEffect
) -> PromptPrefix | None:
    """The one that an effect, which has just started, names by its digest."""
    if isinstance(detail, CallEffect):
        member = team.members[detail.agent]
        return member.entry_prefix if member.entry_prefix.digest == detail.digest else member.prefix
    activation = run.activations.get(activation_of(effect_id))
    if activation is None:
        # Called off before its model was asked: it was told nothing.
        return None
    found = prefix_of(at_work(team.members[activation.agent], activation), activation)
    return found if found.digest == detail.prefix else None


def unwritten(member: CompiledAgent, activation: Activation) -> bool:
    """Whether a function is to write its instructions before its model can be asked."""
    return member.write_prefixes is not None and activation.progress.instructions is None


def reminder(member: CompiledAgent) -> str:
    """What an agent is told that stopped before it finished."""
    if FINISH in member.finishing or not member.agent.standalone:
        return REMINDER
    ways = " or ".join(sorted(member.finishing)) or "the tool that ends it"
    return f"[system] You did not finish. Continue the task; call {ways} when it is done."
