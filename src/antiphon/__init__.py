"""Antiphon: a runtime for teams of LLM agents. One kernel, five wiring styles, every run a journal."""

from antiphon.agent import ALL, Agent, Retry
from antiphon.conversation import Conversation, open_run
from antiphon.entry import run, run_sync, stream
from antiphon.errors import AntiphonError, ModelError, RunFailed, ToolError, UserError
from antiphon.journal import open_journal
from antiphon.limits import UNLIMITED, Limits
from antiphon.message import Attachment, Message, ToolCall, ToolResult
from antiphon.model import Example, Model, Usage
from antiphon.policy import Policy
from antiphon.result import Result
from antiphon.stream import Piece, Record
from antiphon.tool import Tool, ToolContext, tool

__version__ = "0.1.0"

__all__ = [
    "ALL",
    "Agent",
    "AntiphonError",
    "Attachment",
    "Conversation",
    "Example",
    "Limits",
    "Message",
    "Model",
    "ModelError",
    "Piece",
    "Policy",
    "Record",
    "Result",
    "Retry",
    "RunFailed",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "UNLIMITED",
    "Usage",
    "UserError",
    "open_journal",
    "open_run",
    "run",
    "run_sync",
    "stream",
    "tool",
]
