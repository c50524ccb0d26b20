"""Loop: one agent in one streaming tool loop, with its design document's options, events and sessions.

    agent = LoopAgent(llm="openai:gpt-5", tools=[search], system_prompt="You find things.")
    answer = await agent.run("Where is it?")
    async with agent.run_stream("And now?") as events:
        async for event in events: ...

It adds no machinery: an Agent that works alone (`standalone`), does its calls in order, continues its
conversation and sums up at its limit; and a projection of the run's records to events.
"""

from antiphon.styles.loop.agent import AbortError, LoopAgent
from antiphon.styles.loop.events import (
    MARKER,
    NO_SUMMARY,
    AgentEvent,
    CompactionCompleteEvent,
    CompactionStartEvent,
    DeltaEvent,
    FinalResponseEvent,
    HiddenUserMessageEvent,
    LlmRetryEvent,
    LoopEvent,
    PermissionPreviewEvent,
    PermissionReadyEvent,
    ReasoningEvent,
    StepCompleteEvent,
    StepStartEvent,
    TextEvent,
    ToolCallEvent,
    ToolProgressEvent,
    ToolResultEvent,
    loop_events,
)  # fmt: skip
from antiphon.styles.loop.options import (
    AgentOptions,
    AgentServices,
    ModelRegistry,
    ModelUsage,
    UsageSummary,
)  # fmt: skip
from antiphon.styles.loop.permission import ToolPermission, ToolPermissionHook
from antiphon.styles.loop.store import SessionStore, healed
from antiphon.styles.loop.stream import LoopStream
from antiphon.values.tool import Dependency, Done

TaskComplete = Done
"""The design document's name of the exception by which a tool ends the task."""

__all__ = [
    "AbortError",
    "AgentEvent",
    "AgentOptions",
    "AgentServices",
    "CompactionCompleteEvent",
    "CompactionStartEvent",
    "DeltaEvent",
    "Dependency",
    "FinalResponseEvent",
    "HiddenUserMessageEvent",
    "LlmRetryEvent",
    "LoopAgent",
    "LoopEvent",
    "LoopStream",
    "MARKER",
    "ModelRegistry",
    "ModelUsage",
    "NO_SUMMARY",
    "PermissionPreviewEvent",
    "PermissionReadyEvent",
    "ReasoningEvent",
    "SessionStore",
    "StepCompleteEvent",
    "StepStartEvent",
    "TaskComplete",
    "TextEvent",
    "ToolCallEvent",
    "ToolPermission",
    "ToolPermissionHook",
    "ToolProgressEvent",
    "ToolResultEvent",
    "UsageSummary",
    "healed",
    "loop_events",
]
