"""Options of the loop, in the words of its design document, and what they mean to the kernel."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from antiphon import (
    UNLIMITED,
    Agent,
    Hooks,
    Limits,
    LoopOptions,
    Model,
    ModelOptions,
    RetryPolicy,
    Tool,
    ToolContext,
)
from antiphon.styles.loop.permission import ToolPermissionHook, authorize_by
from antiphon.values.agent import AgentSource, Compaction, agents_of
from antiphon.values.fields import Checked
from antiphon.values.hooks import Continue, EndTurn, InstructionsContext, TurnContext
from antiphon.values.limits import OutputLimits
from antiphon.values.message import USER
from antiphon.values.model import ChatMessage
from antiphon.values.tool import Dependency

IncompleteWork = Callable[[Sequence[ChatMessage]], str | None]
"""Shown the conversation before a text becomes the answer; says what is left to do."""


class TimeSource(Protocol):
    """Whatever tells the time and waits."""

    def now(self) -> float:
        """Unix time in seconds."""
        ...

    async def sleep_until(self, instant: float) -> None: ...


class AgentServices(Struct, frozen=True):
    """What the agent stands on. `clock`: of waits, deadlines and durations; None for the system's."""

    clock: TimeSource | None = None


class _Spec(Protocol):
    @property
    def input_limit(self) -> int | None: ...


class ModelRegistry(Protocol):
    """Knows the models: `antiphon.models.catalog.load_catalog()` is one."""

    def find(self, model: str) -> _Spec | None: ...


class ModelUsage(Struct, frozen=True):
    """Calls and tokens of one model."""

    calls: int = 0
    total_tokens: int = 0


class UsageSummary(Struct, frozen=True):
    """Calls and tokens so far; `cached_input` is part of `input`, `reasoning` of `output`."""

    total_calls: int = 0
    total_tokens: int = 0
    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0
    by_model: Mapping[str, ModelUsage] = {}


class Colleagues(Checked, frozen=True, kw_only=True):
    """Where an agent stands among others; options of a LoopAgent too."""

    name: str = "agent"
    """What others call it by, and its sessions know it by."""
    description: str = ""
    """What its colleagues are told of it. Default: the system prompt."""
    agents: Sequence[Agent | AgentSource] = ()
    """Whom it may call. With any its prompt names them, and says how they are called."""


class AgentOptions(Colleagues, frozen=True, kw_only=True):
    """What a LoopAgent is made with; times in milliseconds.

    llm: a model string or Model, None for ANTIPHON_MODEL. max_iterations: model calls of one
    request; then it is asked once more, without tools, for a summary. compaction,
    tool_output_cache: None switches them off.
    can_execute_tool: rules on every call, see ToolPermissionHook. require_done_tool: only a tool that
    ends the task (by raising TaskComplete, returning a ToolResult with `finishes`, or declared so) ends it.
    deps: `ctx.deps` of tools. dependency_overrides: what `ctx.resolve` makes instead, by key or id.

    incomplete_work: asked before a text becomes the answer; what it returns is said to the model,
    which goes on, `max_reminders` times at most. output_type: the type of what `run` returns then.
    journal: where sessions are kept; memory by default. limits: of one request, beside the iterations.
    """

    llm: str | Model | None = None
    tools: Sequence[Tool | Callable[..., Any]] = ()
    system_prompt: str | Callable[[InstructionsContext[Any]], str | Awaitable[str]] = ""
    max_iterations: int = 200
    tool_choice: str | None = None
    compaction: Compaction | None = Compaction()
    tool_output_cache: OutputLimits | None = OutputLimits()
    services: AgentServices = AgentServices()
    model_registry: ModelRegistry | None = None
    enable_usage_tracking: bool = True
    can_execute_tool: ToolPermissionHook | None = None
    require_done_tool: bool = False
    llm_max_retries: float = 2
    llm_retry_base_delay_ms: float = 1_000
    llm_retry_max_delay_ms: float = 60_000
    llm_max_retry_after_ms: float = 60_000
    llm_retry_window_ms: float = 1_200_000
    llm_retryable_status_codes: Collection[int] | None = None
    dependency_overrides: Mapping[str | Dependency, Callable[[ToolContext], Any]] = {}
    deps: Any = None
    incomplete_work: IncompleteWork | None = None
    max_reminders: int = 3
    output_type: Any = None
    fallback: Sequence[str | Model] = ()
    journal: Any = None
    limits: Limits | None = None
    settings: Mapping[str, Any] = {}
    max_output: int = 4096
    env: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for name, default in _TIMES.items():
            held = getattr(self, name)
            if isinstance(held, float) and not math.isfinite(held):
                force_setattr(self, name, default)
        Checked.__post_init__(self)

    def overrides(self) -> dict[str, Callable[[ToolContext], Any]]:
        """`dependency_overrides` by id."""
        return {
            key if isinstance(key, str) else key.id: make for key, make in self.dependency_overrides.items()
        }

    def models(self) -> list[str | Model]:
        """The model and what it falls back on."""
        return [*([] if self.llm is None else [self.llm]), *self.fallback]


_TIMES: Mapping[str, float] = {
    "llm_max_retries": 2, "llm_retry_base_delay_ms": 1_000, "llm_retry_max_delay_ms": 60_000,
    "llm_max_retry_after_ms": 60_000, "llm_retry_window_ms": 1_200_000,
}  # fmt: skip
"""Numbers of which one that makes no sense is the default."""


def agent_of(options: AgentOptions) -> Agent:
    """The kernel's agent that these options describe. Raises UserError."""
    # Only a text that ends the task can be incomplete.
    incomplete = None if options.require_done_tool else options.incomplete_work
    max_reminders = (
        max(options.max_reminders, options.max_iterations)
        if options.require_done_tool
        else options.max_reminders
    )
    return Agent(
        options.name,
        options.system_prompt,
        model=options.llm,
        tools=tuple(options.tools),
        description=options.description,
        standalone=not options.agents,
        can_call=(*(each.name for each in colleagues_of(options)), USER) if options.agents else (),
        context="continue",
        tool_execution="ordered",
        loop=LoopOptions(finish_mode="in_order", max_reminders=max_reminders, summarize_at_limit=True),
        completion="finish" if options.require_done_tool else "text",
        asking=ModelOptions(
            tool_choice=options.tool_choice or "auto",
            compaction=options.compaction,
            fallback_models=tuple(options.fallback),
            settings=options.settings,
            max_output_tokens=options.max_output,
            retry=retry_policy(options),
        ),
        limits=replace(UNLIMITED, turns=options.max_iterations),
        hooks=Hooks(
            authorize=authorize_by(options.can_execute_tool),
            end_turn=end_turn_by(incomplete, options.max_reminders),
        ),
        output_type=options.output_type,
    )


def colleagues_of(options: AgentOptions) -> tuple[Agent, ...]:
    """Those whom it may call itself; behind each stand those whom that one may call."""
    return tuple(agents_of(each)[0] for each in options.agents)


def retry_policy(options: AgentOptions) -> RetryPolicy:
    """The kernel's rules for trying again; a number that makes no sense is the default."""
    statuses = options.llm_retryable_status_codes
    return RetryPolicy(
        max_attempts=_whole(options, "llm_max_retries", least=0) + 1,
        initial_delay=_whole(options, "llm_retry_base_delay_ms") / 1_000,
        max_delay=_whole(options, "llm_retry_max_delay_ms") / 1_000,
        max_retry_after=_whole(options, "llm_max_retry_after_ms") / 1_000,
        max_elapsed=_whole(options, "llm_retry_window_ms") / 1_000,
        statuses=None if statuses is None else tuple(statuses),
    )


def _whole(options: AgentOptions, name: str, least: int = 1) -> int:
    number: float = getattr(options, name)
    return int(number if number >= least else _TIMES[name])


def end_turn_by(incomplete: IncompleteWork | None, most: int) -> EndTurn | None:
    """The hook that names incomplete work as the kernel asks it: before a text is returned, `most` times."""
    if incomplete is None:
        return None

    def end_turn(context: TurnContext) -> Continue | None:
        if context.called_tools or context.inbox or context.reminders >= most:
            return None
        missing = incomplete(context.messages)
        return Continue(missing) if missing else None

    return end_turn
