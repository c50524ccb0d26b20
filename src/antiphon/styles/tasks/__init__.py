"""Tasks: structured messages between agents, and toolkits with permissions.

    toolkit = AgentToolkit()
    toolkit.register_tool(get_weather)
    toolkit.grant_permission("weather_agent", "get_weather")
    agent = ToolCapableAgent("weather_agent", "weather", toolkit=toolkit)
    reply = agent.process_structured_message(StructuredMessage("What's the weather in New York?"))

    controller = Controller([Worker(agent, concurrency=2), writer])
    replies = await controller.run_tasks([task, another])

A message is a value that any thread or process may make, change and hand on; a worker is an `Agent`
whose tools are what the toolkit permits, and whose `judge` asks the toolkit again at every call. A
controller is an `Agent` without a model: two rules that say, from the journal, which task begins next.
"""

from antiphon.styles.tasks.agent import ToolCapableAgent
from antiphon.styles.tasks.controller import Controller
from antiphon.styles.tasks.errors import (
    DuplicateTool,
    InvalidArguments,
    InvalidMessage,
    NotPermitted,
    UnknownTool,
)
from antiphon.styles.tasks.messages.message import MessageType, StructuredMessage
from antiphon.styles.tasks.scheduling.progress import TaskStatus
from antiphon.styles.tasks.toolkits.declared import ExecutableTool
from antiphon.styles.tasks.toolkits.permissions import AuditEntry
from antiphon.styles.tasks.toolkits.toolkit import AgentToolkit
from antiphon.styles.tasks.worker import Worker

__all__ = [
    "AgentToolkit",
    "AuditEntry",
    "Controller",
    "DuplicateTool",
    "ExecutableTool",
    "InvalidArguments",
    "InvalidMessage",
    "MessageType",
    "NotPermitted",
    "StructuredMessage",
    "TaskStatus",
    "ToolCapableAgent",
    "UnknownTool",
    "Worker",
]
