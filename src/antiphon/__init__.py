"""Antiphon: a runtime for teams of LLM agents. One kernel, five wiring styles, every run a journal."""

from antiphon.errors import AntiphonError, ModelError, RunFailed, ToolError, UserError
from antiphon.journal import open_journal
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.kernel.run.api import run, run_sync, stream
from antiphon.kernel.run.batch.map import map, map_sync
from antiphon.kernel.run.open import open_run
from antiphon.kernel.run.run import Run
from antiphon.values.agent import ALL, Agent, LoopOptions, ModelOptions, RetryPolicy, Topics
from antiphon.values.hooks import Hooks
from antiphon.values.limits import UNLIMITED, Limits, RunLimits
from antiphon.values.message import Attachment, Message, ToolCall, ToolResult
from antiphon.values.model import Example, Model, Usage
from antiphon.values.policy import Policy
from antiphon.values.result import Result
from antiphon.values.tool import Tool, ToolContext, tool

__version__ = "0.1.0"

__all__ = [
    "ALL",
    "Agent",
    "AntiphonError",
    "Attachment",
    "Example",
    "Hooks",
    "Limits",
    "LoopOptions",
    "Message",
    "Model",
    "ModelError",
    "ModelOptions",
    "Policy",
    "Record",
    "ReplyDelta",
    "Result",
    "RetryPolicy",
    "Run",
    "RunFailed",
    "RunLimits",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Topics",
    "UNLIMITED",
    "Usage",
    "UserError",
    "map",
    "map_sync",
    "open_journal",
    "open_run",
    "run",
    "run_sync",
    "stream",
    "tool",
]
