"""Task: work for one worker, read from the message it came in; TaskEnd: how it ended."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from antiphon import Message, ToolCall
from antiphon.errors import UnknownName
from antiphon.styles.tasks.agent import calls_of
from antiphon.styles.tasks.errors import InvalidMessage
from antiphon.styles.tasks.messages import codec
from antiphon.styles.tasks.messages.enclosed import enclosed, has_results, metadata_of
from antiphon.styles.tasks.messages.message import NOTICES, MessageType, StructuredMessage
from antiphon.styles.tasks.scheduling.deadline import instant
from antiphon.values.hooks import CallResult
from antiphon.values.message import USER

PRIORITIES: Mapping[str, float] = {"high": 1.0, "medium": 0.0, "low": -1.0}
"""Priorities that have a name; a task that says none is of medium priority."""


class Task(Struct, frozen=True):
    """Work for one worker. until: when it must be done, Unix seconds. data: what comes with the message."""

    task_id: str
    worker: str
    content: str
    priority: float = 0.0
    until: float | None = None
    calls: tuple[ToolCall, ...] = ()
    data: Any = None


class TaskEnd(Struct, frozen=True):
    """How a task ended; without an outcome it has not. content: its result, or the best partial one."""

    task_id: str
    worker: str
    outcome: str = ""
    content: str = ""
    why: str = ""
    until: float | None = None

    def ended(self, outcome: str, content: str, why: str) -> TaskEnd:
        """The same task, ended. Of one that a limit stopped, `why` says its deadline too."""
        if outcome == "limit" and self.until is not None:
            why = f"{why}; its deadline was {datetime.fromtimestamp(self.until, UTC).isoformat()}"
        return replace(self, outcome=outcome, content=content, why=why)

    def as_in(self, call: CallResult) -> TaskEnd:
        """The same task, ended as the call of its worker did."""
        return self.ended(call.outcome, call.content, call.reason)


def mail_of(message: StructuredMessage) -> Message:
    """A message as the kernel carries it to whom it is addressed. Raises InvalidMessage, InvalidArguments."""
    return Message(
        "forward",
        message.source_agent or USER,
        message.target_agent or "",
        message.content,
        task_id=message.task_id,
        intent=MessageType.TASK,
        calls=calls_of(message.open_tool_calls),
        data=enclosed(message),
    )


def task_id_of(message: Message) -> str:
    """The task's id: its thread, or the message's own id when it is in none."""
    return message.task_id or message.id


def read_task(message: Message, controller: str, workers: Collection[str], at: float) -> Task:
    """The task that a message carries; durations in it count from `at`.

    A message to the controller itself is a StructuredMessage as JSON, or, when there is one worker
    only, that one's task as it is. Raises InvalidMessage, UnknownName.
    """
    asked = message
    if message.receiver == controller and message.content.lstrip().startswith("{"):
        asked = _unfolded(message)
    worker = asked.receiver
    if worker in ("", controller) and len(workers) == 1:
        (worker,) = workers
    if worker in ("", controller):
        known = ", ".join(workers)
        raise InvalidMessage(f'The task names no worker: say "target_agent". Known: {known}')
    if worker not in workers:
        raise UnknownName("worker", worker, workers)
    if not asked.content and not asked.calls and not has_results(asked.data):
        raise InvalidMessage("The task has neither content nor tool calls; give it one")
    labels = metadata_of(asked.data)
    if str(labels.get("type")) in NOTICES:
        raise InvalidMessage(f"A message of type {labels['type']} is no task; nobody works on it")
    until = labels.get("deadline")
    return Task(
        task_id_of(message),
        worker,
        asked.content,
        read_priority(labels.get("priority")),
        None if until is None else instant(until, at),
        asked.calls,
        asked.data,
    )


def _unfolded(message: Message) -> Message:
    """The message that another one's text describes."""
    described = codec.from_json(message.content)
    if not isinstance(described, dict):
        raise InvalidMessage(f"A message is a dictionary; got {type(described).__name__}")
    return mail_of(StructuredMessage.from_dict({**described, "task_id": task_id_of(message)}))


def read_priority(said: Any) -> float:
    """A priority as a number: the higher, the sooner. Raises InvalidMessage."""
    if said is None:
        return 0.0
    if isinstance(said, str) and said.lower() in PRIORITIES:
        return PRIORITIES[said.lower()]
    if isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said):
        return float(said)
    raise InvalidMessage(f"priority: expected a number or one of {', '.join(PRIORITIES)}; got {said!r:.80}")
