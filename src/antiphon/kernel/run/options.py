"""What a run may be opened with, typed once: for `run`, `run_sync`, `stream`, `map` and whoever passes it on.

`open_run` says what each of them means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypedDict, TypeVar

from antiphon.journal import Journal, Labels
from antiphon.kernel.run.clock import Clock
from antiphon.kernel.run.run import InputHandler
from antiphon.values.agent import AnyAgent, EndpointOptions
from antiphon.values.limits import Limits, OutputLimits, RunLimits
from antiphon.values.message import Attachment
from antiphon.values.model import Model
from antiphon.values.policy import Policy, Preset, StandingRule
from antiphon.values.result import Result
from antiphon.values.tool import Tool, ToolContext

Item = TypeVar("Item")


class StoreOptions(TypedDict, total=False):
    """Where a run is kept, and what is kept with it."""

    journal: Journal | str | None
    run_id: str | None
    create: bool
    data: Any
    labels: Labels
    rules: Iterable[StandingRule]


class OpenOptions(StoreOptions, total=False):
    """Arguments of `open_run` that other calls pass on; see there."""

    model: str | Model | None
    context_windows: Mapping[str, int] | None
    limits: Limits | None
    run_limits: RunLimits | None
    policy: Policy | Preset | None
    background: bool
    extra_instructions: str | Mapping[str, str]
    extra_scope: Literal["entry", "all"]
    disabled_tools: Iterable[str]
    output_limits: OutputLimits | None
    endpoints: Mapping[str, EndpointOptions] | None
    dependency_overrides: Mapping[str, Callable[[ToolContext], Any]] | None
    renamed: Mapping[str, str] | None
    missing: Literal["rest", "drop", "refuse"]
    clock: Clock | None
    env: Mapping[str, str] | None


class StreamOptions(OpenOptions, total=False):
    """Arguments of `stream` by name, but for `deps`."""

    agents: Iterable[AnyAgent]
    attachments: Iterable[Attachment]
    tools: Iterable[Tool | Callable[..., object]]
    interactive: bool


class RunOptions(OpenOptions, total=False):
    """Arguments of `run` and `run_sync` by name, but for `deps`."""

    agents: Iterable[AnyAgent]
    attachments: Iterable[Attachment]
    tools: Iterable[Tool | Callable[..., object]]
    on_input: InputHandler | None


class MapOptions(OpenOptions, Generic[Item], total=False):
    """Arguments of `map` and `map_sync` by name, but for `deps`."""

    message: Callable[[Item], str] | None
    attachments: Callable[[Item], Iterable[Attachment]] | None
    key: Callable[[Item], str] | None
    concurrency: int
    agents: Iterable[AnyAgent]
    tools: Iterable[Tool | Callable[..., object]]
    on_input: InputHandler | None
    on_result: Callable[[int, Result], object] | None
    progress: bool
