"""StructuredMessage: what agents say to each other, with tool calls, tool results and a thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from antiphon.styles.tasks.errors import InvalidMessage
from antiphon.styles.tasks.messages import codec
from antiphon.values.message import Message, new_id


class MessageType:
    """What `metadata["type"]` may say.

    How a message travels does not depend on it. Nobody works on a STATUS or an ERROR; a TASK is answered
    with a RESULT, a TOOL_REQUEST with a TOOL_RESPONSE, everything else with a RESPONSE.
    """

    QUERY: Final = "query"
    TASK: Final = "task"
    RESPONSE: Final = "response"
    RESULT: Final = "result"
    ERROR: Final = "error"
    STATUS: Final = "status"
    TOOL_REQUEST: Final = "tool_request"
    TOOL_RESPONSE: Final = "tool_response"


MESSAGE_TYPES: Final = (
    MessageType.QUERY,
    MessageType.TASK,
    MessageType.RESPONSE,
    MessageType.RESULT,
    MessageType.ERROR,
    MessageType.STATUS,
    MessageType.TOOL_REQUEST,
    MessageType.TOOL_RESPONSE,
)
"""All of them."""
NOTICES: Final = frozenset({MessageType.STATUS, MessageType.ERROR})
"""Types of messages that are read, and not worked on."""
RESULTS: Final = "$tool_results"
"""In the data of the kernel's message, beside the metadata: the tool results."""
UNKNOWN: Final = "unknown"
"""The `message_type` of a message that names none."""


class StructuredMessage:
    """One message. Its attributes may be set; adding calls and results is safe from many threads.

    task_id: the thread, the same in a message and its replies; a new one by default.
    timestamp: Unix seconds; now by default.
    tool_calls: `{"name", "arguments", "id"}` each; an id that is missing is made.
    tool_results: `{"name", "result", "call_id", "status", "error"}` each.
    source_agent, target_agent: who sends it, and to whom; None until set.

    It may be copied and handed to another process (`multiprocessing.Queue`, a process pool), with whatever
    in it may be. The dictionaries given are copied, never changed. Raises InvalidMessage naming what is
    wrong.
    """

    def __init__(
        self,
        content: str,
        metadata: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        timestamp: float | None = None,
        tool_calls: Iterable[Mapping[str, Any]] | None = None,
        tool_results: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self.content: str = _checked(content, str, "content", "text")
        labels = {} if metadata is None else metadata
        self.metadata: dict[str, Any] = dict(_checked(labels, Mapping, "metadata", "a dictionary"))
        self.task_id: str = _checked(task_id or new_id(), str, "task_id", "text")
        self.timestamp: float = _instant(timestamp)
        self.tool_calls: list[dict[str, Any]] = []
        self._call_ids: set[str] = set()
        self.tool_results: list[dict[str, Any]] = []
        self.source_agent: str | None = None
        self.target_agent: str | None = None
        for place, call in enumerate(_listed(tool_calls, "tool_calls")):
            self._take_call(call, f"tool_calls[{place}]")
        for place, result in enumerate(_listed(tool_results, "tool_results")):
            self._take_result(result, f"tool_results[{place}]")

    def _take_call(self, call: Mapping[str, Any], where: str) -> None:
        name = _checked(call.get("name"), str, f"{where}.name", "text")
        given = call.get("arguments")
        arguments = _checked({} if given is None else given, Mapping, f"{where}.arguments", "a dictionary")
        call_id = call.get("id")
        if call_id is not None:
            _checked(call_id, str, f"{where}.id", "text")
        self.add_tool_call(name, arguments, call_id)

    def _take_result(self, result: Mapping[str, Any], where: str) -> None:
        self.add_tool_result(
            _checked(result.get("name"), str, f"{where}.name", "text"),
            result.get("result"),
            _checked(result.get("call_id"), str, f"{where}.call_id", "text"),
            result.get("status", "success"),
            result.get("error"),
        )

    # -- what it is ------------------------------------------------------------------------------

    @property
    def message_type(self) -> str:
        """`metadata["type"]`, or `unknown`."""
        return str(self.metadata.get("type", UNKNOWN))

    @property
    def has_tool_calls(self) -> bool:
        """Whether it asks for a tool."""
        return bool(self.tool_calls)

    @property
    def has_tool_results(self) -> bool:
        """Whether it brings a tool's result."""
        return bool(self.tool_results)

    @property
    def open_tool_calls(self) -> list[dict[str, Any]]:
        """The calls that it brings no result of: those that are still to be done."""
        with self._lock:
            done = {result["call_id"] for result in self.tool_results}
            return [{**call} for call in self.tool_calls if call["id"] not in done]

    @property
    def is_notice(self) -> bool:
        """Whether it only tells something, a STATUS or an ERROR, so that nobody works on it."""
        return self.message_type in NOTICES

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StructuredMessage):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment] # it can change

    def __repr__(self) -> str:
        route = f"{self.source_agent} → {self.target_agent}"
        return f"StructuredMessage({self.message_type}, {route}, {self.content[:60]!r}, task {self.task_id})"

    # -- calls and results -----------------------------------------------------------------------

    def add_tool_call(
        self, name: str, arguments: Mapping[str, Any] | None = None, call_id: str | None = None
    ) -> str:
        """Ask for a tool; returns the id of the call. Raises InvalidMessage for an id that is taken."""
        taken = call_id or new_id()
        added = {"name": name, "arguments": dict(arguments or {}), "id": taken}
        with self._lock:
            if taken in self._call_ids:
                raise InvalidMessage(
                    f"Two tool calls have the id {taken!r:.80}; leave it out to get a new one"
                )
            self._call_ids.add(taken)
            self.tool_calls.append(added)
        return taken

    def add_tool_result(
        self, name: str, result: Any, call_id: str, status: str = "success", error: str | None = None
    ) -> None:
        """Add what the call `call_id` gave back; with status `error`, `error` says why it failed."""
        added = {"name": name, "result": result, "call_id": call_id, "status": status, "error": error}
        with self._lock:
            self.tool_results.append(added)

    # -- replies ---------------------------------------------------------------------------------

    @classmethod
    def create_response(
        cls, content: str, original_message: StructuredMessage, metadata: Mapping[str, Any] | None = None
    ) -> StructuredMessage:
        """The answer to a message, in its thread, back to whom it came from."""
        return cls._reply(content, original_message, MessageType.RESPONSE, metadata)

    @classmethod
    def create_error(
        cls, error_message: str, original_message: StructuredMessage | None = None
    ) -> StructuredMessage:
        """The news that something went wrong; with the original message its answer."""
        if original_message is None:
            return cls(error_message, {"type": MessageType.ERROR})
        return cls._reply(error_message, original_message, MessageType.ERROR, None)

    @classmethod
    def create_status(
        cls, content: str, original_message: StructuredMessage, metadata: Mapping[str, Any] | None = None
    ) -> StructuredMessage:
        """How far what a message asks for is, back to whom it came from; no answer is expected."""
        return cls._reply(content, original_message, MessageType.STATUS, metadata)

    @classmethod
    def create_task(
        cls,
        content: str,
        source_agent: str,
        target_agent: str,
        task_data: Mapping[str, Any] | None = None,
        task_id: str | None = None,
    ) -> StructuredMessage:
        """Work for another agent. task_data: more metadata; the type stays `task` whatever it holds."""
        task = cls(content, {**(task_data or {}), "type": MessageType.TASK}, task_id)
        task.source_agent, task.target_agent = source_agent, target_agent
        return task

    @classmethod
    def _reply(
        cls, content: str, original: StructuredMessage, type_: str, metadata: Mapping[str, Any] | None
    ) -> StructuredMessage:
        labels = {**(metadata or {}), "type": type_, "in_reply_to": original.task_id}
        reply = cls(content, labels, original.task_id)
        reply.source_agent, reply.target_agent = original.target_agent, original.source_agent
        return reply

    # -- transport -------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            held = {name: each for name, each in self.__dict__.items() if name != "_lock"}
            # Whoever has a copy changes it under a lock of its own.
            held["metadata"] = dict(self.metadata)
            held["tool_calls"] = [{**each, "arguments": dict(each["arguments"])} for each in self.tool_calls]
            held["tool_results"] = [dict(each) for each in self.tool_results]
            held["_call_ids"] = set(self._call_ids)
            return held

    def __setstate__(self, held: dict[str, Any]) -> None:
        self.__dict__.update(held, _lock=threading.Lock())

    def to_dict(self) -> dict[str, Any]:
        """The fields with their values as they are, in dictionaries and lists of their own."""
        with self._lock:
            return {
                "content": self.content,
                "metadata": dict(self.metadata),
                "task_id": self.task_id,
                "timestamp": self.timestamp,
                "tool_calls": [{**call, "arguments": dict(call["arguments"])} for call in self.tool_calls],
                "tool_results": [dict(result) for result in self.tool_results],
                "source_agent": self.source_agent,
                "target_agent": self.target_agent,
            }

    def to_json(self) -> str:
        """The fields as JSON, see `codec`. Raises InvalidMessage naming what cannot be written."""
        return codec.to_json(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StructuredMessage:
        """The message that `to_dict` described; only `content` must be there, unknown keys are ignored.

        Raises InvalidMessage.
        """
        if not isinstance(data, Mapping):
            raise InvalidMessage(f"A message is a dictionary; got {type(data).__name__}")
        if "content" not in data:
            found = ", ".join(map(str, data)) or "(nothing)"
            raise InvalidMessage(f"The message has no 'content'. Found: {found:.200}")
        message = cls(
            data["content"],
            data.get("metadata"),
            data.get("task_id"),
            data.get("timestamp"),
            data.get("tool_calls"),
            data.get("tool_results"),
        )
        message.source_agent = _agent(data, "source_agent")
        message.target_agent = _agent(data, "target_agent")
        return message

    @classmethod
    def from_message(cls, message: Message) -> StructuredMessage:
        """The message that a worker's own coroutine was given, as `ctx.new_messages` holds it.

        Its metadata, and its tool calls and results, are those of the message that the task came in. Raises
        InvalidMessage for data that is none of this style's.
        """
        metadata = codec.value(message.data)
        metadata = {} if metadata is None else dict(_checked(metadata, Mapping, "data", "a dictionary"))
        results = metadata.pop(RESULTS, [])
        calls = [
            {"name": each["name"], "arguments": each["arguments"], "id": each["call_id"]}
            for each in results
            if "arguments" in each
        ]
        calls += [
            {"name": each.name, "arguments": json.loads(each.arguments), "id": each.id}
            for each in message.calls
        ]
        made = cls(message.content, metadata, message.task_id, None, calls, results)
        made.source_agent, made.target_agent = message.sender, message.receiver
        return made

    @classmethod
    def from_json(cls, text: str, types: Iterable[type] = ()) -> StructuredMessage:
        """The message that `to_json` wrote.

        types: enumerations, dataclasses and Structs to make of the data of that name; without them
        it stays data. Raises InvalidMessage.
        """
        return cls.from_dict(codec.from_json(text, types))


def _checked(value: Any, type_: type, where: str, expected: str) -> Any:
    if not isinstance(value, type_):
        raise InvalidMessage(f"{where}: expected {expected}, got {type(value).__name__}")
    return value


def _instant(timestamp: Any) -> float:
    if timestamp is None:
        return time.time()
    if isinstance(timestamp, bool) or not isinstance(timestamp, int | float):
        raise InvalidMessage(f"timestamp: expected Unix seconds, got {type(timestamp).__name__}")
    return float(timestamp)


def _listed(given: Any, where: str) -> list[Mapping[str, Any]]:
    items = [] if given is None else given
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise InvalidMessage(f"{where}: expected a list, got {type(items).__name__}")
    return [_checked(each, Mapping, f"{where}[{at}]", "a dictionary") for at, each in enumerate(items)]


def _agent(data: Mapping[str, Any], which: str) -> str | None:
    name = data.get(which)
    return None if name is None else str(_checked(name, str, which, "text"))
