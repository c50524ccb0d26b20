"""The reply to a message that was worked on: an answer or an error, and how it went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antiphon.styles.tasks.messages.message import MessageType, StructuredMessage

ANSWERS: Mapping[str, str] = {
    MessageType.TASK: MessageType.RESULT,
    MessageType.TOOL_REQUEST: MessageType.TOOL_RESPONSE,
}
"""The type of an answer by that of the message; of any other it is a response."""


def reply_to(
    message: StructuredMessage,
    worker: str,
    outcome: str,
    output: str,
    why: str,
    results: Iterable[Mapping[str, Any]] = (),
    calls: Iterable[Mapping[str, Any]] = (),
) -> StructuredMessage:
    """What a worker answers, with the results of its tools, those of the message's own calls first.

    calls: those that the worker made itself. The metadata say the `outcome`, `why` where there is a reason
    to give, and the `status`: `completed`, `partial` when some of the message's calls failed, `failed`
    when all did or there is no answer. Without one it is of type `error`, and has what there was of it
    as `output`.
    """
    found, asked = list(results), len(message.open_tool_calls)
    if outcome == "completed":
        reply = StructuredMessage.create_response(output, message)
        reply.metadata["type"] = ANSWERS.get(message.message_type, MessageType.RESPONSE)
    else:
        reply = StructuredMessage.create_error(why or outcome, message)
        reply.metadata["output"] = output
    reply.source_agent = worker
    taken: set[str] = set()
    for each in calls:
        # Of two calls of one id the first has it; the results say what came of both.
        call_id = each["id"] if each["id"] not in taken else None
        taken.add(reply.add_tool_call(each["name"], each["arguments"], call_id))
    for each in found:
        reply.add_tool_result(**each)
    if why:
        reply.metadata["why"] = why
    reply.metadata["outcome"] = outcome
    reply.metadata["status"] = _status(outcome, found[:asked])
    return reply


def noted(message: StructuredMessage, by: str) -> StructuredMessage:
    """What somebody says to a STATUS or an ERROR, on which nobody works: a STATUS, which needs no answer."""
    said = f"Noted; a message of type {message.message_type} is not worked on"
    reply = StructuredMessage.create_status(said, message, {"outcome": "skipped", "status": "noted"})
    reply.source_agent = by
    return reply


def _status(outcome: str, results: Sequence[Mapping[str, Any]]) -> str:
    failed = [each for each in results if each["status"] != "success"]
    if outcome != "completed" or (failed and len(failed) == len(results)):
        return "failed"
    return "partial" if failed else "completed"
